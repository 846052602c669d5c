"""K-means by exchanges of single samples finds partitions that no exchange improves."""

from itertools import product

import numpy as np
import pytest

from mrshc.core.kernels.kmeans import best_partition, exchange_samples, initial_partition

NO_START = np.empty(0, np.intp)


def between(X, labels):
    """Return the sum of squares between clusters and the origin, by its definition."""
    groups = [X[labels == k] for k in np.unique(labels)]
    return sum(len(group) * np.square(group.mean(axis=0)).sum() for group in groups)


def neighbours(labels, n_clusters):
    """Yield all partitions that differ in the cluster of one sample and have no empty cluster."""
    for i, k in product(range(labels.size), range(n_clusters)):
        other = labels.copy()
        other[i] = k
        if np.unique(other).size == n_clusters:
            yield other


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_no_exchange_of_one_sample_improves_the_result(seed, n_clusters):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4))
    labels = rng.permutation(np.arange(30) % n_clusters)
    before = between(X, labels)
    found = exchange_samples(X @ X.T, labels, n_clusters)
    assert found == pytest.approx(between(X, labels))
    assert found > before
    assert max(between(X, other) for other in neighbours(labels, n_clusters)) <= found + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_many_starts_is_the_best_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2))
    partitions = (np.array(labels) for labels in product(range(3), repeat=8))
    best = max(between(X, labels) for labels in partitions if np.unique(labels).size == 3)
    labels, found = best_partition(X @ X.T, rng.random((50, 3)), NO_START)
    assert found == pytest.approx(best)
    assert between(X, labels) == pytest.approx(best)


def test_the_given_partition_is_kept_if_no_start_is_better():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + 9 * np.eye(3)[np.arange(20) % 3]
    truth = np.arange(20) % 3
    for numbering in ([0, 1, 2], [2, 0, 1]):
        given = np.array(numbering)[truth]
        labels, _ = best_partition(X @ X.T, rng.random((10, 3)), given)
        np.testing.assert_array_equal(labels, given)


def test_the_given_partition_is_improved_but_not_overwritten():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3)) + 9 * np.eye(3)[np.arange(20) % 3]
    given = np.arange(20) // 7
    copy = given.copy()
    labels, found = best_partition(X @ X.T, np.empty((0, 3)), given)
    np.testing.assert_array_equal(given, copy)
    assert found == pytest.approx(between(X, labels))
    assert found > between(X, given)


def test_a_start_that_is_better_replaces_the_given_partition():
    """Two pairs of corners of a long rectangle: no exchange leads from one split to the other."""
    X = np.array([[-1.0, -3.0], [1.0, -3.0], [-1.0, 3.0], [1.0, 3.0]])
    X = np.repeat(X, 10, axis=0)
    given = np.repeat([0, 1, 0, 1], 10)
    alone, _ = best_partition(X @ X.T, np.empty((0, 2)), given)
    np.testing.assert_array_equal(alone, given)
    labels, _ = best_partition(X @ X.T, np.random.default_rng(0).random((20, 2)), given)
    assert np.unique(labels[:20]).size == np.unique(labels[20:]).size == 1


@pytest.mark.parametrize("n_clusters", [2, 4, 6])
def test_no_cluster_is_empty_even_if_samples_are_equal(n_clusters):
    X = np.repeat([[0.0, 1.0], [5.0, 1.0]], 3, axis=0)
    for seed in range(10):
        uniforms = np.random.default_rng(seed).random((3, n_clusters))
        labels, _ = best_partition(X @ X.T, uniforms, NO_START)
        assert np.unique(labels).size == n_clusters
        start = initial_partition(X @ X.T, uniforms[0])
        assert np.unique(start).size == n_clusters


def plain_initial_partition(X, uniforms):
    """Choose centres by k-means++ with the given random numbers, and assign the nearest centre."""
    mass, centers = np.ones(len(X)), []
    for uniform in uniforms:
        centers.append(np.searchsorted(np.cumsum(mass), uniform * mass.sum(), side="right"))
        distances = np.square(X[:, None] - X[centers]).sum(axis=2)
        mass = distances.min(axis=1)
    return distances.argmin(axis=1)


@pytest.mark.parametrize("seed", range(10))
def test_centres_are_chosen_in_proportion_to_squared_distances(seed):
    rng = np.random.default_rng(seed)
    X, uniforms = rng.integers(-50, 50, size=(15, 2)).astype(float), rng.random(4)
    expected = plain_initial_partition(X, uniforms)
    np.testing.assert_array_equal(initial_partition(X @ X.T, uniforms), expected)
