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
    write_product_of_copies,
    write_rows_of_copies,
)
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import (
    write_product_of_rows,
    write_transposed_product_of_columns,
    write_transposed_product_of_rows,
)
from mrshc.core.kernels.residual import (
    CellCorrections,
    Residual,
    correct_image_of_sparse,
    correct_slopes,
    correction_norms,
    deflate_slopes,
    subtract_components,
    subtract_components_from_image,
)
from mrshc.core.kernels.slope_approximation import (
    SlopeApproximation,
    absolute_error,
    approximate_slopes,
)
from mrshc.core.kernels.sparse_direction import (
    Candidates,
    find_active_depth,
    largest_slope,
)
from mrshc.core.kernels.slope_bounds import SlopeBounds
from mrshc.core.kernels.vectors import copy_into, euclidean_distance

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

# The same fraction for a screen that is made for a single u.
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


class Screen(NamedTuple):
    """Arrays for the columns of a screen, which each screen overwrites.

    A screen of m columns uses the first m columns of `packed`, and the first m entries of the
    arrays of length max_m. The arrays are allocated once for all screens of a component.
    """

    columns: Index  # (max_m + 1,), indices of the columns, increasing
    # (n, max_m), copies of the columns, before offsets are subtracted; for few samples
    packed: NDArray[Any]
    # (max_m,), rows of the array of the columns with consecutive values; for many samples
    rows: Index
    offsets: Float  # (max_m,), offsets of the columns
    loadings: Float  # (k, max_m), loadings of the k earlier components in the columns
    corrections: CellCorrections  # corrections in the columns
    anchor: Float  # (n,), the reference vector


class ScreenRange(NamedTuple):
    """The vectors u for which a screen is valid, and the number of its columns.

    The screen contains all columns whose absolute slope can exceed the slope bound for some u
    within the radius of the anchor.
    """

    n_columns: int  # zero if there is no screen, because it would not save time
    radius: float  # largest distance of u from the anchor; negative if there is no screen
    slope_bound: float  # within the radius, no column outside the screen has a larger slope
    n_corrections: int  # number of corrections in the columns; known when the screen is written


@jit()
def empty_screen(residual: Residual, n: int, p: int, copies: ColumnCopies | None) -> Screen:
    """Return arrays for screens of a residual with n samples and p columns."""
    max_columns, n_corrections = int(_MAX_FRACTION * p), residual.corrections.values.size
    # For many samples, a screen refers to other copies of the columns.
    n_packed = n if copies is None else 0
    return Screen(
        np.empty(max_columns + 1, np.intp),
        np.empty((n_packed, max_columns), residual.X.dtype),
        np.empty(max_columns, np.intp),
        np.empty(max_columns),
        np.empty((residual.scores.shape[0], max_columns)),
        CellCorrections(
            np.empty(n_corrections, np.intp),
            np.empty(n_corrections, np.intp),
            np.empty(n_corrections),
        ),
        np.empty(n),
    )


@jit(allocates=False)
def no_screen() -> ScreenRange:
    """Return the range of a screen that is not valid for any u."""
    return ScreenRange(0, -1.0, 0.0, 0)


@jit(allocates=False)
def _screen_range(n_columns: int, radius: float, slope_bound: float) -> ScreenRange:
    """Return the range of a screen, which is not valid for any u if it has no columns."""
    return ScreenRange(n_columns, radius if n_columns > 0 else -1.0, slope_bound, 0)


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
    return _screen_range(n_columns, radius, slope_bound)


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
    return _screen_range(count, radius, slope_bound)


