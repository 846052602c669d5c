"""Products of vectors with the residual of the data after earlier components.

The residual itself is not formed, since it would take as much memory as the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import dot


class CellCorrections(NamedTuple):
    """Values to be added to single cells of a matrix."""

    rows: Index  # (c,)
    columns: Index  # (c,)
    values: Float  # (c,)


class Residual(NamedTuple):
    """X minus its offsets, minus scores' times loadings, plus corrections of single cells.

    The corrections make missing cells hold the fill of the residual, not the residual of the fill.
    """

    X: NDArray[Any]  # (n, p), or (p, n) if `by_columns`
    by_columns: bool
    offsets: Float  # (p,)
    scores: Float  # (k, n), of earlier components
    loadings: Float  # (k, p), of earlier components, times their scales
    orthogonal: bool  # True: nothing is subtracted; u is kept orthogonal to the scores instead
    corrections: CellCorrections


@jit()
def deflate_slopes(
    residual: Residual, loadings: Float, corrections: CellCorrections, slopes: Float, u: Float
) -> None:
    """Replace the product X'u by that of the residual, in place.

    Parameters
    ----------
    residual : Residual
        The residual.
    loadings : array of shape (k, m)
        Loadings of the m columns whose slopes are given: all columns or those of a screen.
    corrections : CellCorrections
        Corrections of the cells of these columns.
    slopes : array of shape (m,)
        The product of these columns of X with u; overwritten.
    u : array of shape (n,)
        The vector.
    """
    if not residual.orthogonal:
        for k in range(residual.scores.shape[0]):
            projection = dot(residual.scores[k], u)
            row = loadings[k]
            for j in range(slopes.size):
                slopes[j] -= projection * row[j]
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
    """Replace the product Xv by that of the residual, in place.

    Parameters
    ----------
    residual : Residual
        The residual.
    loadings : array of shape (k, m)
        Loadings of the m columns that `indices` refers to: all columns or those of a screen.
    corrections : CellCorrections
        Corrections of the cells of these columns.
    image : array of shape (n,)
        The product of X with v; overwritten.
    indices, weights : arrays of the same length
        Columns with a non-zero entry of v, and these entries.
    """
    if not residual.orthogonal:
        for k in range(residual.scores.shape[0]):
            projection = 0.0
            for m in range(indices.size):
                projection += loadings[k, indices[m]] * weights[m]
            for i in range(image.size):
                image[i] -= projection * residual.scores[k, i]
    # Corrections are looked up by column: v becomes dense, only if there are any.
    if corrections.values.size > 0:
        v = np.zeros(loadings.shape[1])
        v[indices] = weights
        correct_image(corrections, image, v)


@jit()
def correct_image(corrections: CellCorrections, image: Float, v: Float) -> None:
    """Add the product of the corrections with a dense v, (p,), to an image, (n,), in place."""
    for k in range(corrections.values.size):
        image[corrections.rows[k]] += corrections.values[k] * v[corrections.columns[k]]


@jit()
def orthogonalise(image: Float, scores: Float) -> Float:
    """Return an image, (n,), minus its projections on the unit vectors in the rows of `scores`."""
    for k in range(scores.shape[0]):
        # The projection of what is left, not of the original image: the modified Gram-Schmidt
        # process, which loses fewer digits.
        image = image - dot(scores[k], image) * scores[k]
    return image


@jit()
def correction_norms(corrections: CellCorrections, p: int) -> Float:
    """Return the Euclidean norm of the corrections of each of p columns, of shape (p,)."""
    squares = np.zeros(p)
    for k in range(corrections.values.size):
        squares[corrections.columns[k]] += corrections.values[k] ** 2
    return np.sqrt(squares)
