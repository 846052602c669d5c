"""Screening of columns: which of them can exceed the soft threshold while u moves a little.

As u moves by d, the slope of a column, its inner product with u, moves by at most d times the
norm of the column. A screen keeps the columns that can exceed the threshold within some distance of
an anchor, packed together, so that an iteration costs no more than these columns. Iterations
outside this distance compute all slopes again. Results are those without screening, to the last
digit.
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
from mrshc.core.kernels.vectors import distance

# A screen holds for moves of u up to this many times the last one, since an alternation that
# converges makes ever smaller moves, and for thresholds that decrease by no more than this
# fraction. It saves time if it keeps no more than this fraction of the columns. Only the speed
# depends on the three.
_REACH_FACTOR, _THRESHOLD_MARGIN, _MAX_FRACTION = 3.0, 0.05, 0.125

# Bounds of slopes are stored as bytes, in units of 1/254 of the largest: rounded up, 255 at most.
_BYTE_STEPS = 254.0


class ColumnNorms(NamedTuple):
    """Euclidean norms of the columns of the data and of the corrections of their cells."""

    data: Float  # (p,)
    corrections: Float  # (p,)


class Slopes(NamedTuple):
    """Slopes of some columns and the soft threshold among them."""

    values: Float  # (m,)
    largest: float  # in absolute value
    active_depth: float  # largest minus threshold; negative: not known from these columns


class Screen(NamedTuple):
    """The columns that can exceed the threshold while u stays within `reach` of an anchor."""

    columns: Index  # (m,), increasing
    packed: NDArray[Any]  # (n, m), these columns of X
    offsets: Float  # (m,)
    loadings: Float  # (k, m)
    corrections: CellCorrections  # of these columns
    anchor: Float  # (n,)
    reach: float  # negative: no screen
    floor: float  # no other column has a slope above it


class Trace(NamedTuple):
    """Upper bounds of all slopes of X in the iterations of an earlier alternation.

    After t iterations u was `scores[t]` and no slope of X exceeded `ceilings[t]` times `units[t]`.
    An alternation at a similar L1 bound, whose u is close to that, derives screens from them.
    """

    scores: Float  # (T, n)
    ceilings: NDArray[np.uint8]  # (T, p)
    units: Float  # (T,)
    thresholds: Float  # (T,), the soft threshold of that iteration; negative: not computed


@jit()
def no_screen(X: NDArray[Any]) -> Screen:
    """Return a screen that holds nowhere."""
    packed = np.empty((0, 0), X.dtype)
    indices, values = np.empty(0, np.intp), np.empty(0)
    corrections = CellCorrections(indices, indices, values)
    return Screen(indices, packed, values, np.empty((0, 0)), corrections, values, -1.0, 0.0)


@jit()
def screened_slopes(
    residual: Residual, screen: Screen, u: Float, l1_bound: float, last_depth: float
) -> Slopes:
    """Return the slopes of the screen's columns, with the threshold if they determine it."""
    if screen.reach < 0.0 or distance(u, screen.anchor) > screen.reach:
        return Slopes(np.empty(0), 0.0, -1.0)
    slopes = multiply_transposed_rows(screen.packed, screen.offsets, u)
    deflate_slopes(residual, screen.loadings, screen.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest <= screen.floor:
        return Slopes(slopes, largest, -1.0)
    deepest = largest - screen.floor
    depth = find_active_depth(slopes, largest, l1_bound, last_depth, deepest)
    return Slopes(slopes, largest, depth)


@jit()
def screen_around(
    residual: Residual, norms: ColumnNorms, slopes: Slopes, u: Float, last_move: float
) -> Screen:
    """Return a screen with the anchor u from the slopes of all columns; none if it is large."""
    reach = _REACH_FACTOR * last_move
    floor = (1.0 - _THRESHOLD_MARGIN) * (slopes.largest - slopes.active_depth)
    total_norms = norms.data + norms.corrections
    columns = _columns_near(slopes.values, total_norms, residual.loadings, reach, floor)
    if columns.size > _MAX_FRACTION * slopes.values.size:
        return no_screen(residual.X)
    return _pack_screen(residual, columns, u, reach, floor)


@jit()
def _columns_near(
    slopes: Float, norms: Float, loadings: Float, reach: float, floor: float
) -> Index:
    """Return the columns whose slope may exceed `floor` once u has moved by up to `reach`."""
    near = np.empty(slopes.size, np.intp)
    count = 0
    for j in range(slopes.size):
        norm = norms[j]
        for k in range(loadings.shape[0]):
            norm += abs(loadings[k, j])
        near[count] = j
        count += abs(slopes[j]) + norm * reach >= floor
    return near[:count].copy()


@jit()
def has_bounds(trace: Trace, t: int) -> bool:
    """Tell whether an earlier alternation computed all slopes in iteration t."""
    return t < trace.units.size and trace.thresholds[t] > 0.0


@jit()
def screen_from_trace(
    residual: Residual, norms: ColumnNorms, trace: Trace, t: int, u: Float
) -> Screen:
    """Return a screen that holds at u from the bounds of an earlier alternation; none if large.

    The bounds are those of X, not of the residual: columns with loadings are kept in any case.
    """
    reach = distance(u, trace.scores[t])
    floor = (1.0 - _THRESHOLD_MARGIN) * trace.thresholds[t]
    ceilings, unit = trace.ceilings[t], trace.units[t]
    # Arrays of named tuples are taken out before a loop: references would be counted in each turn.
    data, corrections, loadings = norms.data, norms.corrections, residual.loadings
    max_columns = int(_MAX_FRACTION * data.size)
    columns = np.empty(max_columns + 1, np.intp)
    count = 0
    for j in range(data.size):
        near = ceilings[j] * unit + data[j] * reach + corrections[j] >= floor
        if near or _is_loaded(loadings, j):
            if count == max_columns:
                return no_screen(residual.X)
            columns[count] = j
            count += 1
    return _pack_screen(residual, columns[:count].copy(), trace.scores[t].copy(), reach, floor)


@jit()
def _is_loaded(loadings: Float, j: int) -> bool:
    for k in range(loadings.shape[0]):  # noqa: SIM110
        if loadings[k, j] != 0.0:
            return True
    return False


@jit()
def write_trace(trace: Trace, t: int, u: Float, slopes: Float) -> None:
    """Write u and upper bounds of the slopes of X, a byte each, as those of iteration t."""
    unit = max(largest_slope(slopes) / _BYTE_STEPS, 1e-300)  # positive, where all slopes are zero
    trace.scores[t] = u
    trace.units[t] = unit
    trace.thresholds[t] = -1.0
    ceilings = trace.ceilings[t]
    for j in range(slopes.size):
        ceilings[j] = np.uint8(abs(slopes[j]) / unit + 1.0)


@jit()
def _pack_screen(
    residual: Residual, columns: Index, anchor: Float, reach: float, floor: float
) -> Screen:
    packed = _pack_columns(residual.X, residual.by_columns, columns)
    loadings = residual.loadings[:, columns]
    offsets = residual.offsets[columns]
    corrections = _corrections_of(residual.corrections, columns, residual.offsets.size)
    return Screen(columns, packed, offsets, loadings, corrections, anchor, reach, floor)


@jit()
def _pack_columns(X: NDArray[Any], by_columns: bool, columns: Index) -> NDArray[Any]:
    """Return a copy of some columns of X, stored by rows."""
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
def _corrections_of(corrections: CellCorrections, columns: Index, p: int) -> CellCorrections:
    """Return the corrections of some of p columns, in the same order."""
    if corrections.values.size == 0:
        return corrections
    position = np.full(p, -1)
    position[columns] = np.arange(columns.size)
    kept = np.empty(corrections.values.size, np.intp)
    count = 0
    for k in range(corrections.values.size):
        kept[count] = k
        count += position[corrections.columns[k]] >= 0
    kept = kept[:count]
    return CellCorrections(
        corrections.rows[kept], position[corrections.columns[kept]], corrections.values[kept]
    )
