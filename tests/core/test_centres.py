"""Centres of clusters and distances to them, against definitions and scipy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mrshc.core.centres import cluster_centres
from mrshc.core.data.matrix import ArrayMatrix

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 8))
LABELS = np.repeat([0, 1, 2], [9, 10, 1])
NEW = RNG.normal(size=(7, 8))


def centres(metric, data=X, **options):
    options = {"features": np.arange(data.shape[1]), "metric": metric} | options
    return cluster_centres(ArrayMatrix(data), LABELS, **options)


@pytest.mark.parametrize(
    ("metric", "average"), [("sqeuclidean", np.mean), ("cityblock", np.median)]
)
def test_centres_are_means_or_medians_and_distances_those_of_scipy(metric, average):
    expected = [average(X[k == LABELS], axis=0) for k in range(3)]
    found = centres(metric)
    np.testing.assert_allclose(found.values, expected)
    np.testing.assert_allclose(found.distances(NEW), cdist(NEW, expected, metric))
    weights = RNG.uniform(size=8)
    weighted = centres(metric, weights=weights).distances(NEW)
    np.testing.assert_allclose(weighted, cdist(NEW, expected, metric, w=weights))
    some = centres(metric, features=np.array([5, 2]))
    np.testing.assert_allclose(some.values, np.array(expected)[:, [5, 2]])
    assert some.features.tolist() == [5, 2]


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "correlation"])
def test_missing_values_are_left_out_and_distances_scaled_up(metric):
    observed, holes, weights = [0, 2, 3, 6, 7], NEW.copy(), np.linspace(1, 2, 8)
    holes[:, [1, 4, 5]] = np.nan
    found, part = centres(metric, weights=weights), NEW[:, observed]
    if metric == "correlation":
        expected = cdist(part, found.values[:, observed], "correlation")
    else:
        expected = cdist(part, found.values[:, observed], metric, w=weights[observed])
        expected *= weights.sum() / weights[observed].sum()
    np.testing.assert_allclose(found.distances(holes), expected)


def test_samples_without_a_distance_are_marked():
    rows = np.vstack([NEW, np.full(8, 0.1)])
    rows[1] = np.nan
    rows[2, :6] = np.nan  # two values
    rows[3, :5] = np.nan  # three
    marked = np.flatnonzero(~centres("correlation").comparable(rows))
    assert marked.tolist() == [1, 2, 7]
    weights = np.ones(8)
    weights[6:] = 0
    marked = np.flatnonzero(~centres("cityblock", weights=weights).comparable(rows))
    assert marked.tolist() == [1, 2]
