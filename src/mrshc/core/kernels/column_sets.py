"""Membership of columns in sorted sets of columns."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Index, Mask
from mrshc.core.kernels.jit import jit


@jit()
def are_in_sets(starts: Index, members: Index, sets: Index, columns: Index) -> Mask:
    """Return whether columns[i] is in the set number sets[i], by binary search.

    Parameters
    ----------
    starts : array of shape (n_sets + 1,)
        Set k is members[starts[k]:starts[k + 1]].
    members : array
        The columns of all sets, one set after the other, increasing within each set.
    sets, columns : arrays of the same length
        Pairs of a set and a column.

    Returns
    -------
    array of bool
        One entry for each pair.
    """
    is_member = np.zeros(columns.size, dtype=np.bool_)
    for i in range(columns.size):
        low, high = starts[sets[i]], starts[sets[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if members[middle] < columns[i]:
                low = middle + 1
            else:
                high = middle
        # `low` is the first position whose member is not smaller, perhaps the end of the set.
        is_member[i] = low < starts[sets[i] + 1] and members[low] == columns[i]
    return is_member
