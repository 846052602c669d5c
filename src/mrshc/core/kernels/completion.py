"""The loop that completes missing cells from a few components."""

from __future__ import annotations

import numpy as np

from mrshc.core.arrays import Float, Index
from mrshc.core.kernels.jit import jit


@jit()
def complete(
    values: Float, rows: Index, columns: Index, loadings: Float, spare: int, tol: float
) -> tuple[Float, Float, Float, Float, float]:
    """Put what the components say into the given cells, find them again, until cells rest.

    Returns column means, scores, loadings, squared lengths of the components beyond the noise, and
    the variance of the noise, which has `spare` degrees of freedom.
    """
    n, q = values.shape
    rank = loadings.shape[1]
    means, centred = np.empty(q), np.empty((n, q))
    loadings = _orthonormal(loadings)
    scores, signal, noise = np.empty((n, rank)), np.empty(rank), 0.0
    for _ in range(50):
        total = _centre(values, means, centred)
        # One step towards the leading components of the present values, which move themselves.
        scores = _orthonormal(centred @ loadings)
        images = centred.T @ scores
        squares, turn = np.linalg.eigh(images.T @ images)
        lengths = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))
        scores, loadings = scores @ turn, (images @ turn) / lengths
        noise = max(total - squares.sum(), 0.0) / spare
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
    return means, scores, loadings, signal, noise


@jit()
def _centre(values: Float, means: Float, centred: Float) -> float:
    """Write the means of the columns, and the values less them; the sum of squares of these."""
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
    """Return orthonormal columns that span the same, or less where they depend on each other."""
    squares, turn = np.linalg.eigh(columns.T @ columns)
    negligible = squares[-1] * columns.shape[0] * np.finfo(np.float64).eps
    lengths = np.sqrt(np.where(squares > negligible, squares, np.inf))
    return (columns @ turn) / lengths