@jit(allocates=False)
def plan_from_approximation(
    residual: Residual,
    norms: ColumnNorms,
    approximation: SlopeApproximation,
    u: Float,
    search: tuple[float, float, float],
    slopes: Float,
    candidates: Candidates,
    columns: Index,
) -> ScreenRange:
    """Choose the columns of a screen whose anchor is u, given approximate slopes at u.

    Parameters
    ----------
    residual : Residual
        The residual whose columns are screened.
    norms : ColumnNorms
        Norms of the columns of the centred data, and of the values that are added to them.
    approximation : SlopeApproximation
        What the slopes are approximated by.
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
    l1_bound, previous_depth, last_move = search
    error = approximate_slopes(approximation.single, approximation.basis, u, slopes)
    deflate_slopes(residual.scores, residual.loadings, residual.corrections, slopes, u)
    found = find_threshold(slopes, l1_bound, previous_depth, 0.0, candidates)
    if found.largest == 0.0:
        return no_screen()
    threshold, rest = found.largest - found.active_depth, absolute_error(approximation.single)
    slope_bound = (1.0 - _THRESHOLD_MARGIN) * threshold
    radius = _RADIUS_FACTOR * last_move
    n_columns = _write_candidate_columns(
        slopes, norms, error + radius, slope_bound - rest, columns.size - 1, columns
    )
    if n_columns == 0:
        radius = 0.0
        slope_bound = (1.0 - _SMALL_MARGIN) * threshold
        n_columns = _write_candidate_columns(
            slopes, norms, error, slope_bound - rest, columns.size - 1, columns
        )
    return _screen_range(n_columns, radius, slope_bound)


@jit(allocates=False)
def write_screen(
    residual: Residual,
    screen: Screen,
    within: ScreenRange,
    anchor: Float,
    copies: ColumnCopies | None,
) -> ScreenRange:
    """Write the arrays of a screen whose columns have been chosen, and return its range.

    `within` is the range that the choice of the columns returned, and `copies` is the attribute of
    a `SlopeApproximation`.
    """
    m, columns, offsets, loadings = (
        within.n_columns,
        screen.columns,
        screen.offsets,
        screen.loadings,
    )
    copy_into(screen.anchor, anchor)
    for k in range(m):
        offsets[k] = residual.offsets[columns[k]]
    for r in range(loadings.shape[0]):
        for k in range(m):
            loadings[r, k] = residual.loadings[r, columns[k]]
    _write_columns(residual.X, residual.by_columns, columns[:m], screen, copies)
    n_corrections = 0
    if residual.corrections.values.size > 0:
        n_corrections = _write_corrections(
            residual.corrections, columns[:m], residual.offsets.size, screen.corrections
        )
    return ScreenRange(m, within.radius, within.slope_bound, n_corrections)


@jit(allocates=False)
def _write_columns(
    X: NDArray[Any], by_columns: bool, columns: Index, screen: Screen, copies: ColumnCopies | None
) -> None:
    """Write copies of columns to `screen.packed` or, for many samples, their rows to `screen.rows`.

    `X` is the data matrix, or its transpose if `by_columns` is True.
    """
    m, packed = columns.size, screen.packed
    if copies is None:
        if by_columns:
            for k in range(m):
                j = columns[k]
                for i in range(packed.shape[0]):
                    packed[i, k] = X[j, i]
        else:
            for i in range(packed.shape[0]):
                for k in range(m):
                    packed[i, k] = X[i, columns[k]]
    elif by_columns:
        copy_into(screen.rows, columns)
    else:
        write_rows_of_copies(copies, X, columns, screen.rows)


@jit()
def _write_corrections(
    corrections: CellCorrections, columns: Index, p: int, out: CellCorrections
) -> int:
    """Write the corrections in some of the p columns to `out`, and return their number.

    `columns` contains the indices of the columns, in increasing order. The column indices of the
    written corrections are positions in `columns`.
    """
    position = np.empty(p, np.intp)
    position[:] = -1
    for k in range(columns.size):
        position[columns[k]] = k
    # The order of the corrections is kept, so that sums over the corrections in a column do not
    # change in any digit.
    count = 0
    for k in range(corrections.values.size):
        if position[corrections.columns[k]] >= 0:
            out.rows[count] = corrections.rows[k]
            out.columns[count] = position[corrections.columns[k]]
            out.values[count] = corrections.values[k]
            count += 1
    return count


@jit(allocates=False)
def write_screened_slopes(
    residual: Residual,
    screen: Screen,
    within: ScreenRange,
    copies: ColumnCopies | None,
    u: Float,
    slopes: Float,
) -> None:
    """Write the slopes at u of the columns of a screen to `slopes`, which has the same length."""
    if copies is None:
        write_transposed_product_of_rows(screen.packed, screen.offsets, u, slopes)
    else:
        X, rows = residual.X if residual.by_columns else copies.values, screen.rows[: slopes.size]
        write_transposed_product_of_columns(X, rows, screen.offsets, u, slopes)
    subtract_components(residual.scores, screen.loadings, slopes, u)
    correct_slopes(screen.corrections, within.n_corrections, slopes, u)


@jit(allocates=False)
def write_screened_image(
    residual: Residual,
    screen: Screen,
    within: ScreenRange,
    copies: ColumnCopies | None,
    positions: Index,
    weights: Float,
    image: Float,
) -> None:
    """Write the residual matrix times a sparse vector v to `image`.

    `positions` and `weights` are the positions and values of the non-zero entries of v among the
    columns of a screen.
    """
    if copies is None:
        write_product_of_rows(screen.packed, screen.offsets, positions, weights, image)
    else:
        X = residual.X if residual.by_columns else copies.values
        write_product_of_copies(X, screen.rows, screen.offsets, positions, weights, image)
    subtract_components_from_image(residual.scores, screen.loadings, image, positions, weights)
    if within.n_corrections > 0:
        correct_image_of_sparse(
            screen.corrections,
            within.n_corrections,
            image,
            within.n_columns,
            positions,
            weights,
        )


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
