"""The data: n samples in rows and p features in columns, wherever they are stored.

Everything else in the package asks for columns in memory, or for one pass of a function over all
blocks of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
