"""The alternating algorithm that computes the scores u and loadings v of one sparse component.

The algorithm is that of Witten, Tibshirani and Hastie (2009), except that the soft threshold is
computed exactly (:mod:`~mrshc.core.kernels.sparse_direction`) instead of by bisection. R denotes
the residual, the centred data minus the earlier components. The entries of R'u are called slopes,
and the vector Rv is called the image of v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import write_product, write_transposed_product
from mrshc.core.kernels.residual import (
    Residual,
    correct_image,
    correct_image_of_sparse,
    deflate_slopes,
    orthogonalise,
    subtract_components_from_image,
)
from mrshc.core.kernels.screening import (
    ColumnNorms,
    SlopeHistory,
    Threshold,
    bound_added_norms,
    find_threshold,
    plan_from_basis,
    plan_from_bounds,
    plan_from_slopes,
)
from mrshc.core.kernels.screens import (
    Screen,
    ScreenRange,
    empty_screen,
    no_screen,
    write_screen,
    write_screened_image,
    write_screened_slopes,
)
from mrshc.core.kernels.slope_basis import add_to_basis, has_vectors
from mrshc.core.kernels.slope_bounds import has_bounds, write_bounds, write_threshold
from mrshc.core.kernels.sparse_direction import (
    Candidates,
    empty_candidates,
    threshold_candidates,
)
from mrshc.core.kernels.vectors import (
    copy_into,
    dot,
    euclidean_distance,
    index_range,
    l1_distance,
)


class AlternationStart(NamedTuple):
    """The vector v from which the alternating algorithm starts."""

    v: Float  # (p,)
    image: Float  # (n,), the centred data times v


class AlternationSettings(NamedTuple):
    """The L1 bound of a component, and the stopping criteria of the alternating algorithm."""

    l1_bound: float
    max_iter: int
    tol: float  # the algorithm has converged if the L1 norm of the change in v is at most `tol`
    noise: float  # R is taken to be zero if the Euclidean norm of Rv is at most `noise`


class IterateRecord(NamedTuple):
    """The scores u and the soft thresholds of the first T iterations of the alternation.

    These values are used later to check whether a component that was computed from some columns is
    optimal for all columns.
    """

    scores: Float  # (T, n)
    thresholds: Float  # (T,), negative for iterations that were not carried out


class _Loadings(NamedTuple):
    """Arrays for the non-zero entries of a vector v of length p, of which the first are used."""

    indices: Index  # (p,), indices of the columns, increasing
    positions: Index  # (p,), positions of these columns among those of a screen
    weights: Float  # (p,), values


class _Workspace(NamedTuple):
    """Arrays that each iteration overwrites."""

    u: Float  # (n,), the scores
    old_u: Float  # (n,), the scores of the previous iteration
    image: Float  # (n,), the residual matrix times v
    slopes: Float  # (p,), slopes of all columns or of those of a screen
    candidates: Candidates  # slopes that may be active
    v: _Loadings
    old_v: _Loadings  # those of the previous iteration
    screen: Screen


class _Iterations(NamedTuple):
    """How the iterations ended."""

    n_loaded: int  # number of non-zero loadings
    n_iter: int  # number of iterations; 0 if the residual matrix is zero
    converged: bool


class Alternation(NamedTuple):
    """The sparse component that `alternate` returns, as a plain tuple with these fields.

    The sign of a component is arbitrary. It is chosen such that the loading with the largest
    absolute value is positive. If the residual matrix is zero, `u` and `scale` are zero, and
    `indices` and `weights` are empty.
    """

    u: Float  # (n,), scores with unit L2 norm
    indices: Index  # (m,), indices of the non-zero loadings, increasing
    weights: Float  # (m,), the non-zero loadings: v at `indices`
    scale: float  # u'Rv for the residual R
    n_iter: int  # number of iterations; 0 if the residual matrix is zero
    converged: bool  # False if `max_iter` iterations were not sufficient


@jit()
def alternate(
    residual: Residual,
    column_norms: Float,
    start: AlternationStart,
    settings: AlternationSettings,
    history: SlopeHistory,
    record: IterateRecord,
) -> tuple[Float, Index, Float, float, int, bool]:
    """Return the sparse component of a residual matrix R, computed by the alternating algorithm.

    Each iteration computes u = Rv / |Rv|_2 and then v = s / |s|_2, where s = soft(R'u, delta) is
    R'u after soft-thresholding. The soft threshold delta is chosen such that |v|_1 is at most the
    L1 bound. The iterations end when v changes by at most `settings.tol`, or after
    `settings.max_iter` iterations. Most iterations compute the entries of R'u (slopes) only for a
    subset of the columns, called a screen. Screens do not change the result in any digit.

    Parameters
    ----------
    residual : Residual
        The matrix R: the centred data minus the earlier components.
    column_norms : array of shape (p,)
        Euclidean norms of the columns of the centred data.
    start : AlternationStart
        The first v.
    settings : AlternationSettings
        L1 bound and stopping criteria.
    history : SlopeHistory
        What earlier runs found out about slopes, by which columns are excluded. If an iteration
        computes all slopes, they are added to the basis, and their bounds are stored.
    record : IterateRecord
        Output. The scores u and the soft threshold of iteration t are written to row t, for as many
        iterations as `record` has rows.

    Returns
    -------
    tuple
        The fields of an `Alternation`.
    """
    n, p = start.image.size, start.v.size
    norms = ColumnNorms(column_norms, bound_added_norms(residual, p))
    work = _Workspace(
        np.zeros(n),
        np.empty(n),
        start.image.copy(),
        np.empty(p),
        empty_candidates(p),
        _Loadings(np.empty(p, np.intp), np.empty(p, np.intp), np.empty(p)),
        _Loadings(index_range(p), np.empty(0, np.intp), start.v.copy()),
        empty_screen(residual, n, p, history.copies),
    )
    _deflate_start(residual, work.image, start.v)
    end = _iterate(residual, norms, settings, history, record, work)
    if end.n_iter == 0:
        return np.zeros(n), np.empty(0, np.intp), np.empty(0), 0.0, 0, True
    m, v = end.n_loaded, work.v
    scale = _sparse_dot(work.slopes, v.positions[:m], v.weights)
    indices, weights = v.indices[:m].copy(), v.weights[:m].copy()
    _choose_sign(work.u, weights)
    return work.u, indices, weights, scale, end.n_iter, end.converged


@jit(allocates=False)
def _iterate(
    residual: Residual,
    norms: ColumnNorms,
    settings: AlternationSettings,
    history: SlopeHistory,
    record: IterateRecord,
    work: _Workspace,
) -> _Iterations:
    """Iterate until convergence, and write the component to `work`.

    The parameters are those of `alternate`.
    """
    u, image, v, old_v = work.u, work.image, work.v, work.old_v
    count, old_count, within, depth = 0, v.weights.size, no_screen(), -1.0
    for t in range(settings.max_iter):
        orthogonalise(image, residual.orthogonal_to)
        # If the norm of the image does not exceed rounding error, the direction of the image, and
        # so u, is undefined.
        norm = np.sqrt(dot(image, image))
        if norm <= settings.noise:
            return _Iterations(0, 0, True)
        copy_into(work.old_u, u)
        _write_quotients(image, norm, u)
        move = euclidean_distance(u, work.old_u) if t > 0 else 0.0
        found, within, is_screened = _screened_threshold(
            residual, norms, history, t, (settings.l1_bound, depth, move), within, work
        )
        if not is_screened:
            found = _threshold_of_all_slopes(residual, history, t, settings.l1_bound, depth, work)
        depth = found.active_depth
        if t < record.thresholds.size:
            copy_into(record.scores[t], u)
            record.thresholds[t] = found.largest - depth
        if found.largest == 0.0:
            return _Iterations(0, 0, True)
        count = threshold_candidates(
            work.slopes,
            work.candidates,
            found.n_candidates,
            depth,
            settings.l1_bound,
            v.positions,
            v.weights,
        )
        if is_screened:
            within_columns = v.positions[:count]
            write_screened_image(
                residual,
                work.screen,
                within,
                history.copies,
                within_columns,
                v.weights,
                image,
            )
            for k in range(count):
                v.indices[k] = work.screen.columns[v.positions[k]]
        else:
            copy_into(v.indices, v.positions[:count])
            _write_image(residual, v.indices[:count], v.weights, image)
            # The radius of the new screen is derived from the last change of u. In the first
            # iteration, there is no previous u, so no screen is made.
            within = no_screen()
            if t > 0:
                threshold = found.largest - depth
                within = plan_from_slopes(work.slopes, threshold, norms, move, work.screen.columns)
            if within.n_columns > 0:
                within = write_screen(residual, work.screen, within, u, history.copies)
        change = l1_distance(old_v.indices[:old_count], old_v.weights, v.indices[:count], v.weights)
        if change <= settings.tol:
            return _Iterations(count, t + 1, True)
        copy_into(old_v.indices, v.indices[:count])
        copy_into(old_v.weights, v.weights[:count])
        old_count = count
    return _Iterations(count, settings.max_iter, False)


@jit(allocates=False)
def _screened_threshold(
    residual: Residual,
    norms: ColumnNorms,
    history: SlopeHistory,
    t: int,
    search: tuple[float, float, float],
    within: ScreenRange,
    work: _Workspace,
) -> tuple[Threshold, ScreenRange, bool]:
    """Compute the slopes of the columns of a screen at u, and their soft threshold.

    The screen of the previous iterations is used. If it is not valid at u, a new screen is made
    from the basis (for many samples) or, if too many columns remain, from bounds.

    Parameters
    ----------
    residual, norms, history, work
        Those of `_iterate`.
    t : int
        Number of the iteration.
    search : tuple of float
        The argument of `plan_from_basis`.
    within : ScreenRange
        Range of the screen of the previous iterations.

    Returns
    -------
    found : Threshold
        The threshold.
    within : ScreenRange
        Range of the screen.
    is_valid : bool
        Whether the screen contains all columns with slopes above the threshold.
    """
    found, screen = Threshold(0.0, -1.0, 0), work.screen
    if within.radius >= 0.0 and euclidean_distance(work.u, screen.anchor) <= within.radius:
        found = _threshold_of_screen(residual, history, search, within, work)
    if found.active_depth < 0.0 and has_vectors(history.basis):
        within = plan_from_basis(
            residual,
            norms,
            history.basis,
            work.u,
            search,
            work.slopes,
            work.candidates,
            screen.columns,
        )
        if within.n_columns > 0:
            within = write_screen(residual, screen, within, work.u, history.copies)
            found = _threshold_of_screen(residual, history, search, within, work)
    if found.active_depth < 0.0 and has_bounds(history.bounds, t):
        within = plan_from_bounds(norms, history.bounds, t, work.u, screen.columns)
        if within.n_columns > 0:
            anchor = history.bounds.scores[t]
            within = write_screen(residual, screen, within, anchor, history.copies)
            found = _threshold_of_screen(residual, history, search, within, work)
    return found, within, found.active_depth >= 0.0


@jit(allocates=False)
def _threshold_of_screen(
    residual: Residual,
    history: SlopeHistory,
    search: tuple[float, float, float],
    within: ScreenRange,
    work: _Workspace,
) -> Threshold:
    """Compute the slopes of the columns of a screen at u, and return their soft threshold."""
    slopes, (l1_bound, previous_depth, _) = work.slopes[: within.n_columns], search
    write_screened_slopes(residual, work.screen, within, history.copies, work.u, slopes)
    return find_threshold(slopes, l1_bound, previous_depth, within.slope_bound, work.candidates)


@jit()
def _deflate_start(residual: Residual, image: Float, v: Float) -> None:
    """Replace Xv, in place, by Rv, where X is the centred data, R the residual and v is dense."""
    for k in range(residual.scores.shape[0]):
        # Features with a loading of zero do not change the sum, so its rounding errors do not
        # depend on which other columns are in a working set.
        projection, scores = dot(residual.loadings[k], v), residual.scores[k]
        for i in range(image.size):
            image[i] -= projection * scores[i]
    correct_image(residual.corrections, image, v)


@jit(allocates=False)
def _choose_sign(u: Float, weights: Float) -> None:
    """Reverse the signs of u and of the loadings, in place, if the largest loading is negative.

    The largest loading is the first of those with the largest absolute value.
    """
    largest = 0.0
    for weight in weights:
        if abs(weight) > abs(largest):
            largest = weight
    if largest < 0.0:
        for i in range(u.size):
            u[i] = -u[i]
        for k in range(weights.size):
            weights[k] = -weights[k]


# Division as in numpy raises no errors, so the loop can be vectorised.
@jit(error_model="numpy")
def _write_quotients(vector: Float, divisor: float, out: Float) -> None:
    """Write the entries of a vector, divided by a number, to `out`."""
    for i in range(vector.size):
        out[i] = vector[i] / divisor


@jit(allocates=False)
def _threshold_of_all_slopes(
    residual: Residual,
    history: SlopeHistory,
    t: int,
    l1_bound: float,
    previous_depth: float,
    work: _Workspace,
) -> Threshold:
    """Compute the slopes R'u of all columns of the residual R; return their soft threshold.

    The search for the active depth starts from `previous_depth`, the active depth of the previous
    iteration. The slopes X'u are added to the basis, and their bounds are stored as those of
    iteration t.
    """
    u, slopes = work.u, work.slopes
    write_transposed_product(residual.X, residual.by_columns, residual.offsets, u, slopes)
    # Slopes of X itself can be used in later runs even if the earlier components are different.
    add_to_basis(history.basis, u, slopes)
    write_bounds(history.bounds, t, u, slopes)
    deflate_slopes(residual.scores, residual.loadings, residual.corrections, slopes, u)
    found = find_threshold(slopes, l1_bound, previous_depth, 0.0, work.candidates)
    write_threshold(history.bounds, t, found.largest - found.active_depth)
    return found


@jit(allocates=False)
def _write_image(residual: Residual, indices: Index, weights: Float, image: Float) -> None:
    """Write the residual matrix times a sparse vector v to `image`.

    `indices` and `weights` are the indices and values of the non-zero entries of v.
    """
    X, by_columns = residual.X, residual.by_columns
    write_product(X, by_columns, residual.offsets, indices, weights, image)
    subtract_components_from_image(residual.scores, residual.loadings, image, indices, weights)
    n_corrections = residual.corrections.values.size
    if n_corrections > 0:
        p = residual.offsets.size
        correct_image_of_sparse(residual.corrections, n_corrections, image, p, indices, weights)


@jit(allocates=False)
def _sparse_dot(values: Float, indices: Index, weights: Float) -> float:
    """Return the inner product of a dense vector and a sparse vector.

    `indices` and `weights` are the positions and values of the non-zero entries of the sparse
    vector.
    """
    total = 0.0
    for k in range(indices.size):
        total += values[indices[k]] * weights[k]
    return total
