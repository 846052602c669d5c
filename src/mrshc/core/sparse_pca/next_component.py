"""Sparse principal components by alternation.

The first component maximises u'Xv subject to |u|_2 <= 1, |v|_2 <= 1 and |v|_1 <= bound. Witten,
Tibshirani and Hastie (2009) alternate u = Xv / |Xv|_2 and v = soft(X'u, delta) / |.|_2. Here delta
is computed exactly, not by a search to an absolute accuracy, so the result does not depend on the
scale of X. Each further component uses the residual of X after the earlier ones, which is never
formed.

References
----------
Witten, D. M., Tibshirani, R. and Hastie, T. (2009). A penalized matrix decomposition, with
applications to sparse principal components and canonical correlation analysis. Biostatistics 10(3),
515-534. https://doi.org/10.1093/biostatistics/kxp008
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.kernels.alternation import (
    AlternationSettings,
    AlternationStart,
    IterateRecord,
    alternate,
)
from mrshc.core.kernels.products import low_rank_cells
from mrshc.core.kernels.residual import CellCorrections, Residual
from mrshc.core.kernels.screening import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """One sparse component, scale * u v', where v is `weights` at `indices` and zero elsewhere.

    Attributes
    ----------
    u : ndarray of shape (n_samples,)
        Scores, of unit length.
    indices : ndarray of shape (m,)
        Features with a non-zero loading, increasing.
    weights : ndarray of shape (m,)
        Their loadings. The largest in absolute value is positive.
    scale : float
        u'Xv.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the alternation converged.
    """

    u: Float
    indices: Index
    weights: Float
    scale: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlternationStarts:
    """Start vectors of the alternation: component k starts from the k-th row of `vectors`.

    Attributes
    ----------
    vectors : ndarray of shape (n_components, n_features)
        Right vectors v.
    images : ndarray of shape (n_components, n_samples)
        Xv for each of them.
    noise : float
        Length of Xv up to which it may consist of rounding errors only.
    """

    vectors: Float
    images: Float
    noise: float


def leading_starts(matrix: CentredArray, n_components: int) -> AlternationStarts:
    """Return the leading right singular vectors of X as start vectors.

    A sparse component removes less of X than a full one, so there can be more components than the
    rank of X. Those beyond the rank start from the last singular vector with a positive singular
    value.
    """
    n, p = matrix.shape
    # The eigenvectors of the smaller of X X' and X'X give all singular vectors.
    if p > n:
        left = leading_eigenvectors(matrix.gram, n_components)
        right = np.stack([matrix.multiply_transposed(u) for u in left])
    else:
        right = leading_eigenvectors(matrix.cross_product(), n_components)
    lengths = np.linalg.norm(right, axis=1)
    unit_vectors = right / np.where(lengths > 0, lengths, 1.0)[:, None]
    return replace_starts_beyond_rank(starts_from_vectors(matrix, unit_vectors))


def replace_starts_beyond_rank(starts: AlternationStarts) -> AlternationStarts:
    """Return start vectors, those beyond the rank of X replaced by the last one within it."""
    order = start_order_within_rank(starts)
    return AlternationStarts(
        vectors=starts.vectors[order], images=starts.images[order], noise=starts.noise
    )


def start_order_within_rank(starts: AlternationStarts) -> Index:
    """Return the start vector to use for each component: 0, 1, ..., then the last within the rank.

    Parameters
    ----------
    starts : Starts
        Start vectors in decreasing order of their singular values.

    Returns
    -------
    order : ndarray of shape (n_components,)
    """
    # The rank is determined from the images: small eigenvalues of a Gram matrix are squares of
    # singular values, so that half of their digits are lost to rounding.
    is_within_rank = np.linalg.norm(starts.images, axis=1) > starts.noise
    n_starts = is_within_rank.size
    return np.minimum(np.arange(n_starts), max(int(is_within_rank.sum()) - 1, 0))


def starts_from_vectors(matrix: CentredArray, vectors: Float) -> AlternationStarts:
    """Return given right vectors, (n_components, n_features), as start vectors."""
    all_columns = np.arange(matrix.shape[1])
    return starts_from_images(vectors, np.stack([matrix.multiply(all_columns, v) for v in vectors]))


def starts_from_images(vectors: Float, images: Float) -> AlternationStarts:
    """Return given right vectors and their products with X as start vectors.

    Parameters
    ----------
    vectors : ndarray of shape (n_components, n_features)
        Right vectors v.
    images : ndarray of shape (n_components, n_samples)
        Xv for each of them.
    """
    longest = float(np.linalg.norm(images, axis=1).max())
    # The usual tolerance for the rank of a matrix: largest singular value x larger side x epsilon.
    noise = longest * max(images.shape[1], vectors.shape[1]) * float(np.finfo(np.float64).eps)
    return AlternationStarts(vectors=vectors, images=images, noise=noise)


def leading_eigenvectors(gram: Float, count: int) -> Float:
    """Return eigenvectors of a symmetric matrix in rows, in decreasing order of eigenvalues."""
    # `eigh` returns eigenvalues in increasing order.
    _, vectors = np.linalg.eigh(gram)
    return np.ascontiguousarray(vectors[:, ::-1][:, :count].T)


def next_component(
    matrix: CentredArray,
    earlier: Sequence[Component],
    *,
    starts: AlternationStarts,
    l1_bound: float,
    orthogonal: bool = False,
    max_iter: int,
    tol: float,
    trace: Trace | None = None,
    record: IterateRecord | None = None,
) -> Component:
    """Return the component that follows `earlier`, by alternation from its start vector.

    Parameters
    ----------
    matrix : CentredArray
        The data X.
    earlier : sequence of Component
        Components that come before.
    starts : Starts
        Start vectors; the one at the position `len(earlier)` is used.
    l1_bound : float
        Bound on the L1 norm of v.
    orthogonal : bool, default=False
        If False, earlier components are subtracted from X (deflation). If True, X itself is used,
        and u is kept orthogonal to the earlier u's.
    max_iter : int
        Largest number of iterations.
    tol : float
        The alternation has converged when v changes by at most `tol` in L1 norm.
    trace : Trace or None, default=None
        Bounds from the same component at another L1 bound. They reduce the time and do not affect
        the result. Overwritten with those of this alternation.
    record : Record or None, default=None
        Receives the iterates and thresholds, from which a certificate is made.
    """
    k = len(earlier)
    scores, loadings = _stack_components(matrix, earlier)
    # The compiled loop takes contiguous arrays; rows on the columns of a working set are not.
    v, image = np.ascontiguousarray(starts.vectors[k]), np.ascontiguousarray(starts.images[k])
    if not orthogonal:
        # Summed over the loaded columns only, so that rounding does not depend on the number of
        # other columns in a working set.
        overlaps = np.array([c.scale * float(c.weights @ v[c.indices]) for c in earlier])
        image = image - scores.T @ overlaps
    corrections = _missing_corrections(matrix, scores[:0] if orthogonal else scores, loadings)
    result = alternate(
        Residual(*matrix.kernel_arguments, scores, loadings, orthogonal, corrections),
        matrix.column_norms,
        AlternationStart(v, image),
        AlternationSettings(float(l1_bound), int(max_iter), float(tol), float(starts.noise)),
        empty_trace(matrix, 0) if trace is None else trace,
        empty_record(matrix, 0) if record is None else record,
    )
    weights = result.weights
    # The sign of a component is arbitrary: make its largest loading positive.
    sign = np.sign(weights[np.argmax(np.abs(weights))]) if weights.size else 1.0
    return Component(
        u=sign * result.u,
        indices=result.indices,
        weights=sign * weights,
        scale=result.scale,
        n_iter=result.n_iter,
        converged=result.converged,
    )


def empty_trace(matrix: CentredArray, n_iter: int) -> Trace:
    """Return an empty trace for the first `n_iter` iterations of an alternation."""
    n, p = matrix.shape
    return Trace(
        np.empty((n_iter, n)),
        np.empty((n_iter, p), np.uint8),
        np.empty(n_iter),
        np.full(n_iter, -1.0),  # negative: not computed yet
    )


def empty_record(matrix: CentredArray, n_iter: int) -> IterateRecord:
    """Return an empty record for the first `n_iter` iterations of an alternation."""
    return IterateRecord(np.empty((n_iter, matrix.shape[0])), np.full(n_iter, -1.0))


def _missing_corrections(matrix: CentredArray, scores: Float, loadings: Float) -> CellCorrections:
    """Return the values to be added to the missing cells of the residual.

    The residual is X - L, where L = scores' loadings. A missing cell of the residual must hold the
    mean of its observed cells. Without a correction it holds the fill of X, as precisely as the
    data type of X allows, minus the cell of L.
    """
    k, error = scores.shape[0], matrix.fill_error
    if matrix.missing is None or (k == 0 and error is None):
        no_cells = np.empty(0, np.intp)
        return CellCorrections(no_cells, no_cells, np.empty(0))
    rows, columns = matrix.missing_cells
    corrections = np.zeros(rows.size) if error is None else error
    if k:
        low_rank = low_rank_cells(scores, loadings, rows, columns)
        corrections = corrections + low_rank - _observed_mean(matrix, scores, loadings, low_rank)
    return CellCorrections(rows, columns, corrections)


def fill_change(matrix: CentredArray, earlier: Sequence[Component]) -> float:
    """Return the amount by which earlier components lower the mean of the observed cells."""
    scores, loadings = _stack_components(matrix, earlier)
    low_rank = np.empty(0)
    if matrix.missing is not None:
        low_rank = low_rank_cells(scores, loadings, *matrix.missing_cells)
    return _observed_mean(matrix, scores, loadings, low_rank)


def _observed_mean(
    matrix: CentredArray, scores: Float, loadings: Float, missing_cells: Float
) -> float:
    """Return the mean of L = scores' loadings over the observed cells.

    Parameters
    ----------
    matrix : CentredArray
        The data, which define the number of observed cells.
    scores : ndarray of shape (k, n_samples)
        Scores of the components.
    loadings : ndarray of shape (k, n_features)
        Their loadings, times the scales.
    missing_cells : ndarray of shape (m,)
        Values of L in the missing cells.
    """
    # The sum over all cells of a matrix of rank k needs its k factors only.
    total = scores.sum(axis=1) @ loadings.sum(axis=1)
    return float(total - missing_cells.sum()) / matrix.n_observed


def _stack_components(matrix: CentredArray, components: Sequence[Component]) -> tuple[Float, Float]:
    """Return the scores, (k, n), and the loadings times the scales, (k, p), of components."""
    k, (n, p) = len(components), matrix.shape
    scores, loadings = np.empty((k, n)), np.zeros((k, p))
    for row, c in enumerate(components):
        scores[row] = c.u
        loadings[row, c.indices] = c.scale * c.weights
    return scores, loadings
