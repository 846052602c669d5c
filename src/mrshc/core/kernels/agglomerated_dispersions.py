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
from mrshc.core.kernels.nearest_neighbour_chain import (
    Clusters,
    empty_clusters,
    mark_top_split,
    merge_squared_rows,
)
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


class SplitWorkspace(NamedTuple):
    """Arrays for the dispersions of n samples, so that many data sets can share them."""

    products: Float  # (n, n), inner products of the samples; overwritten
    roots: Float  # (n * (n - 1) / 2,), distances below the diagonal, row by row
    membership: Float  # (n,), 1.0 for samples of the first of two clusters, otherwise 0.0
    clusters: Clusters


@jit()
def split_workspace(n: int) -> SplitWorkspace:
    """Return arrays for the dispersions of n samples."""
    return SplitWorkspace(
        np.empty((n, n)), np.empty(n * (n - 1) // 2), np.empty(n), empty_clusters(n)
    )


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
    mark_top_split(distances, linkage, clusters, membership)
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
    mark_top_split(distances, linkage, empty_clusters(n), membership)
    return membership


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
