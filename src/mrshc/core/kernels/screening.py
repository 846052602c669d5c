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

from typing import NamedTuple

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.column_copies import ColumnCopies
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.residual import Residual, correction_norms, deflate_slopes
from mrshc.core.kernels.screens import ScreenRange, no_screen, screen_range
from mrshc.core.kernels.slope_basis import SlopeBasis, combine_slopes
from mrshc.core.kernels.slope_bounds import SlopeBounds
from mrshc.core.kernels.sparse_direction import Candidates, find_active_depth, largest_slope
from mrshc.core.kernels.vectors import euclidean_distance

# The following three constants affect only the speed, since a screen never changes a result.
# The radius of a screen is this multiple of the last change of u. When the iterations converge, the
# changes of u decrease about geometrically. The sum of all further changes is then a small multiple
# of the last change.
_RADIUS_FACTOR = 3.0
# A screen remains valid until the soft threshold has decreased by more than this fraction.
_THRESHOLD_MARGIN = 0.05
# The same fraction for a screen that is made for a single u, whose threshold is nearly known.
_SMALL_MARGIN = 0.001


class ColumnNorms(NamedTuple):
    """Norms of the p columns of the centred data, and bounds of the norms of what is added to them.

    The residual is the centred data minus the earlier components, plus corrections where data are
    missing.
    """

    data: Float  # (p,), Euclidean norms of the columns of the centred data
    added: Float  # (p,), upper bounds of the norms of residual minus centred data


class Threshold(NamedTuple):
    """Soft threshold of slopes, which are inner products of columns with u."""

    largest: float  # largest absolute slope
    active_depth: float  # `largest` minus threshold; negative if the threshold is not known
    n_candidates: int  # number of slopes that may be active


class SlopeHistory(NamedTuple):
    """What earlier runs of the alternating algorithm found out about slopes."""

    bounds: SlopeBounds  # of the slopes in the iterations of the last run
    # For many samples; None for few, so that numba compiles nothing but the return of the functions
    # that are called with it.
    basis: SlopeBasis | None
    copies: ColumnCopies | None  # copies of columns, for many samples; None for few


@jit(allocates=False)
def find_threshold(
    slopes: Float,
    l1_bound: float,
    previous_depth: float,
    slope_bound: float,
    candidates: Candidates,
) -> Threshold:
    """Return the soft threshold of slopes if it exceeds a bound.

    Parameters
    ----------
    slopes : array of shape (m,)
        The slopes of m columns.
    l1_bound : float
        L1 bound of the loadings.
    previous_depth : float
        Active depth of the previous iteration, from which the search for the active depth starts;
        negative if there is no previous iteration.
    slope_bound : float
        Largest slope of columns that are not among the given ones; zero if there are none.
    candidates : Candidates
        Output: the slopes that may be active.

    Returns
    -------
    Threshold
        The active depth is negative if other columns may have slopes above the soft threshold. It
        is zero if all slopes are zero.
    """
    largest = largest_slope(slopes)
    if largest <= slope_bound:
        return Threshold(largest, -1.0 if slope_bound > 0.0 else 0.0, 0)
    # The search is limited to thresholds above the slope bound, because other columns may exceed a
    # smaller threshold.
    depth, n_candidates = find_active_depth(
        slopes, largest, l1_bound, previous_depth, largest - slope_bound, candidates
    )
    return Threshold(largest, depth, n_candidates)


@jit(allocates=False)
def plan_from_slopes(
    slopes: Float, threshold: float, norms: ColumnNorms, last_move: float, columns: Index
) -> ScreenRange:
    """Choose the columns of a screen whose anchor is the current u, given the slopes at u.

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
    columns : array
        Output: the indices of the columns, in increasing order. An array `columns` of a `Screen`.
    """
    radius = _RADIUS_FACTOR * last_move
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * threshold
    n_columns = _write_candidate_columns(
        slopes, norms, radius, slope_bound, columns.size - 1, columns
    )
    return screen_range(n_columns, radius, slope_bound)


