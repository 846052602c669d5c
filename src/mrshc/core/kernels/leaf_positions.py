"""Positions of the nodes of a tree in its leaf order."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit


@jit()
def first_leaf_positions(children: Index, sizes: Index) -> Index:
    """Return the position of the first leaf of each node in the order from left to right."""
    n = children.shape[0] + 1
    starts = np.zeros(2 * n - 1, np.intp)
    for merge in range(n - 2, -1, -1):  # parents come before their children
        left, right = children[merge, 0], children[merge, 1]
        starts[left] = starts[n + merge]
        starts[right] = starts[n + merge] + sizes[left]
    return starts
