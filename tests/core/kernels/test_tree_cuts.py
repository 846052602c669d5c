"""Cuts by the compiled loop are those of `Tree.cut`."""

import numpy as np
import pytest

from mrshc.core.kernels.tree_cuts import cut_into_clusters
from mrshc.core.trees.tree import LINKAGES, agglomerate, pairwise_distances


def cuts_of(tree, cluster_counts):
    children = tree.linkage_matrix[:, :2].astype(np.intp)
    return cut_into_clusters(children, np.array(cluster_counts))


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("n", [2, 3, 10, 40])
def test_cuts_are_those_of_the_tree(n, linkage):
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(n, 2))
        tree = agglomerate(pairwise_distances(X, "sqeuclidean"), linkage)
        counts = list(range(1, n + 1))
        expected = [tree.cut(k) for k in counts]
        np.testing.assert_array_equal(cuts_of(tree, counts), expected)


@pytest.mark.parametrize("linkage", ["centroid", "median"])
def test_cuts_undo_the_last_merges_even_if_heights_are_not_monotone(linkage):
    n_not_monotone = 0
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(30, 2))
        tree = agglomerate(pairwise_distances(X, "sqeuclidean"), linkage)
        n_not_monotone += np.any(np.diff(tree.linkage_matrix[:, 2]) < 0)
        found = cuts_of(tree, [2, 3, 4, 5, 6, 7])
        np.testing.assert_array_equal(found, [tree.cut(k) for k in range(2, 8)])
    assert n_not_monotone > 2


def test_cuts_may_be_in_any_order():
    X = np.random.default_rng(0).normal(size=(12, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "ward")
    found = cuts_of(tree, [7, 1, 12, 3, 3])
    np.testing.assert_array_equal(found, [tree.cut(k) for k in (7, 1, 12, 3, 3)])
