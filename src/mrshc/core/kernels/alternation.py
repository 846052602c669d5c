"""The alternation between scores u and a sparse direction v of one component."""

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
    has_bounds,
    no_screen,
    screen_around,
    screen_from_trace,
    screened_slopes,
    write_trace,
)
from mrshc.core.kernels.sparse_direction import (
    find_active_depth,
    largest_slope,
    threshold_slopes,
)
from mrshc.core.kernels.vectors import distance, dot, l1_distance


class Start(NamedTuple):
    """The vector from which an alternation starts."""

    v: Float  # (p,)
    image: Float  # (n,), the residual times v, without its cell corrections


class AlternationSettings(NamedTuple):
    """The L1 bound of a component, and when its alternation ends."""

    l1_bound: float
    max_iter: int
    tol: float  # converged when v moves by no more in L1 norm
    noise: float  # norm of the residual times v that counts as zero


class Record(NamedTuple):
    """The iterates u and the slopes above which columns were selected, to be certified later."""

    scores: Float  # (T, n)
    thresholds: Float  # (T,), negative: iteration not reached


class Alternation(NamedTuple):
    """The component that an alternation ends with; no indices where nothing is left of X."""

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
    start: Start,
    settings: AlternationSettings,
    trace: Trace,
    record: Record,
) -> Alternation:
    """Alternate u = Rv / |Rv| and v = soft(R'u, delta) / |.|_2 until v no longer moves.

    R is the residual, `column_norms` those of the columns of X. Only the columns of a screen take
    part in most iterations. The trace of an alternation at a similar L1 bound provides further
    screens and is overwritten; the record is written to.
    """
    n, p = start.image.size, start.v.size
    norms = ColumnNorms(column_norms, correction_norms(residual.corrections, p))
    u, image = np.zeros(n), start.image.copy()
    correct_image(residual.corrections, image, start.v)
    indices, weights, scale, depth = np.arange(p), start.v, 0.0, -1.0
    screen = no_screen(residual.X)
    n_iter, converged = 0, False
    while n_iter < settings.max_iter and not converged:
        if residual.orthogonal:
            image = orthogonalise(image, residual.scores)
        norm = np.sqrt(dot(image, image))
        if norm <= settings.noise:
            return _no_component(n)
        old_u, old_indices, old_weights = u, indices, weights
        u = image / norm
        slopes = screened_slopes(residual, screen, u, settings.l1_bound, depth)
        if slopes.active_depth < 0.0 and has_bounds(trace, n_iter):
            screen = screen_from_trace(residual, norms, trace, n_iter, u)
            slopes = screened_slopes(residual, screen, u, settings.l1_bound, depth)
        screened = slopes.active_depth >= 0.0
        if not screened:
            slopes = _all_slopes(residual, u, settings.l1_bound, depth, trace, n_iter)
            screen = no_screen(residual.X)
            if n_iter > 0 and slopes.largest > 0.0:
                screen = screen_around(residual, norms, slopes, u, distance(u, old_u))
        depth = slopes.active_depth
        _write_record(record, n_iter, u, slopes.largest - depth)
        if slopes.largest == 0.0:
            return _no_component(n)
        positions, weights = threshold_slopes(
            slopes.values, slopes.largest, depth, settings.l1_bound
        )
        scale = _sparse_dot(slopes.values, positions, weights)
        if screened:
            indices = screen.columns[positions]
            image = _screened_image(residual, screen, positions, weights)
        else:
            indices = positions
            image = _image(residual, indices, weights)
        n_iter += 1
        converged = l1_distance(old_indices, old_weights, indices, weights) <= settings.tol
    return Alternation(u, indices, weights, scale, n_iter, converged)


@jit()
def _no_component(n: int) -> Alternation:
    return Alternation(np.zeros(n), np.empty(0, np.intp), np.empty(0), 0.0, 0, True)


@jit()
def _all_slopes(
    residual: Residual, u: Float, l1_bound: float, last_depth: float, trace: Trace, t: int
) -> Slopes:
    """Return the slopes of all columns and their threshold, and write the trace of iteration t."""
    slopes = multiply_transposed(residual.X, residual.by_columns, residual.offsets, u)
    if t < trace.units.size:
        write_trace(trace, t, u, slopes)
    deflate_slopes(residual, residual.loadings, residual.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest == 0.0:
        return Slopes(slopes, 0.0, 0.0)
    depth = find_active_depth(slopes, largest, l1_bound, last_depth, largest)
    if t < trace.units.size:
        trace.thresholds[t] = largest - depth
    return Slopes(slopes, largest, depth)


@jit()
def _sparse_dot(values: Float, indices: Index, weights: Float) -> float:
    total = 0.0
    for k in range(indices.size):
        total += values[indices[k]] * weights[k]
    return total


@jit()
def _image(residual: Residual, indices: Index, weights: Float) -> Float:
    """Return the residual times a sparse v."""
    image = multiply(residual.X, residual.by_columns, residual.offsets, indices, weights)
    deflate_image(residual, residual.loadings, residual.corrections, image, indices, weights)
    return image


@jit()
def _screened_image(residual: Residual, screen: Screen, positions: Index, weights: Float) -> Float:
    """Return the residual times a sparse v, given by positions among the screen's columns."""
    image = multiply(screen.packed, False, screen.offsets, positions, weights)
    deflate_image(residual, screen.loadings, screen.corrections, image, positions, weights)
    return image


@jit()
def _write_record(record: Record, t: int, u: Float, threshold: float) -> None:
    if t < record.thresholds.size:
        record.scores[t] = u
        record.thresholds[t] = threshold
