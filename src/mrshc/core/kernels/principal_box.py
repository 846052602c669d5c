"""The bounding box of samples along their principal axes, and distances between samples.

The reference data sets of the gap statistic are uniform on this box. This is method (b) of
Tibshirani, Walther and Hastie (2001).
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def principal_ranges(X: Float) -> Float:
    """Return the range (maximum minus minimum) of the rows of X along each principal axis of X.

    The ranges are in decreasing order of the variance along the axes. If X has shape (n, p), the
    result has shape (min(n - 1, p),).
    """
    centred = _centre_columns(X)
    n, p = X.shape
    # The scores are computed from the smaller of the two matrices X'X and XX', where X is centred.
    # Both matrices have the same non-zero eigenvalues.
    if n > p:
        axes = np.linalg.eigh(np.dot(centred.T, centred))[1]
        scores = np.dot(centred, axes)
        scales = np.empty(p)
        scales[:] = 1.0
    else:
        eigenvalues, scores = np.linalg.eigh(np.dot(centred, centred.T))
        # The scores are the unit eigenvectors of XX' times the singular values of X. Rounding may
        # make a zero eigenvalue slightly negative.
        scales = np.empty(n)
        for k in range(n):
            scales[k] = np.sqrt(max(eigenvalues[k], 0.0))
    ranges = np.empty(min(n - 1, p))
    # eigh returns eigenvalues in increasing order, so the columns are used from the last to the
    # first. Centring makes one of the n eigenvalues of XX' zero, so there are at most n - 1 axes.
    for k in range(ranges.size):
        smallest, largest = _extremes(scores[:, scores.shape[1] - 1 - k])
        ranges[k] = (largest - smallest) * scales[scales.size - 1 - k]
    return ranges


@jit()
def principal_box(X: Float) -> tuple[Float, Float]:
    """Return the range of the rows of X along each principal axis of X, and the principal axes.

    If X has shape (n, p), there are k = min(n - 1, p) axes, in decreasing order of variance. The
    ranges (maximum minus minimum) are returned as an array of shape (k,), and the axes as the rows
    of an array of shape (k, p).
    """
    centred = _centre_columns(X)
    n_axes = min(X.shape[0] - 1, X.shape[1])
    axes = np.ascontiguousarray(np.linalg.svd(centred, False)[2][:n_axes])
    ranges = np.empty(n_axes)
    for k in range(n_axes):
        smallest, largest = _extremes(np.dot(centred, axes[k]))
        ranges[k] = largest - smallest
    return ranges, axes


@jit()
def principal_box_of_centred_rows(X: Float) -> tuple[Float, Float, Float]:
    """Return the box of the rows of X, in coordinates for rows that are centred at zero.

    A point of the box is a combination of the principal axes plus the midpoint of the box. Here the
    mean over the p features is subtracted from each axis and from the midpoint. A combination of
    the results is therefore a point of the box after the mean of its p values is subtracted.

    Parameters
    ----------
    X : array of shape (n, p)
        The samples.

    Returns
    -------
    ranges : array of shape (k,)
        Range of the rows of X along each of the k = min(n - 1, p) principal axes.
    axes : array of shape (k, d)
        The axes in d = min(k + 1, p) coordinates. The coordinates are chosen such that inner
        products are the same as those of the p features.
    midpoint : array of shape (d,)
        The midpoint of the box in the same coordinates.
    """
    ranges, axes = principal_box(X)
    k, p = axes.shape
    frame = np.empty((k + 1, p))
    centred = _centre_columns(X)
    for j in range(p):
        frame[k, j] = _mean(X[:, j])
    for i in range(k):
        smallest, largest = _extremes(np.dot(centred, axes[i]))
        for j in range(p):
            frame[i, j] = axes[i, j]
            frame[k, j] += (largest + smallest) / 2 * axes[i, j]
    for i in range(k + 1):
        mean = _mean(frame[i])
        for j in range(p):
            frame[i, j] -= mean
    # If the transpose of the frame is QR, the inner products of its rows are those of the columns
    # of R. Fewer coordinates make the simulation of reference data sets faster.
    coordinates = np.ascontiguousarray(np.linalg.qr(frame.T)[1].T)
    return ranges, coordinates[:k].copy(), coordinates[k].copy()


@jit()
def correlation_distances(rows: Float, n: int) -> Float:
    """Return the distances 1 - correlation between n samples, as an array of shape (n, n).

    `rows` has shape (m, d) and contains the first m samples, after the mean over the features is
    subtracted from each sample. It is overwritten. The other n - m samples have no correlation, so
    their distance to every other sample is 1.
    """
    m = rows.shape[0]
    # The squared Euclidean distance between rows of norm sqrt(1/2) is 1 - correlation.
    for i in range(m):
        norm = np.sqrt(2.0 * np.dot(rows[i], rows[i]))
        if norm > 0.0:
            for j in range(rows.shape[1]):
                rows[i, j] /= norm
    # Centring the columns does not change the distances. It reduces rounding errors if all rows
    # have nearly the same direction.
    centred = _centre_columns(rows)
    gram = np.dot(centred, centred.T)
    squared_distances_from_gram(gram)
    if m == n:
        return gram
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = gram[i, j] if i < m and j < m else 1.0
        out[i, i] = 0.0
    return out


@jit()
def _centre_columns(X: Float) -> Float:
    """Return a copy of X, of shape (n, p), in which each column is centred at zero."""
    out = X.copy()
    for j in range(X.shape[1]):
        mean = _mean(X[:, j])
        for i in range(X.shape[0]):
            out[i, j] -= mean
    return out


@jit()
def _mean(values: Float) -> float:
    total = 0.0
    for value in values:
        total += value
    return total / values.size


@jit()
def _extremes(values: Float) -> tuple[float, float]:
    """Return the smallest and the largest entry of a vector."""
    smallest, largest = np.inf, -np.inf
    for value in values:
        smallest, largest = min(smallest, value), max(largest, value)
    return smallest, largest


@jit()
def absolute_distances(X: Float) -> Float:
    """Return the city-block distances between the n rows of X, as an array of shape (n, n)."""
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
    """Replace, in place, the inner products of n samples by squared Euclidean distances.

    `gram` has shape (n, n). Before the call, element (i, j) is the inner product of samples i and
    j. After the call, the element is the squared distance between these samples.
    """
    n = gram.shape[0]
    # Copy the diagonal first, because the loop below overwrites it.
    squared_norms = np.empty(n)
    for i in range(n):
        squared_norms[i] = gram[i, i]
    for i in range(n):
        row, squared_norm = gram[i], squared_norms[i]
        for j in range(i):
            # Rounding may make the squared distance between nearly identical samples negative.
            row[j] = max(squared_norm + squared_norms[j] - 2.0 * row[j], 0.0)
        row[i] = 0.0
    # Copy the lower triangle to the upper triangle instead of computing both, since a product
    # computed by BLAS need not be symmetric to the last digit.
    mirror_lower_triangle(gram)


@jit(allocates=False)
def mirror_lower_triangle(matrix: Float) -> None:
    """Copy the values below the diagonal of a square matrix to the values above the diagonal."""
    # Copying a whole row to a column would load a new cache line for each element, so blocks of 32
    # columns are copied. The block size has not been tuned; it does not affect the result.
    n = matrix.shape[0]
    for start in range(0, n, 32):
        for i in range(start, n):
            row = np.uintp(i)
            for j in range(np.uintp(start), np.uintp(min(start + 32, i))):
                matrix[j, row] = matrix[row, j]
