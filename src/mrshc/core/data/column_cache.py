"""Columns of a matrix that are kept in memory once they were read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index, Mask


class ColumnCache:
    """Some columns of a matrix, to which others can be added.

    One thread may add while others read what is there: an array that is too small is replaced, and
    columns are listed after they were written.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        n, p = shape
        self._n_stored = 0
        self._columns = np.empty((0, n), dtype)  # in rows, so that others can be added
        self._position = np.full(p, -1)  # of each column of the matrix; -1: not stored

    @property
    def is_stored(self) -> Mask:
        """Which columns are stored."""
        return self._position >= 0

    def add(self, indices: Index, columns: NDArray[Any]) -> None:
        """Store some columns, (n, m), that are not stored yet."""
        size, more = self._n_stored, indices.size
        if size + more > self._columns.shape[0]:
            n = self._columns.shape[1]
            larger = np.empty((max(2 * size, size + more), n), self._columns.dtype)
            larger[:size] = self._columns[:size]
            self._columns = larger
        self._columns[size : size + more] = columns.T
        self._position[indices] = np.arange(size, size + more)
        self._n_stored += more

    def take(self, indices: Index) -> NDArray[Any]:
        """Return some columns that are stored, (m, n): a row for each."""
        return self._columns.take(self._position[indices], axis=0)
