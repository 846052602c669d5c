"""Trees of the compiled loops are those of scipy."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

from mrshc.core.kernels.agglomeration import linkage_matrix
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.trees.tree import COMPILED_LINKAGES


def both_trees(X, linkage, metric="sqeuclidean"):
    condensed = pdist(X, metric)
    found = linkage_matrix(squareform(condensed), LinkageMethod[linkage].value)
    return found, hierarchy.linkage(np.sqrt(condensed) if linkage == "ward" else condensed, linkage)


@pytest.mark.parametrize("linkage", COMPILED_LINKAGES)
@pytest.mark.parametrize("n", [2, 3, 4, 10, 60, 150])
def test_trees_are_those_of_scipy(n, linkage):
    for seed in range(10):
        found, expected = both_trees(np.random.default_rng(seed).normal(size=(n, 4)), linkage)
        np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])
        np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-12)


@pytest.mark.parametrize("linkage", COMPILED_LINKAGES)
@pytest.mark.parametrize("n_values", [1, 2, 3])
def test_equal_distances_are_merged_in_the_order_of_scipy(n_values, linkage):
    """With few distinct values, many distances are equal, and many samples are identical."""
    n_tied = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(n_values, size=(rng.integers(5, 70), 3)).astype(float)
        found, expected = both_trees(X, linkage)
        np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])
        np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-12)
        n_tied += np.count_nonzero(np.diff(expected[:, 2]) == 0)
    assert n_tied > 100


def test_only_distances_above_the_diagonal_are_used():
    distances = squareform(pdist(np.random.default_rng(0).normal(size=(20, 3))))
    for linkage in COMPILED_LINKAGES:
        code = LinkageMethod[linkage].value
        upper = np.where(np.tri(20, dtype=bool), np.nan, distances)
        before = upper.copy()
        np.testing.assert_array_equal(linkage_matrix(upper, code), linkage_matrix(distances, code))
        np.testing.assert_array_equal(upper, before)  # the distances are not changed


def test_a_single_sample_has_no_merges():
    for linkage in COMPILED_LINKAGES:
        assert linkage_matrix(np.zeros((1, 1)), LinkageMethod[linkage].value).shape == (0, 4)
