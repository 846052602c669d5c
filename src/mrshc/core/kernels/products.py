"""Products of the centred data with vectors, never forming the centred data.

Sums are taken in one fixed order, whatever the layout of the data and however many columns take
part, so that screening columns never changes a digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Columns whose running sums are updated together: 4 KB in double precision, which stay in the
# first-level cache together with four rows of the data. Results do not depend on it.
_BLOCK = 512


@jit()
def multiply_transposed(X: NDArray[Any], by_columns: bool, offsets: Float, u: Float) -> Float:
    """Return X'u for X minus its offsets; `by_columns`: the transpose of X is given."""
    if by_columns:
        return _multiply_transposed_columns(X, offsets, u)
    return multiply_transposed_rows(X, offsets, u)


@jit()
def multiply_transposed_rows(X: NDArray[Any], offsets: Float, u: Float) -> Float:
    """Return X'u for X minus its offsets, stored by rows."""
    n, p = X.shape
    out = np.zeros(p)
    for start in range(0, p, _BLOCK):
        stop = min(start + _BLOCK, p)
        o, s = offsets[start:stop], out[start:stop]
        i = 0
        while i + 4 <= n:  # four rows at a time: running sums are loaded a quarter as often
            a, b = X[i, start:stop], X[i + 1, start:stop]
            c, d = X[i + 2, start:stop], X[i + 3, start:stop]
            ua, ub, uc, ud = u[i], u[i + 1], u[i + 2], u[i + 3]
            for j in range(s.size):
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
    p, n = X.shape
    out = np.empty(p)
    j = 0
    while j + 4 <= p:  # four sums at a time: additions that do not wait for each other
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
    """Return X v for the v that is `weights` at `indices`."""
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
    """Return the Euclidean norm of each column of X minus its offsets."""
    out = np.zeros(offsets.size)
    if by_columns:
        for j in range(X.shape[0]):
            for i in range(X.shape[1]):
                out[j] += (X[j, i] - offsets[j]) ** 2
    else:
        for i in range(X.shape[0]):
            row = X[i]
            for j in range(out.size):
                out[j] += (row[j] - offsets[j]) ** 2
    return np.sqrt(out)


@jit()
def low_rank_cells(scores: Float, loadings: Float, rows: Index, columns: Index) -> Float:
    """Return single cells of the matrix product of scores' and loadings."""
    out = np.zeros(rows.size)
    for k in range(scores.shape[0]):
        u, v = scores[k], loadings[k]
        for m in range(rows.size):
            out[m] += u[rows[m]] * v[columns[m]]
    return out
