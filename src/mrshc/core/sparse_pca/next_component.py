"""Sparse principal components by the alternating algorithm of Witten, Tibshirani and Hastie (2009).

The first component maximises u'Xv subject to |u|_2 <= 1, |v|_2 <= 1 and |v|_1 <= bound, where X is
the centred data matrix and bound is the L1 bound. The algorithm alternates between u = Xv / |Xv|_2
and v = s / |s|_2. Here s = soft(X'u, delta), and soft(a, delta) = sign(a) max(|a| - delta, 0). The
threshold delta >= 0 is the smallest one for which |v|_1 <= bound. It is computed exactly, whereas
the authors use a numerical search with an absolute tolerance. The vectors u and v therefore do not
depend on the scale of X.

Each further component is computed from the residual of X, which is X minus the earlier components.
The residual matrix is not stored: products with it are computed from X and the earlier components.

References
----------
Witten, D. M., Tibshirani, R. and Hastie, T. (2009). A penalized matrix decomposition, with
applications to sparse principal components and canonical correlation analysis. Biostatistics 10(3),
515-534. https://doi.org/10.1093/biostatistics/kxp008
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.kernels.alternation import (
    Alternation,
    AlternationSettings,
    AlternationStart,
    IterateRecord,
    alternate,
)
from mrshc.core.kernels.column_copies import ColumnCopies
from mrshc.core.kernels.component_sequence import (
    ComponentSequence,
    SequenceEnd,
    SequenceHistories,
    SequenceStarts,
    compute_components,
)
from mrshc.core.kernels.products import low_rank_cells
from mrshc.core.kernels.residual import CellCorrections, Residual
from mrshc.core.kernels.screening import SlopeHistory
from mrshc.core.kernels.slope_basis import SlopeBasis
from mrshc.core.kernels.slope_bounds import SlopeBounds
from mrshc.core.parallel import MANY_SAMPLES

# Number of Lanczos vectors between restarts. The eigenvalues of noise are close to each other, so
# that few vectors would need many restarts. The number affects only the computation time.
_N_LANCZOS_VECTORS = 60

# Largest number of vectors u at which the slopes of all columns are stored, for many samples. With
# 2,000 samples, fewer than 50 vectors were sufficient for all L1 bounds of a search. The number
# affects only the computation time.
_N_BASIS_VECTORS = 64

# Largest number of columns of which copies are kept for many samples, as a fraction of all columns.
# It must not be smaller than the largest fraction of the columns in a screen. The number affects
# only the computation time and the memory.
_MAX_COPIED_FRACTION = 0.25

# Number of iterations whose slopes are bounded, at one byte for each feature. `MrSHC` makes at most
# 20 iterations by default. The number affects only the computation time and the memory.
_N_BOUNDED_ITERATIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """A sparse principal component of X: the matrix scale * u v'.

    The vector v has the values `weights` at the positions `indices`, and is zero elsewhere.

    Attributes
    ----------
    u : ndarray of shape (n_samples,)
        Scores of the samples, with unit L2 norm; zero if the matrix from which the component was
        computed is zero.
    indices : ndarray of shape (m,)
        Indices of the features with a non-zero loading, in increasing order.
    weights : ndarray of shape (m,)
        Loadings of the features at `indices`. The loading with the largest absolute value is
        positive.
    scale : float
        The value u'Xv. Here X is the matrix from which the component was computed: either the
        centred data or the centred data minus the earlier components.
    n_iter : int
        Number of iterations of the alternating algorithm.
    converged : bool
        Whether the alternating algorithm converged.
    """

    u: Float
    indices: Index
    weights: Float
    scale: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlternationStarts:
    """Start vectors of the alternating algorithm that computes sparse components.

    Attributes
    ----------
    vectors : ndarray of shape (n_components, n_features)
        Start vector v of each component, one per row.
    images : ndarray of shape (n_components, n_samples)
        Product Xv of the data matrix X with each start vector, one per row.
    noise : float
        A vector Xv whose L2 norm is at most `noise` may consist entirely of rounding errors.
    """

    vectors: Float
    images: Float
    noise: float


def leading_starts(matrix: CentredArray, n_components: int) -> AlternationStarts:
    """Return the leading right singular vectors of a matrix as start vectors.

    `n_components` is the number of sparse components, and so of start vectors. It can exceed the
    rank of the matrix, since subtracting a sparse component may not reduce the rank. Components
    beyond the rank start from the last singular vector that has a positive singular value.
    """
    n, p = matrix.shape
    # The singular vectors are computed from the eigenvectors of XX' (n x n) or of X'X (p x p),
    # whichever of the two matrices is smaller.
    if p > n:
        left = leading_eigenvectors(matrix.gram, n_components)
        right = np.stack([matrix.multiply_transposed(u) for u in left])
    else:
        right = leading_eigenvectors(matrix.cross_product(), n_components)
    lengths = np.linalg.norm(right, axis=1)
    unit_vectors = right / np.where(lengths > 0, lengths, 1.0)[:, None]
    return replace_starts_beyond_rank(starts_from_vectors(matrix, unit_vectors))


def replace_starts_beyond_rank(starts: AlternationStarts) -> AlternationStarts:
    """Return the start vectors after replacing those beyond the rank of the data matrix.

    If the matrix has rank r, the vectors after the first r vectors are replaced by a copy of the
    last of these r vectors.
    """
    order = start_order_within_rank(starts)
    return AlternationStarts(
        vectors=starts.vectors[order], images=starts.images[order], noise=starts.noise
    )


def start_order_within_rank(starts: AlternationStarts) -> Index:
    """Return the position of the start vector to use for each component.

    If the data matrix has rank r, component k (counted from zero) uses start vector k if k < r,
    and start vector r - 1 otherwise.

    Parameters
    ----------
    starts : AlternationStarts
        Right singular vectors of the data matrix, in decreasing order of their singular values.

    Returns
    -------
    order : ndarray of shape (n_components,)
        Positions in `starts`.
    """
    # The rank is the number of vectors Xv whose norm exceeds the rounding errors. The eigenvalues
    # of the Gram matrix would be less accurate: they are the squares of the singular values, so
    # small singular values would have only half as many significant digits.
    is_within_rank = np.linalg.norm(starts.images, axis=1) > starts.noise
    n_starts = is_within_rank.size
    return np.minimum(np.arange(n_starts), max(int(is_within_rank.sum()) - 1, 0))


def starts_from_vectors(matrix: CentredArray, vectors: Float) -> AlternationStarts:
    """Return start vectors of the alternating algorithm, together with their products Xv.

    The array `vectors` has the shape (n_components, n_features), and its rows are the start vectors
    v.
    """
    all_columns = np.arange(matrix.shape[1])
    return starts_from_images(vectors, np.stack([matrix.multiply(all_columns, v) for v in vectors]))


def starts_from_images(vectors: Float, images: Float) -> AlternationStarts:
    """Return start vectors of the alternating algorithm, given their products with the data matrix.

    Parameters
    ----------
    vectors : ndarray of shape (n_components, n_features)
        Start vector v of each component, one per row.
    images : ndarray of shape (n_components, n_samples)
        Product Xv of the data matrix X with each start vector v, one per row.
    """
    longest = float(np.linalg.norm(images, axis=1).max())
    # This is the usual tolerance for the numerical rank of a matrix: the product of the largest
    # singular value, the larger dimension of the matrix, and the machine epsilon.
    noise = longest * max(images.shape[1], vectors.shape[1]) * float(np.finfo(np.float64).eps)
    return AlternationStarts(vectors=vectors, images=images, noise=noise)


def leading_eigenvectors(gram: Float, count: int) -> Float:
    """Return the eigenvectors that belong to the `count` largest eigenvalues of a symmetric matrix.

    The eigenvectors are the rows of the result, in decreasing order of their eigenvalues. For many
    samples, only these eigenvectors are computed, by the Lanczos method; the result differs from
    that of a complete decomposition by rounding errors.
    """
    n = len(gram)
    if n < MANY_SAMPLES or (vectors := _lanczos_eigenvectors(gram, count)) is None:
        _, vectors = np.linalg.eigh(gram)
    # Both functions return eigenvalues in increasing order.
    return np.ascontiguousarray(vectors[:, ::-1][:, :count].T)


def _lanczos_eigenvectors(gram: Float, count: int) -> Float | None:
    """Return the leading eigenvectors in columns, in increasing order of their eigenvalues.

    The result is None if the method does not converge, or if it breaks down because the matrix is
    zero.
    """
    n = len(gram)
    # A fixed start vector makes the result reproducible. Its entries differ, so that it is not
    # orthogonal to the eigenvectors of symmetric designs, such as two clusters of equal size.
    start = np.random.default_rng(0).standard_normal(n)
    try:
        # A tolerance of zero means machine precision.
        _, vectors = eigsh(gram, count, which="LA", v0=start, ncv=_N_LANCZOS_VECTORS, tol=0.0)
    except ArpackError:
        return None
    return cast(Float, vectors)


def next_component(
    matrix: CentredArray,
    earlier: Sequence[Component],
    *,
    starts: AlternationStarts,
    l1_bound: float,
    orthogonal: bool = False,
    max_iter: int,
    tol: float,
    history: SlopeHistory | None = None,
    record: IterateRecord | None = None,
) -> Component:
    """Return the sparse component that follows the components in `earlier`.

    Parameters
    ----------
    matrix : CentredArray
        The centred data X.
    earlier : sequence of Component
        All components that precede the one to be computed.
    starts : AlternationStarts
        Start vectors of all components. The vector at position ``len(earlier)`` is used.
    l1_bound : float
        Upper bound on the L1 norm of the loading vector v.
    orthogonal : bool, default=False
        If False, the earlier components are subtracted from X (deflation). If True, X itself is
        used, and the score vector u is kept orthogonal to the score vectors of `earlier`.
    max_iter : int
        Largest number of iterations of the alternating algorithm.
    tol : float
        The algorithm has converged when the L1 norm of the change of v is at most `tol`.
    history : SlopeHistory or None, default=None
        What earlier runs found out about slopes. It reduces the computation time and does not
        affect the result. None means that there is none.
    record : IterateRecord or None, default=None
        Arrays to which the vector u and the soft threshold of each iteration are written. None
        means that they are not recorded.
    """
    k = len(earlier)
    scores, loadings = _stack_components(matrix, earlier)
    # The compiled loop needs contiguous arrays. If the start vectors have been restricted to a
    # working set, the rows of their array may not be contiguous.
    v, image = np.ascontiguousarray(starts.vectors[k]), np.ascontiguousarray(starts.images[k])
    # The earlier components are either subtracted, or u is kept orthogonal to their scores.
    n_subtracted, n_orthogonal = (0, k) if orthogonal else (k, 0)
    subtracted = scores[:n_subtracted], loadings[:n_subtracted]
    corrections = _missing_corrections(matrix, *subtracted)
    result = alternate(
        Residual(*matrix.kernel_arguments, *subtracted, scores[:n_orthogonal], corrections),
        matrix.column_norms,
        AlternationStart(v, image),
        AlternationSettings(float(l1_bound), int(max_iter), float(tol), float(starts.noise)),
        _NO_HISTORY if history is None else history,
        _record_without_rows(matrix.shape[0]) if record is None else record,
    )
    return Component(**Alternation(*result)._asdict())


def next_components(
    matrix: CentredArray,
    earlier: Sequence[Component],
    *,
    starts: AlternationStarts,
    settings: AlternationSettings,
    histories: SequenceHistories,
    end: SequenceEnd,
) -> list[Component]:
    """Return several sparse components that follow the components in `earlier`.

    The components are the same as those that `next_component` returns one after the other, but they
    are computed in less time.

    Parameters
    ----------
    matrix : CentredArray
        The centred data, without missing values.
    earlier : sequence of Component
        All components that precede the first one to be computed.
    starts : AlternationStarts
        Start vectors of all components.
    settings : AlternationSettings
        L1 bound and stopping criteria of each component.
    histories : SequenceHistories
        What earlier runs found out about slopes. It reduces the computation time and does not
        affect the result.
    end : SequenceEnd
        Number of components, including the earlier ones, and the number of features with a non-zero
        loading at which no further component is computed.
    """
    scores, loadings = _stack_components(matrix, earlier)
    result = compute_components(
        Residual(*matrix.kernel_arguments, scores, loadings, scores[:0], _NO_CORRECTIONS),
        matrix.column_norms,
        SequenceStarts(starts.vectors, starts.images),
        settings,
        histories,
        end,
    )
    found = ComponentSequence(*result)
    components = []
    for row, v in enumerate(found.loadings):
        indices = v.nonzero()[0]
        components.append(
            Component(
                u=found.scores[row],
                indices=indices,
                weights=v[indices],
                scale=float(found.scales[row]),
                n_iter=int(found.n_iter[row]),
                converged=bool(found.converged[row]),
            )
        )
    return components


def empty_histories(matrix: CentredArray, n_components: int) -> SequenceHistories:
    """Return empty arrays, to which the alternating algorithm writes what it finds out on slopes.

    For many samples, it writes not only bounds, but also slopes and copies of columns.
    """
    (n, p), n_iter = matrix.shape, _N_BOUNDED_ITERATIONS
    bounds = SlopeBounds(
        np.empty((n_components, n_iter, n)),
        np.empty((n_components, n_iter, p), np.uint8),
        np.empty((n_components, n_iter)),
        np.full((n_components, n_iter), -1.0),
    )
    # For missing values, another version of the alternating algorithm would have to be compiled.
    if n < MANY_SAMPLES or matrix.missing is not None:
        return SequenceHistories(bounds, None, None)
    return SequenceHistories(bounds, _empty_bases(n_components, n, p), _empty_copies(matrix))


def history_of_component(histories: SequenceHistories, k: int) -> SlopeHistory:
    """Return the history of component k, counted from zero, as views of the arrays.

    There is no basis, which is not used for data with missing values.
    """
    bounds = histories.bounds
    of_component = SlopeBounds(
        bounds.scores[k], bounds.quantised[k], bounds.units[k], bounds.thresholds[k]
    )
    return SlopeHistory(of_component, None, None)


# Used if a component is computed from a working set, which changes from one run to the next.
_NO_HISTORY = SlopeHistory(
    SlopeBounds(np.empty((0, 0)), np.empty((0, 0), np.uint8), np.empty(0), np.empty(0)),
    None,
    None,
)


def _empty_bases(n_components: int, n: int, p: int) -> SlopeBasis:
    """Return arrays for the slopes of p columns at some vectors of n scores, without vectors.

    The first axis of each array is that of the components.
    """
    m = _N_BASIS_VECTORS
    return SlopeBasis(
        np.empty((n_components, m, n)),
        np.empty((n_components, m, p)),
        np.empty((n_components, m, n)),
        np.empty((n_components, m, m)),
        np.zeros((n_components, 1), np.intp),
    )


def _empty_copies(matrix: CentredArray) -> ColumnCopies:
    """Return arrays for copies of columns; no copies are needed of data stored column by column."""
    (n, p), (X, by_columns, _) = matrix.shape, matrix.kernel_arguments
    m = 0 if by_columns else int(_MAX_COPIED_FRACTION * p)
    return ColumnCopies(np.empty((m, n), X.dtype), np.full(p, -1), np.zeros(1, np.intp))


def empty_record(matrix: CentredArray, n_iter: int) -> IterateRecord:
    """Return empty arrays for the vectors u and the thresholds of the first `n_iter` iterations.

    Thresholds of -1 mark iterations that have not been recorded.
    """
    return IterateRecord(np.empty((n_iter, matrix.shape[0])), np.full(n_iter, -1.0))


@cache  # most components are not recorded, and making the arrays would take 20 microseconds each
def _record_without_rows(n: int) -> IterateRecord:
    """Return arrays for n samples in which no iteration is recorded."""
    return IterateRecord(np.empty((0, n)), np.empty(0))


# Corrections of data without missing values.
_NO_CORRECTIONS = CellCorrections(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def _missing_corrections(matrix: CentredArray, scores: Float, loadings: Float) -> CellCorrections:
    """Return the values to add to the residual at the positions of missing values.

    The residual is X - L, where X is the centred data and L is the matrix product scores' loadings.
    Missing values of X are replaced by the mean of the observed values, called the fill value. The
    residual at these positions must likewise be the mean of the observed values of the residual.
    Without corrections, the residual at these positions would be the fill value of X, rounded to
    the data type of X, minus the entry of L.
    """
    k, error = scores.shape[0], matrix.fill_error
    if matrix.missing is None or (k == 0 and error is None):
        return _NO_CORRECTIONS
    rows, columns = matrix.missing_cells
    corrections = np.zeros(rows.size) if error is None else error
    if k:
        low_rank = low_rank_cells(scores, loadings, rows, columns)
        corrections = corrections + low_rank - _observed_mean(matrix, scores, loadings, low_rank)
    return CellCorrections(rows, columns, corrections)


def fill_change(matrix: CentredArray, earlier: Sequence[Component]) -> float:
    """Return the amount by which the mean of the data decreases when components are subtracted.

    The components in `earlier` are subtracted. The mean is taken over all observed (non-missing)
    values of the whole data set, even if `matrix` contains only some of its columns.
    """
    scores, loadings = _stack_components(matrix, earlier)
    low_rank = np.empty(0)
    if matrix.missing is not None:
        low_rank = low_rank_cells(scores, loadings, *matrix.missing_cells)
    return _observed_mean(matrix, scores, loadings, low_rank)


def _observed_mean(
    matrix: CentredArray, scores: Float, loadings: Float, missing_cells: Float
) -> float:
    """Return the mean of L = scores' loadings over all positions at which the data are observed.

    Parameters
    ----------
    matrix : CentredArray
        The data. Only `n_observed`, the number of observed values of the whole data set, is used.
    scores : ndarray of shape (k, n_samples)
        Scores of the k components.
    loadings : ndarray of shape (k, n_features)
        Loadings of the k components, multiplied by the scales of the components.
    missing_cells : ndarray of shape (m,)
        Entries of L at the positions of the missing values.
    """
    # The sum of all entries of L is the inner product of the row sums of the two factors.
    total = scores.sum(axis=1) @ loadings.sum(axis=1)
    return float(total - missing_cells.sum()) / matrix.n_observed


def _stack_components(matrix: CentredArray, components: Sequence[Component]) -> tuple[Float, Float]:
    """Return the scores and the scaled loadings of k components, one component per row.

    The scores have the shape (k, n_samples). The loadings have the shape (k, n_features) and are
    multiplied by the scales of the components.
    """
    k, (n, p) = len(components), matrix.shape
    scores, loadings = np.empty((k, n)), np.zeros((k, p))
    for row, c in enumerate(components):
        scores[row] = c.u
        loadings[row, c.indices] = c.scale * c.weights
    return scores, loadings
