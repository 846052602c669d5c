"""Statistics of rows and columns, and centring, against numpy."""

import numpy as np
import pytest

from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix, centring, column_variances, summarise, variances
from storage_backends import in_array_api, in_dask


def data(share=0.0, seed=0, p=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, p)) * 3 + 5 * rng.normal(size=p)
    X[rng.random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize(
    "place",
    [ArrayMatrix, lambda X: as_matrix(in_dask(X, (12, 7))), lambda X: as_matrix(in_array_api(X))],
)
def test_summaries_are_those_of_the_observed_values(share, place):
    X = data(share)
    X[:, 4] = np.where(np.isnan(X[:, 4]), np.nan, 0.1)
    X[0, 4] = 0.1
    found = summarise(place(X))
    np.testing.assert_allclose(found.means, np.nanmean(X, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(found.counts, (~np.isnan(X)).sum(axis=0))
    np.testing.assert_array_equal(found.row_counts, (~np.isnan(X)).sum(axis=1))
    np.testing.assert_array_equal(found.constant, np.arange(30) == 4)
    assert found.means[4] == 0.1, "the mean of a constant is the constant"
    assert (found.lowest, found.highest) == (np.nanmin(X), np.nanmax(X))
    assert found.has_missing == (share > 0)
    spread = np.log2((np.nanmax(X, axis=0) - np.nanmin(X, axis=0)).max())
    assert np.log2(found.unit) == np.round(spread)


def test_units_are_powers_of_two_near_the_largest_range_of_a_feature():
    assert summarise(ArrayMatrix(np.array([[1e30, 0.0], [1e30, 1.0]]))).unit == 1.0
    assert summarise(ArrayMatrix(np.full((3, 2), 7.0))).unit == 1.0
    for size, unit in ((1.0, 1.0), (8.0, 8.0), (11.0, 8.0), (12.0, 16.0), (2.0**-40, 2.0**-40)):
        assert summarise(ArrayMatrix(np.array([[0.0, 0.0], [size, 0.0]]))).unit == unit


def test_variances_are_those_of_the_observed_values_and_zero_for_constants():
    X = data(0.2) + 1e6
    X[:, 3], X[:, 5], X[1:, 6] = 0.1, np.nan, np.nan
    X[0, 6] = 1.0
    usual = np.setdiff1d(np.arange(30), [3, 5, 6])
    for found in (
        column_variances(X),
        variances(ArrayMatrix(X)),
        variances(as_matrix(in_dask(X, (12, 7)))),
    ):
        np.testing.assert_allclose(found[usual], np.nanvar(X[:, usual], axis=0, ddof=1), rtol=1e-8)
        np.testing.assert_array_equal(found[[3, 5, 6]], 0.0)
    single = data().astype(np.float32)
    np.testing.assert_allclose(
        column_variances(single), single.astype(float).var(axis=0, ddof=1), rtol=1e-12
    )


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("center", [True, "grand", False])
@pytest.mark.parametrize("exclude", [False, True])
def test_centring_and_filling(share, center, exclude):
    X = data(share)
    X[:, 2] = 7.0
    matrix = ArrayMatrix(X)
    offsets = {
        True: np.nanmean(X, axis=0),
        "grand": np.full(30, np.nanmean(X)),
        False: np.zeros(30),
    }[center]
    offsets[2] = 7.0 if exclude else offsets[2]
    found = centring(summarise(matrix), center, exclude_constant=exclude)
    np.testing.assert_allclose(found.offsets, offsets, rtol=1e-12)
    left = (X - offsets) / found.unit
    if share:
        assert found.fill == pytest.approx(np.nanmean(left), abs=1e-12)
    else:
        assert found.fill is None
    assert found.n_observed == (~np.isnan(X)).sum()
    filled = np.where(np.isnan(left), np.nanmean(left), left)
    np.testing.assert_allclose(found(X[:, 5:20], 5), filled[:, 5:20], atol=1e-12)
    single = found(X[:, 5:20].astype(np.float32), 5)
    assert single.dtype == np.float64
    index = np.array([20, 3, 2])
    np.testing.assert_allclose(found.columns(matrix, index), left[:, index], atol=1e-12)
    on_device = found(in_array_api(X[:, 5:20]), 5)
    np.testing.assert_allclose(np.from_dlpack(on_device), filled[:, 5:20], atol=1e-12)
