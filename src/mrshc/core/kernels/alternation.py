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
from mrshc.core.kernels.column_copies import screen_times
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import multiply, multiply_transposed
from mrshc.core.kernels.residual import (
    Residual,
    correct_image,
    deflate_image,
    deflate_slopes,
    orthogonalise,
)
from mrshc.core.kernels.screening import (
    ColumnNorms,
    Screen,
    Slopes,
    Trace,
    bound_added_norms,
    empty_screen,
    has_bounds,
    pack_screen,
    plan_from_basis,
    plan_from_slopes,
    plan_from_trace,
    refer_screen,
    screened_slopes,
    write_trace,
)
from mrshc.core.kernels.slope_basis import add_to_basis, has_vectors
from mrshc.core.kernels.sparse_direction import (
    find_active_depth,
    largest_slope,
    threshold_slopes,
)
from mrshc.core.kernels.vectors import (
    copy_into,
    dot,
    euclidean_distance,
    index_range,
    l1_distance,
    take,
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


class Alternation(NamedTuple):
    """The sparse component that the alternating algorithm returns.

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
    trace: Trace,
    record: IterateRecord,
) -> Alternation:
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
    trace : Trace
        Upper bounds of the slopes in the iterations of a previous run at a similar L1 bound. The
        bounds are used to exclude columns. If an iteration of this run computes all slopes, the
        bounds of that iteration are overwritten.
    record : IterateRecord
        Output. The scores u and the soft threshold of iteration t are written to row t, for as many
        iterations as `record` has rows.

    Returns
    -------
    Alternation
        The component.
    """
    n, p = start.image.size, start.v.size
    norms = ColumnNorms(column_norms, bound_added_norms(residual, p))
    u, image = np.zeros(n), start.image.copy()
    _deflate_start(residual, image, start.v)
    indices, weights, scale, depth = index_range(p), start.v, 0.0, -1.0
    screen = empty_screen(residual.X, trace.no_rows)
    no_slopes = np.empty(0)
    n_iter, converged = 0, False
    # The functions are called with t, not with `n_iter`: numba would compile them twice, for the
    # constant 0 and for integers.
    for t in range(settings.max_iter):
        orthogonalise(image, residual.orthogonal_to)
        # If the norm of the image does not exceed rounding error, the direction of the image, and
        # so u, is undefined.
        norm = np.sqrt(dot(image, image))
        if norm <= settings.noise:
            return _empty_component(n)
        old_u, old_indices, old_weights = u, indices, weights
        u = np.empty(n)
        _write_quotients(image, norm, u)
        # Try the cheapest computation first: use the screen of the previous iterations. If that
        # screen is not valid at u, use a screen made from the basis (for many samples) or from the
        # bounds of the trace. If that screen is not valid either, use all columns.
        slopes = Slopes(no_slopes, 0.0, -1.0)
        if screen.radius >= 0.0 and euclidean_distance(u, screen.anchor) <= screen.radius:
            slopes = screened_slopes(residual.scores, screen, u, settings.l1_bound, depth)
        if slopes.active_depth < 0.0 and has_vectors(trace.basis):
            move = euclidean_distance(u, old_u) if t > 0 else 0.0
            plan = plan_from_basis(residual, norms, trace.basis, u, move, settings.l1_bound, depth)
            if plan.columns.size > 0:
                screen = refer_screen(residual, plan, u, trace.copies, trace.no_rows)
                slopes = screened_slopes(residual.scores, screen, u, settings.l1_bound, depth)
        if slopes.active_depth < 0.0 and has_bounds(trace, t):
            plan = plan_from_trace(norms, trace, t, u)
            if plan.columns.size > 0:
                screen = pack_screen(residual, plan, trace.scores[t].copy(), trace.no_rows)
                slopes = screened_slopes(residual.scores, screen, u, settings.l1_bound, depth)
        is_screened = slopes.active_depth >= 0.0
        if not is_screened:
            slopes = _compute_all_slopes(residual, u, settings.l1_bound, depth, trace, t)
            # The radius of the new screen is derived from the last change of u. In the first
            # iteration, there is no previous u, so no screen is made.
            if t > 0 and slopes.largest > 0.0:
                plan = plan_from_slopes(
                    slopes.values,
                    slopes.largest - slopes.active_depth,
                    norms,
                    euclidean_distance(u, old_u),
                )
                if plan.columns.size > 0:
                    screen = pack_screen(residual, plan, u, trace.no_rows)
        depth = slopes.active_depth
        _write_record(record, t, u, slopes.largest - depth)
        if slopes.largest == 0.0:
            return _empty_component(n)
        positions, weights = threshold_slopes(
            slopes.values, slopes.largest, depth, settings.l1_bound
        )
        scale = _sparse_dot(slopes.values, positions, weights)
        if is_screened:
            indices = take(screen.columns, positions)
            image = _residual_times_screened(residual.scores, screen, positions, weights)
        else:
            indices = positions
            image = _residual_times(residual, indices, weights)
        n_iter = t + 1
        converged = l1_distance(old_indices, old_weights, indices, weights) <= settings.tol
        if converged:
            break
    _choose_sign(u, weights)
    return Alternation(u, indices, weights, scale, n_iter, converged)


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


@jit()
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


@jit()
def _empty_component(n: int) -> Alternation:
    """Return the component of a residual that is zero except for rounding errors.

    The n scores of the component are zero, and the component has no non-zero loadings.
    """
    return Alternation(np.zeros(n), np.empty(0, np.intp), np.empty(0), 0.0, 0, True)


@jit()
def _compute_all_slopes(
    residual: Residual, u: Float, l1_bound: float, previous_depth: float, trace: Trace, t: int
) -> Slopes:
    """Return the slopes R'u of all columns of the residual R, and the active depth.

    The active depth is the largest absolute slope minus the soft threshold. The search for the
    active depth starts from `previous_depth`, the active depth of the previous iteration. `t` is
    the number of the iteration, starting at 0. If `trace` has a row t, upper bounds of the slopes
    are written to this row, so that later runs can exclude columns.
    """
    slopes = multiply_transposed(residual.X, residual.by_columns, residual.offsets, u)
    # Write the trace before the earlier components are subtracted. Bounds of the slopes of X itself
    # can be used in later runs even if the earlier components are different.
    if t < trace.units.size:
        write_trace(trace, t, u, slopes)
    add_to_basis(trace.basis, u, slopes)
    deflate_slopes(residual.scores, residual.loadings, residual.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest == 0.0:
        return Slopes(slopes, 0.0, 0.0)
    depth = find_active_depth(slopes, largest, l1_bound, previous_depth, largest)
    if t < trace.units.size:
        trace.thresholds[t] = largest - depth
    return Slopes(slopes, largest, depth)


@jit()
def _sparse_dot(values: Float, indices: Index, weights: Float) -> float:
    """Return the inner product of a dense vector and a sparse vector.

    `indices` and `weights` are the positions and values of the non-zero entries of the sparse
    vector.
    """
    total = 0.0
    for k in range(indices.size):
        total += values[indices[k]] * weights[k]
    return total


@jit()
def _residual_times(residual: Residual, indices: Index, weights: Float) -> Float:
    """Return the residual matrix times a sparse vector v, whose entries at `indices` are `weights`.

    The other entries of v are zero.
    """
    image = multiply(residual.X, residual.by_columns, residual.offsets, indices, weights)
    deflate_image(residual.scores, residual.loadings, residual.corrections, image, indices, weights)
    return image


@jit()
def _residual_times_screened(
    scores: Float, screen: Screen, positions: Index, weights: Float
) -> Float:
    """Return the residual matrix times a sparse vector v, computed from the columns of a screen.

    A screen contains copies of some columns of the data, including all columns in which v is not
    zero. `scores` are those of the components that are subtracted from the data. `positions` are
    the positions of the non-zero entries of v among the columns of the screen, and `weights` are
    the values of these entries.
    """
    image = screen_times(screen.packed, screen.rows, screen.offsets, positions, weights)
    deflate_image(scores, screen.loadings, screen.corrections, image, positions, weights)
    return image


@jit()
def _write_record(record: IterateRecord, t: int, u: Float, threshold: float) -> None:
    # The record has no rows if the component need not be certified.
    if t < record.thresholds.size:
        copy_into(record.scores[t], u)
        record.thresholds[t] = threshold
