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
    Summary,
    column_blocks,
    column_variances,
    combine,
    summarise_block,
)

T = TypeVar("T")

# Blocks have about this many cells: 32 MB in single precision. Not tuned.
_BLOCK_CELLS = 1 << 23

# Rows hashed at a time: an array in another order of memory is copied in pieces.
_HASHED_ROWS = 64


class ArrayMatrix(DataMatrix):
    """An array of numpy with finite values and NaN for missing cells, float32 or float64."""

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
        """Yield function(block, start, numpy) for blocks of columns."""
        n, p = self.shape
        step = max(1, _BLOCK_CELLS // n)
        for start in range(0, p, step):
            yield function(self._array[:, start : start + step], start, np)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns."""
        return self._array[:, indices]

    def summary(self, *, n_threads: int = 1) -> Summary:
        """Return the statistics of all columns; they are kept."""
        n, p = self.shape
        if n * p > _BLOCK_CELLS and n_threads > 1:
            return super().summary(n_threads=n_threads)
        if self._summary is None:
            blocks = column_blocks(n, p)  # small: temporaries need several times as much memory
            self._summary = combine(
                summarise_block(self._array[:, block], block.start, np) for block in blocks
            )
        return self._summary

    def variances(self) -> Float:
        """Return the variance of the observed cells of each column, zero for a constant one."""
        return column_variances(self._array)

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of some samples; a copy, unless they are all."""
        return self if rows.size == self.shape[0] else ArrayMatrix(self._array[rows])

    def fingerprint(self) -> str:
        """Return a hash of the values; it depends on their type, not on their order in memory."""
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        for start in range(0, self.shape[0], _HASHED_ROWS):
            digest.update(np.ascontiguousarray(self._array[start : start + _HASHED_ROWS]).data)
        return digest.hexdigest()
