"""Data in memory, as an array of numpy."""

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

# Approximate number of cells of a block: 32 MB in single precision, enough that the cost of a call
# does not count, and little compared with the data for which blocks are used. Not tuned.
_BLOCK_CELLS = 1 << 23

# Rows that are hashed at a time. An array in Fortran order is copied in pieces of this size. Not
# tuned: the hash does not depend on it.
_HASHED_ROWS = 64


class ArrayMatrix(DataMatrix):
    """An array of numpy with finite values and NaN for missing cells.

    Parameters
    ----------
    array : ndarray of shape (n, p)
        The data, float32 or float64. They are not copied.
    """

    in_memory = True

    def __init__(self, array: NDArray[Any]) -> None:
        n, p = array.shape
        self.shape = (n, p)
        self.dtype = array.dtype
        self._array = array

    @property
    def values(self) -> NDArray[Any]:
        """The array itself."""
        return self._array

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, numpy) for all blocks of columns in order."""
        n, p = self.shape
        step = max(1, _BLOCK_CELLS // n)
        for start in range(0, p, step):
            yield function(self._array[:, start : start + step], start, np)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the columns at m indices, (n, m)."""
        return self._array[:, indices]

    def summary(self, *, n_threads: int = 1) -> MatrixSummary:
        """Return the statistics of all columns, computed at the first call."""
        n, p = self.shape
        # Only arrays of more than one block have work to share between threads.
        if n * p > _BLOCK_CELLS and n_threads > 1:
            return super().summary(n_threads=n_threads)
        if self._summary is None:
            # Smaller blocks than those of a pass, since temporaries take several times their size.
            blocks = column_blocks(n, p)
            self._summary = combine_summaries(
                summarise_block(self._array[:, block], block.start, np) for block in blocks
            )
        return self._summary

    def variances(self) -> Float:
        """Return the variance of the observed cells of each column, zero for a constant one."""
        return column_variances(self._array)

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of the samples at `rows`: a copy, unless these are all samples."""
        return self if rows.size == self.shape[0] else ArrayMatrix(self._array[rows])

    def fingerprint(self) -> str:
        """Return a hash of dtype, shape and values that does not depend on the memory order."""
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        for start in range(0, self.shape[0], _HASHED_ROWS):
            digest.update(np.ascontiguousarray(self._array[start : start + _HASHED_ROWS]).data)
        return digest.hexdigest()
