"""Transposed copies of selected rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import copy_into

# Number of rows that are transposed together. Their values are written next to each other, and fill
# whole cache lines. The number has not been tuned; it does not affect the result.
_N_TOGETHER = 32


@jit()
def take_rows_transposed(matrix: NDArray[Any], rows: Index) -> NDArray[Any]:
    """Return the transpose of selected rows of a matrix, as an array that is stored row by row.

    If the matrix has shape (m, n) and there are k rows, the result has shape (n, k).
    """
    n, count = matrix.shape[1], rows.size
    out = np.empty((n, count), matrix.dtype)
    # The rows are far apart in memory. Copies next to each other are read in a third of the time.
    copies = np.empty((_N_TOGETHER, n), matrix.dtype)
    for start in range(0, count, _N_TOGETHER):
        stop = min(start + _N_TOGETHER, count)
        for k in range(start, stop):
            copy_into(copies[k - start], matrix[rows[k]])
        for i in range(n):
            written = out[i, start:stop]
            for k in range(stop - start):
                written[k] = copies[k, i]
    return out
