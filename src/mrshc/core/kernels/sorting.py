"""Stable sorting of numbers.

Numba compiles its own functions for sorting anew for each array type, which takes several times as
long as the compilation of this module.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Runs of this length are sorted by insertion before they are merged, since insertion is faster than
# merging for few values. The length is not tuned: the result does not depend on it.
_RUN = 16

# From this number of values on, values are sorted by their digits. For fewer values, clearing the
# counts of all digits takes longer than the sort saves. The results do not depend on the number.
_MIN_DIGIT_SORT = 1024

# The leading 33 of the 64 bits of a value are sorted as three digits of 11 bits, whose counts fit
# into the first-level cache. They contain the sign, the exponent and 21 bits of the fraction.
_DIGIT_BITS, _DIGIT_SHIFTS = 11, (31, 42, 53)
_N_DIGITS = 1 << _DIGIT_BITS

# The order after the sort of the digits is completed by insertion. If this number of moves per
# value is not enough, because many values agree in the leading bits, merge sort is used instead.
_MAX_MOVES = 8


@jit()
def stable_order(values: Float) -> Index:
    """Return the indices that sort a vector in increasing order.

    Equal values keep their order, and NaN come last. The algorithm is radix sort for many values,
    and merge sort for few.

    Parameters
    ----------
    values : array of shape (n,)
        The values to sort.

    Returns
    -------
    array of int of shape (n,)
        Index of the smallest value, of the second smallest value, and so on.
    """
    if values.size >= _MIN_DIGIT_SORT:
        keys = _sortable_keys(values)
        order = _order_by_leading_digits(keys)
        if _complete_by_insertion(keys, order):
            return order
    return _merge_sort_order(values)


@jit()
def _sortable_keys(values: Float) -> NDArray[np.uint64]:
    """Return integers that have the same order as the values; NaN have the largest."""
    keys = np.empty(values.size, np.uint64)
    sign = np.uint64(1) << np.uint64(63)
    for i in range(values.size):
        # Adding zero turns a negative zero, which equals zero, into zero.
        keys[i] = np.float64(values[i] + 0.0).view(np.uint64)
        # The bits of a positive number increase with the number, those of a negative one decrease.
        keys[i] = ~keys[i] if keys[i] & sign else keys[i] | sign
        if np.isnan(values[i]):
            keys[i] = ~np.uint64(0)
    return keys


@jit()
def _order_by_leading_digits(keys: NDArray[np.uint64]) -> Index:
    """Return the indices that sort keys by their leading 33 bits; others keep their order."""
    n, mask = keys.size, np.uint64(_N_DIGITS - 1)
    order, other = np.empty(n, np.intp), np.empty(n, np.intp)
    for i in range(n):
        order[i] = i
    starts = np.empty(_N_DIGITS, np.intp)
    for shift in _DIGIT_SHIFTS:
        starts[:] = 0
        for i in range(n):
            starts[np.intp((keys[i] >> np.uint64(shift)) & mask)] += 1
        total = 0
        for digit in range(_N_DIGITS):
            count = starts[digit]
            starts[digit] = total
            total += count
        for i in range(n):
            leading = np.intp((keys[order[i]] >> np.uint64(shift)) & mask)
            other[starts[leading]] = order[i]
            starts[leading] += 1
        order, other = other, order
    return order


@jit()
def _complete_by_insertion(keys: NDArray[np.uint64], order: Index) -> bool:
    """Sort `order`, which is nearly sorted, in place; return False if it takes too many moves."""
    n_moves = _MAX_MOVES * keys.size
    for i in range(1, keys.size):
        moved, place = order[i], i
        while place > 0 and keys[order[place - 1]] > keys[moved]:
            order[place] = order[place - 1]
            place -= 1
            n_moves -= 1
            if n_moves < 0:
                return False
        order[place] = moved
    return True


@jit()
def _merge_sort_order(values: Float) -> Index:
    """Return the indices that sort a vector in increasing order; see `stable_order`."""
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
