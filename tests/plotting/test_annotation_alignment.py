"""Annotations, names and values with an index are aligned with the samples of the fit."""

import numpy as np
import pandas as pd
import pytest

from mrshc import HighVarianceHC
from mrshc.plotting import dendrogram, dendrograms, heatmap, silhouettes, write_picture

VALUES = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
NAMED = pd.DataFrame(VALUES, index=list("wxyz"), columns=["f", "g"])
CLASSES = pd.DataFrame({"class": ["a", "a", "b", "c"]}, index=list("wxyz"))
SHUFFLED = CLASSES.loc[["y", "w", "z", "x"]]


def fitted(X):
    return HighVarianceHC(1, n_clusters=2).fit(X)


def colours(ax):
    """Return the colours of the names of the leaves, by name."""
    return {label.get_text(): label.get_color() for label in ax.get_xticklabels()}


@pytest.mark.parametrize("annotations", [SHUFFLED, {"class": SHUFFLED["class"]}])
def test_shuffled_annotations_give_the_same_colours_as_sorted_ones(annotations):
    model = fitted(NAMED)
    expected = colours(dendrogram(model, annotations=CLASSES, names="wxyz"))
    assert colours(dendrogram(model, annotations=annotations, names="wxyz")) == expected
    assert len(set(expected.values())) == 3


def written(figure, folder):
    write_picture(figure, folder / "picture.png")
    return (folder / "picture.png").read_bytes()


def test_a_series_is_matched_by_its_index_in_every_plot_of_annotations(tmp_path):
    model, series = fitted(NAMED), SHUFFLED["class"]
    expected = colours(dendrogram(model, annotations=CLASSES))
    assert colours(dendrogram(model, annotations=series)) == expected
    assert colours(dendrograms({"it": model}, annotations=series).axes[0]) == expected
    loci = pd.DataFrame({"locus": ["u", "v"]}, index=["g", "f"])
    pictures = [
        written(heatmap(model, NAMED, annotations=a, feature_annotations=b), tmp_path)
        for a, b in ((CLASSES, loci), (series, loci["locus"].iloc[::-1]))
    ]
    assert pictures[0] == pictures[1]


def test_annotations_are_matched_to_the_names_shown_if_the_fit_had_none():
    model = fitted(VALUES)
    expected = colours(dendrogram(model, annotations=CLASSES, names="wxyz"))
    assert colours(dendrogram(model, annotations=SHUFFLED, names="wxyz")) == expected


def test_annotations_of_more_samples_are_matched():
    more = pd.concat([pd.DataFrame({"class": ["q"]}, index=["v"]), SHUFFLED])
    model = fitted(NAMED)
    expected = colours(dendrogram(model, annotations=CLASSES, names="wxyz"))
    assert colours(dendrogram(model, annotations=more, names="wxyz")) == expected


def test_a_shuffled_numbered_index_is_matched_to_a_numbered_fit():
    model = fitted(NAMED.reset_index(drop=True))
    by_number = CLASSES.reset_index(drop=True)
    expected = colours(dendrogram(model, annotations=by_number))
    assert colours(dendrogram(model, annotations=by_number.loc[[2, 0, 3, 1]])) == expected


def test_heat_maps_match_values_and_annotations_by_name(tmp_path):
    model = fitted(NAMED)
    other_order = NAMED.loc[["z", "x", "w", "y"]]
    expected = written(heatmap(model, NAMED, annotations=CLASSES), tmp_path)
    assert written(heatmap(model, other_order, annotations=SHUFFLED), tmp_path) == expected
    by_position = heatmap(model, other_order.to_numpy(), annotations=CLASSES, feature_names="fg")
    assert written(by_position, tmp_path) != expected


def test_names_that_do_not_match_are_refused():
    model = fitted(NAMED)
    with pytest.raises(ValueError, match="no entry for 1 of 4 samples, such as 'w'"):
        dendrogram(model, annotations=CLASSES.rename({"w": "q"}))
    twice = pd.concat([CLASSES, CLASSES.iloc[:1]])
    with pytest.raises(ValueError, match="several entries for 'w'"):
        dendrogram(model, annotations=twice)
    with pytest.raises(ValueError, match="selected must have one entry for each sample"):
        heatmap(model, NAMED.rename({"x": "q"}))


def test_a_shuffled_numbered_index_without_names_to_match_is_refused():
    shuffled = CLASSES.reset_index(drop=True).loc[[2, 0, 3, 1]]
    with pytest.raises(ValueError, match="Sort it by its index"):
        dendrogram(fitted(VALUES), annotations=shuffled)


def test_methods_of_a_fit_refuse_its_samples_in_another_order():
    model = fitted(NAMED)
    assert model.sample_distances(NAMED).shape == (4, 4)
    assert model.sample_distances(NAMED.reset_index(drop=True)).shape == (4, 4)
    with pytest.raises(ValueError, match="samples in the same order"):
        model.markers(NAMED.iloc[::-1])


