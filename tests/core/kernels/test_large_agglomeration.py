"""Trees of many samples are those of the functions for few samples, to the last bit."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform

from mrshc.core.kernels.agglomeration import linkage_matrix
from mrshc.core.kernels.fold_distances import distances_without
from mrshc.core.kernels.large_agglomeration import (
    large_linkage_matrix,
    write_distances_without,
    write_working_distances,
)
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.trees.tree import COMPILED_LINKAGES, pairwise_distances


def samples(n, *, has_ties):
    X = np.random.default_rng(n).normal(size=(n, 6))
    return np.round(X) if has_ties else X


@pytest.mark.parametrize("linkage", COMPILED_LINKAGES)
@pytest.mark.parametrize(("n", "has_ties"), [(2, False), (3, False), (70, True), (131, False)])
def test_the_tree_is_that_of_few_samples(n, has_ties, linkage):
    distances = pairwise_distances(samples(n, has_ties=has_ties), "sqeuclidean")
    code, working = LinkageMethod[linkage].value, np.empty((n, n))
    write_working_distances(distances, linkage == "ward", working)
    found = large_linkage_matrix(working, code)
    np.testing.assert_array_equal(found, linkage_matrix(distances, code))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("take_roots", [False, True])
def test_the_part_of_a_fold_is_subtracted_as_for_few_samples(metric, take_roots):
    X = samples(75, has_ties=True)
    distances, fold = pairwise_distances(X, metric), np.ascontiguousarray(X.T[:2])
    is_squared, found = metric == "sqeuclidean", np.empty((75, 75))
    condensed = squareform(distances)
    write_distances_without(condensed, fold, is_squared, take_roots, found)
    expected = distances_without(distances, fold, is_squared)
    expected = np.sqrt(expected) if take_roots else expected
    np.fill_diagonal(expected, np.inf)
    np.testing.assert_array_equal(found, expected)
