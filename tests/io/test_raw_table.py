"""Names are made unique, and annotations get a type that represents them exactly."""

import numpy as np
import pytest

from mrshc.io.raw_table import clean_unique_names, parse_annotation


def test_unique_names_never_collide_with_given_ones():
    rng = np.random.default_rng(0)
    for _ in range(300):
        names = [str(name) for name in rng.choice(["a", "a.2", "a.3", "", "b", "a.2.2"], size=9)]
        once = clean_unique_names(names, "sample")
        assert len(set(once)) == len(once)
        first = {name: names.index(name) for name in names if name}
        assert all(once[i] == name for name, i in first.items())


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-20"], "i"),
        (["1e18", "-9e18"], "i"),
        (["1e20", "2e20"], "f"),
        (["9.3e18", "1"], "f"),
        (["-1e25", "NA"], "f"),
        (["1e308", "1"], "f"),
        (["1e999", "1"], "O"),
        (["9223372036854775807", "1"], "O"),
    ],
)
def test_annotations_of_large_numbers(cells, kind):
    values = parse_annotation(cells)
    assert values.dtype.kind == kind
    if kind != "O":
        wanted = [np.nan if cell == "NA" else float(cell) for cell in cells]
        np.testing.assert_array_equal(values.astype(float), wanted)


def test_whole_numbers_stay_whole_if_some_are_missing():
    grades = parse_annotation(["3", "NA", "2"])
    assert grades.dtype == "Int64"
    assert [str(grade) for grade in grades] == ["3", "<NA>", "2"]
    assert parse_annotation(["3.5", None, "2"]).dtype == np.float64
    assert parse_annotation([34.0, float("nan")]).dtype == "Int64"
