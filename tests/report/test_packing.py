"""Packed values: single precision relative to the centre and scale of a feature."""

import numpy as np
import pytest

from mrshc.report.number_packing import pack_values


def restored(values, outlying=()):
    packed = pack_values(
        np.asarray(values, dtype=float), outlying=np.array(outlying, dtype=np.intp)
    )
    assert packed.cells.dtype == np.float32
    assert np.isfinite(packed.centre).all()
    assert np.isfinite(packed.scale).all()
    assert (packed.scale > 0).all()
    return packed.centre + packed.scale * packed.cells.astype(np.float64)


@pytest.mark.parametrize("centre", [0.0, 1.0, -1e9, 1e100, 1e149])
@pytest.mark.parametrize("share", [1.0, 1e-9])
@pytest.mark.parametrize("unit", [1.0, 1e-140])
def test_values_keep_six_digits_relative_to_their_spread(centre, share, unit):
    draws = np.random.default_rng(0).normal(size=(50, 3))
    X = (centre + draws * (share * abs(centre) or 1.0)) * unit
    np.testing.assert_allclose((restored(X) - X) / X.std(axis=0), 0, atol=1e-6)


def test_constant_features_are_exact():
    X = np.tile([0.1, -3.0, 1e100, 0.0, 1e-300], (7, 1))
    np.testing.assert_array_equal(restored(X), X)


def test_missing_and_infinite_cells_are_missing():
    X = np.array([[1.0, np.nan, np.inf], [2.0, np.nan, 1e9], [np.nan, np.nan, 1e9 + 1]])
    expected = [[1.0, np.nan, np.nan], [2.0, np.nan, 1e9], [np.nan, np.nan, 1e9 + 1]]
    np.testing.assert_array_equal(restored(X), expected)


def test_whole_numbers_stay_whole():
    X = np.random.default_rng(0).poisson(1e6, size=(40, 5)) + 1e9
    np.testing.assert_array_equal(restored(X), X)


@pytest.mark.parametrize("far", [1e3, 1e12, 1e60])
def test_outlying_samples_do_not_reduce_the_precision_of_others(far):
    X = np.random.default_rng(0).normal(size=(30, 4))
    usual = X[1:].copy()
    X[0] = far
    back = restored(X, outlying=[0])
    np.testing.assert_allclose(back[1:], usual, atol=1e-6)
    np.testing.assert_allclose(back[0], far, rtol=1e-6)


def test_features_that_only_outlying_samples_have_are_kept():
    X = np.array([[1e9, 1e9 + 2, np.nan], [5.0, np.nan, np.nan], [5.0, np.nan, np.nan]])
    np.testing.assert_allclose(restored(X, outlying=[0]), X, rtol=1e-7)
