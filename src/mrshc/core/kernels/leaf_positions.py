"""Positions of the nodes of a tree in the order of its leaves."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit


@jit()
def first_leaf_positions(children: Index, sizes: Index) -> Index:
    """Return the position of the first leaf of each node in the order from left to right.

    Parameters
    ----------
    children : array of shape (n - 1, 2)
        Left and right child of each merge, as in scipy's linkage matrix.
    sizes : array of shape (2 n - 1,)
        Number of leaves of each node.

    Returns
    -------
    array of shape (2 n - 1,)
        The leaves of node i have the positions out[i], ..., out[i] + sizes[i] - 1.
    """
    n = children.shape[0] + 1
    starts = np.zeros(2 * n - 1, np.intp)
    # From the root, the last merge, to the leaves: the position of a parent must be known before
    # those of its children.
    for merge in range(n - 2, -1, -1):
        left, right = children[merge, 0], children[merge, 1]
        starts[left] = starts[n + merge]
        starts[right] = starts[n + merge] + sizes[left]
    return starts
