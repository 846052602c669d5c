"""The box along the principal axes of a group of samples, and distances between samples.

The gap statistic draws its reference samples uniformly on this box (Tibshirani, Walther and Hastie
2001, choice b).
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def principal_ranges(X: Float) -> Float:
    """Return the range of X along each of its principal axes, in decreasing order of variance.

    The result has the shape (min(n - 1, p),).
    """
    centred = _centre_columns(X)
    n, p = X.shape
    # From the smaller of the two products X'X and XX', which have the same non-zero eigenvalues.
    if n > p:
        axes = np.linalg.eigh(np.dot(centred.T, centred))[1]
        scores = np.dot(centred, axes)
        scales = np.ones(p)
    else:
        eigenvalues, scores = np.linalg.eigh(np.dot(centred, centred.T))
        # Unit eigenvectors become scores when multiplied by singular values. Rounding may make an
        # eigenvalue of zero negative.
        scales = np.sqrt(np.maximum(eigenvalues, 0.0))
    ranges = np.empty(min(n - 1, p))
    # Eigenvalues increase: the columns are taken from the last to the first. Centring makes one of
    # n eigenvalues zero, hence at most n - 1 axes.
    for k in range(ranges.size):
        column = scores[:, scores.shape[1] - 1 - k]
        ranges[k] = (column.max() - column.min()) * scales[scales.size - 1 - k]
    return ranges


@jit()
def principal_box(X: Float) -> tuple[Float, Float]:
    """Return the range of X along each of its principal axes, (k,), and the axes in rows, (k, p).

    The number k of axes is min(n - 1, p).
    """
    centred = _centre_columns(X)
    n_axes = min(X.shape[0] - 1, X.shape[1])
    axes = np.ascontiguousarray(np.linalg.svd(centred, False)[2][:n_axes])
    ranges = np.empty(n_axes)
    for k in range(n_axes):
        scores = np.dot(centred, axes[k])
        ranges[k] = scores.max() - scores.min()
    return ranges, axes


@jit()
def _centre_columns(X: Float) -> Float:
    """Return X, of shape (n, p), minus the means of its columns."""
    out = X.copy()
    for j in range(X.shape[1]):
        out[:, j] -= X[:, j].mean()
    return out


@jit()
def absolute_distances(X: Float) -> Float:
    """Return the city-block distances between the rows of X, of shape (n, n)."""
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
    """Replace the inner products of samples, (n, n), by squared Euclidean distances, in place."""
    n = gram.shape[0]
    # A copy of the diagonal, which is overwritten row by row.
    squared_norms = np.empty(n)
    for i in range(n):
        squared_norms[i] = gram[i, i]
    for i in range(n):
        row, squared_norm = gram[i], squared_norms[i]
        for j in range(i):
            # Rounding may make the squared distance of nearly identical samples negative.
            row[j] = max(squared_norm + squared_norms[j] - 2.0 * row[j], 0.0)
        row[i] = 0.0
    # The lower triangle is copied to the upper one, since BLAS need not return a product that is
    # symmetric to the last digit. In blocks of 32 columns: copies of whole rows to columns would
    # load a cache line for every number. Not tuned: results do not depend on it.
    for start in range(0, n, 32):
        for i in range(start, n):
            for j in range(start, min(start + 32, i)):
                gram[j, i] = gram[i, j]
