"""GCT files are read as they were written, and refused where their sizes do not agree."""

import numpy as np
import pytest

from mrshc.exports import gct
from mrshc.io import TableError, read_table
from small_table import FEATURES, SAMPLES, X


def test_gct_reads_back_what_was_written(write):
    names = {"feature_names": FEATURES, "sample_names": SAMPLES}
    about = {
        "sample_annotations": {"class": list("xyx")},
        "feature_annotations": {"w": [1, 2, 3, 4]},
    }
    for extra in ({}, about):
        gaps = X.copy()
        gaps[1, 2] = np.nan
        table = read_table(write(gct(gaps, **names, **extra)))
        np.testing.assert_array_equal(table.X, gaps)
        assert list(table.feature_names) == FEATURES
        assert "as the format defines" in table.notes[0]
    assert table.sample_annotations["class"].tolist() == list("xyx")
    assert table.feature_annotations["w"].tolist() == [1, 2, 3, 4]


GCT = "#1.2\n{}\t3\nName\tDescription\ta\tb\tc\n" + "".join(
    f"g{i}\t\t{i}\t2\t3\n" for i in range(3)
)


@pytest.mark.parametrize("size", ["٣", "³", "3" * 5000, "-3", "3.0", ""])
def test_sizes_of_a_gct_file_are_plain_digits(tmp_path, size):
    (tmp_path / "table.gct").write_text(GCT.format(size), encoding="utf-8")
    with pytest.raises(TableError, match=f"must give its size as two numbers .* is '{size[:20]}"):
        read_table(tmp_path / "table.gct")
