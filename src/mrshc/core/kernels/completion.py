"""Estimation of missing values by a low-rank approximation.

The method is regularised iterative principal component analysis (Josse and Husson 2012). Missing
values are replaced by their fitted values from a few principal components. The scores of the
components are shrunk towards zero, by an amount that increases with the estimated noise.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Maximum number of iterations. The fitted values either converge within a few iterations or change
# so slowly that further changes are smaller than the noise. Reaching the maximum is therefore not
# an error.
_MAX_ITER = 50


@jit()
def complete_cells(
    values: Float,
    rows: Index,
    columns: Index,
    loadings: Float,
    noise_degrees_of_freedom: int,
    tol: float,
) -> tuple[Float, Float, Float, Float, float]:
    """Return a low-rank fit of a matrix, and replace the missing values by their fitted values.

    The fit and the replacement are repeated until no replaced value changes by more than `tol`, or
    until a maximum number of iterations is reached.

    Parameters
    ----------
    values : array of shape (n, q)
        The matrix, in which each missing value has been replaced by an initial value, such as the
        mean of its column. The missing values are overwritten with their fitted values.
    rows, columns : arrays of the same length
        Row and column indices of the missing values.
    loadings : array of shape (q, rank)
        Loadings from which the iteration starts.
    noise_degrees_of_freedom : int
        Residual degrees of freedom, by which the residual sum of squares is divided.
    tol : float
        The iteration stops when no replaced value changes by more than `tol`.

    Returns
    -------
    means : array of shape (q,)
        Means of the columns of the matrix in the last iteration.
    scores : array of shape (n, rank)
        Scores of the principal components after shrinkage.
    loadings : array of shape (q, rank)
        Loadings as orthonormal columns.
    signal : array of shape (rank,)
        Squared singular values minus those expected from noise, at least zero.
    noise : float
        Variance of the residuals.
    """
    n, q = values.shape
    rank = loadings.shape[1]
    means, centred = np.empty(q), np.empty((n, q))
    loadings = _orthonormal_basis(loadings)
    scores, signal, noise = np.empty((n, rank)), np.empty(rank), 0.0
    for _ in range(_MAX_ITER):
        total = _write_centred(values, means, centred)
        # Use one step of subspace iteration instead of a full singular value decomposition. The
        # matrix changes in each iteration, and the subspace converges together with the matrix.
        scores = _orthonormal_basis(centred @ loadings)
        images = centred.T @ scores
        eigenvalues, rotation = np.linalg.eigh(images.T @ images)
        # Eigenvalues may be zero, or negative because of rounding. Such eigenvalues are replaced by
        # a tiny positive number, since the loadings are divided by the square roots.
        singular_values = np.sqrt(np.maximum(eigenvalues, np.finfo(np.float64).tiny))
        scores, loadings = scores @ rotation, (images @ rotation) / singular_values
        noise = max(total - eigenvalues.sum(), 0.0) / noise_degrees_of_freedom
        # In a matrix of pure noise, the squared singular values are approximately the noise
        # variance times max(n, q).
        signal = np.maximum(eigenvalues - noise * max(n, q), 0.0)
        scores *= signal / singular_values
        change = 0.0
        for m in range(rows.size):
            i, j = rows[m], columns[m]
            fitted = means[j]
            for k in range(rank):
                fitted += scores[i, k] * loadings[j, k]
            change = max(change, abs(fitted - values[i, j]))
            values[i, j] = fitted
        if change <= tol:
            break
    return means, scores, loadings, signal, noise


@jit()
def _write_centred(values: Float, means: Float, centred: Float) -> float:
    """Return the sum of squares of the centred matrix `values`.

    The column means are written to `means`, and the centred matrix to `centred`.
    """
    n, q = values.shape
    means[:] = 0.0
    for i in range(n):
        for j in range(q):
            means[j] += values[i, j]
    means /= n
    total = 0.0
    for i in range(n):
        for j in range(q):
            centred[i, j] = values[i, j] - means[j]
            total += centred[i, j] ** 2
    return total


@jit()
def _orthonormal_basis(columns: Float) -> Float:
    """Return an orthonormal basis of the space spanned by the columns of a matrix.

    The result has the shape of the matrix. If the columns are linearly dependent, the superfluous
    basis vectors are zero.
    """
    eigenvalues, rotation = np.linalg.eigh(columns.T @ columns)
    # This is the usual tolerance for the numerical rank, relative to the largest eigenvalue. If an
    # eigenvalue is smaller, its basis vector is divided by infinity, which makes the vector zero.
    negligible = eigenvalues[-1] * columns.shape[0] * np.finfo(np.float64).eps
    singular_values = np.sqrt(np.where(eigenvalues > negligible, eigenvalues, np.inf))
    return (columns @ rotation) / singular_values
