"""The fast analysis of variance equals the general one for partitions of all samples."""

import numpy as np
import pytest
import scipy.stats

from mrshc.core.kernels.association import (
    rank_rows,
    write_association,
    write_explained_rank_variance,
)


def explained_rank_variance(features, partitions):
    shape = features.shape[0], len(partitions)
    fractions, freedom = np.full(shape, np.nan), np.full((*shape, 2), -9)
    write_explained_rank_variance(features, partitions, fractions, freedom)
    return fractions, freedom


def association(features, partitions):
    """Number the groups of all partitions together, as the kernel needs them."""
    shape = features.shape[0], len(partitions)
    fractions, between = np.full(shape, np.nan), np.full(shape, np.nan)
    freedom = np.full((*shape, 2), -9)
    first_groups = np.concatenate([[0], np.cumsum(partitions.max(axis=1) + 1)])
    groups = np.ascontiguousarray((partitions + first_groups[:-1, None]).T)
    write_association(
        features, rank_rows(features), groups, first_groups, fractions, freedom, between
    )
    return fractions, freedom, between


def make_features(rng, n, *, n_values, share_missing):
    """Return features in rows, continuous (n_values is None) or with few distinct values."""
    shape = (60, n)
    continuous = n_values is None
    X = rng.normal(size=shape) if continuous else rng.integers(n_values, size=shape).astype(float)
    X[rng.random(shape) < share_missing] = np.nan
    return X


@pytest.mark.parametrize("share_missing", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n_values", [None, 1, 2, 5])
@pytest.mark.parametrize("n", [3, 8, 40, 128, 129, 200])
def test_both_kernels_agree_if_no_samples_are_excluded(n, n_values, share_missing):
    rng = np.random.default_rng([n, n_values or 0, int(10 * share_missing)])
    features = make_features(rng, n, n_values=n_values, share_missing=share_missing)
    partitions = np.stack([rng.integers(k, size=n) for k in (1, 2, 3, 7)] + [np.arange(n)])
    expected, freedom = explained_rank_variance(features, partitions)
    found, found_freedom, _ = association(features, partitions)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found_freedom, freedom)


@pytest.mark.parametrize("n_values", [None, 4])
def test_the_sum_of_squares_between_groups_is_that_of_numpy(n_values):
    rng = np.random.default_rng(0)
    features = make_features(rng, 40, n_values=n_values, share_missing=0.0)
    partitions = np.stack([rng.integers(k, size=40) for k in (2, 3, 7)])
    between = association(features, partitions)[2]
    for m, labels in enumerate(partitions):
        expected = np.zeros(60)
        for group in np.unique(labels):
            members = features[:, labels == group]
            differences = members.mean(axis=1) - features.mean(axis=1)
            expected += members.shape[1] * differences**2
        np.testing.assert_allclose(between[:, m], expected, rtol=1e-10, atol=1e-13)


def test_the_sum_of_squares_is_scaled_to_all_samples_if_values_are_missing():
    """With every sample twice, and one copy missing, the sum is that of the complete data."""
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(10, 20)), rng.integers(3, size=20)
    twice = np.repeat(X, 2, axis=1)
    with_missing = twice.copy()
    with_missing[:, ::2] = np.nan
    partitions = np.repeat(labels, 2)[None, :]
    complete, halved = (association(Y, partitions)[2] for Y in (twice, with_missing))
    np.testing.assert_allclose(halved, complete, rtol=1e-12)
    assert association(np.full((1, 20), np.nan), labels[None, :])[2] == 0.0


def nested_partitions(rng, n, cluster_counts=(2, 3, 4, 7)):
    """Return partitions in which each cluster is the union of clusters of the next partition."""
    labels, partitions = rng.integers(cluster_counts[-1], size=n), []
    for k in reversed(cluster_counts):
        labels = np.where(labels < k, labels, labels % k)
        partitions.insert(0, labels)
    return partitions


@pytest.mark.parametrize("share_missing", [0.0, 0.4])
def test_sums_of_unions_are_those_of_each_partition_alone(share_missing):
    """Partitions of two trees and a partition of its own, in one call."""
    rng = np.random.default_rng(2)
    features = make_features(rng, 40, n_values=None, share_missing=share_missing)
    partitions = nested_partitions(rng, 40) + nested_partitions(rng, 40)
    partitions = np.stack([*partitions, rng.integers(3, size=40)])
    together = association(features, partitions)
    for m, labels in enumerate(partitions):
        alone = association(features, labels[None])
        np.testing.assert_allclose(together[0][:, m], alone[0][:, 0], rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(together[1][:, m], alone[1][:, 0])
        np.testing.assert_allclose(together[2][:, m], alone[2][:, 0], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("n_values", [None, 5])
def test_ranks_of_many_samples_are_midranks(n_values):
    X = make_features(np.random.default_rng(2), 1500, n_values=n_values, share_missing=0.1)[:3]
    ranks = rank_rows(X)
    expected = scipy.stats.rankdata(X, axis=1, nan_policy="omit")
    np.testing.assert_array_equal(ranks[~np.isnan(X)], expected[~np.isnan(X)])
