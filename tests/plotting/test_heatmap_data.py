import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage

from mrshc.plotting import (
    feature_tree,
    standardised,
)
from mrshc.plotting.heatmap_data import correlation_distances


def test_outlying_samples_do_not_affect_the_scale():
    X = np.array([[1.0, 4.0], [3.0, np.nan], [2.0, 8.0], [500.0, -60.0]])
    np.testing.assert_allclose(
        standardised(X, outlying=np.array([3]))[:3], standardised(X[:3]), atol=1e-12
    )
    scaled = standardised(X, outlying=np.array([3]))[3]
    np.testing.assert_allclose(scaled, [(500 - 2) / np.sqrt(2 / 3), (-60 - 6) / 2])


def test_an_outlying_sample_does_not_hide_the_spread_of_the_others():
    X = np.array([[1e15], [1.0], [2.0], [3.0]])
    usual = standardised(X, outlying=np.array([0]))[1:]
    np.testing.assert_allclose(usual, standardised(X[1:]), atol=1e-12)
    assert usual.any()


def test_standardised_features_have_mean_zero_and_deviation_one():
    X = np.random.default_rng(0).normal(3.0, 7.0, size=(40, 5)) * [1, 1e-200, 1e150, 1, 1]
    X[3, 0], X[4, 0], X[:, 3], X[:, 4] = np.nan, np.inf, 0.1, np.nan
    Y = standardised(X)
    np.testing.assert_allclose(np.nanmean(Y[:, :3], axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(Y[:, :3], axis=0), 1.0)
    assert np.isnan(Y[[3, 4], 0]).all()
    assert (Y[:, 3] == 0).all()
    assert np.isnan(Y[:, 4]).all()


def test_without_gaps_distances_of_features_come_from_correlations():
    X = np.random.default_rng(0).normal(size=(50, 6))
    np.testing.assert_allclose(
        correlation_distances(X), 1 - np.corrcoef(X, rowvar=False), atol=1e-12
    )
    np.testing.assert_allclose(
        feature_tree(X)[:, 2], linkage(X.T, "average", metric="correlation")[:, 2], atol=1e-11
    )


def test_with_gaps_features_are_compared_where_both_were_seen():
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[:5, 0], X[3:9, 1] = np.nan, np.nan
    expected = 1 - np.corrcoef(X[9:], rowvar=False)[0, 1]
    assert correlation_distances(X)[0, 1] == pytest.approx(expected)


def test_a_feature_tree_survives_constant_empty_and_copied_features():
    X = np.random.default_rng(0).normal(size=(20, 6))
    X[:, 1], X[:, 2], X[:, 4] = 4.2, np.nan, X[:, 3]
    tree = feature_tree(X)
    assert is_valid_linkage(tree)
    assert sorted(tree[0, :2]) == [3, 4]
    assert tree[0, 2] == 0
    assert (correlation_distances(X)[1, [0, 2, 3]] == 1).all()
