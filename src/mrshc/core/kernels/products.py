"""Products of the centred data with vectors, without forming the centred data.

Sums are taken in the same order for all memory layouts and for all subsets of the columns, so that
screening columns does not change the results in any digit. BLAS does not guarantee that order,
which is why the loops are written out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Number of columns whose running sums are updated together: 4 KB in double precision, which fit
# into the first-level cache together with four rows of the data. Results do not depend on it.
_BLOCK = 512


@jit()
def multiply_transposed(X: NDArray[Any], by_columns: bool, offsets: Float, u: Float) -> Float:
    """Return X'u for X minus its offsets.

    Parameters
    ----------
    X : array of shape (n, p), or (p, n) if `by_columns`
        The data, in single or double precision.
    by_columns : bool
        Whether the transpose of X is given, because X is stored by columns.
    offsets : array of shape (p,)
        Subtracted from the columns of X.
    u : array of shape (n,)
        The vector.

    Returns
    -------
    array of shape (p,)
        The product, in double precision.
    """
    if by_columns:
        return _multiply_transposed_columns(X, offsets, u)
    return multiply_transposed_rows(X, offsets, u)


@jit()
def multiply_transposed_rows(X: NDArray[Any], offsets: Float, u: Float) -> Float:
    """Return X'u, of shape (p,), for X minus its offsets, stored by rows."""
    n, p = X.shape
    out = np.zeros(p)
    for start in range(0, p, _BLOCK):
        stop = min(start + _BLOCK, p)
        o, s = offsets[start:stop], out[start:stop]
        i = 0
        # Four rows at a time, so that running sums are loaded and stored a quarter as often. They
        # are added one after the other, in the same order as single rows.
        while i + 4 <= n:
            a, b = X[i, start:stop], X[i + 1, start:stop]
            c, d = X[i + 2, start:stop], X[i + 3, start:stop]
            ua, ub, uc, ud = u[i], u[i + 1], u[i + 2], u[i + 3]
            for j in range(s.size):
                # The offset is subtracted first: X'u - (sum of u) offsets would cancel digits.
                t = s[j] + (a[j] - o[j]) * ua
                t = t + (b[j] - o[j]) * ub
                t = t + (c[j] - o[j]) * uc
                s[j] = t + (d[j] - o[j]) * ud
            i += 4
        while i < n:
            a = X[i, start:stop]
            for j in range(s.size):
                s[j] += (a[j] - o[j]) * u[i]
            i += 1
    return out


@jit()
def _multiply_transposed_columns(X: NDArray[Any], offsets: Float, u: Float) -> Float:
    """Return X'u, of shape (p,), for X minus its offsets, given its transpose."""
    p, n = X.shape
    out = np.empty(p)
    j = 0
    # Four columns at a time: their additions do not depend on each other, so that the processor
    # need not wait for one to finish. The order within each sum is that of the samples.
    while j + 4 <= p:
        a, b, c, d = X[j], X[j + 1], X[j + 2], X[j + 3]
        oa, ob, oc, od = offsets[j], offsets[j + 1], offsets[j + 2], offsets[j + 3]
        ta = tb = tc = td = 0.0
        for i in range(n):
            ta += (a[i] - oa) * u[i]
            tb += (b[i] - ob) * u[i]
            tc += (c[i] - oc) * u[i]
            td += (d[i] - od) * u[i]
        out[j], out[j + 1], out[j + 2], out[j + 3] = ta, tb, tc, td
        j += 4
    while j < p:
        total = 0.0
        for i in range(n):
            total += (X[j, i] - offsets[j]) * u[i]
        out[j] = total
        j += 1
    return out


@jit()
def multiply(
    X: NDArray[Any], by_columns: bool, offsets: Float, indices: Index, weights: Float
) -> Float:
    """Return Xv, for X minus its offsets and the v that is `weights` at `indices`.

    Parameters
    ----------
    X : array of shape (n, p), or (p, n) if `by_columns`
        The data, in single or double precision.
    by_columns : bool
        Whether the transpose of X is given, because X is stored by columns.
    offsets : array of shape (p,)
        Subtracted from the columns of X.
    indices, weights : arrays of the same length
        Columns with a non-zero entry of v, increasing, and these entries.

    Returns
    -------
    array of shape (n,)
        The product, in double precision.
    """
    if by_columns:
        out = np.zeros(X.shape[1])
        for k in range(indices.size):
            column, offset, weight = X[indices[k]], offsets[indices[k]], weights[k]
            for i in range(out.size):
                out[i] += (column[i] - offset) * weight
        return out
    n = X.shape[0]
    out = np.empty(n)
    i = 0
    # Four samples at a time, for the same reason as above: independent additions.
    while i + 4 <= n:
        a, b, c, d = X[i], X[i + 1], X[i + 2], X[i + 3]
        ta = tb = tc = td = 0.0
        for k in range(indices.size):
            j = indices[k]
            offset, weight = offsets[j], weights[k]
            ta += (a[j] - offset) * weight
            tb += (b[j] - offset) * weight
            tc += (c[j] - offset) * weight
            td += (d[j] - offset) * weight
        out[i], out[i + 1], out[i + 2], out[i + 3] = ta, tb, tc, td
        i += 4
    while i < n:
        total = 0.0
        for k in range(indices.size):
            total += (X[i, indices[k]] - offsets[indices[k]]) * weights[k]
        out[i] = total
        i += 1
    return out


@jit()
def column_norms(X: NDArray[Any], by_columns: bool, offsets: Float) -> Float:
    """Return the Euclidean norm of each column of X minus its offsets, of shape (p,)."""
    out = np.zeros(offsets.size)
    if by_columns:
        for j in range(X.shape[0]):
            for i in range(X.shape[1]):
                out[j] += (X[j, i] - offsets[j]) ** 2
    else:
        # Rows in the outer loop, as they are stored: columns would be read with strides.
        for i in range(X.shape[0]):
            row = X[i]
            for j in range(out.size):
                out[j] += (row[j] - offsets[j]) ** 2
    return np.sqrt(out)


@jit()
def low_rank_cells(scores: Float, loadings: Float, rows: Index, columns: Index) -> Float:
    """Return single cells of the matrix product of scores' and loadings.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of components, in rows.
    loadings : array of shape (k, p)
        Loadings of components, in rows.
    rows, columns : arrays of the same length
        The cells of the product, a matrix of shape (n, p).

    Returns
    -------
    array
        The value of each cell.
    """
    out = np.zeros(rows.size)
    for k in range(scores.shape[0]):
        u, v = scores[k], loadings[k]
        for m in range(rows.size):
            out[m] += u[rows[m]] * v[columns[m]]
    return out
