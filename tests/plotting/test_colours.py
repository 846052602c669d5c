import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mrshc.plotting import CLUSTER_PALETTE, PALETTE, annotation_bars, cluster_colours, level_colours
from mrshc.plotting.colours import MISSING_COLOUR, cluster_legend_entries, sequential_colour


def lightness(colour):
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_the_palette_comes_first_and_tints_differ_from_all_before():
    colours = level_colours(25)
    assert colours[:7] == PALETTE
    assert len(set(colours)) == 25
    assert MISSING_COLOUR not in colours


def test_colours_repeat_after_25_levels():
    assert level_colours(26)[25] == level_colours(25)[0]


def test_clusters_and_known_classes_share_no_colour():
    assert not set(cluster_colours(20)) & set(level_colours(20))


def test_a_cluster_keeps_its_colour_however_many_there_are():
    assert cluster_colours(3) == cluster_colours(9)[:3] == CLUSTER_PALETTE[:3]


def test_levels_are_sorted_naturally():
    (bar,) = annotation_bars({"c": ["class 10", "class 2", "class 1"]}, 3)
    assert [text for text, _ in bar.legend] == ["class 1", "class 2", "class 10"]
    assert bar.colours == (PALETTE[2], PALETTE[1], PALETTE[0])


def test_categories_keep_their_own_order():
    values = pd.Categorical(["high", "low", "high"], categories=["low", "middle", "high"])
    (bar,) = annotation_bars({"grade": pd.Series(values, index=[7, 8, 9])}, 3)
    assert bar.legend == (("low", PALETTE[0]), ("high", PALETTE[1]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_annotations(frame):
    values = {"sex": ["f", "m", "f"], "age": [30.0, 40.0, 50.0]}
    assert annotation_bars(frame(values), 3) == annotation_bars(values, 3)


def test_next_annotation_continues_in_the_palette():
    first, second = annotation_bars({"a": list("xyz"), "b": list("uvu")}, 3)
    assert not set(first.colours) & set(second.colours)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, pd.NaT])
def test_missing_values_are_grey_and_listed_in_the_legend(gone):
    (bar,) = annotation_bars({"c": ["a", gone, "b"]}, 3)
    assert bar.colours == (PALETTE[0], MISSING_COLOUR, PALETTE[1])
    assert bar.legend[-1] == ("missing", MISSING_COLOUR)


def test_annotation_without_any_value_is_all_missing():
    (bar,) = annotation_bars({"c": [None, None, None]}, 3)
    assert bar.legend == (("missing", MISSING_COLOUR),)


def test_a_single_level_is_one_colour():
    (bar,) = annotation_bars({"c": ["x"] * 4}, 4)
    assert set(bar.colours) == {PALETTE[0]}
    assert bar.legend == (("x", PALETTE[0]),)


def test_numbers_with_few_levels_are_groups():
    (bar,) = annotation_bars({"k": [2, 10, 1, 2]}, 4)
    assert bar.is_categorical
    assert [text for text, _ in bar.legend] == ["1", "2", "10"]


def test_numbers_with_many_levels_are_a_scale_that_darkens():
    values = [*np.linspace(20.0, 80.0, 13), np.nan, np.inf]
    (bar,) = annotation_bars({"age": values}, 15)
    assert not bar.is_categorical
    shades = [lightness(colour) for colour in bar.colours[:13]]
    assert all(a > b for a, b in itertools.pairwise(shades))
    assert bar.colours[13:] == (MISSING_COLOUR, MISSING_COLOUR)
    said = dict(bar.legend)
    assert said["80 (highest)"] == bar.colours[12]
    assert said["50"] == bar.colours[6]
    assert said["20 (lowest)"] == bar.colours[0]
    assert said["missing"] == MISSING_COLOUR


def test_a_scale_stays_within_its_ends():
    assert sequential_colour(-1.0) == sequential_colour(0.0)
    assert sequential_colour(2.0) == sequential_colour(1.0)


def test_long_legends_count_omitted_entries():
    (bar,) = annotation_bars({"site": [f"place {i}" for i in range(32)]}, 32)
    assert len(bar.legend) == 21
    assert bar.legend[-1] == ("... and 12 more", None)


def test_clusters_are_counted_from_one():
    assert cluster_legend_entries(cluster_colours(2)) == (
        ("cluster 1", CLUSTER_PALETTE[0]),
        ("cluster 2", CLUSTER_PALETTE[1]),
    )


def test_annotations_of_the_wrong_length_are_refused():
    with pytest.raises(
        ValueError, match=r"'sex' must hold one value for each of the 3 .* 2 values"
    ):
        annotation_bars({"sex": ["f", "m"]}, 3)
    with pytest.raises(ValueError, match=r"'sex' must hold one value .* got 'fmf'"):
        annotation_bars({"sex": "fmf"}, 3)


def test_a_series_is_a_single_annotation():
    series = pd.Series(["a", "b"])
    assert annotation_bars(series.rename("class"), 2) == annotation_bars({"class": series}, 2)
    assert [bar.name for bar in annotation_bars(series, 2)] == ["annotation"]


def test_annotations_need_names():
    with pytest.raises(TypeError, match="must be a mapping, a DataFrame or a Series"):
        annotation_bars(["a", "b"], 2)


def test_no_annotations_make_no_bars():
    assert annotation_bars(None, 5) == ()
