"""Distances and weights of COSA agree with R's rCOSA and with the formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform

import reference
from mrshc.core import cosa as core
from mrshc.core import parallel
from mrshc.core.cosa import cosa, feature_scales

RUNS = reference.runs("cosa")
INPUTS = {"A": "input_A", "B": "input_B", "I": "simI_rep1"}


def run(X, *, scale=0.2, n_neighbors=3):
    return cosa(X, feature_scales(X), scale=scale, n_neighbors=n_neighbors)


def by_formula(X, *, scale=0.2, n_neighbors=3, n_iter):
    """Return distances and weights, computed with an array of all pairs and features."""
    n, p = X.shape
    d = np.abs(X[:, None] - X) / feature_scales(X)
    shared = ~np.isnan(d)
    weights = np.full((n, p), 1 / p)
    for t in range(n_iter):
        eta = scale * (1 + 0.1 * t)
        v = np.where(shared, np.maximum(weights[:, None], weights), 0)
        total = v.sum(axis=2)
        kept = np.where(v > 0, d, np.inf)
        # The smallest difference is taken out of the sum, which could underflow otherwise.
        least = kept.min(axis=2)
        terms = (v * np.exp(-(kept - least[..., None]) / eta)).sum(axis=2) / total
        distances = p / shared.sum(axis=2) * total * (least - eta * np.log(terms))
        np.fill_diagonal(distances, np.inf)
        for i in range(n):
            near = d[i, np.argsort(distances[i], kind="stable")[:n_neighbors]]
            counts = (~np.isnan(near)).sum(axis=0)
            medians = np.array([np.sort(near[:, k])[counts[k] // 2] for k in range(p)])
            known = counts > 0
            raw = np.exp(-(medians[known] - medians[known].min()) / scale)
            weights[i] = 1 / p
            weights[i, known] = raw / raw.sum() * known.mean()
    np.fill_diagonal(distances, 0)
    return distances, weights


@pytest.mark.parametrize("name", RUNS)
def test_distances_and_weights_are_those_of_rcosa(name):
    X, expected = reference.matrix(INPUTS[name]), RUNS[name]
    result = run(X, scale=expected["lambda"], n_neighbors=expected["knear"])
    distances = squareform(result.distances, checks=False)
    np.testing.assert_allclose(distances, expected["distances"], rtol=1e-6)
    np.testing.assert_allclose(result.weights[:3], expected["weights_rows_1_to_3"], rtol=1e-6)
    np.testing.assert_allclose(result.weights.mean(axis=0), expected["weights_mean"], rtol=1e-6)
    assert result.converged
    assert result.n_iter % 11 == 0


def samples(n=40, p=600, *, share=0.0):
    """Return two clusters that differ in ten features, by default several blocks of the kernels."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p))
    X[: n // 2, :10] += 3
    X[rng.random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
@pytest.mark.parametrize(("n_iter", "n_neighbors"), [(1, 3), (3, 3), (2, 4)])
def test_iterations_follow_the_formulas(monkeypatch, share, n_iter, n_neighbors):
    monkeypatch.setattr(core, "_MAX_ITER", n_iter)
    X = samples(share=share)
    result = run(X, n_neighbors=n_neighbors)
    distances, weights = by_formula(X, n_iter=n_iter, n_neighbors=n_neighbors)
    np.testing.assert_allclose(result.distances, distances, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(result.weights, weights, rtol=1e-10)
    assert (result.n_iter, result.converged) == (n_iter, False)
    with parallel.threads(2):
        shared = run(X, n_neighbors=n_neighbors)
    np.testing.assert_array_equal(shared.distances, result.distances)
    np.testing.assert_array_equal(shared.weights, result.weights)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e150])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_extreme_values_neither_overflow_nor_underflow(monkeypatch, size, share):
    monkeypatch.setattr(core, "_MAX_ITER", 3)
    X = samples(20, 8, share=share)
    X[0], X[1, :4] = size, -size  # far from all samples
    with np.errstate(all="raise"):
        result = run(X)
    if size == 1e150:  # scaled values are limited, as differences could not be represented
        assert np.isfinite(result.distances).all()
        return
    distances, weights = by_formula(X, n_iter=3)
    np.testing.assert_allclose(result.distances, distances, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(result.weights, weights, rtol=1e-7, atol=1e-300)


@pytest.mark.parametrize(("largest", "is_stored"), [(59.9, True), (60.1, False)])
def test_exponentials_are_stored_up_to_exp_300(largest, is_stored):
    x = np.array([[largest, 0.0], [1.0, -2.0]])
    growth, decay = core._exponentials(x, np.empty((0, 0)), 0.2)
    assert (growth.size > 0) == (decay.size > 0) == is_stored
    if is_stored:
        np.testing.assert_allclose(growth * decay, 1.0)
        observed = np.array([[1.0, 0.0], [1.0, 1.0]])
        growth, decay = core._exponentials(x, observed, 0.2)
        np.testing.assert_allclose(growth * decay, observed)


def test_iterations_end_after_a_window_of_eleven_without_change():
    """With all others as neighbours, the weights do not change after the first iteration."""
    result = run(samples(20, 8), n_neighbors=19)
    assert (result.n_iter, result.converged) == (22, True)
    single = run(samples(20, 1), n_neighbors=3)
    np.testing.assert_array_equal(single.weights, 1.0)
    assert (single.n_iter, single.converged) == (11, True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 1, 4, 2, 3, 7, 6, 8], 6 - 2),  # the second and the sixth of eight values
        ([5, 1, 4, 2, 3, 7, 6, 8, 9], 6 - 2),
        ([3, 1, 2], 2 - 1),  # floor(3 / 4) is zero: the smallest value
        ([5, np.nan, 1, 4, 2, np.nan, 3, 7, 6, 8], 6 - 2),
        ([1, 1, 1, 1, 1, 1, 1, 9], 0),
    ],
)
def test_features_are_scaled_by_their_quartiles(values, expected):
    X = np.array(values, dtype=float)[:, None]
    assert feature_scales(X)[0] == pytest.approx(expected / 1.35)


def test_weights_of_missing_values_are_equal_and_equal_samples_have_distance_zero():
    X = samples(20, 40, share=0.2)
    X[3] = X[7]
    result = run(X)
    np.testing.assert_allclose(result.weights[np.isnan(X)], 1 / 40)
    np.testing.assert_allclose(result.weights.sum(axis=1), 1)
    assert 0 <= result.distances[3, 7] < 1e-13
    np.testing.assert_array_equal(result.distances, result.distances.T)
