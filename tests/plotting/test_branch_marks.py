import numpy as np
import pandas as pd
import pytest

from drawn_figures import boxes_of, marks_of, overlaps, words_of
from mrshc import HighVarianceHC, branch_significance, stability
from mrshc.plotting import branch_marks, dendrogram, dendrogram_lines
from mrshc.plotting.branch_marks import format_p_value, significance_note


def make_model(n, *, n_groups=3, n_clusters=3):
    """Return a model of data with groups of about the same size, and the data."""
    groups = np.arange(n) * n_groups // n
    X = np.random.default_rng(0).normal(size=(n, 20))
    X += 6.0 * (np.arange(20) % n_groups == groups[:, None])
    return HighVarianceHC(20, linkage="ward", n_clusters=n_clusters).fit(X), X


MODEL, X = make_model(30)
N_MERGES = len(MODEL.linkage_matrix_)
SUPPORT = np.append(np.linspace(0.3, 1.0, N_MERGES - 1), np.nan)


def outcomes(nodes, *, significant):
    p_values = np.where(significant, 0.0001, 0.4)
    return {"node": nodes, "p_value": p_values, "significant": significant}


@pytest.mark.parametrize(
    ("p_value", "text"),
    [
        (0.0, "p < 0.001"),
        (0.00099, "p < 0.001"),
        (0.001, "p = 0.001"),
        (0.0123, "p = 0.012"),
        (0.35, "p = 0.35"),
        (1.0, "p = 1.00"),
    ],
)
def test_p_values_as_text(p_value, text):
    assert format_p_value(p_value) == text


def test_support_is_shown_at_joined_clusters_and_at_their_top_nodes_only():
    marks = branch_marks(MODEL.linkage_matrix_, labels=MODEL.labels_, stability=SUPPORT)
    # Of three clusters, the last merge but one joins two. The support of the root is not defined.
    shown = [N_MERGES - 2, *(N_MERGES - 3 - np.arange(3))]
    assert [mark.node for mark in marks] == shown
    assert [mark.label for mark in marks] == [f"{100 * SUPPORT[node]:.0f} %" for node in shown]


def test_without_clusters_support_is_shown_at_and_below_tested_nodes():
    tests = outcomes([N_MERGES - 1], significant=[True])
    marks = branch_marks(MODEL.linkage_matrix_, significance=tests, stability=SUPPORT)
    children = MODEL.linkage_matrix_[-1, :2].astype(int) - N_MERGES - 1
    assert [mark.node for mark in marks] == [N_MERGES - 1, *sorted(children, reverse=True)]


def test_values_of_a_table_with_all_nodes_are_those_of_the_function():
    """A saved table has a row for each node, and no p-value for nodes that were not tested."""
    result = branch_significance(MODEL, X, n_simulations=10, random_state=0)
    table = pd.DataFrame({"node": np.arange(N_MERGES), "p_value": np.nan, "significant": np.nan})
    table.loc[result.node, "p_value"] = result.p_value
    table.loc[result.node, "significant"] = result.significant.astype(float)
    marks = branch_marks(MODEL.linkage_matrix_, significance=table)
    assert marks
    assert [m.node for m in marks] == sorted(result.node, reverse=True)
    assert [(m.node, m.p_value, m.significant) for m in marks] == [
        (m.node, m.p_value, m.significant)
        for m in branch_marks(MODEL.linkage_matrix_, significance=result)
    ]


@pytest.mark.parametrize(
    ("significant", "note"),
    [
        ([True, True], ""),
        ([True, False], "1 of 2 splits significant"),
        ([False, False], "clusters not significant"),
    ],
)
def test_a_note_tells_if_clusters_are_not_significant(significant, note):
    tests = outcomes([N_MERGES - 1, N_MERGES - 2], significant=significant)
    found = significance_note(MODEL.linkage_matrix_, MODEL.labels_, significance=tests)
    assert found == note
    ax = dendrogram(MODEL, significance=tests, title="Tree")
    assert ax.get_title(loc="left") == (f"Tree; {note}" if note else "Tree")
    ax = dendrogram(MODEL, significance=tests)
    assert ax.get_title(loc="left") == note


def test_there_is_no_note_without_tests_or_without_several_clusters():
    Z, tests = MODEL.linkage_matrix_, outcomes([N_MERGES - 1], significant=[False])
    assert significance_note(Z, MODEL.labels_, significance=None) == ""
    assert significance_note(Z, None, significance=tests) == ""
    assert significance_note(Z, np.zeros(30, dtype=int), significance=tests) == ""
    untested = {"node": [3], "p_value": [np.nan], "significant": [False]}
    assert significance_note(Z, MODEL.labels_, significance=untested) == ""


def test_significant_nodes_have_filled_markers_and_others_open_ones():
    tests = outcomes([N_MERGES - 1, N_MERGES - 2], significant=[True, False])
    ax = dendrogram(MODEL, significance=tests, stability=SUPPORT)
    lines = dendrogram_lines(MODEL.linkage_matrix_)
    marks = marks_of(ax)
    assert marks["significant"] == [list(lines.tip(2 * N_MERGES))]
    assert marks["not significant"] == [list(lines.tip(2 * N_MERGES - 1))]
    faces = {line.get_label(): line.get_markerfacecolor() for line in ax.lines}
    assert (faces["significant"], faces["not significant"]) == ("#000000", "#FFFFFF")
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "p < 0.001"
    assert texts[1].startswith("p = 0.40\n")
    assert words_of(ax.get_legend())[:4] == [
        "branches",
        "split significant",
        "split not significant",
        "p: test of one Gaussian group\nagainst several groups",
    ]


def test_the_legend_explains_only_what_is_shown():
    words = " ".join(words_of(dendrogram(MODEL, stability=SUPPORT).get_legend()))
    assert "support of the branch" in words
    assert "split" not in words
    assert "Gaussian" not in words
    assert "branches" not in words_of(dendrogram(MODEL).get_legend())


@pytest.mark.parametrize(("n", "k"), [(20, 2), (60, 3), (60, 8), (200, 5)])
def test_labels_overlap_neither_each_other_nor_the_bars_nor_the_cut(n, k):
    model, X = make_model(n, n_groups=k, n_clusters=k)
    ax = dendrogram(
        model,
        significance=branch_significance(model, X, n_simulations=10, random_state=0),
        stability=stability(model, X, n_resamples=5, random_state=0),
        annotations={"class": model.labels_},
        names=[f"sample {i}" for i in range(n)],
        cut=k,
    )
    boxes = boxes_of(ax.figure, ax.texts)
    assert len(boxes) >= k + 2
    assert not overlaps(boxes)
    assert ax.texts[0].get_text() == "class", "the name of the bar, which is below the leaves"
    leaves = ax.transData.transform((0, 0))[1]
    assert all(box.y0 >= leaves - 1 for box in boxes[1:])


def test_names_with_characters_that_fonts_lack_cause_no_warning(recwarn):
    names = ["\U00013000"] * 30
    dendrogram(MODEL, names=names, stability=SUPPORT)
    assert not recwarn.list
