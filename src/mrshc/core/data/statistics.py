"""Statistics of columns, from arrays of numpy or of another namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.host_transfer import to_host

# Smaller differences have no square in double precision: a column without larger ones counts as
# constant.
SMALLEST = 1e-150

# Temporaries are made for this many cells at a time, 4 MB in double precision. Not tuned: results
# do not depend on it.
_BLOCK_CELLS = 1 << 19


class ColumnSummary(NamedTuple):
    """Statistics of the observed cells of each column, (p,) each."""

    means: Float
    counts: Float
    constant: Mask  # whether all observed cells are the same


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """What one pass tells about a matrix."""

    means: Float  # (p,), of the observed cells
    counts: Float  # (p,), of them
    constant: Mask  # (p,), whether they are all the same
    row_counts: Float  # (n,), observed cells of each sample
    row_sums: Float  # (n,), of them
    lowest: float  # observed cell
    highest: float

    @property
    def columns(self) -> ColumnSummary:
        """The statistics of the columns alone."""
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
    """The part of one block in a summary."""

    columns: ColumnSummary
    row_counts: Float
    row_sums: Float
    lowest: float
    highest: float


def summarise_block(block: Any, _: int, xp: Any) -> BlockSummary:
    """Return the statistics of a block of columns."""
    missing = xp.isnan(block)
    rows = block.shape[1] - to_host(xp.sum(xp.astype(missing, xp.float64), axis=1))
    lowest = float(xp.min(xp.where(missing, xp.inf, block)))
    highest = float(xp.max(xp.where(missing, -xp.inf, block)))
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values are refused later
        columns = column_summary(block) if xp is np else _summary_elsewhere(block, missing, xp)
        observed = xp.where(missing, 0.0, xp.astype(block, xp.float64))
        sums = to_host(xp.sum(observed, axis=1))
    return BlockSummary(columns, rows, sums, lowest, highest)


def combine(parts: Iterable[BlockSummary]) -> Summary:
    """Return the summary of a matrix from those of its blocks."""
    columns, rows, sums, lowest, highest = zip(*parts, strict=True)
    means, counts, constant = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return Summary(
        means=means,
        counts=counts,
        constant=constant,
        row_counts=np.sum(rows, axis=0),
        row_sums=np.sum(sums, axis=0),
        lowest=min(lowest),
        highest=max(highest),
    )


def column_summary(X: NDArray[Any]) -> ColumnSummary:
    """Return the statistics of the columns of an array of numpy."""
    p = X.shape[1]
    means, counts, constant = np.empty(p), np.empty(p), np.empty(p, dtype=bool)
    for block in column_blocks(*X.shape):
        # Shifted by an observed cell, so that a constant column has exactly its value as mean.
        part, observed, shift = _shifted(X[:, block])
        counts[block] = observed.sum(axis=0)
        means[block] = shift + np.nansum(part, axis=0) / np.maximum(counts[block], 1)
        constant[block] = ~np.any((np.abs(part) > SMALLEST) & observed, axis=0)
    return ColumnSummary(means, counts, constant)


def _summary_elsewhere(block: Any, missing: Any, xp: Any) -> ColumnSummary:
    """Return the same for an array of another namespace."""
    part = xp.astype(block, xp.float64)
    counts = xp.sum(xp.astype(~missing, xp.float64), axis=0)
    smallest = xp.min(xp.where(missing, xp.inf, part), axis=0)
    shift = xp.where(missing[0, :], xp.where(counts > 0, smallest, 0.0), part[0, :])
    part = xp.where(missing, 0.0, part - shift)
    means = shift + xp.sum(part, axis=0) / xp.where(counts > 0, counts, 1.0)
    constant = ~xp.any(xp.abs(part) > SMALLEST, axis=0)
    return ColumnSummary(to_host(means), to_host(counts), to_host(constant))


def column_variances(X: NDArray[Any]) -> Float:
    """Return the variance of the observed cells of each column, exactly zero where it is constant.

    A single observed cell does not vary.
    """
    variances = np.empty(X.shape[1])
    for block in column_blocks(*X.shape):
        # Shifting by an observed cell makes constant columns exact and large offsets harmless.
        part, observed = _shifted(X[:, block])[:2]
        counts = observed.sum(axis=0)
        part -= np.nansum(part, axis=0) / np.maximum(counts, 1)
        variances[block] = np.nansum(np.square(part), axis=0) / np.maximum(counts - 1, 1)
    return variances


def _shifted(X: NDArray[Any]) -> tuple[Float, Mask, Float]:
    """Return columns less their first observed cell, which cells are observed, and that cell."""
    part = X.astype(np.float64)
    observed = ~np.isnan(part)
    # A column without any is taken to hold zeros.
    shift = np.nan_to_num(part[observed.argmax(axis=0), np.arange(part.shape[1])])
    part -= shift
    return part, observed, shift


def column_blocks(n: int, p: int) -> Iterator[slice]:
    """Yield slices of p columns, small enough for temporaries of n rows in double precision."""
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, p, step):
        yield slice(start, min(start + step, p))
