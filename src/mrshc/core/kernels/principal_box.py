"""Reference samples of the gap statistic: uniform on a box along the principal axes of a group."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def principal_ranges(X: Float) -> Float:
    """Return the range of X along each of its principal axes, in decreasing order of variance."""
    centred = _centred(X)
    n, p = X.shape
    if n > p:
        axes = np.linalg.eigh(np.dot(centred.T, centred))[1]
        scores = np.dot(centred, axes)
        lengths = np.ones(p)
    else:
        squares, scores = np.linalg.eigh(np.dot(centred, centred.T))
        lengths = np.sqrt(np.maximum(squares, 0.0))
    ranges = np.empty(min(n - 1, p))
    for k in range(ranges.size):  # eigenvalues increase; after centring, the first of n is zero
        column = scores[:, scores.shape[1] - 1 - k]
        ranges[k] = (column.max() - column.min()) * lengths[lengths.size - 1 - k]
    return ranges


@jit()
def principal_box(X: Float) -> tuple[Float, Float]:
    """Return the range of X along each of its principal axes, and the axes in rows."""
    centred = _centred(X)
    n_axes = min(X.shape[0] - 1, X.shape[1])
    axes = np.ascontiguousarray(np.linalg.svd(centred, False)[2][:n_axes])
    ranges = np.empty(n_axes)
    for k in range(n_axes):
        scores = np.dot(centred, axes[k])
        ranges[k] = scores.max() - scores.min()
    return ranges, axes


@jit()
def _centred(X: Float) -> Float:
    out = X.copy()
    for j in range(X.shape[1]):
        out[:, j] -= X[:, j].mean()
    return out


@jit()
def absolute_distances(X: Float) -> Float:
    """Return the (n, n) sums of absolute differences between the rows of X."""
    n = X.shape[0]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            total = 0.0
            for k in range(X.shape[1]):
                total += abs(X[i, k] - X[j, k])
            out[i, j] = out[j, i] = total
    return out


@jit()
def squared_distances_from_gram(gram: Float) -> None:
    """Turn the inner products of samples into squared distances, in place."""
    n = gram.shape[0]
    squares = np.empty(n)
    for i in range(n):
        squares[i] = gram[i, i]
    for i in range(n):
        row, own = gram[i], squares[i]
        for j in range(i):
            row[j] = max(own + squares[j] - 2.0 * row[j], 0.0)
        row[i] = 0.0
    # A product of a matrix with its transpose need not be symmetric to the last digit. In blocks,
    # since rows are written as columns.
    for start in range(0, n, 32):
        for i in range(start, n):
            for j in range(start, min(start + 32, i)):
                gram[j, i] = gram[i, j]
