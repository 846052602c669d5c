"""Test whether columns belong to given sets of columns."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Index, Mask
from mrshc.core.kernels.jit import jit


@jit()
def are_in_sets(starts: Index, members: Index, sets: Index, columns: Index) -> Mask:
    """Return, for each i, whether columns[i] belongs to set number sets[i].

    Parameters
    ----------
    starts : array of shape (n_sets + 1,)
        Set number k consists of the columns members[starts[k]:starts[k + 1]].
    members : array
        The columns of all sets, one set after the other. Within each set, the columns are in
        increasing order, as binary search requires.
    sets, columns : arrays of the same length
        The pairs to test: the number of a set, and a column.

    Returns
    -------
    array of bool
        One entry for each pair; True if the column belongs to the set.
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
        # `low` is now the position of the first member that is at least columns[i], or the end of
        # the set if there is no such member.
        is_member[i] = low < starts[sets[i] + 1] and members[low] == columns[i]
    return is_member
