"""Agglomeration to the topmost clusters of samples, and their dispersions W_k."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod


@jit()
def top_dispersions(distances: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Return W_k of the topmost 1..max_clusters clusters of samples.

    W_k is a sum of the distances themselves if `power` is 1, of their roots if it is 2.
    """
    if max_clusters == 2 and _is_reducible(linkage):
        first = _top_split(distances.copy(), linkage)
        return _dispersions_of_split(distances, first, power)
    return _top_clusters(distances, linkage, power, max_clusters)


@jit()
def _is_reducible(linkage: int) -> bool:
    """Tell whether a merge never brings a third cluster closer than both parts were."""
    return linkage != LinkageMethod.centroid and linkage != LinkageMethod.median


@jit()
def _top_split(distances: Float, linkage: int) -> Float:
    """Agglomerate and mark the samples on one side of the last merge. Overwrites `distances`.

    The nearest-neighbour chain algorithm, for reducible linkages: two clusters that are nearest
    to each other are merged in the order in which the chain meets them, and the last merge is the
    top of the tree. The m clusters that are left fill the first m rows and columns.
    """
    n = distances.shape[0]
    sizes = np.ones(n)
    head, tail, following = np.arange(n), np.arange(n), np.full(n, -1)  # linked lists of members
    chain, length, m = np.empty(n, np.intp), 0, n
    for i in range(n):
        distances[i, i] = np.inf
    while m > 2:
        if length == 0:
            chain[0], length = 0, 1
        a = chain[length - 1]
        row = distances[a, :m]
        closest = _smallest(row)
        if length > 1 and row[chain[length - 2]] == closest:
            b = chain[length - 2]
            length -= 2
        else:
            b = 0
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
        following[tail[i]] = head[j]
        tail[i] = tail[j]
        if j != last:  # the last cluster moves to the row and column that became free
            distances[j, :m] = distances[last, :m]
            for k in range(m):
                distances[k, j] = distances[k, last]
            distances[j, j] = np.inf
            sizes[j], head[j], tail[j] = sizes[last], head[last], tail[last]
            for k in range(length):
                if chain[k] == last:
                    chain[k] = j
        m -= 1
    first = np.zeros(n)
    member = head[0]
    while member >= 0:
        first[member] = 1.0
        member = following[member]
    return first


@jit(fastmath={"nnan", "nsz"})  # a minimum does not depend on the order
def _smallest(row: Float) -> float:
    smallest = np.inf
    for k in range(row.size):
        smallest = min(smallest, row[k])
    return smallest


@jit()
def _top_clusters(original: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Agglomerate to 1..max_clusters clusters and return W_k of each.

    The closest pair is merged, from a list of the nearest neighbour of every cluster: this order
    of merges is right for all linkages, also those that are not monotone.
    """
    distances = original.copy()
    n = distances.shape[0]
    sizes = np.ones(n)
    parent = np.arange(n)  # the cluster that this one was merged into; itself if it is one
    nearest = np.empty(n, dtype=np.intp)
    nearest_distance = np.empty(n)
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

    These are the update formulas of Lance and Williams (1967).
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
    """Return the cluster of each sample, numbered 0, 1, ..."""
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

    It is a sum of the distances themselves if `power` is 1, of their roots if it is 2.
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
def _dispersions_of_split(distances: Float, first: Float, power: int) -> Float:
    """Return W_1 of all samples, and W_2 of the samples marked by `first` and the others."""
    n = first.size
    n_first = first.sum()
    total = inside = outside = 0.0
    for i in range(n):
        row = distances[i]
        for j in range(i):
            distance = np.sqrt(row[j]) if power == 2 else row[j]
            total += distance
            inside += distance * (first[i] * first[j])
            outside += distance * ((1.0 - first[i]) * (1.0 - first[j]))
    return np.array([total / (2 * n), inside / (2 * n_first) + outside / (2 * (n - n_first))])
