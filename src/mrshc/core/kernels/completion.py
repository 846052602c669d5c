"""Completion of missing cells by a few principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Cells converge in a few iterations or hardly at all; the rest is below the noise.
_MAX_ITER = 50


class LowRankFit(NamedTuple):
    """Components fitted to a matrix, and the noise around them."""

    means: Float  # (q,), of the columns
    scores: Float  # (n, rank), shrunk by the noise
    loadings: Float  # (q, rank)
    signal: Float  # (rank,), squared singular values beyond the noise
    noise: float  # variance of the residuals


@jit()
def complete_cells(
    values: Float, rows: Index, columns: Index, loadings: Float, noise_freedom: int, tol: float
) -> LowRankFit:
    """Replace some cells by a low-rank fit, and fit again, until none moves by more than `tol`.

    The iteration starts from `loadings` and overwrites the given cells of `values`. The noise has
    `noise_freedom` degrees of freedom.
    """
    n, q = values.shape
    rank = loadings.shape[1]
    means, centred = np.empty(q), np.empty((n, q))
    loadings = _orthonormal(loadings)
    scores, signal, noise = np.empty((n, rank)), np.empty(rank), 0.0
    for _ in range(_MAX_ITER):
        total = _centre(values, means, centred)
        # One step of subspace iteration suffices: the values change as well.
        scores = _orthonormal(centred @ loadings)
        images = centred.T @ scores
        squares, turn = np.linalg.eigh(images.T @ images)
        lengths = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))
        scores, loadings = scores @ turn, (images @ turn) / lengths
        noise = max(total - squares.sum(), 0.0) / noise_freedom
        signal = np.maximum(squares - noise * max(n, q), 0.0)
        scores *= signal / lengths
        change = 0.0
        for m in range(rows.size):
            i, j = rows[m], columns[m]
            fit = means[j]
            for k in range(rank):
                fit += scores[i, k] * loadings[j, k]
            change = max(change, abs(fit - values[i, j]))
            values[i, j] = fit
        if change <= tol:
            break
    return LowRankFit(means, scores, loadings, signal, noise)


@jit()
def _centre(values: Float, means: Float, centred: Float) -> float:
    """Write column means and centred values; return the sum of squares of the latter."""
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
def _orthonormal(columns: Float) -> Float:
    """Return an orthonormal basis of the columns, with zeros where they are dependent."""
    squares, turn = np.linalg.eigh(columns.T @ columns)
    negligible = squares[-1] * columns.shape[0] * np.finfo(np.float64).eps
    lengths = np.sqrt(np.where(squares > negligible, squares, np.inf))
    return (columns @ turn) / lengths
