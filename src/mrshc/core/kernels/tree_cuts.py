"""Cuts of a tree into several numbers of clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit


@jit()
def cut_into_clusters(children: Index, cluster_counts: Index) -> NDArray[np.intp]:
    """Return the cluster of each sample for several cuts of a tree.

    Parameters
    ----------
    children : array of int of shape (n - 1, 2)
        The two nodes that each merge joins, numbered as in scipy: the n samples are the nodes 0,
        ..., n - 1, and merge i forms node n + i.
    cluster_counts : array of int of shape (m,)
        Number of clusters of each cut, at most n.

    Returns
    -------
    array of int of shape (m, n)
        Clusters of the samples, one cut in each row. Clusters are numbered 0, 1, ... in the order
        of their first sample.
    """
    n = children.shape[0] + 1
    root = 2 * n - 2
    labels = np.empty((cluster_counts.size, n), np.intp)
    clusters = np.empty(2 * n - 1, np.intp)
    numbers = np.empty(2 * n - 1, np.intp)
    for m in range(cluster_counts.size):
        # A cut into k clusters undoes the last k - 1 merges. The children of a merge that is undone
        # are clusters unless they are undone too.
        first_undone = root - cluster_counts[m] + 2
        clusters[root] = root
        for node in range(root, n - 1, -1):
            for side in range(2):
                child = children[node - n, side]
                clusters[child] = child if node >= first_undone else clusters[node]
        numbers[:] = -1
        n_numbered = 0
        for i in range(n):
            if numbers[clusters[i]] < 0:
                numbers[clusters[i]] = n_numbered
                n_numbered += 1
            labels[m, i] = numbers[clusters[i]]
    return labels
