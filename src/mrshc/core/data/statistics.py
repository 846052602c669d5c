"""Statistics of columns, for arrays of numpy and of other namespaces of the array API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.host_transfer import to_host

# The square of a smaller difference underflows in double precision, so that a column without larger
# differences counts as constant.
_SMALLEST_DIFFERENCE = 1e-150

# Temporaries are made for this many cells at a time: 4 MB in double precision, about the size of a
# processor's cache. Not tuned: results do not depend on it.
_BLOCK_CELLS = 1 << 19


class ColumnSummary(NamedTuple):
    """Statistics of the observed cells of each column, (p,) each."""

    means: Float
    counts: Float
    constant: Mask  # whether all observed cells are equal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixSummary:
    """Statistics of the observed cells of a matrix, computed in one pass."""

    means: Float  # (p,), of each column
    counts: Float  # (p,), observed cells of each column
    constant: Mask  # (p,), whether all observed cells of the column are equal
    row_counts: Float  # (n,), observed cells of each sample
    row_sums: Float  # (n,), of each sample
    lowest: float  # smallest observed cell
    highest: float  # largest observed cell

    @property
    def columns(self) -> ColumnSummary:
        """The statistics of the columns, without those of the rows."""
        return ColumnSummary(self.means, self.counts, self.constant)

    @property
    def n_constant(self) -> int:
        """Number of constant columns."""
        return int(self.constant.sum())

    @property
    def n_observed(self) -> int:
        """Number of cells that are not missing."""
        return int(self.counts.sum())

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return self.n_observed < self.row_counts.size * self.counts.size


class BlockSummary(NamedTuple):
    """Statistics of the observed cells of a block of columns; see `MatrixSummary`."""

    columns: ColumnSummary
    row_counts: Float  # (n,)
    row_sums: Float  # (n,)
    lowest: float
    highest: float


def summarise_block(block: Any, _: int, xp: Any) -> BlockSummary:
    """Return the statistics of a block of columns."""
    missing = xp.isnan(block)
    rows = block.shape[1] - to_host(xp.sum(xp.astype(missing, xp.float64), axis=1))
    lowest = float(xp.min(xp.where(missing, xp.inf, block)))
    highest = float(xp.max(xp.where(missing, -xp.inf, block)))
    # Infinite values are refused by the caller, with a message that names their column.
    with np.errstate(over="ignore", invalid="ignore"):
        columns = column_summary(block) if xp is np else _device_column_summary(block, missing, xp)
        observed = xp.where(missing, 0.0, xp.astype(block, xp.float64))
        sums = to_host(xp.sum(observed, axis=1))
    return BlockSummary(columns, rows, sums, lowest, highest)


def combine_summaries(parts: Iterable[BlockSummary]) -> MatrixSummary:
    """Return the summary of a matrix, given those of its blocks in order."""
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
    """Return the statistics of the columns of an array of numpy, (n, p)."""
    p = X.shape[1]
    means, counts, constant = np.empty(p), np.empty(p), np.empty(p, dtype=bool)
    for block in column_blocks(*X.shape):
        # Shifted by an observed cell, so that the mean of a constant column is exactly its value.
        part, observed, shift = _shift_by_first_observed(X[:, block])
        counts[block] = observed.sum(axis=0)
        means[block] = shift + np.nansum(part, axis=0) / np.maximum(counts[block], 1)
        constant[block] = ~np.any((np.abs(part) > _SMALLEST_DIFFERENCE) & observed, axis=0)
    return ColumnSummary(means, counts, constant)


def _device_column_summary(block: Any, missing: Any, xp: Any) -> ColumnSummary:
    """Return the statistics of the columns of an array of another namespace.

    Parameters
    ----------
    block : array of shape (n, b)
        The columns.
    missing : array of bool of shape (n, b)
        Whether each cell is missing.
    xp : module
        Namespace of the array.
    """
    part = xp.astype(block, xp.float64)
    counts = xp.sum(xp.astype(~missing, xp.float64), axis=0)
    smallest = xp.min(xp.where(missing, xp.inf, part), axis=0)
    # The first cell or, if it is missing, the smallest observed one: the array API standard has no
    # index for the first observed cell of each column.
    shift = xp.where(missing[0, :], xp.where(counts > 0, smallest, 0.0), part[0, :])
    part = xp.where(missing, 0.0, part - shift)
    means = shift + xp.sum(part, axis=0) / xp.where(counts > 0, counts, 1.0)
    constant = ~xp.any(xp.abs(part) > _SMALLEST_DIFFERENCE, axis=0)
    return ColumnSummary(to_host(means), to_host(counts), to_host(constant))


def column_variances(X: NDArray[Any]) -> Float:
    """Return the variance of the observed cells of each column of an (n, p) array, (p,).

    The divisor is the number of observed cells minus one. The variance of a constant column, or of
    a column with a single observed cell, is exactly zero.
    """
    variances = np.empty(X.shape[1])
    for block in column_blocks(*X.shape):
        # The shift makes constant columns exact and avoids cancellation at large offsets.
        part, observed = _shift_by_first_observed(X[:, block])[:2]
        counts = observed.sum(axis=0)
        part -= np.nansum(part, axis=0) / np.maximum(counts, 1)
        variances[block] = np.nansum(np.square(part), axis=0) / np.maximum(counts - 1, 1)
    return variances


def _shift_by_first_observed(X: NDArray[Any]) -> tuple[Float, Mask, Float]:
    """Subtract from each column its first observed cell.

    Returns
    -------
    part : ndarray of shape (n, p)
        The columns after the subtraction, in double precision.
    observed : ndarray of bool of shape (n, p)
        Whether each cell is observed.
    shift : ndarray of shape (p,)
        The first observed cell of each column; zero for a column without observed cells.
    """
    part = X.astype(np.float64)
    observed = ~np.isnan(part)
    # argmax is zero for a column without observed cells, where the shift becomes NaN, then zero.
    shift = np.nan_to_num(part[observed.argmax(axis=0), np.arange(part.shape[1])])
    part -= shift
    return part, observed, shift


def column_blocks(n: int, p: int) -> Iterator[slice]:
    """Yield slices of p columns of n rows that limit the size of temporaries in float64."""
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, p, step):
        yield slice(start, min(start + step, p))
