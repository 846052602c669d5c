"""Gaussian distributions without clusters: moments, missing values and eigenvalues."""

import numpy as np
import pytest

import reference
from mrshc.core.inference.gaussian_null import (
    background_variance,
    estimate_null,
    estimate_null_of_sigclust,
    soft_threshold,
)


def noise(n=30, p=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def covariance(null):
    return null.factors.T @ null.factors + np.diag(null.noise**2)


def test_variances_and_means_are_those_of_the_data():
    X = noise() * np.linspace(0.1, 3.0, 200) + np.arange(200)
    null = estimate_null(X)
    np.testing.assert_allclose(np.diag(covariance(null)), X.var(axis=0, ddof=1))
    np.testing.assert_allclose(null.means, X.mean(axis=0))


def test_eigenvalues_are_reduced_by_the_median():
    X = noise(20, 60)
    eigenvalues = np.sort(np.linalg.eigvalsh(np.cov(X.T)))[::-1][:19]
    found = np.sort(np.linalg.svd(estimate_null(X).factors, compute_uv=False) ** 2)[::-1]
    expected = eigenvalues - np.median(eigenvalues)
    np.testing.assert_allclose(found, expected[expected > 1e-9])


def test_a_strong_factor_is_kept_and_noise_is_not_inflated():
    X = noise()
    X[:, :50] += 2.0 * np.random.default_rng(1).normal(size=(30, 1))
    found = covariance(estimate_null(X))
    sample = np.cov(X.T)
    assert found[:50, :50].mean() == pytest.approx(sample[:50, :50].mean(), rel=0.15)
    # Sampling errors make the other covariances of the sample too large.
    others = ~np.eye(150, dtype=bool)
    assert np.abs(found[50:, 50:][others]).mean() < 0.8 * np.abs(sample[50:, 50:][others]).mean()


def test_draws_have_the_covariance_of_the_distribution():
    null = estimate_null(noise(25, 6) @ np.triu(np.ones((6, 6))))
    rng = np.random.default_rng(0)
    drawn = np.concatenate([null.draw(rng) for _ in range(800)])
    np.testing.assert_allclose(np.cov(drawn.T), covariance(null), rtol=0.1, atol=0.1)
    np.testing.assert_allclose(drawn.mean(axis=0), null.means, atol=0.1)


@pytest.mark.parametrize("estimate", [estimate_null, estimate_null_of_sigclust])
def test_the_same_values_are_missing_in_draws(estimate):
    X = noise(12, 9)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    drawn = estimate(X).draw(np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(X))


@pytest.mark.filterwarnings("error")
def test_features_with_one_value_or_none():
    X = noise(12, 9)
    X[:, 2] = np.nan
    X[1:, 5] = np.nan
    null = estimate_null(X)
    assert null.noise[2] == null.noise[5] == 0.0
    drawn = null.draw(np.random.default_rng(0))
    assert np.isnan(drawn[:, 2]).all()
    assert drawn[0, 5] == pytest.approx(X[0, 5])


def test_features_without_variance_stay_constant():
    X = noise(12, 9)
    X[:, 3] = 5.0
    np.testing.assert_allclose(estimate_null(X).draw(np.random.default_rng(0))[:, 3], 5.0)


@pytest.mark.parametrize(("n", "p"), [(12, 5), (12, 12), (12, 40)])
def test_draws_have_the_shape_of_the_data(n, p):
    X = noise(n, p)
    for estimate in (estimate_null, estimate_null_of_sigclust):
        assert estimate(X).draw(np.random.default_rng(0)).shape == (n, p)


# SigClust ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["B", "I"])
def test_background_and_eigenvalues_are_those_of_sigclust2(name):
    X = reference.matrix("input_B")[:, :40] if name == "B" else reference.matrix("simI_rep1")
    expected = reference.runs("sigclust2")[name]
    assert background_variance(X) == pytest.approx(expected["background_variance"], abs=1e-8)
    values = np.zeros(X.shape[1])
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2 / (len(X) - 1)
    values[: squares.size] = squares
    np.testing.assert_allclose(values, expected["sample_eigenvalues"], atol=1e-8)
    # The distribution contains the reduced eigenvalues, in the directions of the samples.
    null = estimate_null_of_sigclust(X)
    reduced = soft_threshold(values, background=background_variance(X))
    found = np.zeros(values.size)
    strengths = np.linalg.svd(null.factors, compute_uv=False) ** 2
    found[: strengths.size] = strengths
    np.testing.assert_allclose(found + null.noise**2, reduced, atol=1e-8)


def test_thresholds_keep_the_background_and_the_order():
    values = np.sort(np.random.default_rng(0).exponential(2.0, size=40))[::-1]
    reduced = soft_threshold(values, background=1.0)
    assert reduced.min() == 1.0
    assert (np.diff(reduced) <= 0).all()
    assert (reduced <= np.maximum(values, 1.0)).all()


def test_the_first_eigenvalue_has_the_largest_share_of_all_thresholds():
    values = np.array([30.0, 6.0, 3.0, 1.0, 0.5, 0.1])
    reduced = soft_threshold(values, background=1.5)
    for threshold in np.linspace(0.0, values[0], 301):
        other = np.maximum(values - threshold, 1.5)
        if other.sum() < values.sum():  # thresholds that reduce the total variance are not used
            break
        # The candidates are 100 points, so the best of them is close to the maximum.
        assert other[0] / other.sum() <= reduced[0] / reduced.sum() + 1e-3


def test_eigenvalues_above_the_background_are_kept():
    values = np.array([5.0, 4.0, 3.0])
    np.testing.assert_array_equal(soft_threshold(values, background=1.0), values)
