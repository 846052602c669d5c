"""Transposed copies of selected rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit

# Number of rows that are copied together. Each of them is read from beginning to end, and their
# values are written next to each other. The number has not been tuned; it does not affect the
# result.
_N_TOGETHER = 32


@jit()
def take_rows_transposed(matrix: NDArray[Any], rows: Index) -> NDArray[Any]:
    """Return the transpose of selected rows of a matrix, as an array that is stored row by row.

    If the matrix has shape (m, n) and there are k rows, the result has shape (n, k).
    """
    n, count = matrix.shape[1], rows.size
    out = np.empty((n, count), matrix.dtype)
    for start in range(0, count, _N_TOGETHER):
        stop = min(start + _N_TOGETHER, count)
        for i in range(n):
            for k in range(start, stop):
                out[i, k] = matrix[rows[k], i]
    return out
