"""Cache in memory for columns of a matrix that is read from storage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index, Mask
from mrshc.core.kernels.transposition import take_rows_transposed


class ColumnCache:
    """Copies in memory of selected columns of a matrix; further columns can be added.

    One thread may add columns while other threads read stored columns. To make this safe, the
    internal array is replaced rather than resized when the array is full, and a column is marked as
    stored only after the column has been written.

    Parameters
    ----------
    shape : tuple of int
        Shape (n, p) of the matrix: n samples and p features.
    dtype : dtype
        Type of the stored columns.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        n, p = shape
        self._n_stored = 0
        # The array has one row for each stored column of the matrix, so new columns are appended
        # contiguously.
        self._columns = np.empty((0, n), dtype)
        self._position = np.full(p, -1)  # row of `_columns` for each column; -1 if not stored

    @property
    def is_stored(self) -> Mask:
        """Mask of shape (p,), for p features, that is True for columns that are stored."""
        return self._position >= 0

    def contains(self, indices: Index) -> Mask:
        """Return whether each of the columns at `indices` is stored."""
        return self._position[indices] >= 0

    def add(self, indices: Index, columns: NDArray[Any]) -> None:
        """Store m columns, given as an array of shape (n, m) for n samples.

        `indices` contains the indices of these columns in the matrix. None of the columns may
        already be stored.
        """
        size, n_added = self._n_stored, indices.size
        if size + n_added > self._columns.shape[0]:
            n = self._columns.shape[1]
            # The size is at least doubled, so the total cost of copying is proportional to the
            # number of stored columns.
            larger = np.empty((max(2 * size, size + n_added), n), self._columns.dtype)
            larger[:size] = self._columns[:size]
            self._columns = larger
        self._columns[size : size + n_added] = columns.T
        self._position[indices] = np.arange(size, size + n_added)
        self._n_stored += n_added

    def take(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as an array of shape (n, m), for n samples.

        All of these columns must be stored. The array is stored row by row.
        """
        return take_rows_transposed(self._columns, self._position[indices])
