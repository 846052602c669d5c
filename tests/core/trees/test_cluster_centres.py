"""Centres of clusters and distances to them, against definitions and scipy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.trees.cluster_centres import cluster_centres

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 8))
LABELS = np.repeat([0, 1, 2], [9, 10, 1])
NEW = RNG.normal(size=(7, 8))
ALL = np.arange(8)


def centres(metric, data=X, **options):
    return cluster_centres(ArrayMatrix(data), LABELS, features=ALL, metric=metric, **options)


@pytest.mark.parametrize(
    ("metric", "average"), [("sqeuclidean", np.mean), ("cityblock", np.median)]
)
def test_additive_distances_are_those_of_scipy(metric, average):
    expected = [average(X[k == LABELS], axis=0) for k in range(3)]
    found = centres(metric)
    np.testing.assert_allclose(found.values, expected)
    np.testing.assert_allclose(found.distances(NEW), cdist(NEW, expected, metric))
    weights = RNG.uniform(size=8)
    np.testing.assert_allclose(
        centres(metric, weights=weights).distances(NEW), cdist(NEW, expected, metric, w=weights)
    )


def test_correlations_are_those_of_scipy_with_the_mean_of_standardised_samples():
    rows = X - X.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    expected = [rows[k == LABELS].mean(axis=0) for k in range(3)]
    found = centres("correlation").distances(NEW)
    np.testing.assert_allclose(found, cdist(NEW, expected, "correlation"))
    np.testing.assert_allclose(centres("correlation").distances(3 * NEW + 7), found)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "correlation"])
def test_missing_values_are_left_out(metric):
    observed = [0, 2, 3, 6, 7]
    holes = NEW.copy()
    holes[:, [1, 4, 5]] = np.nan
    weights = np.linspace(1, 2, 8)
    found = centres(metric, weights=weights)
    part = NEW[:, observed]
    if metric == "correlation":
        expected = cdist(part, found.values[:, observed], "correlation")
    else:
        expected = cdist(part, found.values[:, observed], metric, w=weights[observed])
        expected *= weights.sum() / weights[observed].sum()
    np.testing.assert_allclose(found.distances(holes), expected)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "correlation"])
def test_missing_values_of_the_fit_are_left_out_of_the_centres(metric):
    holes = X.copy()
    holes[0, 3] = np.nan
    holes[LABELS == 2, 4] = np.nan  # no sample of this cluster has the feature
    found = centres(metric, holes).values
    assert np.isfinite(found).all()
    if metric == "sqeuclidean":
        np.testing.assert_allclose(found[0, 3], X[1:9, 3].mean())
        np.testing.assert_allclose(found[2, 4], X[LABELS < 2, 4].mean())


def test_excluded_samples_do_not_influence_the_centres():
    spoilt = X.copy()
    spoilt[[2, 12]] = 1e6
    excluded = np.array([2, 12, 19])  # sample 19 is a cluster of its own
    rest = np.delete(np.arange(9), 2)
    found = centres("sqeuclidean", spoilt, excluded=excluded).values
    np.testing.assert_allclose(found[0], X[rest].mean(axis=0))
    np.testing.assert_allclose(found[2], X[19])


def test_new_values_are_winsorised_at_the_limits():
    limits = np.array([np.full(8, -1.0), np.full(8, 1.0)])
    limits[:, 0] = -np.inf, np.inf
    found = centres("sqeuclidean", limits=limits).distances(NEW)
    clipped = NEW.copy()
    clipped[:, 1:] = clipped[:, 1:].clip(-1, 1)
    np.testing.assert_allclose(found, centres("sqeuclidean").distances(clipped))


def test_samples_without_a_distance_are_marked():
    rows = np.vstack([NEW, np.full(8, 2.5)])
    rows[1] = np.nan
    rows[2, :6] = np.nan
    np.testing.assert_array_equal(
        np.flatnonzero(~centres("correlation").comparable_samples(rows)), [1, 2, 7]
    )
    weights = np.ones(8)
    weights[6:] = 0
    np.testing.assert_array_equal(
        np.flatnonzero(~centres("cityblock", weights=weights).comparable_samples(rows)), [1, 2]
    )


def test_a_constant_centre_has_the_distance_1():
    data = X.copy()
    data[LABELS == 2] = 3.0
    np.testing.assert_array_equal(centres("correlation", data).distances(NEW)[:, 2], 1.0)
