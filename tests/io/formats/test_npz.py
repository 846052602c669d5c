"""Archives of numpy hold a matrix, names and annotations; others are refused."""

import zipfile

import numpy as np
import pytest

from mrshc.io import TableError, read_table
from small_table import FEATURES, SAMPLES, X, assert_read


def test_numpy_archives_hold_names_and_annotations(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X, sample_names=SAMPLES, feature_names=FEATURES, y=list("uvu"), other=[1, 2])
    table = read_table(path)
    assert_read(table)
    assert table.sample_annotations["y"].tolist() == list("uvu")
    np.savez(path, values=X.T, feature_names=FEATURES)
    assert list(read_table(path).feature_names) == FEATURES
    np.savez(path, a=X, b=X)
    with pytest.raises(TableError, match="a matrix called 'X' or a single one, but holds 2"):
        read_table(path)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"sample_names": SAMPLES[:2]}, r"sample_names of shape \(2,\)"),
        ({"feature_names": [*FEATURES, "more"]}, r"feature_names of shape \(5,\)"),
        ({"sample_names": [[name] for name in SAMPLES]}, r"sample_names of shape \(3, 1\)"),
        ({"sample_names": SAMPLES, "feature_names": FEATURES[:1]}, r"\(3,\) and feature_names of"),
        ({"sample_names": []}, r"sample_names of shape \(0,\)"),
    ],
)
def test_names_of_another_number_are_refused(tmp_path, names, found):
    path = tmp_path / "data.npz"
    np.savez(path, X=X, **names)
    with pytest.raises(TableError, match=rf"{found}.* for a matrix of shape \(3, 4\)\. Give"):
        read_table(path)


def archive(path, *members):
    with zipfile.ZipFile(path, "w") as content:
        for member in members:
            content.writestr(member, "1,2\n3,4\n")
    return path


def test_archives_that_hold_no_arrays(tmp_path):
    with pytest.raises(TableError, match=r"is an archive with 'table\.csv' in it.* Unpack it"):
        read_table(archive(tmp_path / "a.csv.zip", "table.csv"))
