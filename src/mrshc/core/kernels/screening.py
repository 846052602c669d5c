"""Exclusion of columns whose slopes cannot exceed the soft threshold in the next iterations.

The slope of a column is its inner product with the scores u. If u changes by a vector of norm d,
the slope changes by at most d times the norm of the column. A screen is defined by a reference
vector, called the anchor, a distance, called the radius, and a slope bound just below the soft
threshold. The screen contains copies of all columns whose absolute slope can exceed the slope bound
for some u within the radius of the anchor. An iteration reads only the columns of the screen as
long as u stays within the radius of the anchor and the soft threshold stays above the slope bound.
Otherwise, the iteration makes a new screen or computes the slopes of all columns. Screening does
not change the results in any digit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.column_copies import (
    ColumnCopies,
    copy_columns,
    screen_transposed_times,
)
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.residual import (
    CellCorrections,
    Residual,
    correction_norms,
    deflate_slopes,
)
from mrshc.core.kernels.slope_basis import SlopeBasis, combine_slopes
from mrshc.core.kernels.sparse_direction import find_active_depth, largest_slope
from mrshc.core.kernels.vectors import copy_into, euclidean_distance, take

# The following three constants affect only the speed, since a screen never changes a result.
# The radius of a screen is this multiple of the last change of u. When the iterations converge, the
# changes of u decrease about geometrically. The sum of all further changes is then a small multiple
# of the last change.
_RADIUS_FACTOR = 3.0
# A screen remains valid until the soft threshold has decreased by more than this fraction.
_THRESHOLD_MARGIN = 0.05
# A screen is not made if it would contain more than this fraction of the columns, because copying
# the columns would take more time than it saves. The limit also ensures that a screen takes at most
# an eighth of the memory of X.
_MAX_FRACTION = 0.125

# A screen that is made from a basis is valid within a radius only if it contains at most this
# fraction of the columns. Otherwise it is made for one u, and copying its columns takes less time.
_MAX_FRACTION_WITHIN_RADIUS = 1 / 32

# Upper bounds of slopes are stored as bytes, in units of 1/254 of the largest slope. Rounding up
# turns the largest slope into at most 255, the largest value of a byte.
_N_BOUND_STEPS = 254.0
# Upper limit of the rounding errors of a slope in these units; they are about 1e-13.
_BOUND_ROUNDING = 1e-9


class ColumnNorms(NamedTuple):
    """Norms of the p columns of the centred data, and bounds of the norms of what is added to them.

    The residual is the centred data minus the earlier components, plus corrections where data are
    missing.
    """

    data: Float  # (p,), Euclidean norms of the columns of the centred data
    added: Float  # (p,), upper bounds of the norms of residual minus centred data


class Slopes(NamedTuple):
    """Slopes (inner products with u) of m columns, and the soft threshold."""

    values: Float  # (m,), the slope of each column
    largest: float  # largest absolute slope
    active_depth: float  # `largest` minus threshold; negative if the threshold is not known


class Screen(NamedTuple):
    """Copies of all columns whose slope can exceed a bound for some u within `radius` of `anchor`.

    The slope of a column is its inner product with u. The bound, `slope_bound`, applies to the
    absolute value of the slope.
    """

    columns: Index  # (m,), indices of the columns, increasing
    # Copies of the columns, before offsets are subtracted: an array of shape (n, m), unless `rows`
    # has m entries; then the rows of an array with n columns.
    packed: NDArray[Any]
    rows: Index | None  # (m,), rows of `packed` with the columns, or no entries; None: few samples
    offsets: Float  # (m,), offsets of the columns
    loadings: Float  # (k, m), loadings of the k earlier components in the columns
    corrections: CellCorrections  # corrections in the columns
    anchor: Float  # (n,), the reference vector
    radius: float  # largest distance of u from `anchor`; negative for an empty screen
    slope_bound: float  # within the radius, no column outside the screen has a larger slope


class ScreenPlan(NamedTuple):
    """The columns that a screen will contain; none if the screen would not save time."""

    columns: Index  # (m,), indices of the columns, increasing
    radius: float  # as in `Screen`
    slope_bound: float  # as in `Screen`


class Trace(NamedTuple):
    """Upper bounds of all slopes in the iterations of a previous run of the alternating algorithm.

    In iteration t, u was `scores[t]`, and the absolute inner product of column j of the centred
    data with u was at most `quantised_bounds[t, j] * units[t]`. In iteration t of a run with a
    similar L1 bound, u is similar, so the bounds can be used to make screens. The bounds are stored
    as bytes to save memory.
    """

    scores: Float  # (T, n), the vector u of each iteration
    quantised_bounds: NDArray[np.uint8]  # (T, p), bounds in multiples of `units`
    units: Float  # (T,), unit of the bounds of each iteration
    thresholds: Float  # (T,), soft thresholds; negative if the bounds were not computed
    # exact slopes at some vectors u of all iterations, for many samples; None for few
    basis: SlopeBasis | None
    copies: ColumnCopies | None  # copies of columns, for many samples; None for few
    no_rows: Index | None  # `rows` of a screen with an (n, m) array; its type is always the same


@jit()
def empty_screen(X: NDArray[Any], rows: Index | None) -> Screen:
    """Return a screen without columns, which is not valid for any u.

    The array `packed` of the screen has the data type of X. `rows` is the attribute
    `no_rows` of a trace.
    """
    # A compiled function cannot return a Screen in some cases and None in others, so a negative
    # radius is used instead of None.
    packed = np.empty((0, 0), X.dtype)
    indices, values = np.empty(0, np.intp), np.empty(0)
    corrections = CellCorrections(indices, indices, values)
    loadings = np.empty((0, 0))
    return Screen(indices, packed, rows, values, loadings, corrections, values, -1.0, 0.0)


@jit()
def screened_slopes(
    scores: Float, screen: Screen, u: Float, l1_bound: float, previous_depth: float
) -> Slopes:
    """Return the slopes of the columns of a screen, and the active depth if it can be determined.

    The slope of a column of the residual is its inner product with u. The active depth is the
    largest absolute slope minus the soft threshold.

    Parameters
    ----------
    scores : array of shape (k, n)
        Scores of the k components that are subtracted from the data.
    screen : Screen
        The columns for which slopes are computed.
    u : array of shape (n,)
        The current scores, within the radius of the screen.
    l1_bound : float
        L1 bound of the loadings.
    previous_depth : float
        Active depth of the previous iteration, from which the search for the active depth starts;
        negative if there is no previous iteration.

    Returns
    -------
    Slopes
        The slopes and the active depth. The active depth is negative if columns outside the screen
        may have slopes above the soft threshold.
    """
    slopes = screen_transposed_times(screen.packed, screen.rows, screen.offsets, u)
    deflate_slopes(scores, screen.loadings, screen.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest <= screen.slope_bound:
        return Slopes(slopes, largest, -1.0)
    # The search is limited to thresholds above the slope bound, because columns outside the screen
    # may exceed a smaller threshold.
    max_depth = largest - screen.slope_bound
    depth = find_active_depth(slopes, largest, l1_bound, previous_depth, max_depth)
    return Slopes(slopes, largest, depth)


@jit()
def plan_from_slopes(
    slopes: Float, threshold: float, norms: ColumnNorms, last_move: float
) -> ScreenPlan:
    """Return the columns of a screen whose anchor is the current u, given the slopes at u.

    If a screen would contain so many columns that it would not save time, the plan has no columns.

    Parameters
    ----------
    slopes : array of shape (p,)
        Inner products of all columns of the residual with u.
    threshold : float
        Soft threshold of these slopes.
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    last_move : float
        Norm of the last change of u, from which the radius of the screen is derived.
    """
    radius = _RADIUS_FACTOR * last_move
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * threshold
    columns = _candidate_columns(slopes, norms, radius, slope_bound, _MAX_FRACTION)
    return ScreenPlan(columns, radius, slope_bound)


@jit()
def _candidate_columns(
    slopes: Float, norms: ColumnNorms, radius: float, slope_bound: float, max_fraction: float
) -> Index:
    """Return the indices of the columns whose absolute slope may reach a bound near the current u.

    The indices are in increasing order. There are none if more than a given fraction of the columns
    may reach the bound.

    Parameters
    ----------
    slopes : array of shape (p,)
        Inner products of all columns of the residual with the current scores u.
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    radius : float
        Largest distance from the current u that is considered.
    slope_bound : float
        The bound. A column is left out only if its absolute slope is below the bound for all
        vectors within the radius of u.
    max_fraction : float
        Largest fraction of the columns.
    """
    max_columns = int(max_fraction * slopes.size)
    columns = np.empty(max_columns + 1, np.intp)
    # Assign the arrays in the named tuple to local variables before the loop; otherwise numba would
    # update the reference counts of the arrays in each iteration.
    data, added = norms.data, norms.added
    count = 0
    for j in range(slopes.size):
        # Every index is written, but it is overwritten by the next index unless the count
        # increases. The loop therefore has few branches.
        columns[count] = j
        count += abs(slopes[j]) + (data[j] + added[j]) * radius >= slope_bound
        if count > max_columns:
            return np.empty(0, np.intp)
    return columns[:count].copy()


@jit()
def has_bounds(trace: Trace, t: int) -> bool:
    """Return whether a trace contains bounds of the slopes for iteration t.

    The trace contains bounds if it has a row t and a previous run computed all slopes in iteration
    t.
    """
    return t < trace.units.size and trace.thresholds[t] > 0.0


@jit()
def plan_from_trace(norms: ColumnNorms, trace: Trace, t: int, u: Float) -> ScreenPlan:
    """Return the columns of a screen that is valid at u, given the bounds of a previous run.

    The anchor of the screen is the vector u of iteration t in the trace. The radius is the distance
    between the anchor and the current u. If a screen would contain so many columns that it would
    not save time, the plan has no columns.

    Parameters
    ----------
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    trace : Trace
        Upper bounds of the slopes in the previous run of the alternating algorithm.
    t : int
        Number of the iteration. The trace must contain bounds for iteration t.
    u : array of shape (n,)
        The current scores.
    """
    radius = euclidean_distance(u, trace.scores[t])
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * trace.thresholds[t]
    bounds, unit = trace.quantised_bounds[t], trace.units[t]
    data, added = norms.data, norms.added
    max_columns = int(_MAX_FRACTION * data.size)
    columns = np.empty(max_columns + 1, np.intp)
    count = 0
    for j in range(data.size):
        columns[count] = j  # as in `_candidate_columns`
        # The bounds apply to the centred data. A slope of the residual differs from it by at most
        # the norm of the values that are added, since u is a unit vector.
        count += bounds[j] * unit + data[j] * radius + added[j] >= slope_bound
        if count > max_columns:
            count = 0
            break
    return ScreenPlan(columns[:count].copy(), radius, slope_bound)


@jit()
def plan_from_basis(
    residual: Residual,
    norms: ColumnNorms,
    basis: SlopeBasis | None,
    u: Float,
    last_move: float,
    l1_bound: float,
    previous_depth: float,
) -> ScreenPlan:
    """Return the columns of a screen whose anchor is u, given the slopes at other vectors.

    If a screen would contain so many columns that it would not save time, the plan has no columns.

    Parameters
    ----------
    residual : Residual
        The residual whose columns are screened.
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    basis : SlopeBasis or None
        Vectors with known slopes, at least one; the plan has no columns if it is None.
    u : array of shape (n,)
        The current scores.
    last_move : float
        Norm of the last change of u, from which the radius of the screen is derived.
    l1_bound, previous_depth : float
        Arguments of :func:`~mrshc.core.kernels.sparse_direction.find_active_depth`, by which the
        soft threshold is estimated.
    """
    if basis is None:
        return ScreenPlan(np.empty(0, np.intp), 0.0, 0.0)
    slopes = np.empty(norms.data.size)
    error = combine_slopes(basis, u, slopes)
    deflate_slopes(residual.scores, residual.loadings, residual.corrections, slopes, u)
    largest = largest_slope(slopes)
    if largest == 0.0:
        return ScreenPlan(np.empty(0, np.intp), 0.0, 0.0)
    threshold = largest - find_active_depth(slopes, largest, l1_bound, previous_depth, largest)
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * threshold
    radius = _RADIUS_FACTOR * last_move
    columns = _candidate_columns(
        slopes, norms, error + radius, slope_bound, _MAX_FRACTION_WITHIN_RADIUS
    )
    if columns.size == 0:
        radius = 0.0
        columns = _candidate_columns(slopes, norms, error, slope_bound, _MAX_FRACTION)
    return ScreenPlan(columns, radius, slope_bound)


@jit()
def write_trace(trace: Trace, t: int, u: Float, slopes: Float) -> None:
    """Write the scores u and upper bounds of the slopes to row t of a trace.

    `u` has shape (n,). `slopes`, of shape (p,), are the inner products of the p columns of the
    centred data with u.
    """
    # The unit must be positive, since slopes are divided by it even if all slopes are zero. The
    # lower limit 1e-300 is far below any unit that occurs otherwise.
    unit = max(largest_slope(slopes) / _N_BOUND_STEPS, 1e-300)
    copy_into(trace.scores[t], u)
    trace.units[t] = unit
    # A negative threshold marks the row as not yet valid. The caller computes the threshold later,
    # after earlier components have been subtracted.
    trace.thresholds[t] = -1.0
    bounds, per_unit = trace.quantised_bounds[t], 1.0 / unit
    for j in range(slopes.size):
        # The conversion to an integer rounds down, so 1 is added to obtain an upper bound. A
        # multiplication takes less time than a division. The small number exceeds its rounding
        # errors.
        bounds[j] = np.uint8(abs(slopes[j]) * per_unit + (1.0 + _BOUND_ROUNDING))


@jit()
def pack_screen(residual: Residual, plan: ScreenPlan, anchor: Float, rows: Index | None) -> Screen:
    """Return a screen with copies of the planned columns, their offsets, loadings and corrections.

    `anchor` is the vector u from which the distance of other vectors is measured. `rows` is the
    attribute `no_rows` of a trace.
    """
    packed = _pack_columns(residual.X, residual.by_columns, plan.columns)
    return _complete_screen(residual, plan, anchor, packed, rows)


@jit()
def refer_screen(
    residual: Residual,
    plan: ScreenPlan,
    anchor: Float,
    copies: ColumnCopies | None,
    rows: Index | None,
) -> Screen:
    """Return the screen of `pack_screen`, which refers to columns with consecutive values.

    Screens that were made before are no longer valid.
    """
    if copies is None:
        return pack_screen(residual, plan, anchor, rows)
    if residual.by_columns:
        return _complete_screen(residual, plan, anchor, residual.X, plan.columns)
    copied = copy_columns(copies, residual.X, plan.columns)
    return _complete_screen(residual, plan, anchor, copies.values, copied)


@jit()
def _complete_screen(
    residual: Residual,
    plan: ScreenPlan,
    anchor: Float,
    packed: NDArray[Any],
    rows: Index | None,
) -> Screen:
    """Return a screen with the given copies of columns; see `pack_screen`."""
    columns = plan.columns
    loadings = _take_columns(residual.loadings, columns)
    offsets = take(residual.offsets, columns)
    corrections = _select_corrections(residual.corrections, columns, residual.offsets.size)
    return Screen(
        columns,
        packed,
        rows,
        offsets,
        loadings,
        corrections,
        anchor,
        plan.radius,
        plan.slope_bound,
    )


@jit()
def bound_added_norms(residual: Residual, p: int) -> Float:
    """Return upper bounds of the norms of the p columns of the residual minus the centred data.

    The norm of a component in a column is its absolute loading, since its scores are a unit vector.
    The bound is the sum of these norms and of the norm of the corrections.
    """
    out = correction_norms(residual.corrections, p)
    for k in range(residual.loadings.shape[0]):
        row = residual.loadings[k]
        for j in range(p):
            out[j] += abs(row[j])
    return out


@jit()
def _pack_columns(X: NDArray[Any], by_columns: bool, columns: Index) -> NDArray[Any]:
    """Return copies of m columns of the data matrix as an (n, m) array that is stored row by row.

    `X` is the data matrix, or its transpose if `by_columns` is True. `columns` contains the indices
    of the m columns.
    """
    if not by_columns:
        return _take_columns(X, columns)
    n = X.shape[1]
    out = np.empty((n, columns.size), X.dtype)
    for k in range(columns.size):
        j = columns[k]
        for i in range(n):
            out[i, k] = X[j, i]
    return out


@jit()
def _take_columns(matrix: NDArray[Any], columns: Index) -> NDArray[Any]:
    """Return copies of the given columns of a matrix that is stored row by row."""
    out = np.empty((matrix.shape[0], columns.size), matrix.dtype)
    for i in range(matrix.shape[0]):
        row, packed = matrix[i], out[i]
        for k in range(columns.size):
            packed[k] = row[columns[k]]
    return out


@jit()
def _select_corrections(corrections: CellCorrections, columns: Index, p: int) -> CellCorrections:
    """Return the corrections in a subset of the p columns of a matrix, in their original order.

    `columns` contains the indices of the subset, in increasing order. The column indices of the
    returned corrections are positions in `columns`.
    """
    if corrections.values.size == 0:
        return corrections
    position = np.empty(p, np.intp)
    position[:] = -1
    for k in range(columns.size):
        position[columns[k]] = k
    # The order of the corrections is kept, so that sums over the corrections in a column do not
    # change in any digit.
    kept = np.empty(corrections.values.size, np.intp)
    count = 0
    for k in range(corrections.values.size):
        kept[count] = k
        count += position[corrections.columns[k]] >= 0
    kept = kept[:count]
    return CellCorrections(
        take(corrections.rows, kept),
        take(position, take(corrections.columns, kept)),
        take(corrections.values, kept),
    )
