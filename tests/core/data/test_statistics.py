"""Statistics of columns and rows are those of a plain computation, for every array namespace."""

import itertools

import array_api_strict
import numpy as np
import pytest
import torch
from array_api_compat import torch as torch_namespace

from mrshc.core.data.statistics import (
    column_blocks,
    column_summary,
    column_variances,
    combine_summaries,
    summarise_block,
)

NAMESPACES = {
    "numpy": (np.asarray, np),
    "torch": (torch.from_numpy, torch_namespace),
    "strict": (array_api_strict.asarray, array_api_strict),
}
every_namespace = pytest.mark.parametrize(("convert", "xp"), NAMESPACES.values(), ids=NAMESPACES)
NAN = np.nan


def make_table():
    """Return columns with and without missing values, some of them constant."""
    X = np.random.default_rng(0).normal(loc=5, size=(6, 9))
    X[0, 1] = X[4, 1] = NAN
    X[3, 2] = NAN
    X[:, 3] = 0.1  # its sum, divided by the number of values, is not 0.1
    X[:, 4] = [NAN, 0.1, 0.1, NAN, 0.1, 0.1]
    X[:, 5] = NAN
    X[:, 6] = [NAN, NAN, NAN, 7.5, NAN, NAN]
    X[:, 7] = [NAN, -4.0, -4.0, -4.0, -4.0, 9.0]
    X[:, 8] = [2.0, 2.0, 2.0, 2.0, 2.0, NAN]
    return X


def summarise(X, convert, xp, widths=None):
    starts = np.cumsum([0, *(widths or [X.shape[1]])])
    return combine_summaries(
        summarise_block(convert(X[:, start:stop]), start, xp)
        for start, stop in itertools.pairwise(starts)
    )


@every_namespace
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("widths", [[9], [1, 3, 5]])
def test_the_summary_is_that_of_the_observed_values(convert, xp, dtype, widths):
    X = make_table().astype(dtype)
    summary = summarise(X, convert, xp, widths)
    observed = [column[~np.isnan(column)].astype(float) for column in X.T]
    means = [values.mean() if values.size else 0.0 for values in observed]
    np.testing.assert_allclose(summary.means, means, rtol=1e-14)
    np.testing.assert_array_equal(summary.means[[3, 4]], np.full(2, 0.1, dtype))  # exactly
    np.testing.assert_array_equal(summary.counts, [values.size for values in observed])
    np.testing.assert_array_equal(np.flatnonzero(summary.constant), [3, 4, 5, 6, 8])
    np.testing.assert_array_equal(summary.row_counts, (~np.isnan(X)).sum(axis=1))
    np.testing.assert_allclose(summary.row_sums, np.nansum(X.astype(float), axis=1), rtol=1e-14)
    assert summary.lowest == -4.0
    assert summary.highest == 9.0
    assert summary.n_constant == 5
    assert summary.n_observed == (~np.isnan(X)).sum()
    assert summary.has_missing
    for array in (*summary.columns, summary.row_counts, summary.row_sums):
        assert type(array) is np.ndarray
    for name, values in zip(("means", "counts", "constant"), summary.columns, strict=True):
        np.testing.assert_array_equal(values, getattr(summary, name))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (300, 7), (40, 20_000)])
def test_a_block_without_missing_values_has_the_same_statistics_in_every_digit(dtype, order, shape):
    X = np.random.default_rng(1).normal(loc=3, size=shape).astype(dtype, order=order)
    X[:, -1] = 0.1
    # A missing value in another column has no effect on the statistics of the columns.
    with_missing = np.concatenate([X, np.full((len(X), 1), NAN, dtype)], axis=1)
    found, columns = summarise_block(X, 0, np), column_summary(with_missing)
    for of_block, expected in zip(found.columns, columns, strict=True):
        np.testing.assert_array_equal(of_block, expected[:-1])
    np.testing.assert_array_equal(found.row_sums, X.astype(np.float64).sum(axis=1))
    np.testing.assert_array_equal(found.row_counts, np.full(len(X), shape[1]))
    assert (found.lowest, found.highest) == (X.min(), X.max())


@every_namespace
def test_a_single_missing_value_is_noticed(convert, xp):
    X = np.arange(12.0).reshape(4, 3)
    assert not summarise(X, convert, xp).has_missing
    assert summarise(X, convert, xp).n_constant == 0
    X[2, 1] = NAN
    assert summarise(X, convert, xp).has_missing


@every_namespace
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_differences_are_no_differences(convert, xp, sign):
    X = np.zeros((3, 3))
    X[1] = [1e-150 * sign, 1.01e-150 * sign, 0.5 * sign]
    np.testing.assert_array_equal(summarise(X, convert, xp).constant, [True, False, False])
    np.testing.assert_array_equal(column_summary(X).constant, [True, False, False])


@every_namespace
def test_infinite_values_are_summarised_without_a_warning(convert, xp):
    X = np.array([[1.0, np.inf], [2.0, 3.0], [1.0, -np.inf]])
    summary = summarise(X, convert, xp)
    assert (summary.lowest, summary.highest) == (-np.inf, np.inf)
    assert summary.means[0] == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("values", "unit"), [([3, 3], 1), ([0, 5], 4), ([-3, 3], 8), ([1, 1.4], 0.5)]
)
def test_the_unit_of_length_is_a_power_of_two_near_the_range(values, unit):
    column = np.array(values, dtype=float)[:, None]
    assert combine_summaries([summarise_block(column, 0, np)]).length_unit == unit


def test_variances_ignore_missing_values():
    X = make_table()
    expected = [
        values.var(ddof=1) if values.size > 1 else 0.0
        for values in (column[~np.isnan(column)] for column in X.T)
    ]
    variances = column_variances(X)
    np.testing.assert_allclose(variances, expected, rtol=1e-12, atol=1e-30)
    np.testing.assert_array_equal(variances[[3, 4, 5, 6, 8]], 0.0)
    two = column_variances(np.array([[1.0], [NAN], [4.0]]))
    np.testing.assert_allclose(two, [4.5], rtol=1e-14)


def test_small_blocks_do_not_change_the_statistics(monkeypatch):
    X = make_table()
    expected, variances = column_summary(X), column_variances(X)
    monkeypatch.setattr("mrshc.core.data.statistics._BLOCK_CELLS", 2 * len(X))
    for one, other in zip(column_summary(X), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(column_variances(X), variances)


@pytest.mark.parametrize(
    ("n", "p", "ends"),
    [
        (1 << 18, 5, [2, 4, 5]),  # 4 MB in double precision
        (1 << 18, 4, [2, 4]),
        ((1 << 18) + 1, 2, [1, 2]),
        (1 << 19, 2, [1, 2]),
        (1 << 21, 2, [1, 2]),  # one column is never divided
        (3, 100, [100]),
        (3, 0, []),
    ],
)
def test_blocks_of_columns_take_four_megabytes(n, p, ends):
    blocks = [(block.start, block.stop) for block in column_blocks(n, p)]
    assert blocks == list(zip([0, *ends[:-1]], ends, strict=False))
