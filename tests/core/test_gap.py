"""The gap statistic of a node, multi-layer pruning and further splits."""

import numpy as np
import pytest

import reference
from mrshc.core.gap import gap_test, prune, split_table
from mrshc.core.trees import GapTest, PrunedTree, Tree, cut, linkage_matrix, pairwise_distances

GAPS = reference.table("gap").query("d_power == 1 and spaceH0 == 'scaledPCA'")
GROUPS = {
    "A4": ("A", slice(None), slice(0, 4)),
    "A2": ("A", slice(None), [0, 2]),
    "B20": ("B", slice(None), slice(0, 20)),
    "B12": ("B", slice(None), slice(0, 12)),
    "Bnoise": ("B", slice(None), slice(100, 110)),
    "A_cl1": ("A", slice(0, 5), slice(0, 4)),
}


def group(name):
    source, rows, columns = GROUPS[name]
    return np.ascontiguousarray(reference.matrix(f"input_{source}")[rows][:, columns])


def gap_of(X, *, linkage="complete", metric="sqeuclidean", n_references=50, constant=0, seed=0):
    """Return the gap test of samples, and of further constant samples."""
    whole = np.vstack([X, np.ones((constant, X.shape[1]))])
    distances = pairwise_distances(whole, metric)
    halves = Tree(linkage_matrix(distances, linkage)).cut(2)
    options = {"linkage": linkage, "metric": metric, "n_references": n_references}
    return gap_test(X, distances, halves == 1, np.random.default_rng(seed), **options)


def prune_samples(X, metric="sqeuclidean", linkage="complete", n_references=50, **options):
    distances = pairwise_distances(X, metric)
    tree = Tree(linkage_matrix(distances, linkage))
    options = {"entropy": 0, "n_references": n_references} | options
    return prune(tree, X, distances, linkage=linkage, metric=metric, **options)


