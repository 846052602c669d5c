"""Dispersions W_k within the k clusters of a hierarchical clustering, for small k.

For each cluster, the distances between all pairs of its samples are summed, and the sum is divided
by twice the number of samples in the cluster. Each pair is counted once. W_k is the total over the
k clusters. The gap test computes W_k for many simulated data sets, and only for small k, so the
functions of this module do not store the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.partitions import count_groups
from mrshc.core.kernels.principal_box import mirror_lower_triangle


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
    # Pruning needs only W_1 and W_2. The nearest-neighbour chain algorithm finds the two clusters
    # in O(n^2) operations, but is valid only for reducible linkages.
    if max_clusters is None:
        membership = _top_split_membership(distances.copy(), linkage)
        return _split_dispersions(distances, membership, power)
    return _top_cluster_dispersions(distances, linkage, power, max_clusters)


class _Clusters(NamedTuple):
    """The clusters of an agglomeration, and the chain of nearest neighbours, for n samples.

    All arrays have the shape (n,). The members of a cluster are stored as a linked list, so two
    clusters are joined in O(1).
    """

    sizes: Float  # number of samples of each cluster
    first_member: Index  # first sample of each cluster
    last_member: Index  # last sample of each cluster
    next_member: Index  # next sample of the same cluster; -1 for its last sample
    chain: Index  # clusters, each of which is the nearest neighbour of the one before


class SplitWorkspace(NamedTuple):
    """Arrays for the dispersions of n samples, so that many data sets can share them."""

    products: Float  # (n, n), inner products of the samples; overwritten
    roots: Float  # (n * (n - 1) / 2,), distances below the diagonal, row by row
    membership: Float  # (n,), 1.0 for samples of the first of two clusters, otherwise 0.0
    clusters: _Clusters


@jit()
def split_workspace(n: int) -> SplitWorkspace:
    """Return arrays for the dispersions of n samples."""
    return SplitWorkspace(
        np.empty((n, n)), np.empty(n * (n - 1) // 2), np.empty(n), _empty_clusters(n)
    )


@jit()
def _empty_clusters(n: int) -> _Clusters:
    indices = np.empty((4, n), np.intp)
    return _Clusters(np.empty(n), indices[0], indices[1], indices[2], indices[3])


@jit(allocates=False)
def write_split_dispersions(workspace: SplitWorkspace, linkage: int, out: Float) -> None:
    """Write the dispersions W_1 and W_2 within one and two clusters of samples to `out`.

    The result is that of `top_dispersions` for squared Euclidean distances and two clusters.

    Parameters
    ----------
    workspace : SplitWorkspace
        Arrays that are overwritten. The array `products` contains the inner products of the
        samples; it is read below the diagonal and on it.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`, except centroid and
        median linkage.
    out : array of shape (2,)
        Output: W_1 and W_2.
    """
    distances, roots, membership, clusters = workspace
    # The squared norms are no longer needed when the membership is known.
    _write_distances_and_roots(distances, membership, roots)
    _mark_top_split(distances, linkage, clusters, membership)
    n, n_members = membership.size, 0.0
    for i in range(n):
        n_members += membership[i]
    total = within_members = within_others = 0.0
    start = np.uintp(0)
    for i in range(np.uintp(n)):
        member = membership[i]
        other = 1.0 - member
        for j in range(i):
            distance = roots[start + j]
            total += distance
            # As in `_split_dispersions`, multiplications replace branches.
            within_members += distance * (member * membership[j])
            within_others += distance * (other * (1.0 - membership[j]))
        start += i
    out[0] = total / (2 * n)
    out[1] = within_members / (2 * n_members) + within_others / (2 * (n - n_members))


@jit(allocates=False)
def _write_distances_and_roots(products: Float, squared_norms: Float, roots: Float) -> None:
    """Replace inner products of samples by squared distances, and write their roots to `roots`.

    The diagonal is set to infinity. The values below the diagonal are those that
    `squared_distances_from_gram` computes. `squared_norms` is overwritten.
    """
    n = np.uintp(squared_norms.size)
    for i in range(n):
        squared_norms[i] = products[i, i]
    start = np.uintp(0)
    for i in range(n):
        squared_norm = squared_norms[i]
        for j in range(i):
            # Rounding may make the squared distance between nearly identical samples negative.
            squared = max(squared_norm + squared_norms[j] - 2.0 * products[i, j], 0.0)
            products[i, j] = squared
            roots[start + j] = np.sqrt(squared)
        products[i, i] = np.inf
        start += i
    mirror_lower_triangle(products)


@jit()
def _top_split_membership(distances: Float, linkage: int) -> Float:
    """Return 1.0 for the samples on one side of the last merge of a tree, and 0.0 for the others.

    `distances`, of shape (n, n), is overwritten. The linkage must be reducible.
    """
    n = distances.shape[0]
    for i in range(n):
        distances[i, i] = np.inf
    membership = np.empty(n)
    _mark_top_split(distances, linkage, _empty_clusters(n), membership)
    return membership


@jit(allocates=False)
def _mark_top_split(distances: Float, linkage: int, clusters: _Clusters, membership: Float) -> None:
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
def _merge_until_two_remain(distances: Float, clusters: _Clusters, linkage: int) -> None:
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
def _merge(distances: Float, clusters: _Clusters, i: int, j: int, m: int, linkage: int) -> None:
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
        merge_squared_rows(distances, i, j, n, sizes, linkage)
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
