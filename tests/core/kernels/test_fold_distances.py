"""Distances without a fold are those of the other features."""

import numpy as np
import pytest

from mrshc.core.kernels.fold_distances import distances_without
from mrshc.core.trees.tree import ADDITIVE_METRICS, pairwise_distances


@pytest.mark.parametrize("metric", ADDITIVE_METRICS)
def test_distances_without_a_fold_are_those_of_the_other_features(metric):
    X = np.random.default_rng(0).normal(size=(30, 12))
    fold, others = np.array([7, 0, 11]), np.array([1, 2, 3, 4, 5, 6, 8, 9, 10])
    total = pairwise_distances(X, metric)
    before = total.copy()
    found = distances_without(total, np.ascontiguousarray(X.T[fold]), metric == "sqeuclidean")
    np.testing.assert_allclose(found, pairwise_distances(X[:, others], metric), rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(total, before)


@pytest.mark.parametrize("metric", ADDITIVE_METRICS)
def test_rounding_leaves_no_negative_distances(metric):
    """Some samples differ only in the fold, so their other distances are zero."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(6, 5)), 5, axis=0)
    X[:, 4] = rng.normal(size=30) * 1e6
    features = np.ascontiguousarray(X.T[4:])
    found = distances_without(pairwise_distances(X, metric), features, metric == "sqeuclidean")
    assert found.min() == 0.0
