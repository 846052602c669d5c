"""Screening of columns: those that can exceed the soft threshold for all u near an anchor.

If u changes by a vector of norm d, the slope of a column, its inner product with u, changes by at
most d times the norm of the column. A screen holds a copy of the columns that can exceed the
threshold within some distance of an anchor, so that an iteration reads these columns only.
Iterations outside this distance compute the slopes of all columns again. Results are the same as
without screening, to the last digit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import multiply_transposed_rows
from mrshc.core.kernels.residual import CellCorrections, Residual, deflate_slopes
from mrshc.core.kernels.sparse_direction import find_active_depth, largest_slope
from mrshc.core.kernels.vectors import euclidean_distance

# These three constants affect the speed only: a screen never changes a result.
# Radius of a screen as a multiple of the last change of u: the changes of an alternation that
# converges decrease about geometrically, so that the sum of all further ones is of that order.
_RADIUS_FACTOR = 3.0
# Fraction by which the threshold may decrease before a screen is no longer valid.
_THRESHOLD_MARGIN = 0.05
# A screen with more than this fraction of the columns is not made: to copy them would cost more
# time than it saves. It also limits the memory of a screen to an eighth of X.
_MAX_FRACTION = 0.125

# Bounds of slopes are stored as bytes, in units of 1/254 of the largest slope: the largest becomes
# 255 when rounded up, which a byte can hold.
_N_BOUND_STEPS = 254.0


class ColumnNorms(NamedTuple):
    """Euclidean norms of the columns of X and of the corrections of their cells."""

    data: Float  # (p,)
    corrections: Float  # (p,)


class Slopes(NamedTuple):
    """Slopes of some columns and the soft threshold among them."""

    values: Float  # (m,)
    largest: float  # in absolute value
    active_depth: float  # largest minus threshold; negative if these columns do not determine it


class Screen(NamedTuple):
    """The columns that can exceed the threshold for every u within `radius` of an anchor."""

    columns: Index  # (m,), increasing
    packed: NDArray[Any]  # (n, m), these columns of X
    offsets: Float  # (m,)
    loadings: Float  # (k, m)
    corrections: CellCorrections  # of these columns
    anchor: Float  # (n,)
    radius: float  # negative for an empty screen, which is valid nowhere
    slope_bound: float  # within the radius, no other column has a slope above it


class Trace(NamedTuple):
    """Upper bounds of all slopes of X in the iterations of an earlier alternation.

    In iteration t, u was `scores[t]` and no slope of X exceeded `quantised_bounds[t] * units[t]`.
    An alternation at a similar L1 bound has a similar u, and derives screens from these bounds.
    One byte for each slope limits the memory.
    """

    scores: Float  # (T, n)
    quantised_bounds: NDArray[np.uint8]  # (T, p)
    units: Float  # (T,)
    thresholds: Float  # (T,), soft threshold; negative where not all slopes were computed


@jit()
def empty_screen(X: NDArray[Any]) -> Screen:
    """Return a screen without columns, which is valid for no u."""
    # Compiled code has no None of the same type: a negative radius takes its place.
    packed = np.empty((0, 0), X.dtype)
    indices, values = np.empty(0, np.intp), np.empty(0)
    corrections = CellCorrections(indices, indices, values)
    return Screen(indices, packed, values, np.empty((0, 0)), corrections, values, -1.0, 0.0)


@jit()
def screened_slopes(
    residual: Residual, screen: Screen, u: Float, l1_bound: float, previous_depth: float
) -> Slopes:
    """Return the slopes of the columns of a screen, with the threshold if they determine it.

    Parameters
    ----------
    residual : Residual
        The residual whose slopes are computed.
    screen : Screen
        The columns.
    u : array of shape (n,)
        The scores.
    l1_bound : float
        L1 bound of the direction v.
    previous_depth : float
        Active depth of the previous iteration, from which the search starts; negative if unknown.

    Returns
    -------
    Slopes
        Its active depth is negative if the screen is not valid for u, or the threshold is not
        above the slopes that other columns may have.
    """
    if screen.radius < 0.0 or euclidean_distance(u, screen.anchor) > screen.radius:
        return Slopes(np.empty(0), 0.0, -1.0)
    slopes = multiply_transposed_rows(screen.packed, screen.offsets, u)
    deflate_slopes(residual, screen.loadings, screen.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest <= screen.slope_bound:
        return Slopes(slopes, largest, -1.0)
    # A threshold below the slope bound could be exceeded by columns outside the screen.
    max_depth = largest - screen.slope_bound
    depth = find_active_depth(slopes, largest, l1_bound, previous_depth, max_depth)
    return Slopes(slopes, largest, depth)


@jit()
def screen_from_slopes(
    residual: Residual, norms: ColumnNorms, slopes: Slopes, u: Float, last_move: float
) -> Screen:
    """Return a screen with the anchor u from the slopes of all columns; empty if it is large.

    Parameters
    ----------
    residual : Residual
        The residual.
    norms : ColumnNorms
        Norms of its columns.
    slopes : Slopes
        The slopes of all columns at u.
    u : array of shape (n,)
        The anchor.
    last_move : float
        Norm of the last change of u.
    """
    radius = _RADIUS_FACTOR * last_move
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * (slopes.largest - slopes.active_depth)
    # The triangle inequality: the norm of a sum is at most the sum of the norms.
    total_norms = norms.data + norms.corrections
    columns = _candidate_columns(slopes.values, total_norms, residual.loadings, radius, slope_bound)
    if columns.size > _MAX_FRACTION * slopes.values.size:
        return empty_screen(residual.X)
    return _pack_screen(residual, columns, u, radius, slope_bound)


@jit()
def _candidate_columns(
    slopes: Float, norms: Float, loadings: Float, radius: float, slope_bound: float
) -> Index:
    """Return the columns whose slope may reach `slope_bound` within `radius`, increasing."""
    candidates = np.empty(slopes.size, np.intp)
    count = 0
    for j in range(slopes.size):
        # An upper bound of the norm of the residual column: scores are unit vectors.
        norm = norms[j]
        for k in range(loadings.shape[0]):
            norm += abs(loadings[k, j])
        # Written first and accepted by the count, so that the loop has no branch.
        candidates[count] = j
        count += abs(slopes[j]) + norm * radius >= slope_bound
    return candidates[:count].copy()


@jit()
def has_bounds(trace: Trace, t: int) -> bool:
    """Return whether an earlier alternation computed all slopes in iteration t."""
    return t < trace.units.size and trace.thresholds[t] > 0.0


@jit()
def screen_from_trace(
    residual: Residual, norms: ColumnNorms, trace: Trace, t: int, u: Float
) -> Screen:
    """Return a screen valid at u from the bounds of an earlier alternation; empty if it is large.

    Parameters
    ----------
    residual : Residual
        The residual.
    norms : ColumnNorms
        Norms of its columns.
    trace : Trace
        Bounds of the earlier alternation.
    t : int
        Iteration, for which the trace has bounds.
    u : array of shape (n,)
        The scores, at any distance from those of the trace: the radius is that distance.
    """
    radius = euclidean_distance(u, trace.scores[t])
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * trace.thresholds[t]
    bounds, unit = trace.quantised_bounds[t], trace.units[t]
    # Arrays are taken out of named tuples before a loop: numba would update their reference counts
    # in each iteration.
    data, corrections, loadings = norms.data, norms.corrections, residual.loadings
    max_columns = int(_MAX_FRACTION * data.size)
    columns = np.empty(max_columns + 1, np.intp)
    count = 0
    for j in range(data.size):
        is_candidate = bounds[j] * unit + data[j] * radius + corrections[j] >= slope_bound
        # The bounds are those of X, not of the residual: columns with loadings are always kept.
        if is_candidate or _has_loading(loadings, j):
            if count == max_columns:
                return empty_screen(residual.X)
            columns[count] = j
            count += 1
    return _pack_screen(
        residual, columns[:count].copy(), trace.scores[t].copy(), radius, slope_bound
    )


@jit()
def _has_loading(loadings: Float, j: int) -> bool:
    """Return whether an earlier component has a loading in column j."""
    for k in range(loadings.shape[0]):  # noqa: SIM110 - numba does not compile generators
        if loadings[k, j] != 0.0:
            return True
    return False


@jit()
def write_trace(trace: Trace, t: int, u: Float, slopes: Float) -> None:
    """Write u, (n,), and upper bounds of the slopes of X, (p,), to row t of a trace."""
    # Positive, so that divisions are defined where all slopes are zero, and far below any other.
    unit = max(largest_slope(slopes) / _N_BOUND_STEPS, 1e-300)
    trace.scores[t] = u
    trace.units[t] = unit
    # Not valid until the threshold is known, which the caller computes after deflation.
    trace.thresholds[t] = -1.0
    bounds = trace.quantised_bounds[t]
    for j in range(slopes.size):
        # Conversion truncates: one more makes it an upper bound.
        bounds[j] = np.uint8(abs(slopes[j]) / unit + 1.0)


@jit()
def _pack_screen(
    residual: Residual, columns: Index, anchor: Float, radius: float, slope_bound: float
) -> Screen:
    """Return a screen with copies of some columns and of all that belongs to them."""
    packed = _pack_columns(residual.X, residual.by_columns, columns)
    loadings = residual.loadings[:, columns]
    offsets = residual.offsets[columns]
    corrections = _select_corrections(residual.corrections, columns, residual.offsets.size)
    return Screen(columns, packed, offsets, loadings, corrections, anchor, radius, slope_bound)


@jit()
def _pack_columns(X: NDArray[Any], by_columns: bool, columns: Index) -> NDArray[Any]:
    """Return a copy of some columns of X, of shape (n, m), stored by rows."""
    n = X.shape[1] if by_columns else X.shape[0]
    out = np.empty((n, columns.size), X.dtype)
    if by_columns:
        for k in range(columns.size):
            j = columns[k]
            for i in range(n):
                out[i, k] = X[j, i]
    else:
        for i in range(n):
            row, packed = X[i], out[i]
            for k in range(columns.size):
                packed[k] = row[columns[k]]
    return out


@jit()
def _select_corrections(corrections: CellCorrections, columns: Index, p: int) -> CellCorrections:
    """Return the corrections of some of p columns, in the same order."""
    if corrections.values.size == 0:
        return corrections
    position = np.full(p, -1)
    position[columns] = np.arange(columns.size)
    # The order is that of the data, so that sums over the corrections do not change in any digit.
    kept = np.empty(corrections.values.size, np.intp)
    count = 0
    for k in range(corrections.values.size):
        kept[count] = k
        count += position[corrections.columns[k]] >= 0
    kept = kept[:count]
    return CellCorrections(
        corrections.rows[kept], position[corrections.columns[kept]], corrections.values[kept]
    )
