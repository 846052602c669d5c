"""Completion of missing cells by a low-rank approximation.

Regularised iterative principal component analysis (Josse and Husson 2012): missing cells are
replaced by their fit from a few principal components, whose scores are shrunk by the noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Cells either converge within a few iterations or so slowly that further changes are smaller than
# the noise. Reaching the limit is therefore not an error.
_MAX_ITER = 50


class LowRankFit(NamedTuple):
    """Principal components fitted to a matrix, and the variance of the noise."""

    means: Float  # (q,), of the columns
    scores: Float  # (n, rank), shrunk
    loadings: Float  # (q, rank), orthonormal columns
    signal: Float  # (rank,), squared singular values minus those expected of noise alone
    noise: float  # variance of the residuals


@jit()
def complete_cells(
    values: Float,
    rows: Index,
    columns: Index,
    loadings: Float,
    noise_degrees_of_freedom: int,
    tol: float,
) -> LowRankFit:
    """Replace cells by a low-rank fit and fit again, until none changes by more than `tol`.

    Parameters
    ----------
    values : array of shape (n, q)
        The matrix. The given cells are overwritten with their fit.
    rows, columns : arrays of the same length
        The cells to complete, most often the missing ones, which hold some first value.
    loadings : array of shape (q, rank)
        Components from which the iteration starts.
    noise_degrees_of_freedom : int
        Residual degrees of freedom, by which the residual sum of squares is divided.
    tol : float
        Largest change of a cell at which the iteration stops.

    Returns
    -------
    LowRankFit
        The last fit.
    """
    n, q = values.shape
    rank = loadings.shape[1]
    means, centred = np.empty(q), np.empty((n, q))
    loadings = _orthonormal_basis(loadings)
    scores, signal, noise = np.empty((n, rank)), np.empty(rank), 0.0
    for _ in range(_MAX_ITER):
        total = _write_centred(values, means, centred)
        # One step of subspace iteration instead of a decomposition: the matrix changes in each
        # iteration as well, and both converge together.
        scores = _orthonormal_basis(centred @ loadings)
        images = centred.T @ scores
        eigenvalues, rotation = np.linalg.eigh(images.T @ images)
        # At least the smallest positive number, since rounding may make eigenvalues negative and
        # loadings are divided by their square roots.
        singular_values = np.sqrt(np.maximum(eigenvalues, np.finfo(np.float64).tiny))
        scores, loadings = scores @ rotation, (images @ rotation) / singular_values
        noise = max(total - eigenvalues.sum(), 0.0) / noise_degrees_of_freedom
        # Noise alone gives squared singular values of about its variance times max(n, q).
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
    return LowRankFit(means, scores, loadings, signal, noise)


@jit()
def _write_centred(values: Float, means: Float, centred: Float) -> float:
    """Write column means and centred values, and return the sum of squares of the latter."""
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
    """Return an orthonormal basis of the columns, with zeros where they are dependent."""
    eigenvalues, rotation = np.linalg.eigh(columns.T @ columns)
    # The usual tolerance for the numerical rank, relative to the largest eigenvalue. Division by
    # an infinite norm gives zeros for directions below it.
    negligible = eigenvalues[-1] * columns.shape[0] * np.finfo(np.float64).eps
    singular_values = np.sqrt(np.where(eigenvalues > negligible, eigenvalues, np.inf))
    return (columns @ rotation) / singular_values
