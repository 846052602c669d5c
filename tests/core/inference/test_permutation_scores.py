"""Scores of partitions agree with the enumeration of all permutations, and are invariant."""

from itertools import permutations

import numpy as np
import pytest

from mrshc.core.inference.permutation_scores import permutation_z_scores


def between(X, labels):
    """Sum of squares between clusters, from their means."""
    centred = X - X.mean(axis=0)
    clusters = (centred[labels == k] for k in np.unique(labels))
    return sum(len(c) * np.sum(c.mean(axis=0) ** 2) for c in clusters)


def enumerated_score(X, labels):
    """Return the score by enumeration of all permutations of the samples."""
    shuffles = [between(X, labels[list(order)]) for order in permutations(range(len(X)))]
    return (between(X, labels) - np.mean(shuffles)) / np.std(shuffles)


def scores_of(X, *partitions):
    return permutation_z_scores([np.asarray(p) for p in partitions], X @ X.T)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5, 6, 7])
@pytest.mark.parametrize("q", [1, 2, 8])
def test_scores_are_those_of_all_shuffles(n, q):
    rng = np.random.default_rng(10 * n + q)
    X = rng.standard_t(3, size=(n, q)) + 5.0
    for labels in ([0, 0, 1, 1, 1, 1, 1], [0, 1, 1, 2, 2, 1, 0], [1, 0, 1, 2, 1, 1, 1]):
        labels = np.array(labels[:n])
        assert scores_of(X, labels)[0] == pytest.approx(enumerated_score(X, labels), rel=1e-8)


def test_scores_are_high_for_clusters_and_standardised_for_chance():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 100))
    shuffled = [rng.permutation(labels) for _ in range(500)]
    chance = scores_of(X, *shuffled)
    assert abs(chance.mean()) < 0.2
    assert chance.std() == pytest.approx(1, abs=0.15)
    assert scores_of(X + labels[:, None], labels)[0] > 20
    opposed = np.array([0, 1] * 30)  # each cluster has as many of either kind: less than chance
    assert scores_of((labels[:, None] == 1) + 1e-3 * X, opposed)[0] < 0


def test_scores_do_not_depend_on_shift_scale_and_rotation():
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(12, 5)), np.arange(12) % 3
    expected = scores_of(X, labels)
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    for other in (X + 100 * rng.normal(size=5), X * 1e60, X * 1e-60, X @ rotation, -X):
        np.testing.assert_allclose(scores_of(other, labels), expected, rtol=1e-6)


def test_scores_do_not_depend_on_order_of_samples_and_labels():
    rng = np.random.default_rng(2)
    X, labels = rng.normal(size=(15, 4)), rng.permutation(np.arange(15) % 3)
    order = rng.permutation(15)
    expected = scores_of(X, labels)
    np.testing.assert_allclose(scores_of(X[order], labels[order]), expected)
    np.testing.assert_allclose(scores_of(X, np.array([2, 0, 1])[labels]), expected)


def test_each_partition_is_scored_on_its_own():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 4))
    partitions = [rng.permutation(np.arange(10) % k) for k in (2, 3, 9)]
    together = scores_of(X, *partitions)
    assert together.tolist() == [scores_of(X, p)[0] for p in partitions]


@pytest.mark.parametrize("n", [3, 4, 6])
def test_score_is_zero_without_variation(n):
    labels = np.arange(n) % 2
    for X in (np.zeros((n, 3)), np.full((n, 3), 1e8), np.full((n, 3), 0.1)):
        assert scores_of(X, labels).tolist() == [0.0]
    X = np.random.default_rng(4).normal(size=(n, 3))
    assert scores_of(X, np.arange(n), np.zeros(n, np.intp)).tolist() == [0.0, 0.0]


def test_three_samples_have_no_score():
    assert scores_of(np.eye(3), [0, 0, 1]).tolist() == [0.0]


def test_equidistant_samples_score_zero():
    assert scores_of(np.eye(6), [0, 0, 0, 1, 1, 1]).tolist() == [0.0]


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_scores_do_not_overflow(scale):
    X = np.random.default_rng(8).normal(size=(20, 10))
    labels = np.arange(20) % 3
    expected = permutation_z_scores([labels], X @ X.T)
    scaled = X * scale
    np.testing.assert_allclose(
        permutation_z_scores([labels], scaled @ scaled.T), expected, rtol=1e-9
    )
