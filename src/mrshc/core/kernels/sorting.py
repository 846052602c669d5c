"""Stable sorting of numbers.

Numba compiles its own functions for sorting anew for each array type, which takes several times as
long as the compilation of this module.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Runs of this length are sorted by insertion before they are merged, since insertion is faster than
# merging for few values. The length is not tuned: the result does not depend on it.
_RUN = 16


@jit()
def stable_order(values: Float) -> Index:
    """Return the indices that sort a vector in increasing order.

    Equal values keep their order, and NaN come last. The algorithm is merge sort.

    Parameters
    ----------
    values : array of shape (n,)
        The values to sort.

    Returns
    -------
    array of int of shape (n,)
        Index of the smallest value, of the second smallest value, and so on.
    """
    n = values.size
    order, merged = np.empty(n, np.intp), np.empty(n, np.intp)
    for start in range(0, n, _RUN):
        _sort_by_insertion(values, order, start, min(start + _RUN, n))
    width = _RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            a, b = start, middle
            for k in range(start, end):
                # Of two equal values, that of the first run comes first.
                if b == end or (a < middle and not _is_less(values[order[b]], values[order[a]])):
                    merged[k] = order[a]
                    a += 1
                else:
                    merged[k] = order[b]
                    b += 1
        order, merged = merged, order
        width *= 2
    return order


@jit()
def _sort_by_insertion(values: Float, order: Index, start: int, end: int) -> None:
    """Write the indices start, ..., end - 1, sorted by their values, to these places of `order`."""
    for i in range(start, end):
        place = i
        while place > start and _is_less(values[i], values[order[place - 1]]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


@jit()
def _is_less(a: float, b: float) -> bool:
    """Return whether a comes before b; NaN comes after all numbers."""
    return a < b or (np.isnan(b) and not np.isnan(a))
