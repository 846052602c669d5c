"""Agglomerative hierarchical clustering of many samples.

The functions return the same trees as :mod:`~mrshc.core.kernels.agglomeration`. The matrix of the
distances between many samples does not fit into the cache of a processor. Most of the time is then
spent on writing to distant memory addresses and on obtaining memory from the operating system. The
functions of this module write to fewer addresses, and work in an array that the caller provides and
can use again.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.agglomeration import merge_rows, number_nodes, single_linkage_merges
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.vectors import copy_into, index_range, take

# Number of rows that are copied to columns together. Eight values fill a cache line. The number
# does not affect the result.
_TILE = 8

# Smallest number of clusters whose distances are moved together when half of them have been merged.
# The distances of fewer clusters fit into the first-level cache. The number has not been tuned; it
# does not affect the result.
_MIN_COMPACTED = 64


@jit()
def large_linkage_matrix(working: Float, linkage: int) -> Float:
    """Return the tree of agglomerative hierarchical clustering, in the format of scipy.

    The tree is that of :func:`~mrshc.core.kernels.agglomeration.linkage_matrix`.

    Parameters
    ----------
    working : array of shape (n, n)
        The output of `write_working_distances` or of `write_distances_without`. The array is
        overwritten.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`, except centroid and
        median linkage.
    """
    if linkage == LinkageMethod.single:
        return number_nodes(single_linkage_merges(working))
    return number_nodes(_large_chain_merges(working, linkage))


@jit()
def write_working_distances(distances: Float, take_roots: bool, working: Float) -> None:
    """Write a symmetric copy of the distances, or of their square roots, to `working`.

    Only the entries of `distances` above the diagonal are used. The diagonal of `working` is
    infinite, so that no cluster is its own nearest neighbour.
    """
    n = distances.shape[0]
    # The rows of a tile are copied to columns while they are in the cache.
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        for i in range(start, stop):
            # The loops run over views that begin after the diagonal, so that all indices start at
            # zero. The compiler vectorises a loop only if it knows that no index is negative.
            copied = working[i][i + 1 :]
            copy_into(copied, distances[i][i + 1 :])
            _finish_distances(copied, take_roots)
            working[i, i] = np.inf
        _mirror_rows(working, start, stop)


@jit()
def write_distances_without(
    distances: Float, features: Float, is_squared: bool, take_roots: bool, working: Float
) -> None:
    """Write the distances after subtracting the part of some features to `working`.

    The distances are those of :func:`~mrshc.core.kernels.fold_distances.distances_without`.
    `distances`, of shape (n (n - 1) / 2,), contains the entries above the diagonal, row by row. The
    other parameters are those of that function and of `write_working_distances`.
    """
    n, first = working.shape[0], 0
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        for i in range(start, stop):
            copied = working[i][i + 1 :]
            copy_into(copied, distances[first : first + copied.size])
            first += copied.size
            _subtract_features(copied, features, i, is_squared)
            _finish_distances(copied, take_roots)
            working[i, i] = np.inf
        _mirror_rows(working, start, stop)


@jit()
def _subtract_features(row: Float, features: Float, i: int, is_squared: bool) -> None:
    """Subtract the part of some features from the distances of sample i, in place.

    `row` contains the distances to the samples after sample i. `features`, of shape (m, n), are
    subtracted in their order.
    """
    m = features.shape[0]
    n_fours = m // 4 if is_squared else 0
    for k in range(0, 4 * n_fours, 4):
        _subtract_four_squared_differences(row, features[k : k + 4], i)
    for k in range(4 * n_fours, m):
        if is_squared:
            _subtract_squared_differences(row, features[k, i], features[k][i + 1 :])
        else:
            _subtract_differences(row, features[k, i], features[k][i + 1 :])


# The loops are functions of their own, so that the compiler vectorises them.
@jit()
def _subtract_squared_differences(row: Float, value: float, others: Float) -> None:
    for k in range(row.size):
        difference = others[k] - value
        row[k] -= difference * difference


@jit()
def _subtract_four_squared_differences(row: Float, features: Float, i: int) -> None:
    """Subtract the squared differences of four features, in their order.

    Each entry of the row is loaded and stored once instead of four times.
    """
    first, second = features[0][i + 1 :], features[1][i + 1 :]
    third, fourth = features[2][i + 1 :], features[3][i + 1 :]
    a, b, c, d = features[0, i], features[1, i], features[2, i], features[3, i]
    for k in range(row.size):
        e, f, g, h = first[k] - a, second[k] - b, third[k] - c, fourth[k] - d
        row[k] = row[k] - e * e - f * f - g * g - h * h


@jit()
def _subtract_differences(row: Float, value: float, others: Float) -> None:
    for k in range(row.size):
        row[k] -= abs(others[k] - value)


@jit()
def _finish_distances(row: Float, take_roots: bool) -> None:
    """Replace negative distances by zero, and distances by their roots if `take_roots` is True."""
    for k in range(row.size):
        # Rounding may leave a small negative value.
        row[k] = max(row[k], 0.0)
    if take_roots:
        for k in range(row.size):
            row[k] = np.sqrt(row[k])


@jit()
def _mirror_rows(working: Float, start: int, stop: int) -> None:
    """Copy the entries above the diagonal in some rows to the entries below the diagonal."""
    for i in range(start, working.shape[0]):
        row = working[i]
        for j in range(start, min(stop, i)):
            row[j] = working[j, i]


@jit()
def _large_chain_merges(distances: Float, linkage: int) -> Float:
    """Return the merges of a tree, found by the nearest-neighbour chain algorithm.

    The merges are those of the function `_chain_merges` of
    :mod:`~mrshc.core.kernels.agglomeration`, in the same order. Whenever half of the clusters have
    been merged, the distances between the others are moved together, so that rows are shorter. The
    distances to clusters that no longer exist are not made infinite, which would write to one
    distant address for each cluster. Instead, infinity is added to them in each search for a
    nearest neighbour.
    """
    n = distances.shape[0]
    merges, sizes, samples = np.empty((n - 1, 3)), np.empty(n), index_range(n)
    sizes[:] = 1.0
    chain, length = np.empty(n, np.intp), 0
    while sizes.size > 1:
        done, size = n - sizes.size, sizes.size
        count = size // 2 if size > _MIN_COMPACTED else size - 1
        length = _merge_clusters(
            distances, sizes, samples, chain, length, merges[done : done + count], linkage
        )
        present = np.flatnonzero(sizes)
        distances = _move_together(distances, present)
        for k in range(length):
            chain[k] = np.searchsorted(present, chain[k])
        sizes, samples = take(sizes, present), take(samples, present)
    return merges


@jit()
def _merge_clusters(
    distances: Float,
    sizes: Float,
    samples: Index,
    chain: Index,
    length: int,
    merges: Float,
    linkage: int,
) -> int:
    """Write as many merges as `merges` has rows, and return the length of the chain.

    `distances` and `sizes` are updated. `samples` contains one sample of each cluster, and `chain`
    the positions of the clusters of the chain.
    """
    n = distances.shape[0]
    absent, first = np.zeros(n), 0
    for m in range(merges.shape[0]):
        if length == 0:
            while sizes[first] == 0.0:
                first += 1
            chain[0], length = first, 1
        length, height = _extend_chain(distances, absent, chain, length)
        x, y = chain[length - 2], chain[length - 1]
        length -= 2
        x, y = min(x, y), max(x, y)
        merges[m, 0], merges[m, 1], merges[m, 2] = samples[x], samples[y], height
        merge_rows(distances[x], distances[y], sizes, x, y, linkage)
        sizes[y] += sizes[x]
        sizes[x] = 0.0
        absent[x] = np.inf
        copy_row_to_column(distances, y, absent)
    return length


@jit()
def _extend_chain(distances: Float, absent: Float, chain: Index, length: int) -> tuple[int, float]:
    """Extend the chain until its last two clusters are nearest neighbours of each other.

    `absent` is the parameter of `smallest_present`. Return the length of the chain and the distance
    between these clusters.
    """
    while True:
        row = distances[chain[length - 1]]
        height = smallest_present(row, absent)
        # If several clusters are equally close, the previous cluster of the chain is preferred, so
        # that the chain ends.
        if length > 1 and row[chain[length - 2]] == height:
            return length, height
        nearest = 0
        while row[nearest] + absent[nearest] != height:
            nearest += 1
        chain[length] = nearest
        length += 1


@jit()
def _move_together(distances: Float, present: Index) -> Float:
    """Return the distances between some clusters, moved to the beginning of the same memory."""
    # Entries move to lower addresses, in increasing order, so no entry is overwritten before it has
    # been moved.
    k = present.size
    moved = distances.ravel()[: k * k].reshape(k, k)
    for i in range(k):
        row, target = distances[present[i]], moved[i]
        for j in range(k):
            target[j] = row[present[j]]
    return moved


# The fastmath options allow the compiler to vectorise the loop. They do not change the result,
# since a minimum does not depend on the order in which entries are compared.
@jit(fastmath={"nnan", "nsz"})
def smallest_present(row: Float, absent: Float) -> float:
    """Return the smallest entry of a row of distances.

    `absent` is infinite for clusters that no longer exist, and zero for the others.
    """
    smallest = np.inf
    for i in range(row.size):
        smallest = min(smallest, row[i] + absent[i])
    return smallest


@jit()
def copy_row_to_column(distances: Float, y: int, absent: Float) -> None:
    """Copy row y to column y, except for the rows of clusters that no longer exist."""
    row = distances[y]
    for i in range(row.size):
        if absent[i] == 0.0:
            distances[i, y] = row[i]
