"""The data: n samples in rows and p features in columns, wherever they are stored.

Everything else in the package asks for columns in memory, or for one pass of a function over all
blocks of columns, such as the statistics and the centring at the end of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mrshc.core import parallel

T = TypeVar("T")

# Number of values in a block, 32 MB in single precision: large enough for sequential reading, and
# small enough for several in memory. It affects results only by the rounding of sums.
BLOCK_CELLS = 1 << 23
# Least number of columns in a block of an array in memory.
_MIN_WIDTH = 1_024


class DataMatrix:
    """A data matrix, with NaN for missing values.

    Attributes
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : dtype
        float32 or float64, to which blocks are converted.
    in_memory : bool
        Whether the values are a numpy array, `values`.
    on_device : bool
        Whether blocks are arrays of another library, on which products are cheap.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    in_memory = on_device = False
    values: np.ndarray
    chunk_width = 1  # blocks are read faster if their widths are multiples of this

    def columns(self, index: np.ndarray) -> np.ndarray:
        """Return the columns with the given indices as a float64 array (n, k)."""
        order = np.argsort(index, kind="stable")
        out = np.empty((self.shape[0], order.size))
        # Columns that are near each other are read together, but no more than a block.
        width = max(256 // self.chunk_width, 1) * self.chunk_width
        width = min(width, max(4 * BLOCK_CELLS // self.shape[0], 1))
        groups = np.asarray(index)[order] // width
        for positions in np.split(order, np.flatnonzero(np.diff(groups)) + 1):
            if positions.size:
                start, stop = int(index[positions[0]]), int(index[positions[-1]]) + 1
                out[:, positions] = self._read(start, stop)[:, index[positions] - start]
        return out

    def map(self, function: Callable[[Any, int], T]) -> Iterator[T]:
        """Yield function(block, start) for all blocks of columns in order, in one pass.

        A block is an array (n, b) of `dtype` whose first column is `start`; for data on a device
        it is an array there.
        """

        def call(block: slice) -> T:
            return function(self._read(block.start, block.stop), block.start)

        return parallel.run(call, self._blocks())

    def place(self, array: np.ndarray) -> Any:
        """Return an array where blocks are."""
        return array

    def _blocks(self) -> list[slice]:
        n, p = self.shape
        step = max(BLOCK_CELLS // n // self.chunk_width, 1) * self.chunk_width
        step = min(step, max(4 * BLOCK_CELLS // n, 1))
        return [slice(start, min(start + step, p)) for start in range(0, p, step)]

    def _read(self, start: int, stop: int) -> Any:
        """Return columns start to stop - 1 as an array of `dtype`."""
        raise NotImplementedError


class ArrayMatrix(DataMatrix):
    """Data in a numpy array."""

    in_memory = True

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def columns(self, index: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.values[:, index], dtype=np.float64)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self.values[:, start:stop]

    def _blocks(self) -> list[slice]:
        # Temporary arrays of 4 MB stay in the cache, but a call should process many columns.
        n, p = self.shape
        step = max((1 << 19) // n, min((1 << 22) // n, _MIN_WIDTH), 1)
        return [slice(start, min(start + step, p)) for start in range(0, p, step)]


# Values that are no real numbers, by numpy's kinds.
_REFUSED = {
    "c": "complex numbers. Take their real parts or their absolute values",
    "m": "times. Drop or encode them",
    "M": "dates. Drop or encode them",
    "V": "records. Pass one field of them",
}


def float_dtype(dtype: np.dtype, shape: Any, name: str) -> np.dtype:
    """Return the dtype of the blocks of stored data; raise ValueError if they are no matrix."""
    if len(shape) != 2:
        raise ValueError(
            "X must be a matrix with samples in rows and features in columns, but "
            f"{name} has {len(shape)} dimensions. Reshape it or pass a part of it."
        )
    if dtype.kind not in "biuf":
        kind = _REFUSED.get(dtype.kind, "text or other objects. Drop or encode them")
        raise ValueError(f"X must hold real numbers, but {name} holds {kind}.")
    # Integers above 2^24 are not exact in single precision.
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def namespace(array: Any) -> Any:
    """Return the functions for an array: numpy, or those of the array API standard."""
    if isinstance(array, np.ndarray):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(array)


def to_host(array: Any) -> np.ndarray:
    """Return an array of any package as a numpy array."""
    if isinstance(array, np.ndarray):
        return array
    # torch and CuPy copy to main memory only if asked.
    for method in ("cpu", "get"):
        if hasattr(array, method):
            return np.asarray(getattr(array, method)())
    return np.asarray(np.from_dlpack(array))


def to_device(array: np.ndarray, block: Any) -> Any:
    """Return a numpy array as an array of the package and on the device of a block."""
    if isinstance(block, np.ndarray):
        return array
    return namespace(block).asarray(array, device=block.device)


# ------------------------------------------------------------------- Statistics and centring

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
