import numpy as np
import pytest

from mrshc.core.data.centred_array import centre_array
from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.data.statistics import column_variances
from storage_backends import matrix_at, tables

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


def explicitly_centred(X, center):
    means = {"columns": X.mean(axis=0), "grand": X.mean(), "none": 0.0}
    return X - means[center]


@pytest.mark.parametrize("center", ["columns", "grand", "none"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_of_the_centred_data(center, layout, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(loc=3, size=(7, 2500)).astype(dtype)
    centred = explicitly_centred(X.astype(np.float64), center)
    matrix = centre_array(LAYOUTS[layout](X), center=center, drop_constant=False)
    u, indices = rng.normal(size=7), np.array([1, 4, 2400])
    weights = rng.normal(size=3)
    np.testing.assert_allclose(matrix.multiply_transposed(u), centred.T @ u, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(
        matrix.multiply(indices, weights), centred[:, indices] @ weights, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(matrix.gram, centred @ centred.T, rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(matrix.columns(indices), X[:, indices])


def test_cross_product_is_that_of_the_centred_data():
    X = np.random.default_rng(0).normal(loc=3, size=(50, 4))
    centred = explicitly_centred(X, "columns")
    matrix = centre_array(X, center="columns", drop_constant=False)
    np.testing.assert_allclose(matrix.cross_product(), centred.T @ centred, atol=1e-12)


def test_float32_data_are_neither_copied_nor_widened():
    X = np.ones((4, 5), dtype=np.float32)
    assert centre_array(X, center="columns", drop_constant=True).values is X


def test_a_large_offset_does_not_reduce_the_accuracy_in_float32():
    rng = np.random.default_rng(1)
    X = (rng.integers(-50, 50, size=(6, 40)) + 10_000.0).astype(np.float32)  # exact in float32
    u = rng.normal(size=6)
    matrix = centre_array(X, center="columns", drop_constant=True)
    exact = explicitly_centred(X.astype(np.float64), "columns").T @ u
    np.testing.assert_allclose(matrix.multiply_transposed(u), exact, rtol=1e-11)


@pytest.mark.parametrize("center", ["columns", "grand", "none"])
def test_constant_columns_vanish_exactly_whatever_the_centring(center):
    X = np.random.default_rng(2).normal(size=(9, 4))
    X[:, 2] = 0.1  # its mean, added up, is not 0.1
    matrix = centre_array(X, center=center, drop_constant=True)
    slopes = matrix.multiply_transposed(np.random.default_rng(3).normal(size=9))
    assert slopes[2] == 0.0
    assert np.all(slopes[[0, 1, 3]] != 0.0)
    assert as_data_matrix(X).summary().n_constant == 1


@pytest.mark.parametrize("center", ["columns", "grand", "none"])
def test_missing_cells_are_filled_with_the_mean_of_the_observed_ones(center):
    X = np.random.default_rng(4).normal(loc=2, size=(6, 8))
    X[[0, 3, 5], [1, 1, 7]] = np.nan
    means = {"columns": np.nanmean(X, axis=0), "grand": np.nanmean(X), "none": 0.0}
    centred = X - means[center]
    filled = np.where(np.isnan(X), np.nanmean(centred), centred)
    matrix = centre_array(X, center=center, drop_constant=False)
    np.testing.assert_allclose(matrix.values - matrix.offsets, filled, atol=1e-12)
    assert np.isnan(X).sum() == 3, "the array of the caller must not change"


def test_missing_cells_at_a_large_offset_do_not_reduce_the_accuracy_in_float32():
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(20, 50)) + 1000.0).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    u, some = rng.normal(size=20), np.array([3, 20])
    single, double = (
        centre_array(table, center="columns", drop_constant=True)
        for table in (X, X.astype(np.float64))
    )
    np.testing.assert_allclose(
        single.multiply_transposed(u), double.multiply_transposed(u), atol=1e-11
    )
    np.testing.assert_allclose(single.gram, double.gram, atol=1e-10)
    np.testing.assert_allclose(single.gram_without(some), double.gram_without(some), atol=1e-10)


def test_variances_are_numpys_and_exactly_zero_for_constants():
    X = np.random.default_rng(5).normal(size=(20, 3)) + 1e6
    X[:, 1] = 0.1
    variances = column_variances(X)
    np.testing.assert_allclose(variances[[0, 2]], X[:, [0, 2]].var(axis=0, ddof=1), rtol=1e-9)
    assert variances[1] == 0.0


# All storage backends --------------------------------------------------------------------------


def assert_close(found, expected):
    """Compare up to rounding errors of the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("center", ["columns", "grand", "none"])
def test_products_and_statistics_are_those_of_the_array(backend, center):
    some = np.array([399, 3, 17, 250])
    for A in tables(backend):
        in_memory = matrix_at(backend.in_memory(A), center=center)
        matrix = matrix_at(backend(A), center=center)
        assert matrix.shape == in_memory.shape
        assert matrix.n_observed == in_memory.n_observed
        assert_close(matrix.offsets, in_memory.offsets)
        assert matrix.fill == pytest.approx(in_memory.fill, abs=1e-12 * np.nanmax(A))
        assert_close(matrix.gram, in_memory.gram)
        assert_close(matrix.gram_without(some), in_memory.gram_without(some))


def largest(columns):
    return np.nanmax(columns, axis=0)


def test_columns_are_returned_as_given_and_each_is_mapped_once(backend):
    rng = np.random.default_rng(0)
    few, many = np.array([399, 3, 17, 250]), rng.permutation(400)[:300]
    for A in tables(backend):
        in_memory, matrix = backend.in_memory(A), matrix_at(backend(A))
        for indices in (few, many, few[:0]):
            columns = matrix.columns(indices)
            assert columns.dtype == np.float64
            np.testing.assert_array_equal(columns, in_memory[:, indices])
            found = np.full(indices.size, np.nan)
            for which, values in matrix.map_columns(indices, largest):
                assert np.isnan(found[which]).all()
                found[which] = values
            np.testing.assert_array_equal(found, largest(in_memory[:, indices]))


@pytest.mark.parametrize("center", ["columns", "grand", "none"])
def test_constant_columns_vanish_in_every_storage(backend, center):
    A = np.random.default_rng(2).normal(size=(9, 40))
    A[:, 2] = 0.1
    A[:, 30] = np.float32(1e6)
    without = np.delete(np.arange(40), [2, 30])
    matrix = matrix_at(backend(A), center=center)
    assert as_data_matrix(backend(A)).summary().n_constant == 2
    assert np.all(matrix.gram_without(without) == 0.0)


def test_variances_are_those_of_the_array(backend):
    for A in tables(backend):
        expected = column_variances(backend.in_memory(A))
        np.testing.assert_allclose(as_data_matrix(backend(A)).variances(), expected, rtol=1e-9)
