"""The number of clusters: drop ratios agree with a simple computation and are invariant."""

import numpy as np
import pytest

from mrshc.core.trees.cut_choice import MAX_CLUSTERS, best_cut, drop_ratios
from mrshc.core.trees.tree import LINKAGES, agglomerate, pairwise_distances


def three_clusters(n=30, *, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) + 20.0 * rng.permutation(np.arange(n) % 3)[:, None] ** 2


def ratios_of(X, n_cuts, *, linkage="complete", metric="sqeuclidean"):
    distances = pairwise_distances(X, metric)
    tree = agglomerate(distances, linkage)
    return drop_ratios(distances, [tree.cut(k) for k in range(1, n_cuts + 1)])


def plain_within(X, labels):
    """Sum of squares within clusters, from their means."""
    clusters = (X[labels == k] for k in np.unique(labels))
    return sum(np.sum((c - c.mean(axis=0)) ** 2) for c in clusters)


def plain_ratios(within):
    return [
        (within[i - 1] - within[i]) / (within[i] - within[i + 1]) for i in range(1, len(within) - 1)
    ]


# Complete, single and other linkages do not minimise the dispersion, but every split reduces it.
@pytest.mark.parametrize("linkage", LINKAGES)
def test_ratios_are_those_of_the_sums_of_squares_within_clusters(linkage):
    X = three_clusters()
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), linkage)
    expected = plain_ratios([plain_within(X, tree.cut(k)) for k in range(1, 12)])
    np.testing.assert_allclose(ratios_of(X, 11, linkage=linkage), expected, rtol=1e-8)


def test_the_dispersion_for_other_metrics_is_the_mean_distance_within_clusters():
    X = three_clusters()
    distances = pairwise_distances(X, "cityblock")
    tree = agglomerate(distances, "average")
    cuts = [tree.cut(k) for k in range(1, 9)]
    within = [
        sum(
            sum(distances[i, j] for i in members for j in members if i < j) / members.size
            for members in (np.flatnonzero(labels == k) for k in np.unique(labels))
        )
        for labels in cuts
    ]
    np.testing.assert_allclose(drop_ratios(distances, cuts), plain_ratios(within), rtol=1e-8)


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 7, 10])
def test_the_cut_into_separate_clusters_has_the_largest_ratio(n_clusters):
    rng = np.random.default_rng(n_clusters)
    centres = 30.0 * np.eye(n_clusters)  # the same distance between all clusters
    X = rng.normal(size=(6 * n_clusters, n_clusters)) + np.repeat(centres, 6, axis=0)
    assert best_cut(ratios_of(X, 12)) == n_clusters


@pytest.mark.parametrize("factor", [1e-120, 1e-3, 1e120])
def test_ratios_do_not_depend_on_the_unit(factor):
    X = three_clusters()
    np.testing.assert_allclose(ratios_of(factor * X, 11), ratios_of(X, 11), rtol=1e-6)


def test_ratios_do_not_depend_on_the_order_of_samples():
    X = three_clusters()
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(ratios_of(X[order], 11), ratios_of(X, 11), rtol=1e-8)


def test_copies_of_samples_have_finite_ratios_and_are_not_split():
    X = np.repeat(np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 12.0]]), 5, axis=0)
    ratios = ratios_of(X, 11)
    assert np.isfinite(ratios).all()
    assert best_cut(ratios) == 3
    np.testing.assert_array_equal(ratios[2:], 1.0)  # no split of copies exceeds another one


def test_samples_that_are_all_equal_have_finite_ratios():
    for X in (np.zeros((8, 3)), np.full((8, 3), 0.1)):
        ratios = ratios_of(X, 8)
        np.testing.assert_array_equal(ratios, 1.0)
        assert best_cut(ratios) == 2


@pytest.mark.parametrize("n_cuts", [2, 3, 5])
def test_there_is_one_ratio_for_each_cut_that_is_followed_by_another_one(n_cuts):
    assert ratios_of(three_clusters(), n_cuts).shape == (n_cuts - 2,)


# The best cut ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "n_clusters"),
    [([1.0], 2), ([1.0, 3.0, 2.0], 3), ([2.0, 1.0, 2.0], 2), ([0.0, 0.0], 2), ([], 1)],
    ids=["one cut", "largest", "tie: fewest clusters", "all zero", "no cuts"],
)
def test_the_cut_with_the_largest_score_is_the_best(scores, n_clusters):
    assert best_cut(np.array(scores)) == n_clusters


def test_at_most_ten_clusters_are_chosen():
    assert MAX_CLUSTERS == 10
    assert best_cut(np.arange(8.0)) == 9
    assert best_cut(np.arange(9.0)) == 10
    assert best_cut(np.arange(15.0)) == 10
