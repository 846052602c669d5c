"""Annotations with names are matched by them, whatever their order."""

import numpy as np
import pandas as pd
import pytest

from mrshc import HighVarianceHC
from mrshc.plotting import heatmap_plot as heatmap
from mrshc.plotting import tree_plots as dendrogram
from mrshc.plotting import write_picture

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
