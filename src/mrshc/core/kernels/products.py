"""Products of the centred data matrix with vectors, computed without storing the centred matrix.

Centring subtracts one offset from each column. Sums are computed in the same order for all memory
layouts and all subsets of the columns, so leaving out columns does not change the result for the
other columns in any digit. BLAS does not guarantee a fixed order of summation, so the loops are
written out here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import index_range, take

# Number of columns whose running sums are updated together. In double precision, the sums take
# 32 KB and stay in the cache. With fewer columns, each part of a row is so short that the processor
# cannot load the next values in advance. The number does not affect the result.
_BLOCK = 4096


@jit()
def multiply_transposed(X: NDArray[Any], by_columns: bool, offsets: Float, u: Float) -> Float:
    """Return the product of the transposed centred data matrix with a vector u.

    Parameters
    ----------
    X : array of shape (n, p), or (p, n) if `by_columns`
        The data before offsets are subtracted, in single or double precision.
    by_columns : bool
        Whether `X` is the transpose of the data matrix. The transpose is passed if the data matrix
        is stored column by column, so that the rows of `X` are contiguous in memory.
    offsets : array of shape (p,)
        The value that is subtracted from each column of the data matrix.
    u : array of shape (n,)
        The vector to multiply by.

    Returns
    -------
    array of shape (p,)
        The product, in double precision.
    """
    out = np.empty(offsets.size)
    write_transposed_product(X, by_columns, offsets, u, out)
    return out


@jit()
def write_transposed_product(
    X: NDArray[Any], by_columns: bool, offsets: Float, u: Float, out: Float
) -> None:
    """Write the result of `multiply_transposed` to `out`."""
    if by_columns:
        write_transposed_product_of_columns(X, index_range(offsets.size), offsets, u, out)
    else:
        write_transposed_product_of_rows(X, offsets, u, out)


@jit(allocates=False)
def write_transposed_product_of_rows(X: NDArray[Any], offsets: Float, u: Float, out: Float) -> None:
    """Write the transposed centred data matrix times u to `out`, for data stored row by row.

    The first p columns of `X`, which has n rows, are the data matrix before the `offsets` are
    subtracted from its columns. `u` has shape (n,) and `out` has shape (p,). `X` and `offsets` may
    have more columns.
    """
    n, p = X.shape[0], out.size
    for start in range(0, p, _BLOCK):
        # Numba lets signed indices that may be negative count from the end, as Python does. A loop
        # over such indices cannot be vectorised, so the indices are unsigned.
        first, last = np.uintp(start), np.uintp(min(start + _BLOCK, p))
        for j in range(first, last):
            out[j] = 0.0
        i = 0
        # Process four rows at a time, so that each running sum is loaded and stored once for four
        # rows instead of once for each row. The rows are still added one after the other, so the
        # order of summation does not change. The entries are addressed by row and column: a view
        # of each row would be counted as a reference, which takes longer than a short row.
        while i + 4 <= n:
            a, b, c, d = u[i], u[i + 1], u[i + 2], u[i + 3]
            for j in range(first, last):
                offset = offsets[j]
                # Subtract the offset before multiplying: computing X'u first and then subtracting
                # the offset times the sum of u would lose digits to cancellation.
                t = out[j] + (X[i, j] - offset) * a
                t = t + (X[i + 1, j] - offset) * b
                t = t + (X[i + 2, j] - offset) * c
                out[j] = t + (X[i + 3, j] - offset) * d
            i += 4
        while i < n:
            for j in range(first, last):
                out[j] += (X[i, j] - offsets[j]) * u[i]
            i += 1


@jit(allocates=False)
def write_transposed_product_of_columns(
    X: NDArray[Any], rows: Index, offsets: Float, u: Float, out: Float
) -> None:
    """Write some transposed centred columns times u to `out`, for columns with consecutive values.

    The columns, before the `offsets` are subtracted, are the given rows of `X`, which has n
    columns. `offsets` and `out` have an entry for each of these rows, and `u` has shape (n,).
    """
    n, count = X.shape[1], rows.size
    j = 0
    # Process four columns at a time: their four sums do not depend on each other, so the processor
    # need not wait for one addition to finish before it starts the next. Within each sum, the
    # samples are added in order.
    while j + 4 <= count:
        a, b, c, d = X[rows[j]], X[rows[j + 1]], X[rows[j + 2]], X[rows[j + 3]]
        oa, ob, oc, od = offsets[j], offsets[j + 1], offsets[j + 2], offsets[j + 3]
        ta = tb = tc = td = 0.0
        for i in range(n):
            ta += (a[i] - oa) * u[i]
            tb += (b[i] - ob) * u[i]
            tc += (c[i] - oc) * u[i]
            td += (d[i] - od) * u[i]
        out[j], out[j + 1], out[j + 2], out[j + 3] = ta, tb, tc, td
        j += 4
    while j < count:
        total, a = 0.0, X[rows[j]]
        for i in range(n):
            total += (a[i] - offsets[j]) * u[i]
        out[j] = total
        j += 1


@jit()
def multiply(
    X: NDArray[Any], by_columns: bool, offsets: Float, indices: Index, weights: Float
) -> Float:
    """Return the product of the centred data matrix with a sparse vector v.

    Parameters
    ----------
    X : array of shape (n, p), or (p, n) if `by_columns`
        The data before offsets are subtracted, in single or double precision.
    by_columns : bool
        Whether `X` is the transpose of the data matrix. The transpose is passed if the data matrix
        is stored column by column, so that the rows of `X` are contiguous in memory.
    offsets : array of shape (p,)
        The value that is subtracted from each column of the data matrix.
    indices, weights : arrays of the same length
        Indices of the non-zero entries of v, in increasing order, and the values of these entries.

    Returns
    -------
    array of shape (n,)
        The product, in double precision.
    """
    out = np.empty(X.shape[1] if by_columns else X.shape[0])
    write_product(X, by_columns, offsets, indices, weights, out)
    return out


@jit()
def write_product(
    X: NDArray[Any],
    by_columns: bool,
    offsets: Float,
    indices: Index,
    weights: Float,
    out: Float,
) -> None:
    """Write the result of `multiply` to `out`, of shape (n,).

    `weights` may have more entries than `indices`.
    """
    if by_columns:
        write_product_of_columns(X, indices, take(offsets, indices), weights, out)
    else:
        write_product_of_rows(X, offsets, indices, weights, out)


@jit(allocates=False)
def write_product_of_rows(
    X: NDArray[Any], offsets: Float, indices: Index, weights: Float, out: Float
) -> None:
    """Write the centred data matrix times a sparse vector to `out`, for data stored row by row.

    `X`, of shape (n, p), is the data matrix before the `offsets` are subtracted from its columns.
    `indices` and `weights` are those of `write_product`, and `out` has shape (n,).
    """
    n, count = out.size, indices.size
    i = 0
    # Process four samples at a time: their four sums do not depend on each other, so the processor
    # need not wait for one addition to finish before it starts the next.
    while i + 4 <= n:
        a = b = c = d = 0.0
        for k in range(count):
            j = indices[k]
            offset, weight = offsets[j], weights[k]
            a += (X[i, j] - offset) * weight
            b += (X[i + 1, j] - offset) * weight
            c += (X[i + 2, j] - offset) * weight
            d += (X[i + 3, j] - offset) * weight
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
        i += 4
    while i < n:
        total = 0.0
        for k in range(count):
            total += (X[i, indices[k]] - offsets[indices[k]]) * weights[k]
        out[i] = total
        i += 1


@jit(allocates=False)
def write_product_of_columns(
    X: NDArray[Any], rows: Index, offsets: Float, weights: Float, out: Float
) -> None:
    """Write the sum of some centred columns times weights, for columns with consecutive values.

    The columns, before the `offsets` are subtracted, are the given rows of `X`. `offsets` and
    `weights` have an entry for each of these rows.
    """
    for i in range(out.size):
        out[i] = 0.0
    for k in range(rows.size):
        column, offset, weight = X[rows[k]], offsets[k], weights[k]
        for i in range(out.size):
            out[i] += (column[i] - offset) * weight


@jit()
def column_norms(X: NDArray[Any], by_columns: bool, offsets: Float) -> Float:
    """Return the Euclidean norm of each column of the centred data matrix.

    `X` is the data matrix before centring, of shape (n, p), or its transpose if `by_columns` is
    True. `offsets`, which are subtracted from the columns, and the result have shape (p,).
    """
    out = np.zeros(offsets.size)
    if by_columns:
        for j in range(X.shape[0]):
            for i in range(X.shape[1]):
                out[j] += (X[j, i] - offsets[j]) ** 2
    else:
        # The outer loop runs over rows, because the matrix is stored row by row. Reading the matrix
        # column by column would access distant memory addresses.
        for i in range(X.shape[0]):
            row = X[i]
            for j in range(out.size):
                out[j] += (row[j] - offsets[j]) ** 2
    for j in range(out.size):
        out[j] = np.sqrt(out[j])
    return out


@jit()
def low_rank_cells(scores: Float, loadings: Float, rows: Index, columns: Index) -> Float:
    """Return individual entries of the (n, p) product of the transposed scores with the loadings.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of k components, in rows.
    loadings : array of shape (k, p)
        Loadings of the k components, in rows.
    rows, columns : arrays of the same length
        Row and column indices of the entries to compute.

    Returns
    -------
    array of the same length as `rows`
        The values of these entries.
    """
    out = np.zeros(rows.size)
    for k in range(scores.shape[0]):
        u, v = scores[k], loadings[k]
        for m in range(rows.size):
            out[m] += u[rows[m]] * v[columns[m]]
    return out
