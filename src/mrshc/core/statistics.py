"""Statistics of rows and columns, and centring, in passes over the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.data.matrix import DataMatrix, namespace, to_device, to_host

# A feature is constant if its values differ by no more than this. The squares of much smaller
# differences underflow.
_SMALLEST_DIFFERENCE = 1e-150


@dataclass(frozen=True, eq=False)
class Summary:
    """Statistics of the observed values of n samples and p features."""

    means: np.ndarray  # (p,)
    counts: np.ndarray  # (p,), numbers of observed values
    constant: np.ndarray  # (p,), whether all observed values are equal
    row_counts: np.ndarray  # (n,)
    lowest: float
    highest: float
    spread: float  # the largest range of a feature

    @property
    def has_missing(self) -> bool:
        return bool((self.row_counts < self.counts.size).any())

    @property
    def unit(self) -> float:
        """A power of two near the largest range of a feature; division by it prevents overflow."""
        return float(2.0 ** np.round(np.log2(self.spread))) if self.spread > 0 else 1.0


def summarise(matrix: DataMatrix) -> Summary:
    """Return the statistics of the data, in one pass."""
    means, counts, constant, rows, low, high, spreads = zip(
        *matrix.map(_summarise_block), strict=True
    )
    return Summary(
        means=np.concatenate(means),
        counts=np.concatenate(counts),
        constant=np.concatenate(constant),
        row_counts=np.sum(rows, axis=0),
        lowest=min(low),
        highest=max(high),
        spread=max(spreads),
    )


def _summarise_block(block: Any, _: int) -> tuple[Any, ...]:
    xp = namespace(block)
    values = xp.astype(block, xp.float64)
    n, b = block.shape
    missing = xp.isnan(values)
    above = below = values
    counts, rows = np.full(b, float(n)), np.full(n, float(b))
    if xp.any(missing):
        above, below = xp.where(missing, xp.inf, values), xp.where(missing, -xp.inf, values)
        observed = xp.astype(~missing, xp.float64)
        counts, rows = (to_host(xp.sum(observed, axis=axis)) for axis in (0, 1))
    low, high = xp.min(above, axis=0), xp.max(below, axis=0)
    lowest, highest = float(xp.min(low)), float(xp.max(high))
    # The smallest value is subtracted first, so that the mean of a constant is the constant.
    shift = xp.where(xp.isfinite(low), low, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses infinite values
        rest = values - shift
        if above is not values:
            rest = xp.where(missing, 0.0, rest)
        means = to_host(shift) + to_host(xp.sum(rest, axis=0)) / np.maximum(counts, 1)
        constant = ~(to_host(high - low) > _SMALLEST_DIFFERENCE)
        spread = float(xp.max(high - low))
    return means, counts, constant, rows, lowest, highest, spread


def column_variances(X: np.ndarray) -> np.ndarray:
    """Return the variances of the observed values of each column."""
    values = X.astype(np.float64)
    missing = np.isnan(values)
    counts = len(X) - missing.sum(axis=0)
    # The variance of a constant must be exactly zero.
    values -= np.nan_to_num(values[(~missing).argmax(axis=0), np.arange(X.shape[1])])
    values[missing] = 0.0
    values -= values.sum(axis=0) / np.maximum(counts, 1)
    values[missing] = 0.0
    return np.square(values).sum(axis=0) / np.maximum(counts - 1, 1)


def variances(matrix: DataMatrix) -> np.ndarray:
    """Return the variances of all features, in one pass."""
    parts = matrix.map(lambda block, _: column_variances(to_host(block)))
    return np.concatenate(list(parts))


@dataclass(frozen=True, eq=False)
class Centring:
    """The offsets that are subtracted from the features, and what replaces missing values."""

    offsets: np.ndarray  # (p,)
    unit: float  # the differences are divided by it
    fill: float | None  # the mean of all observed values after centring; None without missing ones
    n_observed: float

    def __call__(self, block: Any, start: int) -> Any:
        """Return a block of columns after centring, in double precision, with missing filled."""
        xp = namespace(block)
        offsets = to_device(self.offsets[start : start + block.shape[1]], block)
        part = xp.astype(block, xp.float64) - offsets
        part *= 1.0 / self.unit  # exact: a power of two
        return part if self.fill is None else xp.where(xp.isnan(part), self.fill, part)

    def columns(self, matrix: DataMatrix, index: np.ndarray) -> np.ndarray:
        """Return centred columns, with NaN for missing values."""
        return (matrix.columns(index) - self.offsets[index]) / self.unit


def centring(summary: Summary, center: Any, *, exclude_constant: bool = True) -> Centring:
    """Return the centring by the means of the features (True), the grand mean, or none (False).

    Constant features become zero if they are excluded, so that no component selects them.
    """
    means, counts = summary.means, summary.counts
    n_observed = counts.sum()
    offsets = {
        True: means,
        "grand": np.full(means.size, means @ counts / n_observed),
        False: np.zeros(means.size),
    }[center]
    if exclude_constant:
        offsets = np.where(summary.constant, means, offsets)
    fill = None
    if summary.has_missing:
        fill = float((means - offsets) @ counts / n_observed / summary.unit)
    return Centring(offsets, summary.unit, fill, float(n_observed))
