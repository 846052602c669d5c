"""Cache in memory for columns of a matrix that have been read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index, Mask


class ColumnCache:
    """Selected columns of a matrix, to which further columns can be added.

    One thread may add columns while others read stored ones: an array that is too small is replaced
    rather than resized, and a column is marked as stored only after it has been written.

    Parameters
    ----------
    shape : tuple of int
        Shape (n, p) of the matrix.
    dtype : dtype
        Type of the stored columns.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        n, p = shape
        self._n_stored = 0
        # One row for each column of the matrix, so that columns can be appended contiguously.
        self._columns = np.empty((0, n), dtype)
        self._position = np.full(p, -1)  # row of each column of the matrix; -1 if not stored

    @property
    def is_stored(self) -> Mask:
        """Whether each column of the matrix is stored, (p,)."""
        return self._position >= 0

    def add(self, indices: Index, columns: NDArray[Any]) -> None:
        """Store the columns, (n, m), at m indices that are not stored yet."""
        size, n_added = self._n_stored, indices.size
        if size + n_added > self._columns.shape[0]:
            n = self._columns.shape[1]
            # Doubling keeps the total cost of copies proportional to the number of columns.
            larger = np.empty((max(2 * size, size + n_added), n), self._columns.dtype)
            larger[:size] = self._columns[:size]
            self._columns = larger
        self._columns[size : size + n_added] = columns.T
        self._position[indices] = np.arange(size, size + n_added)
        self._n_stored += n_added

    def take(self, indices: Index) -> NDArray[Any]:
        """Return the stored columns at m indices, (m, n): one row for each column."""
        return self._columns.take(self._position[indices], axis=0)
