"""Invalid arguments of plotting functions are refused with a one-line message."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.cluster import KMeans

from mrshc import HighVarianceHC
from mrshc.plotting import (
    annotation_bars,
    cluster_colours,
    consensus_matrix,
    dendrogram,
    dendrogram_lines,
    dendrograms,
    feature_tree,
    gap_tests,
    heatmap,
    largest_loadings,
    level_colours,
    loadings,
    marker_panels,
    markers,
    search_curves,
    search_story,
    silhouette_rows,
    silhouettes,
    split_marks,
    standardised,
    usual_samples,
    write_picture,
)

X = np.random.default_rng(0).normal(size=(12, 5))
MODEL = HighVarianceHC(5, n_clusters=3).fit(X)
MODEL.split_tests_ = {
    "node": [22],
    "height": [MODEL.distances_[-1]],
    "drop": [0.5],
    "expected_drop": [0.3],
    "standard_error": [0.1],
    "supported": [True],
    "split": [True],
}
MODEL.search_results_ = {
    "n_clusters": [2, 3],
    "silhouette": [0.4, 0.6],
    "chosen": [False, True],
}
TESTS = {"node": [10], "p_value": [0.01], "significant": [True]}
CONSENSUS = np.eye(12)
MARKERS = pd.DataFrame(
    {"contrast": ["cluster"], "inside": ["1"], "feature": ["a"], "effect_size": [2.0]}
)
NO_TEXT = [5, 2.5, True, b"x", ["x"], float("nan")]
NO_LIST = [5, 2.5, True, 1j]
NO_AXES = [5, "x", True, [], Figure()]
NO_MODEL = [None, 5, "x", {}, HighVarianceHC(5)]
NO_COUNT = [10**30, 2**63, -1, True, 2.5, "x", None, [1]]
NO_NUMBERS = ["x", {}, object(), 1j, X + 1j, [["a"] * 12] * 12, X.astype("M8[s]"), [[10**400]]]
NO_TABLE = [None, 5, "x", [], {}, pd.DataFrame()]

# The function with all its other arguments, the argument, values that are refused, and how.
REFUSED = {
    "dendrogram": [
        (dendrogram, "model", NO_MODEL, "model must be a fitted estimator or a result with the"),
        (
            partial(dendrogram, MODEL),
            "names",
            NO_LIST,
            "names must be a list",
        ),
        (partial(dendrogram, MODEL), "title", NO_TEXT, "title must be a string"),
        (partial(dendrogram, MODEL), "ax", NO_AXES, "ax must be a matplotlib Axes or None, got"),
        (partial(dendrogram, MODEL), "cut", NO_COUNT[:-2], r"cut must be a whole number in \[1, 1"),
        (partial(dendrogram, MODEL), "distances", NO_NUMBERS, "distances must hold real numbers"),
        (
            partial(dendrogram, MODEL),
            "significance",
            [t for t in NO_TABLE if t is not None],
            "significance must be a table with the columns 'node', 'p_value', 'significant', got",
        ),
        (
            partial(dendrogram, MODEL),
            "significance",
            [TESTS | {"node": [11]}, TESTS | {"node": [-1]}],
            r"significance must be that of the tree, whose nodes have the rows 0 to 10, got the",
        ),
        (
            partial(dendrogram, MODEL),
            "significance",
            [TESTS | {"node": [1, 2]}, TESTS | {"significant": []}],
            "columns of significance must have the same length, got the shapes",
        ),
        (partial(dendrogram, MODEL), "stability", NO_NUMBERS, "stability must hold real numbers"),
        (
            partial(dendrogram, MODEL),
            "stability",
            [[0.5] * 12, 0.5, X],
            "stability must be that of the tree, with the support of 11 nodes, got the shape",
        ),
        (
            partial(dendrogram_lines, MODEL.linkage_matrix_),
            "distances",
            NO_NUMBERS,
            "distances must hold real numbers, got a",
        ),
    ],
    "dendrograms": [
        (dendrograms, "models", [5, [], {}, "x"], "models must map names to fitted estimators, at"),
        (dendrograms, "models", [{"a": HighVarianceHC(5)}], "model must be a fitted estimator or"),
        (dendrograms, "models", [{"a": KMeans(2).fit(X)}], "got only models without a tree"),
        (
            partial(dendrograms, {"a": MODEL}),
            "titles",
            [5, "x", [], ["a", "b"]],
            "titles must hold",
        ),
        (
            partial(dendrograms, {"a": MODEL}),
            "titles",
            [[5]],
            "title must be a string",
        ),
        (
            partial(dendrograms, {"a": MODEL}),
            "names",
            NO_LIST,
            "names must be a list",
        ),
    ],
    "gap_tests": [
        (partial(gap_tests, MODEL), "title", NO_TEXT, "title must be a string"),
        (partial(gap_tests, MODEL), "ax", NO_AXES, "ax must be a matplotlib Axes or None, got"),
        (gap_tests, "model", NO_MODEL, "gap_tests needs a model with split_tests_"),
        (split_marks, "tests", NO_TABLE, "tests must be a table with the columns 'node', 'height'"),
    ],
    "consensus_matrix": [
        (partial(consensus_matrix, stability=CONSENSUS), "model", NO_MODEL, "model must be a fit"),
        (partial(consensus_matrix, MODEL), "stability", NO_NUMBERS, "stability must hold real"),
        (
            partial(consensus_matrix, MODEL),
            "stability",
            [X, 0.5, CONSENSUS[1:, 1:]],
            "stability must hold the consensus of all pairs of the 12 samples of the tree, got",
        ),
        (partial(consensus_matrix, MODEL, CONSENSUS), "names", NO_LIST, "names must be a list"),
        (partial(consensus_matrix, MODEL, CONSENSUS), "title", NO_TEXT, "title must be a string"),
        (partial(consensus_matrix, MODEL, CONSENSUS), "ax", NO_AXES, "ax must be a matplotlib"),
    ],
    "heatmap": [
        (partial(heatmap, selected=X), "model", NO_MODEL, "model must be a fitted estimator or a"),
        (partial(heatmap, MODEL), "selected", NO_NUMBERS, "selected must hold real numbers, got"),
        (
            partial(heatmap, MODEL, X),
            "names",
            NO_LIST,
            "names must be a list",
        ),
        (
            partial(heatmap, MODEL, X),
            "feature_names",
            NO_LIST,
            "feature_names must be a list",
        ),
        (partial(heatmap, MODEL, X), "title", NO_TEXT, "title must be a string"),
        (feature_tree, "selected", [*NO_NUMBERS, X[0], X[:, :1]], "selected must hold"),
        (standardised, "selected", [*NO_NUMBERS, X[0], 5], "selected must hold"),
        (partial(usual_samples, outlying=None), "selected", NO_NUMBERS, "selected must hold real"),
    ],
    "silhouettes": [
        (partial(silhouettes, labels=MODEL.labels_), "widths", NO_NUMBERS, "widths must hold real"),
        (
            partial(silhouettes, X[:, 0], MODEL.labels_),
            "names",
            NO_LIST,
            "names must be a list",
        ),
        (
            partial(silhouettes, X[:, 0], MODEL.labels_),
            "title",
            NO_TEXT,
            "title must be a string",
        ),
        (partial(silhouettes, X[:, 0], MODEL.labels_), "ax", NO_AXES, "ax must be a matplotlib"),
        (
            partial(silhouette_rows, labels=MODEL.labels_),
            "widths",
            NO_NUMBERS,
            "widths must hold real numbers, got",
        ),
    ],
    "markers": [
        (
            partial(markers, n_clusters=3),
            "table",
            NO_TABLE,
            "table must be a table with the columns",
        ),
        (partial(markers, MARKERS), "n_clusters", NO_COUNT, "n_clusters must be a whole number in"),
        (partial(markers, MARKERS, 3), "top", NO_COUNT, "top must be a whole number"),
        (partial(markers, MARKERS, 3), "title", NO_TEXT, "title must be a string"),
        (
            partial(marker_panels, MARKERS, top=3),
            "n_clusters",
            NO_COUNT,
            "n_clusters must be a whole number",
        ),
    ],
    "loadings": [
        (
            partial(loadings, feature_names="abcde"),
            "components",
            NO_NUMBERS,
            "components must hold",
        ),
        (
            partial(loadings, feature_names="abcde"),
            "components",
            [np.empty((0, 5)), X[None]],
            "components must hold at least one component, one in each row, got the shape",
        ),
        (
            partial(loadings, X.T[:1, :5]),
            "feature_names",
            NO_LIST,
            "feature_names must be a list",
        ),
        (partial(loadings, X[:2], "abcde"), "top", NO_COUNT, "top must be a whole number"),
        (
            partial(loadings, X[:2], "abcde"),
            "title",
            NO_TEXT,
            "title must be a string",
        ),
        (partial(largest_loadings, X[0]), "top", NO_COUNT, "top must be a whole number"),
        (partial(largest_loadings, top=2), "component", [*NO_NUMBERS, 5, X], "component must hold"),
    ],
    "search_curves": [
        (search_curves, "model", NO_MODEL, "model must be a fitted estimator or a result with the"),
        (partial(search_curves, MODEL), "title", NO_TEXT, "title must be a string"),
        (search_story, "table", NO_TABLE, "table must be a table with the columns 'chosen', got"),
    ],
    "colours": [
        (level_colours, "n_levels", NO_COUNT, "n_levels must be a whole number in"),
        (cluster_colours, "n_clusters", NO_COUNT, "n_clusters must be a whole number in"),
    ],
    "write_picture": [
        (partial(write_picture, Figure()), "path", [5, None, ["x"]], "path must be the path of a"),
        (
            partial(write_picture, path="x.svg"),
            "figure",
            [5, None, "x"],
            "figure must be a matplot",
        ),
        (
            partial(write_picture, Figure(), "x.svg"),
            "dpi",
            [0, -1, 1, 10**30, True, float("nan"), "x", None],
            r"dpi must be a number in \[10, 2400\], got",
        ),
    ],
}


@pytest.mark.parametrize("function", REFUSED)
def test_wrong_arguments_are_refused_with_a_sentence(function, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for call, argument, values, expected in REFUSED[function]:
        for value in values:
            with pytest.raises(ValueError, match=expected) as refused:
                call(**{argument: value})
            assert "\n" not in str(refused.value)
            assert str(refused.value).endswith(".")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [{"cut": 99}, {"title": 5}, {"annotations": {"c": [[1]] * 12}}])
def test_axes_stay_empty_if_an_argument_is_refused(wrong):
    ax = Figure().subplots()
    with pytest.raises(ValueError, match="must"):
        dendrogram(MODEL, ax=ax, **wrong)
    assert not ax.collections


@pytest.mark.parametrize(
    "values",
    [
        [[1]] * 12,
        [{}] * 12,
        [{1}] * 12,
        [([1],)] * 12,
        [*("a" * 11), [1]],
        np.zeros((12, 2)),
        [1j] * 12,
        np.arange(12) * 1j,
        pd.Categorical([1j, 2j] * 6),
    ],
    ids=str,
)
def test_annotations_of_other_than_single_real_values_are_refused(values):
    expected = r"^Annotation 'c' must hold real numbers, text or other single values, got a \w+\. "
    with pytest.raises(ValueError, match=expected):
        annotation_bars({"c": values}, 12)
    with pytest.raises(ValueError, match=expected):
        dendrogram(MODEL, annotations={"c": values})


def test_annotations_of_two_columns_with_the_same_name_are_refused():
    table = pd.DataFrame(np.zeros((12, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="different names, but 2 of them are called 'a'"):
        annotation_bars(table, 12)


def test_whole_numbers_beyond_any_float_are_levels_in_order():
    (bar,) = annotation_bars({"c": [10**400, 5, -(10**400)]}, 3)
    assert [text[:6] for text, _ in bar.legend] == ["-10000", "5", "100000"]
