"""Sparse principal components: maximise u'Xv with |u|_2 <= 1, |v|_2 <= 1, |v|_1 <= bound.

Witten, Tibshirani and Hastie (2009) alternate u = Xv / |Xv| and v = soft(X'u, delta) / |.|_2. Their
delta is found here exactly, so the answer does not depend on the scale of
X. Further components see X minus the components before, which is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.kernels.alternation import AlternationSettings, Record, Start, alternate
from mrshc.core.kernels.products import low_rank_cells
from mrshc.core.kernels.residual import CellCorrections, Residual
from mrshc.core.kernels.screening import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """One sparse component: scale * u v', where v is `weights` at `indices`, zero elsewhere."""

    u: Float  # (n,), unit length
    indices: Index  # (m,), increasing
    weights: Float  # (m,), non-zero
    scale: float  # u'Xv
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Starts:
    """Where the alternation begins: component k starts from the k-th row of `vectors`."""

    vectors: Float  # (k, p)
    images: Float  # (k, n), X v for each of them
    noise: float  # length of X v that rounding alone may leave


def leading_starts(matrix: CentredArray, n_components: int) -> Starts:
    """Start from the leading right singular vectors of X, found from its smaller Gram matrix.

    Sparse components leave more of X than full ones, so there can be more of them than X has
    rank: those start from the last singular vector that there is.
    """
    n, p = matrix.shape
    if p > n:
        left = leading_eigenvectors(matrix.gram, n_components)
        right = np.stack([matrix.transposed_times(u) for u in left])
    else:
        right = leading_eigenvectors(matrix.cross_product(), n_components)
    lengths = np.linalg.norm(right, axis=1)
    return existing(starts_at(matrix, right / np.where(lengths > 0, lengths, 1.0)[:, None]))


def existing(starts: Starts) -> Starts:
    """Return the same number of starts, none of them beyond the rank of X."""
    order = existing_order(starts)
    return Starts(vectors=starts.vectors[order], images=starts.images[order], noise=starts.noise)


def existing_order(starts: Starts) -> Index:
    """Return which start to take for each: the last that there is for those beyond the rank."""
    # The Gram matrix knows small singular values badly; the images know them well.
    exist = np.linalg.norm(starts.images, axis=1) > starts.noise
    return np.minimum(np.arange(exist.size), max(int(exist.sum()) - 1, 0))


def starts_at(matrix: CentredArray, vectors: Float) -> Starts:
    """Start from given right vectors, one in each row."""
    every = np.arange(matrix.shape[1])
    return starts_with(vectors, np.stack([matrix.times(every, v) for v in vectors]))


def starts_with(vectors: Float, images: Float) -> Starts:
    """Start from given right vectors and their images."""
    longest = float(np.linalg.norm(images, axis=1).max())
    noise = longest * max(images.shape[1], vectors.shape[1]) * float(np.finfo(np.float64).eps)
    return Starts(vectors=vectors, images=images, noise=noise)


def leading_eigenvectors(gram: Float, count: int) -> Float:
    """Return eigenvectors in rows, in decreasing order of their eigenvalues."""
    _, vectors = np.linalg.eigh(gram)
    return np.ascontiguousarray(vectors[:, ::-1][:, :count].T)


def next_component(
    matrix: CentredArray,
    earlier: Sequence[Component],
    *,
    starts: Starts,
    l1_bound: float,
    orthogonal: bool = False,
    max_iter: int,
    tol: float,
    trace: Trace | None = None,
    record: Record | None = None,
) -> Component:
    """Find the component that follows `earlier`, by alternation from its start.

    The data are X minus the earlier components (deflation) or, if `orthogonal`, X itself with u
    kept orthogonal to the earlier u's. It has converged when v moves by at most `tol` in L1 norm.

    A trace, left by the same component at another bound, makes it faster and changes nothing; a
    record is written to.
    """
    k = len(earlier)
    scores, loadings = _stacked(matrix, earlier)
    # Contiguous, as the compiled loop takes it: columns of a working set are picked with strides.
    v, image = np.ascontiguousarray(starts.vectors[k]), np.ascontiguousarray(starts.images[k])
    if not orthogonal:
        # From the loaded columns alone: sums must not depend on how many others there are.
        overlaps = np.array([c.scale * float(c.weights @ v[c.indices]) for c in earlier])
        image = image - scores.T @ overlaps
    corrections = _missing_corrections(matrix, scores[:0] if orthogonal else scores, loadings)
    result = alternate(
        Residual(*matrix.layout, scores, loadings, orthogonal, corrections),
        matrix.lengths,
        Start(v, image),
        AlternationSettings(float(l1_bound), int(max_iter), float(tol), float(starts.noise)),
        new_trace(matrix, 0) if trace is None else trace,
        new_record(matrix, 0) if record is None else record,
    )
    weights = result.weights
    sign = np.sign(weights[np.argmax(np.abs(weights))]) if weights.size else 1.0
    return Component(
        u=sign * result.u,
        indices=result.indices,
        weights=sign * weights,
        scale=result.scale,
        n_iter=result.n_iter,
        converged=result.converged,
    )


def new_trace(matrix: CentredArray, n_iter: int) -> Trace:
    """Return a trace for the first iterations of an alternation, with nothing in it yet."""
    n, p = matrix.shape
    return Trace(
        np.empty((n_iter, n)),
        np.empty((n_iter, p), np.uint8),
        np.empty(n_iter),
        np.full(n_iter, -1.0),
    )


def new_record(matrix: CentredArray, n_iter: int) -> Record:
    """Return a record for the first iterations of an alternation."""
    return Record(np.empty((n_iter, matrix.shape[0])), np.full(n_iter, -1.0))


def _missing_corrections(matrix: CentredArray, scores: Float, loadings: Float) -> CellCorrections:
    """Return the corrections of the missing cells of X - L, L being scores' loadings.

    There the cell must hold the mean of the observed cells of X - L, while X - L itself holds X's
    own fill, as precisely as X can, minus L.
    """
    k, error = scores.shape[0], matrix.fill_error
    if matrix.missing is None or (k == 0 and error is None):
        nowhere = np.empty(0, np.intp)
        return CellCorrections(nowhere, nowhere, np.empty(0))
    rows, columns = matrix.missing_cells
    corrections = np.zeros(rows.size) if error is None else error
    if k:
        low_rank = low_rank_cells(scores, loadings, rows, columns)
        corrections = corrections + low_rank - _taken(matrix, scores, loadings, low_rank)
    return CellCorrections(rows, columns, corrections)


def fill_taken(matrix: CentredArray, earlier: Sequence[Component]) -> float:
    """Return by how much earlier components lower the mean of the observed cells."""
    scores, loadings = _stacked(matrix, earlier)
    low_rank = np.empty(0)
    if matrix.missing is not None:
        low_rank = low_rank_cells(scores, loadings, *matrix.missing_cells)
    return _taken(matrix, scores, loadings, low_rank)


def _taken(matrix: CentredArray, scores: Float, loadings: Float, missing: Float) -> float:
    every = scores.sum(axis=1) @ loadings.sum(axis=1)
    return float(every - missing.sum()) / matrix.n_observed


def _stacked(matrix: CentredArray, components: Sequence[Component]) -> tuple[Float, Float]:
    """Return u's in rows, and v's times their scales."""
    k, (n, p) = len(components), matrix.shape
    scores, loadings = np.empty((k, n)), np.zeros((k, p))
    for row, c in enumerate(components):
        scores[row] = c.u
        loadings[row, c.indices] = c.scale * c.weights
    return scores, loadings