def test_a_fit_without_names_forgets_those_of_an_earlier_one():
    model = fitted(NAMED)
    assert list(model.sample_names_in_) == list("wxyz")
    assert not hasattr(model.fit(VALUES), "sample_names_in_")


NUMBERED = pd.DataFrame(VALUES, columns=["f", "g"])  # with the index 0, 1, 2, 3
LEVELS = pd.DataFrame({"class": ["a", "a", "b", "c"]})


def with_each_index(frame):
    """Return the same table with an index of every class that can hold its values."""
    numbers = [int(i) for i in frame.index]
    yield frame
    yield frame.set_axis(pd.Index(numbers, dtype="int64"))
    yield frame.set_axis(pd.Index(numbers, dtype=object))
    yield frame.set_axis(pd.Index(numbers, dtype="Int64"))


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1), [2, 0, 3, 1]])
def test_the_class_of_a_numbered_index_does_not_matter(order):
    expected = colours(dendrogram(fitted(NUMBERED), annotations={"class": list("aabc")}))
    for frame in with_each_index(LEVELS.iloc[order]):
        assert colours(dendrogram(fitted(NUMBERED), annotations=frame)) == expected


def test_a_fit_to_shuffled_rows_is_matched_to_default_annotations():
    model = fitted(NUMBERED.loc[[2, 0, 3, 1]])
    expected = colours(dendrogram(model, annotations={"class": list("baca")}))
    assert colours(dendrogram(model, annotations=LEVELS)) == expected


@pytest.mark.parametrize("index", [pd.RangeIndex(5, 9), [5, 6, 7, 8], list("wxyz")])
@pytest.mark.parametrize("X", [NUMBERED, VALUES], ids=["numbered", "array"])
def test_an_index_of_other_samples_is_refused(X, index):
    with pytest.raises(ValueError, match=r"has no entry for 4 of 4|have no names to match"):
        dendrogram(fitted(X), annotations=LEVELS.set_axis(index))


def test_a_default_index_does_not_match_names():
    with pytest.raises(ValueError, match="no entry for 4 of 4 samples, such as 'w'"):
        dendrogram(fitted(NAMED), annotations=LEVELS)


def test_a_default_index_goes_by_position_where_the_fit_has_no_names():
    expected = colours(
        dendrogram(fitted(VALUES), annotations={"class": list("aabc")}, names="wxyz")
    )
    assert colours(dendrogram(fitted(VALUES), annotations=LEVELS, names="wxyz")) == expected


def leaves(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def test_names_in_a_series_are_matched_by_its_index(tmp_path):
    model = fitted(NAMED)
    names = pd.Series(["p", "q", "r", "s"], index=list("wxyz"))
    assert leaves(dendrogram(model, names=names[::-1])) == leaves(dendrogram(model, names="pqrs"))
    expected = written(heatmap(model, NAMED, names="pqrs"), tmp_path)
    assert written(heatmap(model, NAMED, names=names[::-1]), tmp_path) == expected
    (panel,) = dendrograms({"it": model}, names=names[::-1]).axes
    assert leaves(panel) == leaves(dendrogram(model, names="pqrs"))
    with pytest.raises(ValueError, match="names has an index in another order"):
        dendrogram(fitted(VALUES), names=names.reset_index(drop=True)[::-1])


def test_a_table_of_distances_is_matched_by_its_index():
    model = fitted(NAMED)
    distances = pd.DataFrame(
        model.sample_distances(NAMED), index=list("wxyz"), columns=list("wxyz")
    )
    distances.loc["w", "y"] = distances.loc["y", "w"] = 0.5
    expected = leaves(dendrogram(model, distances=distances.to_numpy(), names="wxyz"))
    mixed = distances.loc[list("zxwy"), list("ywzx")]
    assert leaves(dendrogram(model, distances=mixed, names="wxyz")) == expected
    with pytest.raises(ValueError, match="The columns of distances must have one entry"):
        dendrogram(model, distances=distances.rename(columns={"w": "q"}))


def test_silhouettes_are_matched_to_labels_and_names():
    widths = pd.Series([0.9, 0.2, 0.5], index=list("abc"))
    labels = pd.Series([0, 0, 1], index=list("abc"))
    ax = silhouettes(
        widths, labels.loc[list("cab")], names=pd.Series(list("xyz"), list("abc"))[::-1]
    )
    assert [bar.get_width() for bar in ax.patches] == [0.9, 0.2, 0.5]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x", "y", "z"]
    with pytest.raises(ValueError, match="labels has an index in another order"):
        silhouettes([0.9, 0.2, 0.5], labels.reset_index(drop=True)[::-1])
    with pytest.raises(ValueError, match="labels must have one entry for each sample"):
        silhouettes(widths, labels.rename({"a": "d"}))