@jit(allocates=False)
def _write_candidate_columns(
    slopes: Float,
    norms: ColumnNorms,
    radius: float,
    slope_bound: float,
    max_columns: int,
    columns: Index,
) -> int:
    """Find the columns whose absolute slope may reach a bound near the current u.

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
    max_columns : int
        Largest number of columns.
    columns : array with more than `max_columns` entries
        Output: the indices of the columns, in increasing order.

    Returns
    -------
    int
        Number of columns; zero if there are more than `max_columns`.
    """
    # Counting alone is vectorised, and most sets of columns that are too large end here.
    data, added = norms.data, norms.added
    count = 0
    for j in range(data.size):
        count += abs(slopes[j]) + (data[j] + added[j]) * radius >= slope_bound
    if count > max_columns:
        return 0
    count = 0
    for j in range(data.size):
        # Every index is written, but it is overwritten by the next index unless the count
        # increases. The loop therefore has no branch.
        columns[count] = j
        count += abs(slopes[j]) + (data[j] + added[j]) * radius >= slope_bound
    return count


@jit(allocates=False)
def plan_from_bounds(
    norms: ColumnNorms, bounds: SlopeBounds, t: int, u: Float, columns: Index
) -> ScreenRange:
    """Choose the columns of a screen that is valid at u, given the bounds of an earlier run.

    The anchor of the screen is the vector u of iteration t of the earlier run. The radius is the
    distance between the anchor and the current u.

    Parameters
    ----------
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    bounds : SlopeBounds
        Bounds of the slopes in the earlier run.
    t : int
        Number of the iteration, for which there must be bounds.
    u : array of shape (n,)
        The current scores.
    columns : array
        Output: the indices of the columns, in increasing order. An array `columns` of a `Screen`.
    """
    radius = euclidean_distance(u, bounds.scores[t])
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * bounds.thresholds[t]
    row, unit, data, added = bounds.quantised[t], bounds.units[t], norms.data, norms.added
    # The bounds apply to the centred data. A slope of the residual differs from it by at most the
    # norm of the values that are added, since u is a unit vector.
    count = 0
    for j in range(data.size):
        count += row[j] * unit + data[j] * radius + added[j] >= slope_bound
    if count >= columns.size:
        return no_screen()
    count = 0
    for j in range(data.size):
        columns[count] = j  # as in `_write_candidate_columns`
        count += row[j] * unit + data[j] * radius + added[j] >= slope_bound
    return screen_range(count, radius, slope_bound)


@jit(allocates=False)
def plan_from_basis(
    residual: Residual,
    norms: ColumnNorms,
    basis: SlopeBasis | None,
    u: Float,
    search: tuple[float, float, float],
    slopes: Float,
    candidates: Candidates,
    columns: Index,
) -> ScreenRange:
    """Choose the columns of a screen whose anchor is u, given the slopes at other vectors.

    Parameters
    ----------
    residual : Residual
        The residual whose columns are screened.
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    basis : SlopeBasis or None
        Vectors with known slopes, at least one; no columns are chosen if it is None.
    u : array of shape (n,)
        The current scores.
    search : tuple of float
        The L1 bound, the previous depth, by both of which the soft threshold is estimated (see
        `find_threshold`), and the norm of the last change of u, from which the radius of the screen
        is derived.
    slopes, candidates : array of shape (p,) and Candidates
        Arrays that are overwritten.
    columns : array
        Output: the indices of the columns, in increasing order. An array `columns` of a `Screen`.
    """
    if basis is None:
        return no_screen()
    l1_bound, previous_depth, last_move = search
    error = combine_slopes(basis, u, slopes)
    deflate_slopes(residual.scores, residual.loadings, residual.corrections, slopes, u)
    found = find_threshold(slopes, l1_bound, previous_depth, 0.0, candidates)
    if found.largest == 0.0:
        return no_screen()
    threshold = found.largest - found.active_depth
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * threshold
    radius = _RADIUS_FACTOR * last_move
    n_columns = _write_candidate_columns(
        slopes, norms, error + radius, slope_bound, columns.size - 1, columns
    )
    if n_columns == 0:
        radius = 0.0
        slope_bound = (1.0 - _SMALL_MARGIN) * threshold
        n_columns = _write_candidate_columns(
            slopes, norms, error, slope_bound, columns.size - 1, columns
        )
    return screen_range(n_columns, radius, slope_bound)


@jit()
def bound_added_norms(residual: Residual, p: int) -> Float:
    """Return upper bounds of the norms of the p columns of the residual minus the centred data.

    The norm of a component in a column is its absolute loading, since its scores are a unit vector.
    The bound is the sum of these norms and of the norm of the corrections.
    """
    out, loadings = correction_norms(residual.corrections, p), residual.loadings
    for k in range(loadings.shape[0]):
        for j in range(p):
            out[j] += abs(loadings[k, j])
    return out