def clusters(centres, size, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(centres, size, axis=0) + spread * rng.normal(size=(len(centres) * size, 2))


FOUR_CLUSTERS = clusters([[0, 0], [0, 5], [9, 0], [9, 5]], 8)


# The gap statistic --------------------------------------------------------------------------


@pytest.mark.parametrize("name", GROUPS)
def test_dispersions_references_and_decisions_are_those_of_clusgap(name):
    stored = GAPS.query("set == @name and k <= 2")
    test = gap_of(group(name), n_references=500)
    np.testing.assert_allclose(test.observed, stored["logW"], atol=1e-10, rtol=0)
    n = len(test.reference)
    error = np.hypot(stored["mc_se_of_E_logW"], test.reference.std(axis=0, ddof=1) / np.sqrt(n))
    z = (test.reference.mean(axis=0) - stored["E_logW"]) / error
    assert np.abs(z).max() < 4, "two simulations must agree within their errors"
    if n == 500:  # the standard deviation of 500 draws is known to one part in thirty
        assert test.standard_error == pytest.approx(stored["SE_sim"].iloc[1], rel=0.15)
    chosen = reference.table("gap_selected_k").query(
        "set == @name and d_power == 1 and spaceH0 == 'scaledPCA' and method == 'Tibs2001SEmax'"
    )
    assert test.is_split == (chosen["k"].item() > 1)


def test_groups_of_duplicates_have_finite_dispersions():
    """W_2 is zero; it is taken for 1e-16 of W_1."""
    test = gap_of(np.repeat([[0.0, 0.0], [1.0, 2.0]], 4, axis=0))
    assert test.observed[1] - test.observed[0] == pytest.approx(np.log(1e-16))
    assert np.isfinite(test.standard_error)
    assert test.is_split


def is_certain(full, n_drawn):
    """Return whether the margin is more than four standard errors of its change from zero."""
    n_references, part = len(full.reference), full.reference[:n_drawn]
    ratios = part[:, 1] - part[:, 0]
    squared_se = part[:, 1].var(ddof=1) * (1 + 1 / n_references)
    margin = ratios.mean() - np.sqrt(squared_se) - np.diff(full.observed)[0]
    of_mean = ratios.var(ddof=1) * (1 / n_drawn - 1 / n_references)
    of_se = squared_se * (1 / (n_drawn - 1) - 1 / (n_references - 1)) / 2
    return abs(margin) > 4 * np.sqrt(of_mean + of_se)


def test_drawing_ends_at_the_first_look_at_which_the_decision_is_certain(monkeypatch):
    rng, drawn = np.random.default_rng(4), []
    for _ in range(40):
        X = rng.random((12, 2)) + np.repeat([[0.0], [rng.uniform(0, 0.7)]], 6, axis=0)
        with monkeypatch.context() as patch:
            patch.setattr("mrshc.core.gap._MIN_SAMPLES_TO_STOP", 99)
            full = gap_of(X, n_references=60)
        early = gap_of(X, n_references=60)
        looks = [n for n in (15, 25, 35, 45, 55) if is_certain(full, n)]
        drawn.append(looks[0] if looks else 60)
        assert len(early.reference) == drawn[-1]
        np.testing.assert_array_equal(early.reference, full.reference[: drawn[-1]])
        assert early.standard_error == pytest.approx(
            early.reference[:, 1].std(ddof=1) * np.sqrt(1 + 1 / 60)
        )
        if drawn[-1] < 60:
            assert early.is_split == full.is_split
    assert {15, 35, 45} <= set(drawn)


@pytest.mark.parametrize(
    ("n", "q", "n_references", "expected"),
    [(8, 2, 50, 15), (7, 2, 50, 50), (20, 1, 50, 50), (20, 2, 15, 15), (20, 2, 10, 10)],
)
def test_small_groups_and_single_features_use_all_references(n, q, n_references, expected):
    """Two distant clusters, for which the decision is certain at the first look."""
    X = np.random.default_rng(3).normal(size=(n, q))
    X[: n // 2] += 100.0
    assert len(gap_of(X, n_references=n_references).reference) == expected


# Pruning ------------------------------------------------------------------------------------


def test_of_nodes_with_equal_height_the_last_merge_is_split_first():
    """As in a cut of the tree."""
    square = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    X = np.concatenate([square + shift for shift in ([0, 0], [0, 16], [64, 0], [64, 16])])
    result = prune_samples(X)
    first, second = result.splits[1:3]
    assert result.tree.height(first) == result.tree.height(second)
    assert first > second
    for k in range(1, 5):
        np.testing.assert_array_equal(result.labels(k), result.tree.cut(k))


def test_nodes_of_three_samples_are_tested_and_nodes_of_two_are_not():
    X = clusters([[0, 0], [50, 0]], 3)
    result = prune_samples(np.vstack([X, [[0.0, 90.0], [0.1, 90.0]]]))
    assert min(result.tree.n_samples_below(node) for node in result.tests) == 3
    children = {child for node in result.splits for child in result.tree.children(node)}
    assert 2 in {result.tree.n_samples_below(child) for child in children}


@pytest.mark.parametrize(("distance", "is_tested"), [(1.0, False), (2.0, True)])
@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_samples_within_rounding_errors_of_the_coordinates_are_not_tested(
    metric, distance, is_tested
):
    """The largest distance is 1, so a distance of at most one rounding error is negligible."""
    X = np.array([[0.0], [0.0], [distance * np.finfo(float).eps], [1.0]])
    result = prune_samples(X, metric, "single")
    assert result.splits[:1] == (6,)
    assert (5 in result.tests) == is_tested


# Cuts and further splits --------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 7, 32])
def test_a_cut_undoes_the_last_merges(k):
    tree = prune_samples(FOUR_CLUSTERS).tree
    found = cut(tree, k)
    assert found.splits == tuple(62 - i for i in range(k - 1))
    assert (found.n_leaves, found.tests) == (k, {})
    for fewer in range(1, k + 1):
        np.testing.assert_array_equal(found.labels(fewer), tree.cut(fewer))
    assert cut(tree, 1).split_into(k).splits == found.splits


def test_further_splits_keep_the_supported_ones_and_follow_the_order_of_the_cut():
    """The highest node is not split by pruning, but it is the first of the further splits."""
    tree = prune_samples(FOUR_CLUSTERS).tree
    low, high = sorted(tree.children(tree.root))
    test = GapTest(np.zeros(2), np.zeros((3, 2)), 1.0, True)
    pruned = PrunedTree(tree, (tree.root, low), {tree.root: test})
    for k in range(1, 4):
        assert pruned.split_into(k).splits == (tree.root, low)
    assert pruned.split_into(4).splits == (tree.root, low, high)
    assert pruned.split_into(4).tests == {tree.root: test}
    for k in range(4, 33):
        further = pruned.split_into(k)
        assert further.n_leaves == k
        np.testing.assert_array_equal(further.labels(k), tree.cut(k))


def test_the_table_of_tests_marks_the_splits_that_make_the_clusters():
    pruned = prune_samples(FOUR_CLUSTERS)
    assert pruned.n_leaves == 4
    for n_leaves in (1, 2, 3, 4):
        table = split_table(pruned, n_leaves, np.empty(0, np.intp))
        assert set(table["node"][table["split"]]) == set(pruned.splits[: n_leaves - 1])
    outlying = np.array([3])
    table = split_table(pruned, 4, outlying)
    sizes = [np.setdiff1d(pruned.tree.members(node), outlying).size for node in table["node"]]
    assert table["n_samples"].tolist() == sizes
