"""The sparse direction under an L1 bound, with an exact soft threshold.

Slopes are the entries of X'u. The depth of a slope is its difference, in absolute value, to the
largest slope. Soft-thresholding at delta keeps the slopes of depth less than `largest - delta`,
which is called the active depth. Computing with depths instead of thresholds avoids cancellation
when the largest slopes are nearly tied.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# The active depth changes little from one iteration of an alternation to the next. The search
# starts from the previous one times this factor, so that it rarely has to be repeated with a larger
# depth. Not tuned: results do not depend on it.
_DEPTH_FACTOR = 1.25


@jit()
def sparse_direction(slopes: Float, l1_bound: float) -> tuple[Index, Float]:
    """Return the v that maximises slopes'v with |v|_2 <= 1 and |v|_1 <= l1_bound.

    If features tie for the largest slope, and the bound is too small for a unit vector with equal
    entries for all of them, each gets an equal part of the bound.

    Parameters
    ----------
    slopes : array of shape (p,)
        The objective.
    l1_bound : float
        Bound of the L1 norm, at least 1.

    Returns
    -------
    indices : array of shape (m,)
        Non-zero entries of v, increasing; empty if all slopes are zero.
    weights : array of shape (m,)
        Their values.
    """
    largest = largest_slope(slopes)
    if largest == 0.0:
        return np.empty(0, np.intp), np.empty(0)
    active_depth = find_active_depth(slopes, largest, l1_bound, -1.0, largest)
    return threshold_slopes(slopes, largest, active_depth, l1_bound)


# Vectorised: without NaN, a maximum does not depend on the order of comparisons.
@jit(fastmath={"nnan"})
def largest_slope(slopes: Float) -> float:
    """Return the largest absolute slope."""
    largest = 0.0
    for slope in slopes:
        largest = max(largest, abs(slope))
    return largest


@jit()
def threshold_slopes(
    slopes: Float, largest: float, active_depth: float, l1_bound: float
) -> tuple[Index, Float]:
    """Return the slopes soft-thresholded at largest - active_depth, scaled to unit norm.

    Parameters
    ----------
    slopes : array of shape (p,)
        Slopes.
    largest : float
        The largest of them in absolute value.
    active_depth : float
        Result of :func:`find_active_depth`.
    l1_bound : float
        L1 norm of the result where only tied slopes are left (an active depth of zero).

    Returns
    -------
    indices, weights : arrays of shape (m,)
        The non-zero entries, as in :func:`sparse_direction`.
    """
    # Counted first, so that arrays of the right size are allocated. Slopes tied for the largest
    # are kept even where the active depth is zero.
    count = 0
    for slope in slopes:
        depth = largest - abs(slope)
        if depth < active_depth or depth == 0.0:
            count += 1
    indices, weights = np.empty(count, np.intp), np.empty(count)
    k = 0
    squares = 0.0
    for j in range(slopes.size):
        depth = largest - abs(slopes[j])
        if depth < active_depth or depth == 0.0:
            indices[k] = j
            weights[k] = active_depth - depth  # = |slope| - delta, without cancellation
            squares += weights[k] * weights[k]
            k += 1
    norm = np.sqrt(squares)
    for k in range(count):
        weights[k] = weights[k] / norm if active_depth > 0.0 else l1_bound / count
        if slopes[indices[k]] < 0.0:
            weights[k] = -weights[k]
    return indices, weights


@jit()
def find_active_depth(
    slopes: Float, largest: float, l1_bound: float, previous_depth: float, max_depth: float
) -> float:
    """Return largest - delta, for the delta at which |soft|_1 / |soft|_2 equals the bound.

    Only the largest slopes matter. The search is restricted to slopes up to some depth, which is
    doubled while it is too small.

    Parameters
    ----------
    slopes : array of shape (m,)
        Slopes of all columns, or of those of a screen.
    largest : float
        The largest of them in absolute value.
    l1_bound : float
        L1 bound of the direction.
    previous_depth : float
        Active depth of a similar problem, such as the previous iteration; negative if unknown.
    max_depth : float
        Largest depth to consider; `largest` for an unrestricted search.

    Returns
    -------
    float
        The active depth; -1 if it is larger than `max_depth`.
    """
    n_tied, second_depth = 0, largest
    for slope in slopes:
        depth = largest - abs(slope)
        n_tied += depth == 0.0
        if 0.0 < depth < second_depth:
            second_depth = depth
    # A unit vector with m equal entries has the L1 norm sqrt(m): as many ties as the squared bound
    # exhaust it. With exactly as many, any threshold between them and the next slope is right.
    if n_tied >= l1_bound * l1_bound:
        return second_depth if n_tied == l1_bound * l1_bound else 0.0
    start_depth = _DEPTH_FACTOR * previous_depth
    depth = min(
        start_depth if start_depth > 0.0 else _initial_depth(slopes, largest, l1_bound), max_depth
    )
    while True:
        depths = _depths_less_than(slopes, largest, depth)
        active_depth = _find_active_depth_within(depths, l1_bound, depth)
        if active_depth >= 0.0:
            return active_depth
        # A threshold of zero is allowed if all slopes together do not reach the bound.
        if depth >= max_depth:
            return largest if max_depth >= largest else -1.0
        depth = min(2.0 * depth, max_depth)


@jit()
def _depths_less_than(slopes: Float, largest: float, max_depth: float) -> Float:
    """Return the depths of the slopes that are less than `max_depth`."""
    # Each depth is written before it is accepted by the count, so that the loop has no branch. The
    # last entry is spare.
    out = np.empty(slopes.size + 1)
    count = 0
    for slope in slopes:
        depth = largest - abs(slope)
        out[count] = depth
        count += depth < max_depth
    return out[:count]


@jit()
def _initial_depth(slopes: Float, largest: float, l1_bound: float) -> float:
    """Return a depth with about twice as many slopes as the bound requires at least."""
    # A unit vector with m equal entries has the L1 norm sqrt(m), the largest of all with m entries:
    # at least bound^2 slopes are active. The factor 2, the 8 slopes added for small bounds and the
    # 12 bisections (a resolution of 1/4096 of the largest slope) are not tuned: results do not
    # depend on the initial depth.
    n_wanted = 2.0 * l1_bound * l1_bound + 8.0
    low, high = 0.0, largest
    for _ in range(12):
        middle = (low + high) / 2
        count = 0
        for slope in slopes:
            count += largest - abs(slope) < middle
        if count < n_wanted:
            low = middle
        else:
            high = middle
            # Close enough: fewer slopes than this would not make the search much faster.
            if count < 2.0 * n_wanted:
                break
    return high


@jit()
def _find_active_depth_within(depths: Float, l1_bound: float, max_depth: float) -> float:
    """Return the active depth if it is at most `max_depth`, else -1.

    Parameters
    ----------
    depths : array of shape (m,)
        Depths of the slopes, each less than `max_depth`.
    l1_bound : float
        L1 bound of the direction.
    max_depth : float
        Largest depth to consider.

    Notes
    -----
    Let m features be active, and S1 and S2 be the sums of their depths and squared depths. At the
    active depth c, the ratio of the L1 norm to the L2 norm is
    (m c - S1) / sqrt(m c^2 - 2 c S1 + S2). It increases with c and equals the bound where
    m c = S1 + bound * sqrt((m S2 - S1^2) / (m - bound^2)). This root is the solution if the same
    features are active there; otherwise the next iteration starts from it. Bisection replaces a
    root outside the bracket.
    """
    squared_bound = l1_bound * l1_bound
    low, high, c, n_active = 0.0, max_depth, max_depth, -1
    while True:
        m = 0
        s1 = s2 = 0.0
        for depth in depths:
            if depth < c:
                m += 1
                s1 += depth
                s2 += depth * depth
        # Features enter as c grows: the same number at the root means the same features.
        if m == n_active:
            return c
        l1, l2_squared = m * c - s1, m * c * c - 2.0 * c * s1 + s2
        if l2_squared > 0.0 and l1 * l1 >= squared_bound * l2_squared:
            high = c
        elif c == max_depth:
            return -1.0
        else:
            low = c
        root, n_active = -1.0, m
        if m > squared_bound:
            # By the Cauchy-Schwarz inequality m S2 >= S1^2, except for rounding.
            root = (s1 + l1_bound * np.sqrt(max(m * s2 - s1 * s1, 0.0) / (m - squared_bound))) / m
        if not low < root < high:
            root, n_active = (low + high) / 2, -1
            # The midpoint of adjacent floating-point numbers is one of them: the bracket cannot
            # shrink further.
            if root in (low, high):
                return high
        c = root
