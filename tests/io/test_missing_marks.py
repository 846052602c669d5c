"""Texts and numbers that stand for missing values are read as missing."""

import numpy as np
import pandas as pd
import pytest

from mrshc.io import TableError, read_table
from small_table import FEATURES, SAMPLES, X, features_in_rows

GCT = "#1.2\n2\t3\nName\tDescription\ta\tb\tc\nx\t.\t1\tND\t3\ny\t.\t-9\t5\t6\n"


@pytest.mark.parametrize("cell", ["ND", "nd", " ND ", "below limit", "-999", "-999.0", "-9.99e2"])
def test_spellings_are_missing_in_text(write, cell):
    table = read_table(
        write(features_in_rows(",", missing=cell)), na_values=["ND", "below limit", "-999"]
    )
    assert np.isnan(table.X[2, 1])
    assert np.isnan(table.X).sum() == 1
    assert table.reading["na_values"] == ["ND", "below limit", "-999"]


def test_without_the_option_they_are_a_mistake(write):
    with pytest.raises(TableError, match="text 'ND' where a number should be"):
        read_table(write(features_in_rows(",", missing="ND")))


def test_spellings_are_missing_in_long_tables(write):
    """Most rows are read in blocks, by other code."""
    values = np.random.default_rng(0).normal(size=(600, 4)).round(3).astype(object)
    values[5, 1] = values[400, 2] = "n.d."
    values[30, 3] = values[500, 0] = -99
    frame = pd.DataFrame(values, columns=list("abcd")).assign(kind="tumour")
    frame.loc[[7, 450], "kind"] = "n.d."
    path = write(frame.to_csv(index_label="gene"))
    table = read_table(path, na_values=["n.d.", -99])
    assert np.argwhere(np.isnan(table.X.T)).tolist() == [[5, 1], [30, 3], [400, 2], [500, 0]]
    assert table.feature_annotations["kind"].isna().sum() == 2
    assert "4 of 2,400 values are missing." in table.notes


def test_a_first_row_of_data_with_a_spelling_is_data(write):
    rows = features_in_rows(",", missing="ND").splitlines()[1:]
    rows = [rows[1].partition(",")[2], *(row.partition(",")[2] for row in rows)]
    table = read_table(write("\n".join(rows)), na_values=["ND"], features="rows")
    assert table.X.shape == (3, 5)


def test_names_are_not_replaced(write):
    text = features_in_rows(",").replace("g2", "ND").replace("gene", "ND")
    assert list(read_table(write(text), na_values=["ND"]).feature_names) == ["g1", "ND", "g3", "g4"]


def test_other_formats(write, tmp_path):
    table = read_table(write(GCT), na_values=["nd", "-9"])
    np.testing.assert_array_equal(table.X, [[1, np.nan], [np.nan, 5], [3, 6]])
    values = X.copy()
    values[1, 2] = -999
    for dtype in (np.float32, np.float64):
        np.savez(
            tmp_path / "t.npz", X=values.astype(dtype), sample_names=SAMPLES, feature_names=FEATURES
        )
        table = read_table(tmp_path / "t.npz", na_values=[-999])
        assert np.isnan(table.X[1, 2])
        assert table.X.dtype == dtype
    np.save(tmp_path / "t.npy", values)
    with pytest.raises(
        TableError, match=r"stays in its file.*Give in_memory=True, or leave na_val"
    ):
        read_table(tmp_path / "t.npy", na_values=[-999], in_memory=False)


def test_the_command_line_takes_several(write, tmp_path, main):
    values = np.random.default_rng(0).normal(size=(10, 30)).round(3).astype(object)
    values[2, 3], values[4, 5] = "ND", -999
    path = write(pd.DataFrame(values.T).add_prefix("s").to_csv(index_label="gene"))
    options = ("--method", "hmv", "-q", 5, "-k", 2, "--out", tmp_path / "out")
    code, printed, _ = main("cluster", path, "--na-values", "ND", "--na-values", "-999", *options)
    assert code == 0
    assert "2 of 300 values are missing." in printed
