"""Agglomerative hierarchical clustering of small data sets, as in :func:`scipy.cluster.hierarchy`.

A fit builds hundreds of trees, and many fits may run in parallel threads. For a few dozen samples,
most of the time of scipy's function is spent in Python, which only one thread can execute at a
time. The functions of this module return the same trees, and can be called from compiled code.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.sorting import stable_order
from mrshc.core.kernels.vectors import index_range


@jit()
def linkage_matrix(distances: Float, linkage: int) -> Float:
    """Return the tree of agglomerative hierarchical clustering, in the format of scipy.

    If several pairs of clusters are equally close, the pair that scipy merges first is merged.

    Parameters
    ----------
    distances : array of shape (n, n)
        Finite distances between the n samples; squared Euclidean distances for Ward's linkage. Only
        the entries above the diagonal are used, and the array is not changed.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`. Centroid and median
        linkage are not supported, since the nearest-neighbour chain algorithm is not valid for
        them.

    Returns
    -------
    array of shape (n - 1, 4)
        In each row, the two nodes that are merged, the height, and the number of samples below the
        new node. The heights of Ward's linkage are on the scale of distances that are not squared.
    """
    working = _symmetric_copy(distances, linkage == LinkageMethod.ward)
    if linkage == LinkageMethod.single:
        merges = single_linkage_merges(working)
    else:
        merges = _chain_merges(working, linkage)
    return number_nodes(merges)


@jit()
def _symmetric_copy(distances: Float, take_roots: bool) -> Float:
    """Return a symmetric copy of the distances, or of their square roots.

    The diagonal is infinite, so that no cluster is its own nearest neighbour.
    """
    n = distances.shape[0]
    working = np.empty((n, n))
    for i in range(n):
        working[i, i] = np.inf
        for j in range(i + 1, n):
            distance = np.sqrt(distances[i, j]) if take_roots else distances[i, j]
            working[i, j] = distance
            working[j, i] = distance
    return working


@jit()
def _chain_merges(distances: Float, linkage: int) -> Float:
    """Return the merges of a tree, found by the nearest-neighbour chain algorithm (Muellner 2011).

    A chain of clusters is extended by the nearest neighbour of its last cluster. Two clusters are
    merged when each is the nearest neighbour of the other. The merges are those of the tree, but
    they are not in order of increasing height.

    Parameters
    ----------
    distances : array of shape (n, n)
        Symmetric distances between the n samples, infinite on the diagonal. The array is
        overwritten.
    linkage : int
        Value of a `LinkageMethod`.

    Returns
    -------
    array of shape (n - 1, 3)
        In each row, a sample of each of the two merged clusters, and the height.
    """
    n = distances.shape[0]
    merges, sizes = np.empty((n - 1, 3)), np.empty(n)
    sizes[:] = 1.0
    chain, length, first = np.empty(n, np.intp), 0, 0
    for m in range(n - 1):
        if length == 0:
            while sizes[first] == 0.0:
                first += 1
            chain[0], length = first, 1
        while True:
            row = distances[chain[length - 1]]
            height = _smallest(row)
            # If several clusters are equally close, the previous cluster of the chain is preferred,
            # so that the chain ends.
            if length > 1 and row[chain[length - 2]] == height:
                break
            nearest = 0
            while row[nearest] != height:
                nearest += 1
            chain[length] = nearest
            length += 1
        x, y = chain[length - 2], chain[length - 1]
        length -= 2
        # The union takes the place of the later cluster, as in scipy. The order of the clusters
        # decides which of several equally close clusters is found first.
        x, y = min(x, y), max(x, y)
        merges[m, 0], merges[m, 1], merges[m, 2] = x, y, height
        merge_rows(distances[x], distances[y], sizes, x, y, linkage)
        sizes[y] += sizes[x]
        sizes[x] = 0.0
        for i in range(n):
            distances[i, y] = distances[y, i]
            distances[i, x] = np.inf
    return merges


# The fastmath options allow the compiler to vectorise the loop. They do not change the result,
# since a minimum does not depend on the order in which entries are compared.
@jit(fastmath={"nnan", "nsz"})
def _smallest(row: Float) -> float:
    smallest = np.inf
    for distance in row:
        smallest = min(smallest, distance)
    return smallest


# Division as in numpy raises no errors, so the loops can be vectorised.
@jit(error_model="numpy")
def merge_rows(row_x: Float, row_y: Float, sizes: Float, x: int, y: int, linkage: int) -> None:
    """Overwrite `row_y` with the distances from the union of clusters x and y to all clusters.

    `row_x` and `row_y` contain the distances from x and y, and `sizes` the numbers of samples of
    all clusters. The distances to clusters that no longer exist are infinite and remain so. The
    formulas are those of Lance and Williams (1967), with the operations in the order of scipy, so
    that the rounding errors are the same.
    """
    d_xy, n_x, n_y = row_y[x], sizes[x], sizes[y]
    if linkage == LinkageMethod.complete:
        for i in range(row_y.size):
            row_y[i] = max(row_x[i], row_y[i])
    elif linkage == LinkageMethod.average:
        for i in range(row_y.size):
            row_y[i] = (n_x * row_x[i] + n_y * row_y[i]) / (n_x + n_y)
    elif linkage == LinkageMethod.weighted:
        for i in range(row_y.size):
            row_y[i] = 0.5 * (row_x[i] + row_y[i])
    else:  # LinkageMethod.ward
        for i in range(row_y.size):
            n_i, d_x, d_y = sizes[i], row_x[i], row_y[i]
            t = 1.0 / (n_x + n_y + n_i)
            row_y[i] = np.sqrt(
                (n_i + n_x) * t * d_x * d_x + (n_i + n_y) * t * d_y * d_y - n_i * t * d_xy * d_xy
            )
    row_y[x] = np.inf
    row_y[y] = np.inf


@jit()
def single_linkage_merges(distances: Float) -> Float:
    """Return the merges of single linkage, found by Prim's algorithm for minimum spanning trees.

    The parameter and the result are those of `_chain_merges`. Samples are added to the spanning
    tree one after another. In each row of the result, the first sample is the one that was added
    before the second, which is not always its neighbour in the spanning tree. The clusters are
    nevertheless those of single linkage, because the samples that were added in between are merged
    at smaller heights.
    """
    n = distances.shape[0]
    merges, closest, is_added = np.empty((n - 1, 3)), np.empty(n), np.empty(n, np.bool_)
    closest[:] = np.inf
    is_added[:] = False
    x = 0
    for m in range(n - 1):
        is_added[x] = True
        nearest, height = 0, np.inf
        for i in range(n):
            if is_added[i]:
                continue
            closest[i] = min(closest[i], distances[x, i])
            if closest[i] < height:
                nearest, height = i, closest[i]
        merges[m, 0], merges[m, 1], merges[m, 2] = x, nearest, height
        x = nearest
    return merges


@jit()
def number_nodes(merges: Float) -> Float:
    """Return a linkage matrix in the format of scipy, given merges in any order.

    `merges` has the shape (n - 1, 3), as returned by `_chain_merges`.
    """
    n = merges.shape[0] + 1
    tree = np.empty((n - 1, 4))
    # parents[node] is a node above `node`, or `node` itself if it has not been merged.
    parents, sizes = index_range(2 * n - 1), np.empty(2 * n - 1)
    sizes[:] = 1.0
    # Equal heights stay in the order in which the merges were found, as in scipy.
    order = stable_order(merges[:, 2].copy())
    for row in range(n - 1):
        merge = merges[order[row]]
        a, b = _root(parents, int(merge[0])), _root(parents, int(merge[1]))
        parents[a] = n + row
        parents[b] = n + row
        sizes[n + row] = sizes[a] + sizes[b]
        tree[row, 0], tree[row, 1] = min(a, b), max(a, b)
        tree[row, 2], tree[row, 3] = merge[2], sizes[n + row]
    return tree


@jit()
def _root(parents: Index, node: int) -> int:
    """Return the topmost node above a node, and shorten the path to it for later calls."""
    root = node
    while parents[root] != root:
        root = parents[root]
    while parents[node] != root:
        parents[node], node = root, parents[node]
    return root
