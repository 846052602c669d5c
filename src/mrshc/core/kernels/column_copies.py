"""Copies of the columns that are used most often, for data with many samples.

In data that are stored row by row, the values of a column are far apart in memory. To read a column
from there takes about ten times as long as to read a copy with consecutive values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import write_product_of_columns
from mrshc.core.kernels.vectors import copy_into, take

# Number of samples whose values are copied together. Eight values of a column fill a cache line.
# The number does not affect the result.
_N_SAMPLES = 8


class ColumnCopies(NamedTuple):
    """Copies of at most m of the p columns of the data, before offsets are subtracted.

    For few samples, functions are called with None instead of copies. Numba then compiles nothing
    but the return of these functions, since it knows the type.
    """

    values: NDArray[Any]  # (m, n), one column in each row
    rows: Index  # (p,), row of `values` that contains the column; negative if there is no copy
    n_used: Index  # (1,), number of copies


@jit()
def copy_columns(copies: ColumnCopies, X: NDArray[Any], columns: Index) -> Index:
    """Copy columns if there are no copies yet, and return the rows of `copies.values` with them.

    Parameters
    ----------
    copies : ColumnCopies
        The copies. If there is no memory for all of the columns, earlier copies are discarded.
    X : array of shape (n, p)
        The data.
    columns : array of int
        Indices of the columns, at most as many as there can be copies.
    """
    if copies.n_used[0] + _count_missing(copies.rows, columns) > copies.values.shape[0]:
        copies.rows[:] = -1
        copies.n_used[0] = 0
    first, count = copies.n_used[0], copies.n_used[0]
    missing, rows = np.empty(columns.size, np.intp), np.empty(columns.size, np.intp)
    for k in range(columns.size):
        if copies.rows[columns[k]] < 0:
            missing[count - first] = columns[k]
            copies.rows[columns[k]] = count
            count += 1
        rows[k] = copies.rows[columns[k]]
    copies.n_used[0] = count
    _write_columns(X, missing[: count - first], copies.values[first:count])
    return rows


@jit()
def _count_missing(rows: Index, columns: Index) -> int:
    """Return the number of columns without a copy."""
    count = 0
    for k in range(columns.size):
        count += rows[columns[k]] < 0
    return count


@jit()
def _write_columns(X: NDArray[Any], columns: Index, out: NDArray[Any]) -> None:
    """Write columns of X to the rows of `out`."""
    n = X.shape[0]
    for start in range(0, n, _N_SAMPLES):
        for k in range(columns.size):
            for i in range(start, min(start + _N_SAMPLES, n)):
                out[k, i] = X[i, columns[k]]


@jit()
def write_rows_of_copies(
    copies: ColumnCopies, X: NDArray[Any], columns: Index, rows: Index
) -> None:
    """Write the result of `copy_columns` to the first entries of `rows`."""
    copy_into(rows, copy_columns(copies, X, columns))


@jit()
def write_product_of_copies(
    X: NDArray[Any], rows: Index, offsets: Float, positions: Index, weights: Float, out: Float
) -> None:
    """Write some centred columns times a sparse vector to `out`.

    The columns, before the `offsets` are subtracted, are the given rows of `X`. `positions` and
    `weights` are the positions and values of the non-zero entries of the vector.
    """
    used = take(rows, positions)
    write_product_of_columns(X, used, take(offsets, positions), weights, out)
