"""The gap statistic of a node, multi-layer pruning and further splits."""

import numpy as np
import pytest

import reference
from mrshc.core.gap import GapTest, PrunedTree, cut, gap_test, prune
from mrshc.core.trees import EUCLIDEAN_LINKAGES, LINKAGES, Tree, linkage_matrix, pairwise_distances

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


def plain_references(X, rng, *, linkage, metric, n_references, constant=0):
    """Log W_1 and log W_2 of reference samples that are formed in the space of the features."""
    middle = X.mean(axis=0)
    axes = np.linalg.svd(X - middle, full_matrices=False)[2][: min(len(X) - 1, X.shape[1])]
    scores = (X - middle) @ axes.T
    low, high = scores.min(axis=0), scores.max(axis=0)
    found = []
    for _ in range(n_references):
        sample = middle + (low + rng.random((len(X), len(axes))) * (high - low)) @ axes
        sample = np.vstack([sample, np.ones((constant, X.shape[1]))])
        distances = pairwise_distances(sample, metric)
        halves = Tree(linkage_matrix(distances, linkage)).cut(2)
        roots = distances if metric == "cityblock" else np.sqrt(distances)
        parts = [roots[np.ix_(halves == k, halves == k)] for k in (0, 1)]
        within = sum(part.sum() / (4 * len(part)) for part in parts)
        found.append(np.log([roots.sum() / (4 * len(roots)), within]))
    return np.array(found)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "correlation"])
@pytest.mark.parametrize(("n", "q"), [(15, 4), (6, 40), (12, 12), (5, 3)])
def test_reference_samples_fill_the_box_along_the_principal_axes(linkage, metric, n, q):
    if metric == "cityblock" and linkage in EUCLIDEAN_LINKAGES:
        return
    X = np.random.default_rng(n).normal(size=(n, q)) + 3 * np.random.default_rng(1).normal(size=q)
    options = {"linkage": linkage, "metric": metric, "n_references": 5}
    test = gap_of(X, seed=1, **options)
    expected = plain_references(X, np.random.default_rng(1), **options)
    np.testing.assert_allclose(test.reference, expected, rtol=1e-8)
    assert test.standard_error == pytest.approx(
        test.reference[:, 1].std(ddof=1) * np.sqrt(1 + 1 / 5), rel=1e-12
    )
    gap = test.reference.mean(axis=0) - test.observed
    assert test.is_split == (gap[0] < gap[1] - test.standard_error)


def test_constant_samples_are_not_drawn_and_stay_at_distance_one():
    X = np.random.default_rng(2).normal(size=(15, 4)) + 2.0
    options = {"linkage": "average", "metric": "correlation", "n_references": 5, "constant": 4}
    test = gap_of(X, seed=1, **options)
    expected = plain_references(X, np.random.default_rng(1), **options)
    # Constant samples are all at distance 1, so ties are broken by rounding errors below the root.
    np.testing.assert_allclose(test.reference[:, 0], expected[:, 0], rtol=1e-9)
    roots = np.sqrt(pairwise_distances(np.vstack([X, np.ones((4, 4))]), "correlation"))
    assert test.observed[0] == pytest.approx(np.log(roots.sum() / 4 / 19))


def test_groups_of_duplicates_have_finite_dispersions():
    """W_2 is zero; it is taken for 1e-16 of W_1."""
    test = gap_of(np.repeat([[0.0, 0.0], [1.0, 2.0]], 4, axis=0))
    assert test.observed[1] - test.observed[0] == pytest.approx(np.log(1e-16))
    assert np.isfinite(test.standard_error)
    assert test.is_split


@pytest.mark.parametrize("scale", [1e-60, 1e6])
def test_gap_does_not_depend_on_scale_shift_or_rotation(scale):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) + np.repeat([[0.0], [2.0]], 15, axis=0)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    expected = gap_of(X)
    drops = expected.reference[:, 0] - expected.reference[:, 1]
    for other in (X * scale, X + 1e3, X @ rotation):
        found = gap_of(other)
        np.testing.assert_allclose(found.reference[:, 0] - found.reference[:, 1], drops, atol=1e-7)
        assert found.is_split == expected.is_split


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


def test_four_plain_clusters_are_found():
    result = prune_samples(FOUR_CLUSTERS)
    assert result.n_leaves == 4
    np.testing.assert_array_equal(result.labels(10), np.repeat(np.arange(4), 8))
    for k in range(1, 5):
        limited = prune_samples(FOUR_CLUSTERS, max_leaves=k)
        assert limited.n_leaves == k
        assert limited.splits == result.splits[: k - 1]
        np.testing.assert_array_equal(limited.labels(k), result.labels(k))
        assert len(result.leaves(k)) == k


