"""Estimates without components, excluded samples, and expected distances.

The estimates themselves are compared with recorded fits.
"""

import numpy as np
import pytest
from scipy import stats

from mrshc.core.missing_values import CompleteSamples, complete


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


@pytest.mark.parametrize("others_are_complete", [False, True])
@pytest.mark.parametrize("excluded", [[0], [7, 3], [11]])
def test_missing_values_of_excluded_samples_are_column_means(excluded, others_are_complete):
    X = 4.0 + np.random.default_rng(13).normal(size=(12, 5))
    others = np.setdiff1d(np.arange(12), excluded)
    if not others_are_complete:
        X[others[[0, 3, 3, 5]], [1, 0, 4, 3]] = np.nan
    X[excluded, 1:3] = np.nan
    found, rest = complete(X, np.array(excluded)), (X[others], np.zeros((others.size, 5)))
    if not others_are_complete:
        alone = complete(X[others])
        rest = alone.values, alone.variances
    np.testing.assert_allclose(found.values[others], rest[0], rtol=1e-7)
    np.testing.assert_allclose(found.variances[others], rest[1], rtol=1e-6)
    for i in excluded:
        np.testing.assert_allclose(found.values[i, 1:3], rest[0].mean(axis=0)[1:3], rtol=1e-7)
        np.testing.assert_array_equal(found.values[i, [0, 3, 4]], X[i, [0, 3, 4]])
        np.testing.assert_allclose(found.variances[i, 1:3], rest[0].var(axis=0)[1:3], rtol=1e-6)
        np.testing.assert_array_equal(found.variances[i, [0, 3, 4]], 0)


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


@pytest.mark.parametrize(("n", "rank"), [(5, 3), (9, 3)])
def test_a_value_of_noiseless_components_is_found(n, rank):
    """Up to three components, and two fewer than there are samples."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, 12))
    X -= X.mean(axis=0)
    left, _, right = np.linalg.svd(X, full_matrices=False)
    X = (left[:, :rank] * [9.0, 8.0, 7.0][:rank]) @ right[:rank]
    gappy = X.copy()
    gappy[0, 0] = np.nan
    # The iterations end before they converge; with fewer components, the error exceeds the spread.
    assert complete(gappy).values[0, 0] == pytest.approx(X[0, 0], abs=0.1 * X.std())
