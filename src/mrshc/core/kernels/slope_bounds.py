"""Upper bounds of all slopes at the scores u of an earlier run of the alternating algorithm.

The iterations at neighbouring L1 bounds have similar scores. If u differs by a vector of norm d
from scores at which a slope was bounded, the slope is at most the bound plus d times the norm of
the column. The bounds are stored as bytes: for data that exceed the cache of the processor, most of
the time of an iteration is spent on reading, and bounds are read in less time than the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.sparse_direction import largest_slope
from mrshc.core.kernels.vectors import copy_into

# Upper bounds of slopes are stored in units of 1/254 of the largest slope. Rounding up turns the
# largest slope into at most 255, the largest value of a byte.
_N_BOUND_STEPS = 254.0
# Upper limit of the rounding errors of a slope in these units; they are about 1e-13.
_BOUND_ROUNDING = 1e-9


class SlopeBounds(NamedTuple):
    """Upper bounds of all slopes in the first T iterations of the alternating algorithm.

    In iteration t, the scores were `scores[t]`, and the absolute inner product of column j of the
    centred data with them was at most `quantised[t, j] * units[t]`.
    """

    scores: Float  # (T, n), the vector u of each iteration
    quantised: NDArray[np.uint8]  # (T, p), bounds in multiples of `units`
    units: Float  # (T,), unit of the bounds of each iteration
    thresholds: Float  # (T,), soft thresholds; negative if the bounds were not computed


@jit(allocates=False)
def has_bounds(bounds: SlopeBounds, t: int) -> bool:
    """Return whether the slopes of iteration t have been bounded in an earlier run."""
    return t < bounds.units.size and bounds.thresholds[t] > 0.0


@jit(allocates=False)
def write_bounds(bounds: SlopeBounds, t: int, u: Float, slopes: Float) -> None:
    """Write the scores u and upper bounds of the slopes to row t, if there is such a row.

    `u` has shape (n,). `slopes`, of shape (p,), are the inner products of the p columns of the
    centred data with u. The bounds are not valid until `write_threshold` is called.
    """
    if t >= bounds.units.size:
        return
    # The unit must be positive, since slopes are divided by it even if all slopes are zero. The
    # lower limit 1e-300 is far below any unit that occurs otherwise.
    unit = max(largest_slope(slopes) / _N_BOUND_STEPS, 1e-300)
    copy_into(bounds.scores[t], u)
    bounds.units[t], bounds.thresholds[t] = unit, -1.0
    row, per_unit = bounds.quantised[t], 1.0 / unit
    for j in range(slopes.size):
        # The conversion to an integer rounds down, so 1 is added to obtain an upper bound. A
        # multiplication takes less time than a division. The small number exceeds its rounding
        # errors.
        row[j] = np.uint8(abs(slopes[j]) * per_unit + (1.0 + _BOUND_ROUNDING))


@jit(allocates=False)
def write_threshold(bounds: SlopeBounds, t: int, threshold: float) -> None:
    """Write the soft threshold of the slopes to row t, if there is such a row."""
    if t < bounds.units.size:
        bounds.thresholds[t] = threshold
