"""The last merge of a hierarchical clustering, by the nearest-neighbour chain algorithm.

References
----------
Muellner, D. (2013). fastcluster: fast hierarchical, agglomerative clustering routines for R and
Python. Journal of Statistical Software 53(9). https://doi.org/10.18637/jss.v053.i09
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod


class Clusters(NamedTuple):
    """The clusters of an agglomeration, and the chain of nearest neighbours, for n samples.

    All arrays have the shape (n,). The members of a cluster are stored as a linked list, so two
    clusters are joined in O(1).
    """

    sizes: Float  # number of samples of each cluster
    first_member: Index  # first sample of each cluster
    last_member: Index  # last sample of each cluster
    next_member: Index  # next sample of the same cluster; -1 for its last sample
    chain: Index  # clusters, each of which is the nearest neighbour of the one before


@jit()
def empty_clusters(n: int) -> Clusters:
    """Return arrays for the clusters of n samples."""
    indices = np.empty((4, n), np.intp)
    return Clusters(np.empty(n), indices[0], indices[1], indices[2], indices[3])


@jit(allocates=False)
def mark_top_split(distances: Float, linkage: int, clusters: Clusters, membership: Float) -> None:
    """Write 1.0 for the samples on one side of the last merge of a tree, and 0.0 for the others.

    The tree is built with the nearest-neighbour chain algorithm (Muellner 2013), which requires a
    reducible linkage. `distances`, whose diagonal is infinite, and `clusters` are overwritten.
    """
    sizes, first_member, last_member, next_member, _ = clusters
    for i in range(membership.size):
        sizes[i], first_member[i], last_member[i], next_member[i] = 1.0, i, i, -1
    _merge_until_two_remain(distances, clusters, linkage)
    # The merge of the two remaining clusters is the root of the tree. Mark the members of the first
    # cluster.
    for i in range(membership.size):
        membership[i] = 0.0
    member = first_member[0]
    while member >= 0:
        membership[member] = 1.0
        member = next_member[member]


@jit(allocates=False)
def _merge_until_two_remain(distances: Float, clusters: Clusters, linkage: int) -> None:
    """Merge clusters until two of them remain, by the nearest-neighbour chain algorithm.

    Two clusters are merged as soon as each is known to be the nearest neighbour of the other. The
    merges are those of the tree, but they need not be in order of increasing height. The last merge
    is nevertheless the root of the tree. While m clusters remain, the first m rows and columns of
    `distances` contain the distances between these clusters, with infinity on the diagonal.
    """
    chain, length, m = clusters.chain, 0, distances.shape[0]
    while m > 2:
        if length == 0:
            chain[0], length = 0, 1
        a = chain[length - 1]
        closest = _row_minimum(distances, a, m)
        # If several clusters are equally close, the previous element of the chain is preferred. If
        # the chain continued with another cluster at the same distance, the chain might never end.
        if length > 1 and distances[a, chain[length - 2]] == closest:
            b = chain[length - 2]
            length -= 2
            _merge(distances, clusters, min(a, b), max(a, b), m, linkage)
            m -= 1
            for k in range(length):
                # The last cluster has moved to the free row.
                if chain[k] == m:
                    chain[k] = max(a, b)
        else:
            chain[length] = _first_position(distances, a, m, closest)
            length += 1


@jit(allocates=False)
def _merge(distances: Float, clusters: Clusters, i: int, j: int, m: int, linkage: int) -> None:
    """Merge cluster j of m clusters into cluster i < j, and move the last cluster to position j.

    The rows thus remain contiguous, and the search for a minimum becomes shorter with each merge.
    """
    sizes, first_member, last_member = clusters[:3]
    # Numba lets signed indices that may be negative count from the end, as Python does. Unsigned
    # indices make the loops faster.
    row, free, last, count = np.uintp(i), np.uintp(j), np.uintp(m - 1), np.uintp(m)
    merge_squared_rows(distances, i, j, m, sizes, linkage)
    for k in range(count):
        distances[k, row] = distances[row, k]
    distances[row, row] = np.inf
    sizes[row] += sizes[free]
    clusters.next_member[last_member[row]] = first_member[free]
    last_member[row] = last_member[free]
    if free == last:
        return
    for k in range(count):
        distances[free, k] = distances[last, k]
    for k in range(count):
        distances[k, free] = distances[free, k]
    distances[free, free] = np.inf
    sizes[free], first_member[free] = sizes[last], first_member[last]
    last_member[free] = last_member[last]


@jit(allocates=False)
def _first_position(distances: Float, row: int, m: int, value: float) -> int:
    """Return the first position of a value among the first m entries of a row."""
    i, k = np.uintp(row), np.uintp(0)
    # The limit m - 1 keeps the position in range even if some distances are NaN.
    while k < np.uintp(m - 1) and distances[i, k] != value:
        k += np.uintp(1)
    return int(k)


# The fastmath options allow the compiler to vectorise the loop. They do not change the result,
# since a minimum does not depend on the order in which entries are compared.
@jit(allocates=False, fastmath={"nnan", "nsz"})
def _row_minimum(distances: Float, row: int, m: int) -> float:
    """Return the smallest of the first m entries of a row."""
    smallest, i = np.inf, np.uintp(row)
    for k in range(np.uintp(m)):
        smallest = min(smallest, distances[i, k])
    return smallest


@jit(allocates=False)
def merge_squared_rows(
    distances: Float, i: int, j: int, m: int, sizes: Float, linkage: int
) -> None:
    """Overwrite row i of `distances` with the distances from the union of clusters i and j.

    The first m entries of a row are the distances from a cluster to all clusters. `sizes` contains
    the number of samples in each cluster. The distances are updated with the formulas of Lance and
    Williams (1967). For Ward's, centroid and median linkage, they must be squared distances.
    """
    a, b, count = np.uintp(i), np.uintp(j), np.uintp(m)
    n_a, n_b, d_ab = sizes[a], sizes[b], distances[a, b]
    total = n_a + n_b
    # There is a loop for each linkage, since a loop that tests the linkage is not vectorised.
    if linkage == LinkageMethod.single:
        for k in range(count):
            distances[a, k] = min(distances[a, k], distances[b, k])
    elif linkage == LinkageMethod.complete:
        for k in range(count):
            distances[a, k] = max(distances[a, k], distances[b, k])
    elif linkage == LinkageMethod.average:
        for k in range(count):
            distances[a, k] = (n_a * distances[a, k] + n_b * distances[b, k]) / total
    elif linkage == LinkageMethod.weighted:
        for k in range(count):
            distances[a, k] = (distances[a, k] + distances[b, k]) / 2
    elif linkage == LinkageMethod.ward:
        for k in range(count):
            n_k = sizes[k]
            weighted = (n_a + n_k) * distances[a, k] + (n_b + n_k) * distances[b, k]
            distances[a, k] = (weighted - n_k * d_ab) / (total + n_k)
    elif linkage == LinkageMethod.centroid:
        for k in range(count):
            weighted = n_a * distances[a, k] + n_b * distances[b, k]
            distances[a, k] = (weighted - n_a * n_b * d_ab / total) / total
    else:  # LinkageMethod.median
        for k in range(count):
            distances[a, k] = (distances[a, k] + distances[b, k]) / 2 - d_ab / 4
