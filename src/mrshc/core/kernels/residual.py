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


@jit(allocates=False)
def deflate_slopes(
    scores: Float, loadings: Float, corrections: CellCorrections, slopes: Float, u: Float
) -> None:
    """Replace X'u, in place, by R'u, where X is the centred data and R is the residual.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of the k components that are subtracted from X.
    loadings : array of shape (k, p)
        Loadings of these components.
    corrections : CellCorrections
        Corrections of the residual.
    slopes : array of shape (p,)
        Inner products of u with the p columns of X. They are overwritten with the inner products of
        u with the columns of R.
    u : array of shape (n,)
        The vector u, with one entry for each of the n samples.
    """
    subtract_components(scores, loadings, slopes, u)
    correct_slopes(corrections, corrections.values.size, slopes, u)


@jit(allocates=False)
def subtract_components(scores: Float, loadings: Float, slopes: Float, u: Float) -> None:
    """Subtract, in place, the contribution of the earlier components from X'u.

    The parameters are those of `deflate_slopes`, except that `slopes` may be those of the first
    columns only.
    """
    for k in range(scores.shape[0]):
        projection = 0.0
        for i in range(u.size):
            projection += scores[k, i] * u[i]
        for j in range(slopes.size):
            slopes[j] -= projection * loadings[k, j]


@jit(allocates=False)
def correct_slopes(
    corrections: CellCorrections, n_corrections: int, slopes: Float, u: Float
) -> None:
    """Add the product of a transposed matrix of corrections with u to `slopes`, in place.

    The matrix contains the first `n_corrections` corrections.
    """
    for k in range(n_corrections):
        slopes[corrections.columns[k]] += corrections.values[k] * u[corrections.rows[k]]


@jit(allocates=False)
def subtract_components_from_image(
    scores: Float, loadings: Float, image: Float, indices: Index, weights: Float
) -> None:
    """Subtract, in place, the contribution of the earlier components from Xv.

    The vector v is sparse. It may be given on a subset of the columns if all entries of v outside
    the subset are zero.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of the k components that are subtracted from X.
    loadings : array of shape (k, m)
        Loadings of these components in the m columns on which v is given.
    image : array of shape (n,)
        The product Xv, which is overwritten.
    indices : array
        Positions of the non-zero entries of v among the m columns.
    weights : array
        Values of these entries, possibly followed by others.
    """
    for k in range(scores.shape[0]):
        projection = 0.0
        for m in range(indices.size):
            projection += loadings[k, indices[m]] * weights[m]
        for i in range(image.size):
            image[i] -= projection * scores[k, i]


@jit()
def correct_image_of_sparse(
    corrections: CellCorrections,
    n_corrections: int,
    image: Float,
    n_columns: int,
    indices: Index,
    weights: Float,
) -> None:
    """Add the product of a matrix of corrections with a sparse vector v to `image`, in place.

    The matrix has `n_columns` columns and contains the first `n_corrections` corrections. `indices`
    and `weights` are the positions and values of the non-zero entries of v.
    """
    v = np.zeros(n_columns)
    for m in range(indices.size):
        v[indices[m]] = weights[m]
    for k in range(n_corrections):
        image[corrections.rows[k]] += corrections.values[k] * v[corrections.columns[k]]


@jit(allocates=False)
def correct_image(corrections: CellCorrections, image: Float, v: Float) -> None:
    """Add the product of a matrix of corrections with a dense vector v to `image`, in place.

    The matrix has shape (n, p) and is zero except for the corrections. `v` has shape (p,), and
    `image` has shape (n,).
    """
    for k in range(corrections.values.size):
        image[corrections.rows[k]] += corrections.values[k] * v[corrections.columns[k]]


@jit(allocates=False)
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