@pytest.mark.parametrize(("left", "right"), [(3, 8), (8, 3)])
def test_nodes_are_split_in_decreasing_order_of_height(left, right):
    X = clusters([[0, 0], [0, left], [30, 0], [30, right]], 8)
    result = prune_samples(X)
    heights = [result.tree.height(node) for node in result.splits]
    assert heights == sorted(heights, reverse=True)
    expected = np.repeat(np.arange(3), [8, 8, 16] if left > right else [16, 8, 8])
    np.testing.assert_array_equal(result.labels(3), expected)
    np.testing.assert_array_equal(prune_samples(X, max_leaves=3).labels(3), expected)


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


def test_the_test_of_a_node_is_that_of_its_samples_with_a_stream_of_its_own():
    X = clusters([[0, 0], [0, 5], [9, 0]], 4)
    result = prune_samples(X, entropy=7, n_references=20)
    tree = result.tree
    assert len(result.tests) >= 3
    assert set(result.splits) <= set(result.tests)
    for node, found in result.tests.items():
        members = tree.members(node)
        rng = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(2, node)))
        expected = gap_test(
            X[members],
            pairwise_distances(X[members], "sqeuclidean"),
            np.isin(members, tree.members(tree.children(node)[0])),
            rng,
            linkage="complete",
            metric="sqeuclidean",
            n_references=20,
        )
        np.testing.assert_allclose(found.observed, expected.observed, rtol=1e-9)
        np.testing.assert_allclose(found.reference, expected.reference, rtol=1e-9)
        assert found.is_split == (node in result.splits)


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


@pytest.mark.parametrize(
    "X",
    [np.zeros((6, 2)), np.array([[0.0, 0.0], [1.0, 1.0]]), np.full((5, 4), 0.1)],
    ids=["duplicates", "two samples", "other duplicates"],
)
def test_duplicates_and_pairs_are_not_tested(X):
    result = prune_samples(X)
    assert (result.n_leaves, result.tests) == (1, {})


@pytest.mark.parametrize(
    "X",
    [
        np.repeat(np.arange(1.0, 9.0), 5).reshape(8, 5),
        np.vstack([np.full((7, 5), 0.1), np.arange(5.0)]),
        np.outer(np.arange(1.0, 9.0), np.arange(5.0)) + 0.1,
    ],
    ids=["constant", "all but one constant", "proportional"],
)
def test_samples_without_different_correlations_are_not_tested(X):
    result = prune_samples(X, "correlation")
    assert (result.n_leaves, result.tests) == (1, {})


def profiles(rng, n):
    """Return n samples of each of three profiles over 12 features, with any offset and scale."""
    X = np.repeat(np.repeat(np.eye(3), 4, axis=1), n, axis=0) + 0.1 * rng.normal(size=(3 * n, 12))
    return X * rng.uniform(0.1, 100, size=(3 * n, 1)) + rng.normal(scale=50, size=(3 * n, 1))


def test_samples_with_the_same_profile_are_a_cluster_whatever_their_scale():
    X = profiles(np.random.default_rng(0), 10)
    result = prune_samples(X, "correlation")
    np.testing.assert_array_equal(result.labels(9), np.repeat(np.arange(3), 10))
    # Constant samples stay constant in the reference samples.
    X[[2, 17]] = 4.0
    result = prune_samples(X, "correlation", "average")
    root = result.tests[result.tree.root]
    halves = result.tree.cut(2) == 1
    expected = gap_test(
        np.delete(X, [2, 17], axis=0),
        pairwise_distances(X, "correlation"),
        halves,
        np.random.default_rng(np.random.SeedSequence(0, spawn_key=(12, result.tree.root))),
        linkage="average",
        metric="correlation",
        n_references=50,
    )
    np.testing.assert_array_equal(root.reference, expected.reference)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "correlation"])
def test_clusters_are_rarely_found_in_a_uniform_box(metric):
    """The null hypothesis; the rule of one standard error is not a test of small level."""
    rng = np.random.default_rng(1)
    boxes = [rng.random((30, 4)) + 0.5 for _ in range(30)]
    counts = [prune_samples(X, metric, entropy=i).n_leaves for i, X in enumerate(boxes)]
    assert np.mean(np.array(counts) > 1) < 0.3


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
