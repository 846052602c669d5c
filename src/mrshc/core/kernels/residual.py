"""Products of vectors with the residual: the centred data minus the earlier sparse components.

The residual matrix is not stored, since it would take as much memory as the data. The functions of
this module correct products that were computed with the centred data X: X'u, whose entries are
called slopes, and Xv, which is called the image of v. Subtracting the contribution of the earlier
components from such a product is called deflation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import dot


class CellCorrections(NamedTuple):
    """Values that are added to individual entries of a matrix."""

    rows: Index  # (c,), row index of each of the c entries
    columns: Index  # (c,), column index of each entry
    values: Float  # (c,), value that is added to each entry


class Residual(NamedTuple):
    """The parts of a residual matrix: the centred data minus the k earlier components.

    The residual is X, minus `offsets`, minus the product of the transposed `scores` with
    `loadings`, plus `corrections`. Missing values of X are replaced by the mean of all other
    values. At the positions of missing values, the corrections set the residual to the mean of the
    residual over all other positions.
    """

    X: NDArray[Any]  # (n, p), or its transpose, (p, n), if `by_columns`
    by_columns: bool  # whether `X` is the transpose of the data matrix
    offsets: Float  # (p,), subtracted from the columns of the data matrix
    scores: Float  # (k, n), scores of the components that are subtracted
    loadings: Float  # (k, p), loadings of these components, times their scales
    orthogonal_to: Float  # (m, n), scores to which u is kept orthogonal; m is zero if k is not
    corrections: CellCorrections  # corrections of the entries that are missing in the data


@jit()
def deflate_slopes(
    scores: Float, loadings: Float, corrections: CellCorrections, slopes: Float, u: Float
) -> None:
    """Replace X'u, in place, by R'u, where X is the centred data and R is the residual.

    The products may be restricted to a subset of the columns of X and R.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of the k components that are subtracted from X.
    loadings : array of shape (k, m)
        Loadings of these components in the m columns that `slopes` refers to.
    corrections : CellCorrections
        Corrections of the residual in these m columns. Their column indices are positions among
        the m columns.
    slopes : array of shape (m,)
        Inner products of u with these m columns of X. They are overwritten with the inner products
        of u with the same columns of R.
    u : array of shape (n,)
        The vector u, with one entry for each of the n samples.
    """
    for k in range(scores.shape[0]):
        projection = dot(scores[k], u)
        row = loadings[k]
        for j in range(slopes.size):
            slopes[j] -= projection * row[j]
    for k in range(corrections.values.size):
        slopes[corrections.columns[k]] += corrections.values[k] * u[corrections.rows[k]]


@jit()
def deflate_image(
    scores: Float,
    loadings: Float,
    corrections: CellCorrections,
    image: Float,
    indices: Index,
    weights: Float,
) -> None:
    """Replace Xv, in place, by Rv, where X is the centred data and R is the residual.

    The vector v is sparse. It may be given on a subset of the columns if all entries of v outside
    the subset are zero.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of the k components that are subtracted from X.
    loadings : array of shape (k, m)
        Loadings of these components in the m columns on which v is given.
    corrections : CellCorrections
        Corrections of the residual in these m columns. Their column indices are positions among
        the m columns.
    image : array of shape (n,)
        The product Xv, overwritten with Rv.
    indices, weights : arrays of the same length
        Positions of the non-zero entries of v among the m columns, and the values of these entries.
    """
    for k in range(scores.shape[0]):
        projection = 0.0
        for m in range(indices.size):
            projection += loadings[k, indices[m]] * weights[m]
        for i in range(image.size):
            image[i] -= projection * scores[k, i]
    # correct_image needs v as a dense vector, which is made only if there are corrections.
    if corrections.values.size > 0:
        v = np.zeros(loadings.shape[1])
        for m in range(indices.size):
            v[indices[m]] = weights[m]
        correct_image(corrections, image, v)


@jit()
def correct_image(corrections: CellCorrections, image: Float, v: Float) -> None:
    """Add the product of a matrix of corrections with a dense vector v to `image`, in place.

    The matrix has shape (n, p) and is zero except for the corrections. `v` has shape (p,), and
    `image` has shape (n,).
    """
    for k in range(corrections.values.size):
        image[corrections.rows[k]] += corrections.values[k] * v[corrections.columns[k]]


@jit()
def orthogonalise(image: Float, scores: Float) -> None:
    """Subtract from a vector, in place, its projection onto the space spanned by score vectors.

    `image` has shape (n,). The score vectors are the rows of `scores`, of shape (k, n), and are
    orthogonal unit vectors.
    """
    for k in range(scores.shape[0]):
        # Each projection is computed not from the original image but from the current image, from
        # which the previous projections have been subtracted. This is the modified Gram-Schmidt
        # process, which loses fewer digits to rounding.
        projection = dot(scores[k], image)
        for i in range(image.size):
            image[i] -= projection * scores[k, i]


@jit()
def correction_norms(corrections: CellCorrections, p: int) -> Float:
    """Return an array of shape (p,): the Euclidean norm of the corrections in each of p columns.

    The norm of a column without corrections is zero.
    """
    squares = np.zeros(p)
    for k in range(corrections.values.size):
        squares[corrections.columns[k]] += corrections.values[k] ** 2
    for j in range(p):
        squares[j] = np.sqrt(squares[j])
    return squares
