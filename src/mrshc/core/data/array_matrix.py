"""Data matrix in memory, stored as a numpy array."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.statistics import (
    MatrixSummary,
    column_blocks,
    column_variances,
    combine_summaries,
    summarise_block,
)

T = TypeVar("T")

# Approximate number of values in a block: 32 MB in single precision. With this size, the overhead
# of a function call per block is negligible, and a block is small compared with large data. The
# number has not been tuned.
_BLOCK_CELLS = 1 << 23

# Number of rows that are hashed at a time. If the array is in Fortran order, these rows are copied
# before they are hashed. The number has not been tuned; it does not affect the hash.
_HASHED_ROWS = 64


class ArrayMatrix(DataMatrix):
    """Data matrix in a numpy array, with NaN for missing values.

    Parameters
    ----------
    array : ndarray of shape (n, p)
        The data, float32 or float64, for n samples and p features. The array is not copied.
    """

    in_memory = True

    def __init__(self, array: NDArray[Any]) -> None:
        n, p = array.shape
        self.shape = (n, p)
        self.dtype = array.dtype
        self._array = array

    @property
    def values(self) -> NDArray[Any]:
        """The numpy array that contains the data."""
        return self._array

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, numpy) for each block of columns, in order.

        `start` is the index of the first column of the block.
        """
        n, p = self.shape
        step = max(1, _BLOCK_CELLS // n)
        for start in range(0, p, step):
            yield function(self._array[:, start : start + step], start, np)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as an array of shape (n, m), for n samples."""
        return self._array[:, indices]

    def summary(self, *, n_threads: int = 1) -> MatrixSummary:
        """Return statistics of all columns and rows, computed by up to `n_threads` threads.

        The statistics are computed at the first call and stored for later calls.
        """
        n, p = self.shape
        # Threads are used only if the array has more than one block, since each block is processed
        # by one thread.
        if n * p > _BLOCK_CELLS and n_threads > 1:
            return super().summary(n_threads=n_threads)
        if self._summary is None:
            # These blocks are smaller than those of `map_blocks`, since the temporary arrays take
            # several times the memory of a block.
            blocks = column_blocks(n, p)
            self._summary = combine_summaries(
                summarise_block(self._array[:, block], block.start, np) for block in blocks
            )
        return self._summary

    def variances(self) -> Float:
        """Return the variances of the p columns, as an array of shape (p,).

        Missing values are ignored. The variance of a constant column is exactly zero.
        """
        return column_variances(self._array)

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of the samples at `rows`, which are distinct and in increasing order.

        The values are copied unless `rows` contains all samples.
        """
        return self if rows.size == self.shape[0] else ArrayMatrix(self._array[rows])

    def fingerprint(self) -> str:
        """Return a hash of dtype, shape and values.

        The hash does not depend on the memory layout.
        """
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        for start in range(0, self.shape[0], _HASHED_ROWS):
            digest.update(np.ascontiguousarray(self._array[start : start + _HASHED_ROWS]).data)
        return digest.hexdigest()
