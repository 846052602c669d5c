"""Estimates of missing values and expected distances agree with simple implementations."""

import numpy as np
import pytest
from scipy import stats

from mrshc.core.missing_values import CompleteSamples, complete
from mrshc.core.trees import METRICS, SQUARED_METRICS, pairwise_distances


def low_rank(rng, n=60, q=20, *, rank=2, sd=1.0, share=0.0):
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, q)) + sd * rng.normal(size=(n, q))
    return np.where(rng.random(X.shape) < share, np.nan, X)


def plain_fit(X, rank):
    """Regularised iterative PCA: completed values, low-rank fit, loadings, signal and noise."""
    missing, (n, q) = np.isnan(X), X.shape
    counts = np.maximum((~missing).sum(axis=0), 1)
    start = np.nansum(X, axis=0) / counts
    values = np.where(missing, start, X)
    scale = np.sqrt(np.mean(np.sum((values - start) ** 2, axis=0) / counts))
    loadings = np.linalg.svd(values - start)[2][:rank].T
    # The number of values after centring, minus the number of parameters of the components.
    freedom = (n - 1) * q - rank * (n - 1 + q - rank)
    for _ in range(50):
        means = values.mean(axis=0)
        # One step of subspace iteration.
        basis = np.linalg.qr((values - means) @ loadings)[0]
        rotation, singular, rows = np.linalg.svd(basis.T @ (values - means), full_matrices=False)
        loadings = rows.T
        noise = (np.sum((values - means) ** 2) - np.sum(singular**2)) / freedom
        signal = np.maximum(singular**2 - noise * max(n, q), 0)
        fit = means + basis @ rotation @ np.diag(signal / singular) @ rows
        change = np.abs(fit - values)[missing].max(initial=0)
        values = np.where(missing, fit, values)
        if change <= 0.01 * scale:
            break
    return values, fit, loadings, signal, noise, freedom


def plain_completion(X):
    """Return completed values and their variances, computed for one sample after the other."""
    missing, (n, q) = np.isnan(X), X.shape
    values, fit, loadings, signal, noise, freedom = plain_fit(X, min(3, n - 2, q - 1))
    residuals = np.where(missing, 0, X - fit) ** 2
    residual_variances = residuals.sum(axis=0) / (~missing).sum(axis=0) * (n - 1) * q / freedom
    variances = np.zeros((n, q))
    used = loadings[:, signal > 0]  # scores of components without signal are zero
    prior = np.diag((n - 1) / signal[signal > 0])
    for i in range(n):
        observed = used[~missing[i]]
        covariance = np.linalg.inv(observed.T @ observed / noise + prior)
        of_scores = np.diag(used @ covariance @ used.T)
        variances[i, missing[i]] = (residual_variances + of_scores)[missing[i]]
    return values, variances


def assert_plain(found, X):
    values, variances = plain_completion(X)
    np.testing.assert_allclose(found.values, values, rtol=1e-7)
    np.testing.assert_allclose(found.variances, variances, rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "q", "rank", "share"),
    [
        (12, 8, 5, 0.1),  # three components of five
        (12, 8, 1, 0.2),  # components of noise
        (6, 15, 2, 0.2),
        (30, 4, 2, 0.3),  # one degree of freedom fewer for each component
        (9, 3, 1, 0.2),  # two components
        (9, 2, 1, 0.2),  # one component
        (4, 9, 2, 0.1),
        (3, 9, 1, 0.1),
    ],
)
def test_values_and_variances_are_those_of_a_simple_implementation(n, q, rank, share):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = 5.0 + low_rank(rng, n, q, rank=rank, sd=0.5)
        is_missing = rng.random(X.shape) < share
        is_missing[:2], is_missing[-1, 0] = False, True
        X[is_missing] = np.nan
        before = X.copy()
        found = complete(X)
        assert_plain(found, X)
        np.testing.assert_array_equal(X, before)
        np.testing.assert_array_equal(found.values[~is_missing], X[~is_missing])
        np.testing.assert_array_equal(found.variances > 0, is_missing)


def test_features_with_one_value_and_samples_without_any_are_completed():
    X = low_rank(np.random.default_rng(11), 10, 5, sd=0.5) + 3.0
    X[1:, 2] = X[4] = np.nan
    assert_plain(complete(X), X)
    X[:, 3] = np.nan
    found = complete(X)
    np.testing.assert_allclose(found.values[:, 3], 0, atol=1e-9)
    assert np.isfinite(found.distances("sqeuclidean")).all()


