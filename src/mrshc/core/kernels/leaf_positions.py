"""Positions of the leaves below each node of a tree, and labels of the leaves below some nodes."""

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


@jit()
def labels_of_nodes(order: Index, starts: Index, ends: Index, nodes: Index) -> Index:
    """Return the label of each leaf of a tree if the clusters are the leaves below given nodes.

    Parameters
    ----------
    order : array of shape (n,)
        The leaves from left to right.
    starts, ends : array of shape (2 n - 1,)
        The leaves below node i are order[starts[i]], ..., order[ends[i] - 1].
    nodes : array of shape (k,)
        Nodes such that each leaf is below exactly one of them.

    Returns
    -------
    array of shape (n,)
        Labels 0, ..., k - 1, in increasing order of the smallest leaf of each cluster.
    """
    owners, numbers = np.zeros(order.size, np.intp), np.empty(nodes.size, np.intp)
    for k in range(nodes.size):
        numbers[k] = -1
        for position in range(starts[nodes[k]], ends[nodes[k]]):
            owners[order[position]] = k
    count = 0
    for leaf in range(owners.size):
        if numbers[owners[leaf]] < 0:
            numbers[owners[leaf]] = count
            count += 1
        owners[leaf] = numbers[owners[leaf]]
    return owners
