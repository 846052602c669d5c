"""Winsorised values, outlying samples, and the tree to which these are attached."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage

from mrshc.core.linkages import EUCLIDEAN_LINKAGES, LINKAGES, METRICS
from mrshc.core.outliers import attach_outliers, detect_outliers, winsorise
from mrshc.core.trees import GapTest, PrunedTree, Tree, cut, linkage_matrix, pairwise_distances

NONE = np.empty(0, np.intp)


def outlying(X, metric="sqeuclidean"):
    return detect_outliers(X, metric)[1].tolist()


# Values -------------------------------------------------------------------------------------


def winsorised_in_sds(*values, n=31):
    """Return values of one feature after winsorising, in standard deviations from the median.

    A third of the n values are above zero, as many are below zero, and the others are zero. The
    median is then 0 and the median absolute deviation is 1, so a standard deviation is 1.4826.
    """
    n_above = sum(value > 0 for value in values)
    X = np.zeros((n, 1))
    X[: n // 3 - n_above] = 1.0
    X[n // 3 : 2 * (n // 3) - (len(values) - n_above)] = -1.0
    X[-len(values) :, 0] = 1.4826 * np.array(values)
    assert (np.median(X), np.median(np.abs(X))) == (0, 1)
    return winsorise(X, NONE)[-len(values) :, 0] / 1.4826


@pytest.mark.parametrize(
    ("values", "n", "expected"),
    [
        ((2.49, 2.51, -2.49, -2.51), 31, [2.49, 2.5, -2.49, -2.5]),
        ((3.49, 3.51, -3.49, -3.51), 31, [2.5, np.nan, -2.5, np.nan]),  # extreme values
        ((4.0,) * 3, 31, [np.nan] * 3),
        ((4.0,) * 4, 31, [2.5] * 4),  # four are a cluster
        ((-4.0,) * 3, 31, [np.nan] * 3),
        ((-4.0,) * 4, 31, [-2.5] * 4),
        ((9.0,), 9, [2.5]),  # with fewer than ten samples, nothing is removed
        ((9.0,), 10, [np.nan]),
    ],
)
def test_values_are_winsorised_or_removed(values, n, expected):
    np.testing.assert_allclose(winsorised_in_sds(*values, n=n), expected)


# Samples ------------------------------------------------------------------------------------


def separate_simplices(*groups):
    """Return groups of samples with known distances; each feature is zero in most samples.

    The median absolute deviation of each feature is zero, so no value is winsorised. A group is
    given by its size, the squared distance between its samples, and the squared distance between
    its centre and the origin.
    """
    n, blocks, start = sum(size for size, _, _ in groups), [], 0
    for size, within, to_origin in groups:
        # The rows of the block are the vertices of a regular simplex with its centre at zero, and
        # a last feature moves the centre away from the origin.
        block = np.zeros((n, size + 1))
        block[start : start + size, :size] = np.sqrt(within / 2) * (np.eye(size) - 1 / size)
        block[start : start + size, size] = np.sqrt(to_origin)
        blocks.append(block)
        start += size
    return np.hstack(blocks)


# Groups of six samples. The logarithms of the distances to the third nearest neighbour are -1, 0
# and 1, so their median is 0 and their median absolute deviation is 1. Samples of different groups
# have squared distances of at least 20.
SIMPLICES = [(6, np.exp(-1.0), 10.0), (6, 1.0, 10.0), (6, np.exp(1.0), 10.0)]


@pytest.mark.parametrize(("n_sds", "is_outlying"), [(3.95, False), (4.05, True)])
def test_a_sample_is_isolated_beyond_four_standard_deviations(n_sds, is_outlying):
    # The nearest neighbours of the last sample belong to the first group.
    to_nearest_centre = np.exp(n_sds * 1.4826) - np.exp(-1.0) * 5 / 12
    X = separate_simplices(*SIMPLICES, (1, 0.0, to_nearest_centre - 10.0))
    assert outlying(X) == [18] * is_outlying
    # Compared with its neighbours in a dispersed group, whose logarithms are 2, not with 0.
    to_centre = np.exp(2 + n_sds * 1.4826) - np.exp(2.0) * 3 / 8
    X = separate_simplices(*SIMPLICES, (4, np.exp(2.0), 0.0), (1, 0.0, to_centre))
    assert outlying(X) == [22] * is_outlying
    # Distances of zero count as the smallest positive distance.
    far = np.exp(n_sds * 1.4826) - 10.0
    assert outlying(separate_simplices((4, 0.0, 10.0), *SIMPLICES, (1, 0.0, far))) == (
        [22] * is_outlying
    )


@pytest.mark.parametrize(("size", "expected"), [(3, [18, 19, 20]), (4, [])])
def test_three_samples_far_from_the_others_are_isolated_but_four_are_a_cluster(size, expected):
    assert outlying(separate_simplices(*SIMPLICES, (size, 1.0, 1e6))) == expected


@pytest.mark.parametrize("n_without", [1, 9, 10])
def test_samples_without_common_features_are_infinitely_far_apart(n_without):
    """Samples that share no feature with any other are isolated, unless they are the majority."""
    X = separate_simplices(*SIMPLICES)[: 18 if n_without == 1 else 9]
    X = np.vstack([X, np.zeros((n_without, X.shape[1]))])
    n, p = X.shape
    X = np.hstack([X, np.zeros((n, n_without))])
    X[n - n_without :, :p] = np.nan
    X[:, p:] = np.where(np.eye(n)[:, n - n_without :] > 0, 1.0, np.nan)
    assert outlying(X) == ([18] if n_without == 1 else [])


@pytest.mark.parametrize("metric", METRICS)
def test_distances_over_shared_features_are_those_of_each_pair(metric):
    from mrshc.core.outliers import _distances_in_all_features

    rng = np.random.default_rng(10)
    X = rng.normal(size=(12, 15)) + 8.0
    X[rng.random(X.shape) < 0.5] = np.nan
    X[3] = np.where(np.isnan(X[3]), np.nan, 0.1)
    X[4], X[5] = np.nan, np.nan
    X[4, :2], X[5, 3:] = [1.0, 2.0], 1.0 + np.arange(12)
    found = _distances_in_all_features(X, metric)
    for i, j in zip(*np.triu_indices(12, 1), strict=True):
        shared = ~np.isnan(X[i]) & ~np.isnan(X[j])
        pair = X[[i, j]][:, shared]
        if not shared.any():
            expected = np.inf
        elif metric != "correlation":
            expected = pairwise_distances(pair, metric)[0, 1] * 15 / shared.sum()
        else:
            is_defined = shared.sum() >= 3 and np.ptp(pair, axis=1).all()
            expected = 1 - np.corrcoef(pair)[0, 1] if is_defined else 1.0
        assert found[i, j] == pytest.approx(expected, abs=1e-12)
        assert found[j, i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("n_missing", "n_extreme", "is_outlying"),
    [(0, 3, False), (0, 4, True), (2, 2, False), (2, 3, True), (3, 1, False), (3, 2, True)],
)
def test_a_sample_is_outlying_if_more_than_half_of_its_values_are_removed(
    n_missing, n_extreme, is_outlying
):
    """The distances between the other samples vary so much that the sample is not isolated."""
    X = np.random.default_rng(12).uniform(-1, 1, size=(60, 6))
    X *= np.abs(X)
    X[7, :n_extreme], X[7, 6 - n_missing :] = 50.0, np.nan
    found, samples = detect_outliers(X, "cityblock")
    assert samples.tolist() == [7] * is_outlying
    # Values of an outlying sample are winsorised and not removed.
    assert np.isnan(found[7]).sum() == n_missing + (0 if is_outlying else n_extreme)


# The tree -----------------------------------------------------------------------------------


def tree_of(distances, linkage="complete"):
    return Tree(linkage_matrix(distances, linkage))


def attached(X, n_outlying=1, k=2, linkage="complete"):
    """Attach the last samples to the cut of the tree of the others."""
    X = np.array(X, dtype=float).reshape(len(X), -1)
    distances, usual = pairwise_distances(X, "sqeuclidean"), len(X) - n_outlying
    tree = tree_of(distances[:usual, :usual], linkage)
    last = np.arange(usual, len(X))
    found = attach_outliers(cut(tree, k), distances, last, n_clusters=k, linkage=linkage)
    return found.tree.linkage_matrix, distances


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("n_outlying", [1, 2, 5])
def test_attached_trees_are_valid_and_contain_the_tree_of_the_others(linkage, n_outlying):
    for seed, metric in enumerate(METRICS * 3):
        if metric == "cityblock" and linkage in EUCLIDEAN_LINKAGES:
            continue
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(18, 3)) + 2 * rng.integers(0, 3, size=(18, 1))
        last = np.sort(rng.choice(18, n_outlying, replace=False))
        X[last] += 10 * rng.normal(size=(n_outlying, 3))
        kept, distances = np.setdiff1d(np.arange(18), last), pairwise_distances(X, metric)
        tree = tree_of(distances[np.ix_(kept, kept)], linkage)
        low = min(tree.children(tree.root))
        test = GapTest(np.zeros(2), np.zeros((3, 2)), 1.0, True)
        for pruned in (cut(tree, 4), cut(tree, 1), PrunedTree(tree, (tree.root, low), {low: test})):
            if low < tree.n_samples and low in pruned.splits:
                continue
            k = pruned.n_leaves
            whole = attach_outliers(pruned, distances, last, n_clusters=k, linkage=linkage)
            assert is_valid_linkage(whole.tree.linkage_matrix)
            if linkage not in ("centroid", "median"):
                assert is_monotonic(whole.tree.linkage_matrix)
            for fewer in range(1, k + 1):
                assert same_partition(whole.tree.cut(fewer)[kept], tree.cut(fewer))
                assert same_partition(whole.labels(fewer)[kept], pruned.labels(fewer))
            inside = {}
            for node in range(18, whole.tree.root + 1):
                members = np.setdiff1d(whole.tree.members(node), last)
                if members.size > 1:
                    inside.setdefault(tuple(members), whole.tree.height(node))
            for node in range(tree.n_samples, tree.root + 1):
                assert inside.pop(tuple(kept[tree.members(node)])) == tree.height(node)
            assert not inside
            for new, kept_test in whole.tests.items():
                assert kept_test is test
                members = np.setdiff1d(whole.tree.members(new), last)
                np.testing.assert_array_equal(members, kept[tree.members(low)])


def test_heights_are_linkage_distances_from_the_branch():
    """The branch consists of -1 and 1, and the sample is 7."""
    heights = [attached([-1.0, 1.0, 7.0], k=1, linkage=linkage)[0][-1, 2] for linkage in LINKAGES]
    np.testing.assert_allclose(heights, [36, 64, 50, 50, 7 * np.sqrt(4 / 3), 7, 7])


def test_a_sample_joins_no_higher_than_the_lowest_split_of_the_clusters():
    """Only the splits that make the clusters count: the lower third split does not."""
    X = np.array([[0.0], [1.0], [1.5], [10.0], [14.0], [30.0]])
    distances = pairwise_distances(X, "sqeuclidean")
    pruned = PrunedTree(tree_of(distances[:5, :5]), (8, 6, 5), {})
    assert [pruned.tree.height(node) for node in pruned.splits] == [14.0**2, 1.5**2, 0.5**2]
    Z = attach_outliers(
        pruned, distances, np.array([5]), n_clusters=3, linkage="complete"
    ).tree.linkage_matrix
    row = np.flatnonzero((Z[:, :2] == 5).any(axis=1))[0]
    np.testing.assert_array_equal(Z[row], [4, 5, 1.5**2, 2])
