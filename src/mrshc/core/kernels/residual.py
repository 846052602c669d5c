"""The residual of the data after earlier components, never formed: its products with vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import dot


class CellCorrections(NamedTuple):
    """Values to be added to single cells of a matrix."""

    rows: Index
    columns: Index
    values: Float


class Residual(NamedTuple):
    """X minus its offsets, minus scores' loadings, plus corrections of single cells."""

    X: NDArray[Any]  # (n, p), or (p, n) if `by_columns`
    by_columns: bool
    offsets: Float  # (p,)
    scores: Float  # (k, n), of earlier components
    loadings: Float  # (k, p), times their scales
    orthogonal: bool  # the scores are not subtracted: u is kept orthogonal to them
    corrections: CellCorrections


@jit()
def deflate_slopes(
    residual: Residual, loadings: Float, corrections: CellCorrections, slopes: Float, u: Float
) -> None:
    """Turn X'u into the residual's product, in place; loadings and corrections of its columns."""
    if not residual.orthogonal:
        for k in range(residual.scores.shape[0]):
            overlap = dot(residual.scores[k], u)
            row = loadings[k]
            for j in range(slopes.size):
                slopes[j] -= overlap * row[j]
    for k in range(corrections.values.size):
        slopes[corrections.columns[k]] += corrections.values[k] * u[corrections.rows[k]]


@jit()
def deflate_image(
    residual: Residual,
    loadings: Float,
    corrections: CellCorrections,
    image: Float,
    indices: Index,
    weights: Float,
) -> None:
    """Turn X v into the residual's product, in place, v being `weights` at `indices`.

    Loadings and corrections are those of the columns that the indices refer to.
    """
    if not residual.orthogonal:
        for k in range(residual.scores.shape[0]):
            overlap = 0.0
            for m in range(indices.size):
                overlap += loadings[k, indices[m]] * weights[m]
            for i in range(image.size):
                image[i] -= overlap * residual.scores[k, i]
    if corrections.values.size > 0:
        v = np.zeros(loadings.shape[1])
        v[indices] = weights
        correct_image(corrections, image, v)


@jit()
def correct_image(corrections: CellCorrections, image: Float, v: Float) -> None:
    """Add the product of the corrections with a dense v to an image, in place."""
    for k in range(corrections.values.size):
        image[corrections.rows[k]] += corrections.values[k] * v[corrections.columns[k]]


@jit()
def orthogonalise(image: Float, scores: Float) -> Float:
    """Return an image without its projections on the unit vectors in the rows of `scores`."""
    for k in range(scores.shape[0]):
        image = image - dot(scores[k], image) * scores[k]
    return image


@jit()
def correction_norms(corrections: CellCorrections, p: int) -> Float:
    """Return the Euclidean norm of the corrections of each of p columns."""
    squares = np.zeros(p)
    for k in range(corrections.values.size):
        squares[corrections.columns[k]] += corrections.values[k] ** 2
    return np.sqrt(squares)