@pytest.mark.parametrize(
    ("X", "values", "variances"),
    [
        ([[1.0], [np.nan], [4.0]], [[1], [2.5], [4]], [[0], [2.25], [0]]),
        ([[1.0, np.nan], [np.nan, 7]], [[1, 7], [1, 7]], [[0, 0], [0, 0]]),
        ([[1.0, 2], [5, np.nan]], [[1, 2], [5, 2]], [[0, 0], [0, 0]]),
        ([[np.nan], [np.nan]], [[0], [0]], [[0], [0]]),
        ([[2.0, 3, 1], [2, np.nan, 1], [2, 3, 1]], [[2, 3, 1]] * 3, np.zeros((3, 3))),
    ],
    ids=["one feature", "two samples", "two samples, one missing", "nothing", "constant"],
)
def test_without_components_missing_values_are_column_means(X, values, variances):
    found = complete(np.array(X))
    np.testing.assert_allclose(found.values, values)
    np.testing.assert_allclose(found.variances, variances, atol=1e-15)


def test_values_without_noise_have_no_variance():
    """Only the first feature varies, so that one component explains all values exactly."""
    X = np.column_stack([np.tile([1.0, -1.0], 4), np.full(8, 5.0), np.full(8, 5.0)])
    X[3, 1] = np.nan
    found = complete(X)
    np.testing.assert_allclose(found.values[3], [-1, 5, 5], rtol=1e-12)
    np.testing.assert_array_equal(found.variances, 0)


@pytest.mark.parametrize("others_are_complete", [False, True])
@pytest.mark.parametrize("excluded", [[0], [7, 3], [11]])
def test_missing_values_of_excluded_samples_are_column_means(excluded, others_are_complete):
    X = 4.0 + low_rank(np.random.default_rng(13), 12, 5)
    others = np.setdiff1d(np.arange(12), excluded)
    if not others_are_complete:
        X[others[[0, 3, 3, 5]], [1, 0, 4, 3]] = np.nan
    X[excluded, 1:3] = np.nan
    found, rest = complete(X, np.array(excluded)), (X[others], np.zeros((others.size, 5)))
    if not others_are_complete:
        rest = plain_completion(X[others])
    np.testing.assert_allclose(found.values[others], rest[0], rtol=1e-7)
    np.testing.assert_allclose(found.variances[others], rest[1], rtol=1e-6)
    for i in excluded:
        np.testing.assert_allclose(found.values[i, 1:3], rest[0].mean(axis=0)[1:3], rtol=1e-7)
        np.testing.assert_array_equal(found.values[i, [0, 3, 4]], X[i, [0, 3, 4]])
        np.testing.assert_allclose(found.variances[i, 1:3], rest[0].var(axis=0)[1:3], rtol=1e-6)
        np.testing.assert_array_equal(found.variances[i, [0, 3, 4]], 0)
    assert_plain(complete(X, np.empty(0, int)), X) if not others_are_complete else None


def test_expected_distances_follow_the_formulas_of_normal_distributions():
    rng = np.random.default_rng(15)
    values = rng.normal(size=(7, 4)).round(1)
    variances = np.where(rng.random((7, 4)) < 0.4, rng.uniform(0.1, 3, size=(7, 4)), 0)
    values[1] = values[0]  # equal means do not make an expected distance of zero
    squares, lengths = np.zeros((2, 7, 7))
    for i, j in zip(*np.nonzero(~np.eye(7, dtype=bool)), strict=True):
        for d, v in zip(np.abs(values[i] - values[j]), variances[i] + variances[j], strict=True):
            squares[i, j] += d**2 + v
            lengths[i, j] += stats.foldnorm.mean(d / np.sqrt(v), scale=np.sqrt(v)) if v else d
    samples = CompleteSamples(values, variances)
    np.testing.assert_allclose(samples.distances("sqeuclidean"), squares, rtol=1e-10)
    np.testing.assert_allclose(samples.distances("cityblock"), lengths, rtol=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_complete_data_are_not_changed(metric):
    X = np.random.default_rng(0).normal(size=(10, 4))
    samples = complete(X)
    assert samples.values is X
    np.testing.assert_array_equal(samples.distances(metric), pairwise_distances(X, metric))


@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_those_of_the_true_samples_on_average_whatever_the_unit(metric):
    rng, ratios = np.random.default_rng(4), []
    for _ in range(10):
        truth = low_rank(rng) + 3 * rng.normal(size=20)
        X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
        found = complete(X).distances(metric)
        ratios.append(found.sum() / pairwise_distances(truth, metric).sum())
        for size in (1e140, 1e-140):
            power = {"sqeuclidean": 2, "cityblock": 1, "correlation": 0}[metric]
            scaled = complete(X * size).distances(metric) / size**power
            np.testing.assert_allclose(scaled, found, rtol=1e-8)
    assert np.mean(ratios) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("metric", SQUARED_METRICS)
def test_completed_samples_are_points_in_euclidean_space(metric):
    """Ward's linkage is valid only for Euclidean distances."""
    X = low_rank(np.random.default_rng(5), n=30, share=0.6)
    distances, centring = complete(X).distances(metric), np.eye(30) - 1 / 30
    np.testing.assert_array_equal(np.diag(distances), 0.0)
    gram = -0.5 * centring @ distances @ centring
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * np.trace(gram)
