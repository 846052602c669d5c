"""Dispersions W_k within the k clusters of a hierarchical clustering, for small k.

For each cluster, the distances between all pairs of its samples are summed, and the sum is divided
by twice the number of samples in the cluster. Each pair is counted once. W_k is the total over the
k clusters. The gap test computes W_k for many simulated data sets, and only for small k, so the
functions of this module do not store the tree.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.partitions import count_groups
from mrshc.core.kernels.vectors import copy_into, index_range


@jit()
def top_dispersions(distances: Float, linkage: int, power: int, max_clusters: int | None) -> Float:
    """Return the dispersions W_k within k = 1, 2, ... clusters of samples.

    The samples are clustered by agglomerative hierarchical clustering, and the tree is cut into k
    clusters for each k.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between the n samples; squared distances if `power` is 2. The array is not
        changed.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`.
    power : {1, 2}
        1 if W_k is computed from the entries of `distances`, 2 if W_k is computed from the square
        roots of these entries.
    max_clusters : int or None
        Largest number of clusters. None means that it is 2, and that the linkage is reducible, that
        is, neither centroid nor median linkage. A faster algorithm is then used, and numba compiles
        only this algorithm.

    Returns
    -------
    array of shape (max_clusters,)
        W_1, W_2, ..., W_max_clusters.

    Notes
    -----
    Consider two clusters that are nearest neighbours of each other. A linkage is reducible if their
    union is never closer to a third cluster than the nearer of the two clusters was.
    """
    # Pruning, the most frequent caller, needs only W_1 and W_2. The nearest-neighbour chain
    # algorithm finds the two clusters in O(n^2) operations, but is valid only for reducible
    # linkages.
    if max_clusters is None:
        membership = _top_split_membership(distances.copy(), linkage)
        return _split_dispersions(distances, membership, power)
    return _top_cluster_dispersions(distances, linkage, power, max_clusters)


@jit()
def _top_split_membership(distances: Float, linkage: int) -> Float:
    """Return 1.0 for the samples on one side of the last merge of a tree, and 0.0 for the others.

    The tree is built with the nearest-neighbour chain algorithm (Muellner 2013), which requires a
    reducible linkage. Two clusters are merged as soon as each is known to be the nearest neighbour
    of the other. The merges are those of the tree, but they need not be in order of increasing
    height. The last merge is nevertheless the root of the tree. `distances`, of shape (n, n), is
    overwritten: while m clusters remain, the first m rows and columns contain the distances between
    these clusters.
    """
    n = distances.shape[0]
    sizes = np.empty(n)
    sizes[:] = 1.0
    # The members of a cluster are stored as a linked list, so two clusters are joined in O(1).
    first_member, last_member, next_member = index_range(n), index_range(n), index_range(n)
    next_member[:] = -1
    chain, length, m = np.empty(n, np.intp), 0, n
    for i in range(n):
        distances[i, i] = np.inf
    while m > 2:
        if length == 0:
            chain[0], length = 0, 1
        a = chain[length - 1]
        row = distances[a, :m]
        closest = _row_minimum(row)
        # If several clusters are equally close, the previous element of the chain is preferred. If
        # the chain continued with another cluster at the same distance, the chain might never end.
        if length > 1 and row[chain[length - 2]] == closest:
            b = chain[length - 2]
            length -= 2
        else:
            b = 0
            # The limit m - 1 keeps the index b in range even if some distances are NaN.
            while row[b] != closest and b < m - 1:
                b += 1
            chain[length] = b
            length += 1
            continue
        i, j, last = min(a, b), max(a, b), m - 1
        merge_squared_rows(distances[i, :m], distances[j, :m], sizes[:m], i, j, linkage)
        for k in range(m):
            distances[k, i] = distances[i, k]
        distances[i, i] = np.inf
        sizes[i] += sizes[j]
        next_member[last_member[i]] = first_member[j]
        last_member[i] = last_member[j]
        # Move the last cluster to the free row and column. The rows remain contiguous, and the
        # search for a minimum becomes shorter with each merge.
        if j != last:
            copy_into(distances[j, :m], distances[last, :m])
            for k in range(m):
                distances[k, j] = distances[k, last]
            distances[j, j] = np.inf
            sizes[j], first_member[j], last_member[j] = (
                sizes[last],
                first_member[last],
                last_member[last],
            )
            for k in range(length):
                if chain[k] == last:
                    chain[k] = j
        m -= 1
    # Two clusters remain, and their merge is the root of the tree. Mark the members of the first
    # cluster.
    membership = np.zeros(n)
    member = first_member[0]
    while member >= 0:
        membership[member] = 1.0
        member = next_member[member]
    return membership


# The fastmath options allow the compiler to vectorise the loop. They do not change the result,
# since a minimum does not depend on the order in which entries are compared.
@jit(fastmath={"nnan", "nsz"})
def _row_minimum(row: Float) -> float:
    smallest = np.inf
    for k in range(row.size):
        smallest = min(smallest, row[k])
    return smallest


@jit()
def _top_cluster_dispersions(original: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Return the dispersions W_k within k = 1, ..., max_clusters clusters, for any linkage.

    `original` contains the distances between samples. The other arguments are those of
    `top_dispersions`. Each step merges the closest pair of clusters, which is found from a list of
    the nearest neighbours of all clusters. This order of merges is correct for all linkages,
    including centroid and median linkage, for which merge heights may decrease.
    """
    distances = original.copy()
    n = distances.shape[0]
    sizes = np.ones(n)
    # parent[i] is the cluster into which cluster i was merged, or i if cluster i still exists.
    parent = np.arange(n)
    nearest = np.empty(n, dtype=np.intp)
    nearest_distance = np.empty(n)
    # The diagonal, and the distances to clusters that no longer exist, are set to infinity, so that
    # no minimum includes them.
    for i in range(n):
        distances[i, i] = np.inf
    for i in range(n):
        nearest[i] = np.argmin(distances[i])
        nearest_distance[i] = distances[i, nearest[i]]
    out = np.zeros(max_clusters)
    for n_clusters in range(n, 0, -1):
        if n_clusters <= max_clusters:
            out[n_clusters - 1] = dispersion(original, _cluster_labels(parent), power)
        if n_clusters == 1:
            break
        i = int(np.argmin(nearest_distance))
        j = int(nearest[i])
        merge_squared_rows(distances[i], distances[j], sizes, i, j, linkage)
        parent[j] = i
        sizes[i] += sizes[j]
        for k in range(n):
            # `merge_squared_rows` also overwrites the distances to clusters that no longer exist,
            # which must remain infinite.
            if parent[k] != k or k == i:
                distances[i, k] = np.inf
            distances[k, i] = distances[i, k]
            distances[k, j] = np.inf
            distances[j, k] = np.inf
        nearest_distance[j] = np.inf
        nearest[i] = np.argmin(distances[i])
        nearest_distance[i] = distances[i, nearest[i]]
        for k in range(n):
            if parent[k] != k or k == i:
                continue
            # A new search is needed only if the nearest neighbour of k was one of the two merged
            # clusters.
            if nearest[k] == i or nearest[k] == j:
                nearest[k] = np.argmin(distances[k])
                nearest_distance[k] = distances[k, nearest[k]]
            elif distances[k, i] < nearest_distance[k]:
                nearest[k] = i
                nearest_distance[k] = distances[k, i]
    return out


@jit()
def merge_squared_rows(
    row_i: Float, row_j: Float, sizes: Float, i: int, j: int, linkage: int
) -> None:
    """Overwrite `row_i` with the distances from the union of clusters i and j to all clusters.

    `row_i` and `row_j` contain the distances from clusters i and j to all clusters. `sizes`
    contains the number of samples in each cluster. The distances are updated with the formulas of
    Lance and Williams (1967). For Ward's, centroid and median linkage, the entries of `row_i` and
    `row_j` must be squared distances.
    """
    d_ij, n_i, n_j = row_i[j], sizes[i], sizes[j]
    total = n_i + n_j
    for k in range(row_i.size):
        d_ik, d_jk = row_i[k], row_j[k]
        if linkage == LinkageMethod.single:
            row_i[k] = min(d_ik, d_jk)
        elif linkage == LinkageMethod.complete:
            row_i[k] = max(d_ik, d_jk)
        elif linkage == LinkageMethod.average:
            row_i[k] = (n_i * d_ik + n_j * d_jk) / total
        elif linkage == LinkageMethod.weighted:
            row_i[k] = (d_ik + d_jk) / 2
        elif linkage == LinkageMethod.ward:
            n_k = sizes[k]
            row_i[k] = ((n_i + n_k) * d_ik + (n_j + n_k) * d_jk - n_k * d_ij) / (total + n_k)
        elif linkage == LinkageMethod.centroid:
            row_i[k] = (n_i * d_ik + n_j * d_jk - n_i * n_j * d_ij / total) / total
        else:  # LinkageMethod.median
            row_i[k] = (d_ik + d_jk) / 2 - d_ij / 4


@jit()
def _cluster_labels(parent: Index) -> Index:
    """Return the cluster of each sample, numbered 0, 1, ... in the order of first appearance.

    `parent[i]` is the cluster into which cluster i was merged, or i if cluster i still exists.
    Initially, cluster i consists of sample i.
    """
    number, labels, count = np.full(parent.size, -1), np.empty(parent.size, np.intp), 0
    for i in range(parent.size):
        root = i
        while parent[root] != root:
            root = parent[root]
        if number[root] < 0:
            number[root] = count
            count += 1
        labels[i] = number[root]
    return labels


@jit()
def dispersion(distances: Float, labels: Index, power: int) -> float:
    """Return the dispersion W_k within the k clusters of a partition.

    For each cluster, the distances between all pairs of its samples are summed, and the sum is
    divided by twice the number of samples in the cluster. W_k is the total over all clusters.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between the n samples; squared distances if `power` is 2.
    labels : array of shape (n,)
        Cluster of each sample, 0, ..., k - 1. Every cluster contains at least one sample.
    power : {1, 2}
        1 if W_k is computed from the entries of `distances`, 2 if W_k is computed from the square
        roots of these entries.

    Returns
    -------
    float
        W_k, in which each pair of samples is counted once.
    """
    k = count_groups(labels)
    sizes, sums = np.zeros(k), np.zeros(k)
    for i in range(labels.size):
        sizes[labels[i]] += 1
        for j in range(i):
            if labels[i] == labels[j]:
                sums[labels[i]] += np.sqrt(distances[i, j]) if power == 2 else distances[i, j]
    total = 0.0
    for c in range(k):
        total += sums[c] / (2 * sizes[c])
    return total


@jit()
def _split_dispersions(distances: Float, membership: Float, power: int) -> Float:
    """Return an array of length 2: the dispersions W_1 of all samples and W_2 within two clusters.

    `membership` is 1.0 for samples of the first cluster and 0.0 for samples of the second cluster.
    The other arguments are those of `dispersion`.
    """
    n = membership.size
    n_members = 0.0
    for i in range(n):
        n_members += membership[i]
    total = within_members = within_others = 0.0
    for i in range(n):
        row = distances[i]
        for j in range(i):
            distance = np.sqrt(row[j]) if power == 2 else row[j]
            total += distance
            # Multiplying by 0.0 or 1.0 instead of testing a condition keeps the loop free of
            # branches, which is faster.
            within_members += distance * (membership[i] * membership[j])
            within_others += distance * ((1.0 - membership[i]) * (1.0 - membership[j]))
    out = np.empty(2)
    out[0] = total / (2 * n)
    out[1] = within_members / (2 * n_members) + within_others / (2 * (n - n_members))
    return out
