"""Positions of the leaves below each node of a tree, in the left-to-right order of the leaves."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit


@jit()
def first_leaf_positions(children: Index, sizes: Index) -> Index:
    """Return, for each node of a tree, the position of the leftmost leaf below the node.

    Positions refer to the order of the leaves from left to right, starting at 0.

    Parameters
    ----------
    children : array of shape (n - 1, 2)
        Left and right child of each merge of a tree with n leaves. Nodes are numbered as in scipy's
        linkage matrix: 0, ..., n - 1 are the leaves, and n + i is the result of merge i.
    sizes : array of shape (2 n - 1,)
        Number of leaves below each node; 1 for a leaf.

    Returns
    -------
    array of shape (2 n - 1,)
        If `out` denotes the returned array, the leaves below node i have the positions out[i], ...,
        out[i] + sizes[i] - 1.
    """
    n = children.shape[0] + 1
    starts = np.empty(2 * n - 1, np.intp)
    starts[2 * n - 2] = 0  # the root
    # The loop runs from the last merge, which is the root, to the first merge, because the position
    # of a parent must be computed before the positions of its children.
    for merge in range(n - 2, -1, -1):
        left, right = children[merge, 0], children[merge, 1]
        starts[left] = starts[n + merge]
        starts[right] = starts[n + merge] + sizes[left]
    return starts
