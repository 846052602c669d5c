"""Agglomeration to the topmost clusters of a group of samples, and their dispersions W_k.

The gap test needs W_k of the topmost clusters only, many times over: no tree is stored.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod


@jit()
def top_dispersions(distances: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Return W_k of the topmost 1..max_clusters clusters of samples.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between samples; squared if `power` is 2. They are not changed.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`.
    power : {1, 2}
        W_k is a sum of the distances themselves if it is 1, of their square roots if it is 2.
    max_clusters : int
        Largest number of clusters.

    Returns
    -------
    array of shape (max_clusters,)
        W_1, W_2, ...
    """
    # Pruning asks for W_1 and W_2 only, the usual case: the nearest-neighbour chain takes O(n^2)
    # operations for it. It is valid only where merges cannot create inversions.
    if max_clusters == 2 and _is_reducible(linkage):
        membership = _top_split_membership(distances.copy(), linkage)
        return _split_dispersions(distances, membership, power)
    return _top_cluster_dispersions(distances, linkage, power, max_clusters)


@jit()
def _is_reducible(linkage: int) -> bool:
    """Return whether a merge never brings a third cluster closer than both parts were."""
    return linkage != LinkageMethod.centroid and linkage != LinkageMethod.median


@jit()
def _top_split_membership(distances: Float, linkage: int) -> Float:
    """Agglomerate and return 1.0 for the samples on one side of the last merge, 0.0 for others.

    This is the nearest-neighbour chain algorithm (Muellner 2013), for reducible linkages: clusters
    that are nearest neighbours of each other are merged in the order in which the chain reaches
    them. The merges are those of the tree, in another order, except that the last one is always
    the top of the tree. `distances` is overwritten; the m remaining clusters occupy its first m
    rows and columns.
    """
    n = distances.shape[0]
    sizes = np.ones(n)
    # The members of a cluster form a linked list, so that two clusters are joined in O(1).
    first_member, last_member, next_member = np.arange(n), np.arange(n), np.full(n, -1)
    chain, length, m = np.empty(n, np.intp), 0, n
    for i in range(n):
        distances[i, i] = np.inf
    while m > 2:
        if length == 0:
            chain[0], length = 0, 1
        a = chain[length - 1]
        row = distances[a, :m]
        closest = _row_minimum(row)
        # Among ties, the previous element of the chain comes first: the chain would never end if
        # it moved on to another cluster at the same distance.
        if length > 1 and row[chain[length - 2]] == closest:
            b = chain[length - 2]
            length -= 2
        else:
            b = 0
            # The limit m - 1 keeps the index in range where distances hold NaN.
            while row[b] != closest and b < m - 1:
                b += 1
            chain[length] = b
            length += 1
            continue
        i, j, last = min(a, b), max(a, b), m - 1
        _merge_rows(distances[i, :m], distances[j, :m], sizes[:m], i, j, linkage)
        for k in range(m):
            distances[k, i] = distances[i, k]
        distances[i, i] = np.inf
        sizes[i] += sizes[j]
        next_member[last_member[i]] = first_member[j]
        last_member[i] = last_member[j]
        # The last cluster moves to the free row and column, so that rows remain contiguous and
        # searches for a minimum become shorter with each merge.
        if j != last:
            distances[j, :m] = distances[last, :m]
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
    # Two clusters are left, whose merge is the top of the tree: the members of one of them.
    membership = np.zeros(n)
    member = first_member[0]
    while member >= 0:
        membership[member] = 1.0
        member = next_member[member]
    return membership


# Vectorised: a minimum does not depend on the order in which the entries are compared.
@jit(fastmath={"nnan", "nsz"})
def _row_minimum(row: Float) -> float:
    smallest = np.inf
    for k in range(row.size):
        smallest = min(smallest, row[k])
    return smallest


@jit()
def _top_cluster_dispersions(original: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Agglomerate the samples and return W_k of the topmost 1..max_clusters clusters.

    The closest pair is merged, from a list of the nearest neighbour of every cluster. This order
    of merges is right for all linkages, including those whose heights are not monotone.
    """
    distances = original.copy()
    n = distances.shape[0]
    sizes = np.ones(n)
    parent = np.arange(n)  # the cluster into which this one was merged; itself if it remains
    nearest = np.empty(n, dtype=np.intp)
    nearest_distance = np.empty(n)
    # Infinite distances exclude the diagonal and merged clusters from every minimum.
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
        _merge_rows(distances[i], distances[j], sizes, i, j, linkage)
        parent[j] = i
        sizes[i] += sizes[j]
        for k in range(n):
            # The update formulas also wrote entries of merged clusters, which must remain infinite.
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
            # Only clusters that lost their nearest neighbour need a new search.
            if nearest[k] == i or nearest[k] == j:
                nearest[k] = np.argmin(distances[k])
                nearest_distance[k] = distances[k, nearest[k]]
            elif distances[k, i] < nearest_distance[k]:
                nearest[k] = i
                nearest_distance[k] = distances[k, i]
    return out


@jit()
def _merge_rows(row_i: Float, row_j: Float, sizes: Float, i: int, j: int, linkage: int) -> None:
    """Write the distances of the union of clusters i and j to the row of i.

    These are the update formulas of Lance and Williams (1967). Ward's, centroid and median linkage
    take squared distances.
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
    """Return the cluster of each sample, numbered 0, 1, ... in the order of first members."""
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
    """Return W_k: the sum over clusters of the distances between pairs over twice the size.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between samples; squared if `power` is 2.
    labels : array of shape (n,)
        Cluster of each sample, 0, ..., k - 1. Every cluster has a sample.
    power : {1, 2}
        W_k is a sum of the distances themselves if it is 1, of their square roots if it is 2.

    Returns
    -------
    float
        Each pair of samples is counted once.
    """
    k = labels.max() + 1
    sizes, sums = np.zeros(k), np.zeros(k)
    for i in range(labels.size):
        sizes[labels[i]] += 1
        for j in range(i):
            if labels[i] == labels[j]:
                sums[labels[i]] += np.sqrt(distances[i, j]) if power == 2 else distances[i, j]
    return (sums / (2 * sizes)).sum()


@jit()
def _split_dispersions(distances: Float, membership: Float, power: int) -> Float:
    """Return W_1 of all samples, and W_2 of the samples marked by `membership` and the others."""
    n = membership.size
    n_members = membership.sum()
    total = within_members = within_others = 0.0
    for i in range(n):
        row = distances[i]
        for j in range(i):
            distance = np.sqrt(row[j]) if power == 2 else row[j]
            total += distance
            # Products of 0.0 and 1.0 in place of conditions: the loop has no branches.
            within_members += distance * (membership[i] * membership[j])
            within_others += distance * ((1.0 - membership[i]) * (1.0 - membership[j]))
    return np.array(
        [
            total / (2 * n),
            within_members / (2 * n_members) + within_others / (2 * (n - n_members)),
        ]
    )
