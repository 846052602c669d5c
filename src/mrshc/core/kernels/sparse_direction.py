"""Computation of sparse loadings v under an L1 bound, with an exact soft threshold.

The entries of X'u, where u are the scores, are called slopes. The depth of a slope is the largest
absolute slope, `largest`, minus the absolute value of the slope. Soft-thresholding at delta keeps
the slopes whose depth is less than `largest - delta`, which is called the active depth. Computing
with depths instead of thresholds avoids cancellation if the largest slopes are nearly equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# The active depth changes little from one iteration of the alternating algorithm to the next. The
# search starts from the previous active depth times this factor, so that it rarely has to be
# repeated with a larger depth. With a larger factor, each search takes longer, since it considers
# more slopes. The factor does not affect the result.
_DEPTH_FACTOR = 1.1


class Candidates(NamedTuple):
    """Arrays for the slopes that may be active, which each search overwrites.

    The arrays are allocated once for many searches. They have one entry more than there are slopes.
    """

    positions: Index  # positions of the slopes, increasing
    depths: Float  # their depths


@jit()
def empty_candidates(n_slopes: int) -> Candidates:
    """Return arrays for the candidates among a number of slopes."""
    return Candidates(np.empty(n_slopes + 1, np.intp), np.empty(n_slopes + 1))


@jit()
def sparse_direction(slopes: Float, l1_bound: float) -> tuple[Index, Float]:
    """Return the vector v that maximises slopes'v subject to |v|_2 <= 1 and |v|_1 <= l1_bound.

    The maximising v is not unique if more than l1_bound**2 slopes are tied for the largest absolute
    value. In this case, the returned v has the L1 norm l1_bound, its entries for the tied slopes
    have equal absolute values, and its other entries are zero.

    Parameters
    ----------
    slopes : array of shape (p,)
        Coefficients of the linear objective function.
    l1_bound : float
        Upper bound of the L1 norm, at least 1.

    Returns
    -------
    indices : array of shape (m,)
        Indices of the non-zero entries of v, in increasing order; empty if all slopes are zero.
    weights : array of shape (m,)
        Values of the non-zero entries of v.
    """
    largest = largest_slope(slopes)
    if largest == 0.0:
        return np.empty(0, np.intp), np.empty(0)
    candidates = empty_candidates(slopes.size)
    active_depth, n_candidates = find_active_depth(
        slopes, largest, l1_bound, -1.0, largest, candidates
    )
    indices, weights = np.empty(n_candidates, np.intp), np.empty(n_candidates)
    count = threshold_candidates(
        slopes, candidates, n_candidates, active_depth, l1_bound, indices, weights
    )
    return indices[:count].copy(), weights[:count].copy()


# The fastmath option allows the compiler to vectorise the loop. It does not change the result,
# since a maximum of values without NaN does not depend on the order of comparisons.
@jit(fastmath={"nnan"})
def largest_slope(slopes: Float) -> float:
    """Return the largest absolute value of the slopes."""
    largest = 0.0
    for slope in slopes:
        largest = max(largest, abs(slope))
    return largest


@jit(allocates=False)
def threshold_candidates(
    slopes: Float,
    candidates: Candidates,
    n_candidates: int,
    active_depth: float,
    l1_bound: float,
    indices: Index,
    weights: Float,
) -> int:
    """Write the slopes after soft-thresholding, scaled to unit L2 norm, and return their number.

    If the active depth is zero, only the slopes tied for the largest absolute value remain. These
    slopes get equal absolute weights, and the result has the L1 norm `l1_bound` instead of unit L2
    norm.

    Parameters
    ----------
    slopes : array
        The slopes.
    candidates, n_candidates, active_depth
        Results of :func:`find_active_depth`.
    l1_bound : float
        L1 norm of the result if the active depth is zero; not used otherwise.
    indices, weights : arrays with at least `n_candidates` entries
        Output: the indices of the non-zero entries of the result, in increasing order, and the
        values of these entries.

    Returns
    -------
    int
        Number of non-zero entries.
    """
    positions, depths = candidates.positions, candidates.depths
    count = 0
    squares = 0.0
    for c in range(n_candidates):
        depth = depths[c]
        # Slopes tied for the largest absolute value are kept even if the active depth is zero.
        if depth < active_depth or depth == 0.0:
            indices[count] = positions[c]
            weight = active_depth - depth  # equals |slope| - delta, but avoids cancellation
            weights[count] = weight
            squares += weight * weight
            count += 1
    norm = np.sqrt(squares)
    for k in range(count):
        weight = weights[k] / norm if active_depth > 0.0 else l1_bound / count
        weights[k] = -weight if slopes[indices[k]] < 0.0 else weight
    return count


@jit(allocates=False)
def find_active_depth(
    slopes: Float,
    largest: float,
    l1_bound: float,
    previous_depth: float,
    max_depth: float,
    candidates: Candidates,
) -> tuple[float, int]:
    """Return the active depth, largest - delta, where delta is the soft threshold for an L1 bound.

    At the threshold delta, the ratio of the L1 norm to the L2 norm of the soft-thresholded slopes
    equals the L1 bound. If the ratio is smaller than the bound for all positive thresholds, delta
    is zero. If the ratio is larger than the bound for all thresholds, because too many slopes are
    tied for the largest absolute value, the active depth is zero. The depth of a slope is `largest`
    minus its absolute value. Only slopes of small depth affect the result. The search is therefore
    first restricted to a small depth, which is doubled until it is large enough.

    Parameters
    ----------
    slopes : array of shape (m,)
        The slopes of m columns, that is, their inner products with the scores.
    largest : float
        Largest absolute value of the slopes.
    l1_bound : float
        L1 bound of the loadings.
    previous_depth : float
        Active depth of a similar problem, such as the previous iteration; negative if there is
        none.
    max_depth : float
        Largest active depth to consider. The search is unrestricted if `max_depth` is `largest`.
    candidates : Candidates
        Output: slopes of small depth, among them all that are active.

    Returns
    -------
    active_depth : float
        The active depth, or -1 if it is larger than `max_depth`.
    n_candidates : int
        Number of candidates.
    """
    n_tied = 0
    for slope in slopes:
        n_tied += largest - abs(slope) == 0.0
    # A unit vector with m equal entries has the L1 norm sqrt(m). So if the number of tied slopes is
    # at least the squared bound, no other slope can be active. If the number equals the squared
    # bound, any threshold between the tied slopes and the next slope gives the same result.
    if n_tied >= l1_bound * l1_bound:
        second = _second_depth(slopes, largest)
        n_candidates = _collect_candidates(slopes, largest, second, candidates)
        return second if n_tied == l1_bound * l1_bound else 0.0, n_candidates
    start_depth = _DEPTH_FACTOR * previous_depth
    if start_depth <= 0.0:
        start_depth = _initial_depth(slopes, largest, l1_bound)
    depth = min(start_depth, max_depth)
    while True:
        n_candidates = _collect_candidates(slopes, largest, depth, candidates)
        active_depth = _find_active_depth_within(candidates.depths[:n_candidates], l1_bound, depth)
        if active_depth >= 0.0:
            return active_depth, n_candidates
        # If the L1 bound is not reached even with all slopes, the threshold is zero, and the active
        # depth is `largest`.
        if depth >= max_depth:
            return largest if max_depth >= largest else -1.0, n_candidates
        depth = min(2.0 * depth, max_depth)


@jit(allocates=False)
def _second_depth(slopes: Float, largest: float) -> float:
    """Return the smallest depth that is not zero; `largest` if there is none."""
    smallest = largest
    for slope in slopes:
        depth = largest - abs(slope)
        if 0.0 < depth < smallest:
            smallest = depth
    return smallest


@jit(allocates=False)
def _collect_candidates(
    slopes: Float, largest: float, max_depth: float, candidates: Candidates
) -> int:
    """Write the slopes with a depth less than `max_depth` to `candidates`; return their number.

    The depth of a slope is `largest`, the largest absolute slope, minus its absolute value.
    """
    # Every depth is written, but it is overwritten by the next depth unless the count increases.
    # The loop therefore has no branch. The arrays have one extra entry, since a depth may be
    # written after the last depth that is kept.
    positions, depths = candidates.positions, candidates.depths
    count = 0
    for j in range(slopes.size):
        depth = largest - abs(slopes[j])
        positions[count] = j
        depths[count] = depth
        count += depth < max_depth
    return count


@jit(allocates=False)
def _initial_depth(slopes: Float, largest: float, l1_bound: float) -> float:
    """Return the depth at which the search for the active depth starts.

    The depth of a slope is `largest`, the largest absolute slope, minus its absolute value. At
    least l1_bound**2 slopes are active. The number of slopes with a smaller depth than the returned
    depth is usually two to four times this minimum.
    """
    # A unit vector with m non-zero entries has an L1 norm of at most sqrt(m), so at least bound^2
    # slopes are active. Some slopes are added for small bounds. The bisection ends at a resolution
    # of 1/4096 of the largest slope. The numbers 2, 8 and 4096 have not been tuned, since the
    # initial depth does not affect the result.
    n_wanted = 2.0 * l1_bound * l1_bound + 8.0
    low, high, resolution = 0.0, largest, largest / 4096
    # If the resolution underflows, there would be no end.
    while high - low > resolution > 0.0:
        middle = (low + high) / 2
        count = 0
        for slope in slopes:
            count += largest - abs(slope) < middle
        if count < n_wanted:
            low = middle
        else:
            high = middle
            # Stop if the number is close enough: a more precise depth would not make the search
            # much faster.
            if count < 2.0 * n_wanted:
                break
    return high


@jit(allocates=False)
def _find_active_depth_within(depths: Float, l1_bound: float, max_depth: float) -> float:
    """Return the active depth if it is at most `max_depth`, otherwise -1.

    Parameters
    ----------
    depths : array
        Depths of the slopes (largest absolute slope minus absolute slope) that are less than
        `max_depth`.
    l1_bound : float
        L1 bound of the loadings.
    max_depth : float
        Largest active depth to consider.

    Notes
    -----
    At an active depth c, the slopes with a depth less than c are active. Let m be the number of
    active slopes, and let S1 and S2 be the sums of their depths and squared depths. The ratio of
    the L1 norm to the L2 norm of the soft-thresholded slopes is
    (m c - S1) / sqrt(m c^2 - 2 c S1 + S2). The ratio increases with c and equals the L1 bound if
    m c = S1 + bound * sqrt((m S2 - S1^2) / (m - bound^2)). Each iteration solves this equation for
    c. The solution is the active depth if the same slopes are active at the new c as at the old c;
    otherwise the next iteration starts from the new c. If the solution is outside the bracket of
    possible values, a bisection step is made instead.
    """
    squared_bound = l1_bound * l1_bound
    low, high, c, n_active = 0.0, max_depth, max_depth, -1
    while True:
        m = 0
        s1 = s2 = 0.0
        for depth in depths:
            # Zeros are added instead of skipping slopes: the processor cannot predict which slopes
            # are active, and a sum does not change by adding zero.
            active = depth if depth < c else 0.0
            m += depth < c
            s1 += active
            s2 += active * active
        # As c grows, slopes become active but never inactive. So if the number of active slopes has
        # not changed, the same slopes are active.
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
            # By the Cauchy-Schwarz inequality, m S2 - S1^2 is negative only through rounding.
            root = (s1 + l1_bound * np.sqrt(max(m * s2 - s1 * s1, 0.0) / (m - squared_bound))) / m
        if not low < root < high:
            root, n_active = (low + high) / 2, -1
            # The computed midpoint equals an end of the bracket only if the ends are adjacent
            # floating-point numbers. The bracket cannot shrink further.
            if root in (low, high):
                return high
        c = root
