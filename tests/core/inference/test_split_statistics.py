"""Statistics of a split, compared with plain implementations and with sigclust2."""

import numpy as np
import pytest

import reference
from mrshc.core.inference.split_statistics import (
    cluster_index,
    leave_one_out_projections,
    separation,
)
from mrshc.core.trees.tree import agglomerate, pairwise_distances


def two_groups(n_first=7, n_second=12, q=30, *, distance=0.0, seed=0):
    rng = np.random.default_rng(seed)
    is_first = np.arange(n_first + n_second) < n_first
    return rng.normal(size=(is_first.size, q)) + distance * is_first[:, None], is_first


def test_projections_leave_out_the_sample_itself():
    X, is_first = two_groups()
    centred = X - X.mean(axis=0)
    for i, projection in enumerate(leave_one_out_projections(X, is_first)):
        others = np.arange(len(X)) != i
        means = [centred[group & others].mean(axis=0) for group in (is_first, ~is_first)]
        np.testing.assert_allclose(projection, centred[i] @ (means[0] - means[1]))


def test_separation_compares_the_spread_within_groups_with_that_of_all_samples():
    X, is_first = two_groups(distance=1.0)
    z = leave_one_out_projections(X, is_first)
    within = (z[is_first].std(ddof=1) + z[~is_first].std(ddof=1)) / 2
    np.testing.assert_allclose(separation(X, is_first), 1 - within / z.std(ddof=1))


def test_separation_is_negative_if_the_groups_are_in_the_wrong_order():
    # Each sample is closer to the other group: the groups alternate on a line.
    X = np.array([[1.0], [-1.0], [1.1], [-1.1]])
    is_first = np.array([True, True, False, False])
    assert separation(X, is_first) < 0.0


def test_separation_does_not_depend_on_scale_location_and_order():
    X, is_first = two_groups(distance=0.5)
    expected = separation(X, is_first)
    np.testing.assert_allclose(separation(3.0 * X + 7.0, is_first), expected)
    np.testing.assert_allclose(separation(X, ~is_first), expected)
    np.testing.assert_allclose(separation(X[::-1, ::-1], is_first[::-1]), expected)


def test_noise_is_not_separated_whatever_the_number_of_features():
    # Without leaving out the sample itself, 2,000 features of noise would separate any two groups
    # by many standard deviations.
    values = [separation(*two_groups(15, 15, 2000, seed=seed)) for seed in range(40)]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(len(values))


@pytest.mark.parametrize(("distance", "expected"), [(0.0, 0.0), (1.0, 1.0)])
def test_groups_without_spread(distance, expected):
    is_first = np.arange(6) < 3
    assert separation(np.outer(is_first, [distance, 0.0]), is_first) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["B", "I"])
def test_cluster_index_is_that_of_sigclust2(name):
    X = reference.matrix("input_B")[:, :40] if name == "B" else reference.matrix("simI_rep1")
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "ward")
    expected = [node["ci"] for node in reference.runs("sigclust2")[name]["nodes"]]
    found = []
    for node in range(tree.root, tree.root - len(expected), -1):
        rows = tree.members(node)
        found.append(cluster_index(X[rows], np.isin(rows, tree.members(tree.children(node)[0]))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_cluster_index_of_equal_samples_is_one():
    assert cluster_index(np.ones((4, 2)), np.arange(4) < 2) == 1.0
