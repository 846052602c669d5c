"""Statistics of columns and rows, for numpy arrays and arrays that follow the array API standard.

In docstrings and comments, n is the number of rows (samples), p is the number of columns
(features), and b is the number of columns of a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.host_transfer import to_host

# A column is considered constant if none of its values differs from a reference value of the column
# by more than this number. The square of a much smaller difference would underflow in double
# precision.
_SMALLEST_DIFFERENCE = 1e-150

# Number of values for which temporary arrays are created at a time. An array of this size takes 4
# MB in double precision, about the size of a processor cache. The number has not been tuned; it
# does not affect the results.
_BLOCK_CELLS = 1 << 19


class ColumnSummary(NamedTuple):
    """Statistics of the non-missing values of each column; each field has shape (p,)."""

    means: Float
    counts: Float  # number of non-missing values of the column
    constant: Mask  # whether the non-missing values of the column are all equal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixSummary:
    """Statistics of the non-missing values of a matrix, for each column, each row, and overall."""

    means: Float  # (p,), mean of each column
    counts: Float  # (p,), number of non-missing values of each column
    constant: Mask  # (p,), whether the non-missing values of the column are all equal
    row_counts: Float  # (n,), number of non-missing values of each row
    row_sums: Float  # (n,), sum of the non-missing values of each row
    lowest: float  # smallest non-missing value
    highest: float  # largest non-missing value

    @property
    def columns(self) -> ColumnSummary:
        """The statistics of the columns, without the statistics of the rows."""
        return ColumnSummary(self.means, self.counts, self.constant)

    @property
    def n_constant(self) -> int:
        """Number of constant columns."""
        return int(self.constant.sum())

    @property
    def n_observed(self) -> int:
        """Number of non-missing values in the matrix."""
        return int(self.counts.sum())

    @property
    def has_missing(self) -> bool:
        """Whether the matrix has missing values."""
        return self.n_observed < self.row_counts.size * self.counts.size

    @property
    def length_unit(self) -> float:
        """Power of two near the difference between the largest and the smallest value.

        If values are divided by this unit, products of four of them neither overflow nor underflow.
        Division by a power of two is exact. The unit is 1 if all values are equal.
        """
        spread = self.highest - self.lowest
        return float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0


class BlockSummary(NamedTuple):
    """Statistics of the non-missing values of a block of columns; see `MatrixSummary`."""

    columns: ColumnSummary
    row_counts: Float  # (n,)
    row_sums: Float  # (n,)
    lowest: float
    highest: float


def summarise_block(block: Any, _: int, xp: Any) -> BlockSummary:
    """Return the statistics of a block of columns.

    Parameters
    ----------
    block : array of shape (n, b)
        The columns, with NaN for missing values.
    _ : int
        Index of the first column of the block. The index is not used.
    xp : module
        Array namespace of the block, such as numpy.
    """
    if xp is np and not np.isnan(block).any():
        return _summarise_complete_block(block)
    missing = xp.isnan(block)
    rows = block.shape[1] - to_host(xp.sum(xp.astype(missing, xp.float64), axis=1))
    lowest = float(xp.min(xp.where(missing, xp.inf, block)))
    highest = float(xp.max(xp.where(missing, -xp.inf, block)))
    # Floating-point warnings are ignored here, since the caller raises an error for infinite
    # values.
    with np.errstate(over="ignore", invalid="ignore"):
        columns = column_summary(block) if xp is np else _device_column_summary(block, missing, xp)
        observed = xp.where(missing, 0.0, xp.astype(block, xp.float64))
        sums = to_host(xp.sum(observed, axis=1))
    return BlockSummary(columns, rows, sums, lowest, highest)


def _summarise_complete_block(block: NDArray[Any]) -> BlockSummary:
    """Return the statistics of a block without missing values, with fewer temporary arrays.

    The sums are those of `summarise_block` in every digit.
    """
    n, p = block.shape
    means, constant = np.empty(p), np.empty(p, dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for columns in column_blocks(n, p):
            part = block[:, columns].astype(np.float64)
            # As in `column_summary`, the mean of a constant column is exactly the constant.
            shift = part[0].copy()
            part -= shift
            means[columns] = shift + part.sum(axis=0) / n
            spread = np.maximum(part.max(axis=0), -part.min(axis=0))
            constant[columns] = ~(spread > _SMALLEST_DIFFERENCE)
        row_sums = block.astype(np.float64, copy=False).sum(axis=1)
    return BlockSummary(
        columns=ColumnSummary(means, np.full(p, float(n)), constant),
        row_counts=np.full(n, float(p)),
        row_sums=row_sums,
        lowest=float(block.min()),
        highest=float(block.max()),
    )


def combine_summaries(parts: Iterable[BlockSummary]) -> MatrixSummary:
    """Return the statistics of a matrix, given the statistics of its blocks in order."""
    columns, rows, sums, lowest, highest = zip(*parts, strict=True)
    means, counts, constant = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return MatrixSummary(
        means=means,
        counts=counts,
        constant=constant,
        row_counts=np.sum(rows, axis=0),
        row_sums=np.sum(sums, axis=0),
        lowest=min(lowest),
        highest=max(highest),
    )


def column_summary(X: NDArray[Any]) -> ColumnSummary:
    """Return the statistics of the columns of the numpy array X, which has shape (n, p)."""
    p = X.shape[1]
    means, counts, constant = np.empty(p), np.empty(p), np.empty(p, dtype=bool)
    for block in column_blocks(*X.shape):
        # The first non-missing value of each column is subtracted from the column, so that the mean
        # of a constant column is exactly the constant.
        part, observed, shift = _shift_by_first_observed(X[:, block])
        counts[block] = observed.sum(axis=0)
        means[block] = shift + np.nansum(part, axis=0) / np.maximum(counts[block], 1)
        constant[block] = ~np.any((np.abs(part) > _SMALLEST_DIFFERENCE) & observed, axis=0)
    return ColumnSummary(means, counts, constant)


def _device_column_summary(block: Any, missing: Any, xp: Any) -> ColumnSummary:
    """Return the statistics of the columns of an array that is not a numpy array.

    Parameters
    ----------
    block : array of shape (n, b)
        The columns, with NaN for missing values.
    missing : array of bool of shape (n, b)
        Whether each value is missing.
    xp : module
        Array namespace of the block, which follows the array API standard.
    """
    part = xp.astype(block, xp.float64)
    counts = xp.sum(xp.astype(~missing, xp.float64), axis=0)
    smallest = xp.min(xp.where(missing, xp.inf, part), axis=0)
    # The shift, which is subtracted from a column, is the first value of the column. If the first
    # value is missing, the smallest non-missing value is used, since the first non-missing value is
    # difficult to select with the functions of the array API standard.
    shift = xp.where(missing[0, :], xp.where(counts > 0, smallest, 0.0), part[0, :])
    part = xp.where(missing, 0.0, part - shift)
    means = shift + xp.sum(part, axis=0) / xp.where(counts > 0, counts, 1.0)
    constant = ~xp.any(xp.abs(part) > _SMALLEST_DIFFERENCE, axis=0)
    return ColumnSummary(to_host(means), to_host(counts), to_host(constant))


def column_variances(X: NDArray[Any]) -> Float:
    """Return the variances of the columns of an (n, p) array, as an array of shape (p,).

    Missing values (NaN) are ignored. The divisor is the number of non-missing values minus one. The
    variance of a constant column, or of a column with only one non-missing value, is exactly zero.
    """
    variances = np.empty(X.shape[1])
    for block in column_blocks(*X.shape):
        # Subtracting a value of the column first makes the variance of constant columns exactly
        # zero, and avoids cancellation if the values are large compared with their differences.
        part, observed = _shift_by_first_observed(X[:, block])[:2]
        counts = observed.sum(axis=0)
        part -= np.nansum(part, axis=0) / np.maximum(counts, 1)
        variances[block] = np.nansum(np.square(part), axis=0) / np.maximum(counts - 1, 1)
    return variances


def _shift_by_first_observed(X: NDArray[Any]) -> tuple[Float, Mask, Float]:
    """Return the columns of X after subtracting from each column its first non-missing value.

    Returns
    -------
    part : ndarray of shape (n, p)
        The columns of X after the subtraction, in double precision.
    observed : ndarray of bool of shape (n, p)
        Whether each value is non-missing.
    shift : ndarray of shape (p,)
        The first non-missing value of each column; zero for a column without non-missing values.
    """
    part = X.astype(np.float64)
    observed = ~np.isnan(part)
    # If all values of a column are missing, argmax returns 0, and the selected value is NaN, which
    # nan_to_num replaces by zero.
    shift = np.nan_to_num(part[observed.argmax(axis=0), np.arange(part.shape[1])])
    part -= shift
    return part, observed, shift


def column_blocks(n: int, p: int) -> Iterator[slice]:
    """Yield slices that divide p columns of n rows into blocks of limited size.

    A temporary float64 array of the size of a block fits into the cache of a processor.
    """
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, p, step):
        yield slice(start, min(start + step, p))
