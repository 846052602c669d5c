"""Distances and weights of COSA agree with R's rCOSA and with the formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform
from scipy.special import logsumexp

import reference
from mrshc.core.cosa import cosa, feature_scales
from mrshc.core.kernels import cosa_distances

RUNS = reference.runs("cosa")
INPUTS = {"A": "input_A", "B": "input_B", "I": "simI_rep1"}


def run(X, *, scale=0.2, n_neighbors=3):
    return cosa(X, feature_scales(X), scale=scale, n_neighbors=n_neighbors)


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


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_distances_follow_the_formula_with_and_without_exponentials_of_samples(share, is_exact):
    """The kernel computes what is far apart without underflow, and the rest from exponentials."""
    rng = np.random.default_rng(1)
    x, weights, eta = rng.normal(size=(5, 7)) * (1e4 if is_exact else 1), rng.random((5, 7)), 0.2
    is_observed = rng.random((5, 7)) >= share
    observed = is_observed.astype(float) if share else np.empty((0, 0))
    x[~is_observed] = 0.0
    exponentials = (np.empty((0, 0)), np.empty((0, 0)))
    if not is_exact:
        exponentials = np.exp(x / eta) * is_observed, np.exp(-x / eta) * is_observed
    distances = np.zeros((5, 5))
    cosa_distances(distances, 0, (x, weights, observed), exponentials, eta)
    for i, j in zip(*np.tril_indices(5, -1), strict=True):
        shared = is_observed[i] & is_observed[j]
        v, d = np.maximum(weights[i], weights[j])[shared], np.abs(x[i] - x[j])[shared]
        expected = -eta * v.sum() * (logsumexp(-d / eta, b=v) - np.log(v.sum()))
        assert distances[i, j] == distances[j, i] == pytest.approx(expected, rel=1e-12)
