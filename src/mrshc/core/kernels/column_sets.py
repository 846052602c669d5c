"""Membership of columns in sorted sets."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Index, Mask
from mrshc.core.kernels.jit import jit


@jit()
def sets_contain(starts: Index, members: Index, sets: Index, columns: Index) -> Mask:
    """Return whether columns[i] is in the set sets[i], by binary search.

    Set k is members[starts[k]:starts[k + 1]], increasing.
    """
    found = np.zeros(columns.size, dtype=np.bool_)
    for i in range(columns.size):
        low, high = starts[sets[i]], starts[sets[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if members[middle] < columns[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = low < starts[sets[i] + 1] and members[low] == columns[i]
    return found
