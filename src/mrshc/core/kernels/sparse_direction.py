"""The sparse direction under an L1 bound: a soft threshold that is found exactly.

Slopes are the entries of X'u. Soft-thresholding them at delta keeps those less than
`largest - delta` below the largest slope in absolute value; this difference is called the active
depth. Working with depths, the differences to the largest slope, loses no digits when the largest
slopes are nearly tied.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# The active depth changes little from one iteration of an alternation to the next, so that a search
# starts a little above the last one. Only the speed depends on it.
_DEPTH_FACTOR = 1.25


@jit()
def sparse_direction(slopes: Float, l1_bound: float) -> tuple[Index, Float]:
    """Return the v that maximises slopes'v with |v|_2 <= 1 and |v|_1 <= bound, as a sparse vector.

    If features tie for the largest slope and the bound is too small for all of them at unit norm,
    they share the bound equally.
    """
    largest = largest_slope(slopes)
    if largest == 0.0:
        return np.empty(0, np.intp), np.empty(0)
    active_depth = find_active_depth(slopes, largest, l1_bound, -1.0, largest)
    return threshold_slopes(slopes, largest, active_depth, l1_bound)


@jit(fastmath={"nnan"})  # a maximum of numbers other than NaN does not depend on the order
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
    """Return the slopes soft-thresholded at largest - active_depth, scaled to unit norm."""
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
            weights[k] = active_depth - depth
            squares += weights[k] * weights[k]
            k += 1
    length = np.sqrt(squares)
    for k in range(count):
        weights[k] = weights[k] / length if active_depth > 0.0 else l1_bound / count
        if slopes[indices[k]] < 0.0:
            weights[k] = -weights[k]
    return indices, weights


@jit()
def find_active_depth(
    slopes: Float, largest: float, l1_bound: float, last_depth: float, deepest: float
) -> float:
    """Return largest - delta, for the delta at which |soft|_1 / |soft|_2 equals the bound.

    Only the largest slopes matter. The search is among those up to a little more than the last
    depth (negative: unknown) below the largest, and doubles that while it is too small, up to
    `deepest`. The result is -1 if that is too small as well.
    """
    n_tied, second = 0, largest
    for slope in slopes:
        depth = largest - abs(slope)
        n_tied += depth == 0.0
        if 0.0 < depth < second:
            second = depth
    if n_tied >= l1_bound * l1_bound:
        return second if n_tied == l1_bound * l1_bound else 0.0
    guess = _DEPTH_FACTOR * last_depth
    depth = min(guess if guess > 0.0 else _first_guess(slopes, largest, l1_bound), deepest)
    while True:
        depths = _depths_below(slopes, largest, depth)
        active_depth = _find_active_depth_within(depths, l1_bound, depth)
        if active_depth >= 0.0:
            return active_depth
        if depth >= deepest:
            return largest if deepest >= largest else -1.0
        depth = min(2.0 * depth, deepest)


@jit()
def _depths_below(slopes: Float, largest: float, deepest: float) -> Float:
    """Return the depths, less than `deepest`, of the slopes below the largest."""
    out = np.empty(slopes.size + 1)  # one more: each depth is written before it is accepted
    count = 0
    for slope in slopes:
        depth = largest - abs(slope)
        out[count] = depth
        count += depth < deepest
    return out[:count]


@jit()
def _first_guess(slopes: Float, largest: float, l1_bound: float) -> float:
    """Return a depth with about twice as many slopes as the bound needs at least."""
    # A unit vector of m equal entries has the L1 norm sqrt(m): at least bound^2 slopes are active.
    # The factors are not tuned: the result does not depend on the guess.
    wanted = 2.0 * l1_bound * l1_bound + 8.0
    low, high = 0.0, largest
    for _ in range(12):
        middle = (low + high) / 2
        count = 0
        for slope in slopes:
            count += largest - abs(slope) < middle
        if count < wanted:
            low = middle
        else:
            high = middle
            if count < 2.0 * wanted:
                break
    return high


@jit()
def _find_active_depth_within(depths: Float, l1_bound: float, deepest: float) -> float:
    """Return the active depth if it is at most `deepest`, else -1.

    With m active features, S1 and S2 the sums of their depths and squared depths, the ratio of the
    norms at the active depth c is (m c - S1) / sqrt(m c^2 - 2 c S1 + S2). It increases with c and
    equals the bound where m c = S1 + bound * sqrt((m S2 - S1^2) / (m - bound^2)). That root is the
    solution if the same features are active there; otherwise the next iteration starts from it.
    Bisection replaces a root outside the bracket.
    """
    squared_bound = l1_bound * l1_bound
    low, high, c, n_active = 0.0, deepest, deepest, -1
    while True:
        m = 0
        s1 = s2 = 0.0
        for depth in depths:
            if depth < c:
                m += 1
                s1 += depth
                s2 += depth * depth
        if m == n_active:
            return c
        l1, l2_squared = m * c - s1, m * c * c - 2.0 * c * s1 + s2
        if l2_squared > 0.0 and l1 * l1 >= squared_bound * l2_squared:
            high = c
        elif c == deepest:
            return -1.0
        else:
            low = c
        root, n_active = -1.0, m
        if m > squared_bound:
            root = (s1 + l1_bound * np.sqrt(max(m * s2 - s1 * s1, 0.0) / (m - squared_bound))) / m
        if not low < root < high:
            root, n_active = (low + high) / 2, -1
            if root in (low, high):  # adjacent floating-point numbers
                return high
        c = root
