"""The alternation between scores u and a sparse direction v of one sparse component.

Witten, Tibshirani and Hastie (2009), with the soft threshold found exactly
(:mod:`~mrshc.core.kernels.sparse_direction`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import multiply, multiply_transposed
from mrshc.core.kernels.residual import (
    Residual,
    correct_image,
    correction_norms,
    deflate_image,
    deflate_slopes,
    orthogonalise,
)
from mrshc.core.kernels.screening import (
    ColumnNorms,
    Screen,
    Slopes,
    Trace,
    empty_screen,
    has_bounds,
    screen_from_slopes,
    screen_from_trace,
    screened_slopes,
    write_trace,
)
from mrshc.core.kernels.sparse_direction import (
    find_active_depth,
    largest_slope,
    threshold_slopes,
)
from mrshc.core.kernels.vectors import dot, euclidean_distance, l1_distance


class AlternationStart(NamedTuple):
    """The vector from which an alternation starts."""

    v: Float  # (p,)
    image: Float  # (n,), the residual times v, without its cell corrections


class AlternationSettings(NamedTuple):
    """The L1 bound of a component and the stopping criteria of its alternation."""

    l1_bound: float
    max_iter: int
    tol: float  # converged when v changes by at most this much in L1 norm
    noise: float  # norm of the residual times v up to which it is rounding error


class IterateRecord(NamedTuple):
    """The iterates u and their soft thresholds, with which a component is certified later."""

    scores: Float  # (T, n)
    thresholds: Float  # (T,); negative for iterations that were not reached


class Alternation(NamedTuple):
    """The component at the end of an alternation; without indices if the residual is zero."""

    u: Float  # (n,), unit norm
    indices: Index  # (m,), increasing
    weights: Float  # (m,), v at these indices
    scale: float  # u'Xv
    n_iter: int
    converged: bool


@jit()
def alternate(
    residual: Residual,
    column_norms: Float,
    start: AlternationStart,
    settings: AlternationSettings,
    trace: Trace,
    record: IterateRecord,
) -> Alternation:
    """Alternate u = Rv / |Rv| and v = soft(R'u, delta) / |.|_2 until v no longer changes.

    Most iterations compute only the slopes of the columns of a screen. The results are the same,
    to the last digit, as with all columns.

    Parameters
    ----------
    residual : Residual
        The matrix R: the data minus the earlier components.
    column_norms : array of shape (p,)
        Euclidean norms of the columns of X.
    start : Start
        The first v.
    settings : AlternationSettings
        L1 bound and stopping criteria.
    trace : Trace
        Bounds of an alternation at a similar L1 bound, which provide further screens. They are
        overwritten with those of this alternation.
    record : Record
        Iterates and thresholds are written to it, as many as it has rows.

    Returns
    -------
    Alternation
        The component.
    """
    n, p = start.image.size, start.v.size
    norms = ColumnNorms(column_norms, correction_norms(residual.corrections, p))
    u, image = np.zeros(n), start.image.copy()
    correct_image(residual.corrections, image, start.v)
    indices, weights, scale, depth = np.arange(p), start.v, 0.0, -1.0
    screen = empty_screen(residual.X)
    n_iter, converged = 0, False
    while n_iter < settings.max_iter and not converged:
        if residual.orthogonal:
            image = orthogonalise(image, residual.scores)
        # u is the direction of the image: without a norm above rounding error it has none.
        norm = np.sqrt(dot(image, image))
        if norm <= settings.noise:
            return _empty_component(n)
        old_u, old_indices, old_weights = u, indices, weights
        u = image / norm
        # From cheap to expensive: the screen of the last iterations, a screen from the trace, and
        # at last all columns, if neither screen is valid at u.
        slopes = screened_slopes(residual, screen, u, settings.l1_bound, depth)
        if slopes.active_depth < 0.0 and has_bounds(trace, n_iter):
            screen = screen_from_trace(residual, norms, trace, n_iter, u)
            slopes = screened_slopes(residual, screen, u, settings.l1_bound, depth)
        is_screened = slopes.active_depth >= 0.0
        if not is_screened:
            slopes = _compute_all_slopes(residual, u, settings.l1_bound, depth, trace, n_iter)
            screen = empty_screen(residual.X)
            # In the first iteration there is no previous u, and so no estimate of the next move.
            if n_iter > 0 and slopes.largest > 0.0:
                screen = screen_from_slopes(
                    residual, norms, slopes, u, euclidean_distance(u, old_u)
                )
        depth = slopes.active_depth
        _write_record(record, n_iter, u, slopes.largest - depth)
        if slopes.largest == 0.0:
            return _empty_component(n)
        positions, weights = threshold_slopes(
            slopes.values, slopes.largest, depth, settings.l1_bound
        )
        scale = _sparse_dot(slopes.values, positions, weights)
        if is_screened:
            indices = screen.columns[positions]
            image = _residual_times_screened(residual, screen, positions, weights)
        else:
            indices = positions
            image = _residual_times(residual, indices, weights)
        n_iter += 1
        converged = l1_distance(old_indices, old_weights, indices, weights) <= settings.tol
    return Alternation(u, indices, weights, scale, n_iter, converged)


@jit()
def _empty_component(n: int) -> Alternation:
    """Return the component of a residual that is zero, up to rounding."""
    return Alternation(np.zeros(n), np.empty(0, np.intp), np.empty(0), 0.0, 0, True)


@jit()
def _compute_all_slopes(
    residual: Residual, u: Float, l1_bound: float, previous_depth: float, trace: Trace, t: int
) -> Slopes:
    """Return the slopes of all columns and their threshold, and write row t of the trace."""
    slopes = multiply_transposed(residual.X, residual.by_columns, residual.offsets, u)
    # Before deflation: bounds on the slopes of X serve whatever the earlier components are.
    if t < trace.units.size:
        write_trace(trace, t, u, slopes)
    deflate_slopes(residual, residual.loadings, residual.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest == 0.0:
        return Slopes(slopes, 0.0, 0.0)
    depth = find_active_depth(slopes, largest, l1_bound, previous_depth, largest)
    if t < trace.units.size:
        trace.thresholds[t] = largest - depth
    return Slopes(slopes, largest, depth)


@jit()
def _sparse_dot(values: Float, indices: Index, weights: Float) -> float:
    """Return the inner product of a dense vector and one that is `weights` at `indices`."""
    total = 0.0
    for k in range(indices.size):
        total += values[indices[k]] * weights[k]
    return total


@jit()
def _residual_times(residual: Residual, indices: Index, weights: Float) -> Float:
    """Return the residual times the v that is `weights` at `indices`."""
    image = multiply(residual.X, residual.by_columns, residual.offsets, indices, weights)
    deflate_image(residual, residual.loadings, residual.corrections, image, indices, weights)
    return image


@jit()
def _residual_times_screened(
    residual: Residual, screen: Screen, positions: Index, weights: Float
) -> Float:
    """Return the residual times a sparse v, given by positions among the columns of a screen."""
    image = multiply(screen.packed, False, screen.offsets, positions, weights)
    deflate_image(residual, screen.loadings, screen.corrections, image, positions, weights)
    return image


@jit()
def _write_record(record: IterateRecord, t: int, u: Float, threshold: float) -> None:
    # A record without rows is given where nothing is to be certified.
    if t < record.thresholds.size:
        record.scores[t] = u
        record.thresholds[t] = threshold
