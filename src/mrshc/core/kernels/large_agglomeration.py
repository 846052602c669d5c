"""Agglomerative hierarchical clustering of many samples.

The functions return the same trees as :mod:`~mrshc.core.kernels.agglomeration`. The matrix of the
distances between many samples does not fit into the cache of a processor. Most of the time is then
spent on writing to distant memory addresses and on obtaining memory from the operating system. The
functions of this module write to fewer addresses, and work in an array that the caller provides and
can use again.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.agglomeration import merge_rows, number_nodes, single_linkage_merges
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.linkage_codes import LinkageMethod

# Number of rows and columns of the tiles in which a triangle of a matrix is copied. The number has
# not been tuned; it does not affect the result.
_TILE = 32


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
    for i in range(n):
        row, copied = distances[i], working[i]
        for j in range(i + 1, n):
            copied[j] = np.sqrt(row[j]) if take_roots else row[j]
    _mirror_upper_triangle(working)


@jit()
def write_distances_without(
    distances: Float, features: Float, is_squared: bool, take_roots: bool, working: Float
) -> None:
    """Write the distances after subtracting the part of some features to `working`.

    The distances are those of :func:`~mrshc.core.kernels.fold_distances.distances_without`. The
    other parameters are those of that function and of `write_working_distances`.
    """
    n = distances.shape[0]
    for i in range(n):
        row, copied = distances[i], working[i]
        for k in range(i + 1, n):
            copied[k] = row[k]
        n_fours = features.shape[0] // 4 if is_squared else 0
        for f in range(n_fours):
            _subtract_four_squared_differences(copied, features[4 * f : 4 * f + 4], i)
        for j in range(4 * n_fours, features.shape[0]):
            if is_squared:
                _subtract_squared_differences(copied, features[j], i)
            else:
                _subtract_differences(copied, features[j], i)
        for k in range(i + 1, n):
            # Rounding may leave a small negative value.
            remaining = max(copied[k], 0.0)
            copied[k] = np.sqrt(remaining) if take_roots else remaining
    _mirror_upper_triangle(working)


# The loops are functions of their own, so that the compiler vectorises them.
@jit()
def _subtract_squared_differences(row: Float, values: Float, i: int) -> None:
    value = values[i]
    for k in range(i + 1, row.size):
        difference = values[k] - value
        row[k] -= difference * difference


@jit()
def _subtract_four_squared_differences(row: Float, values: Float, i: int) -> None:
    """Subtract the squared differences of four features, whose values are in rows.

    The differences are subtracted in the order of the features. Each entry of the row is loaded and
    stored once instead of four times.
    """
    first, second, third, fourth = values[0], values[1], values[2], values[3]
    a, b, c, d = first[i], second[i], third[i], fourth[i]
    for k in range(i + 1, row.size):
        e, f, g, h = first[k] - a, second[k] - b, third[k] - c, fourth[k] - d
        row[k] = row[k] - e * e - f * f - g * g - h * h


@jit()
def _subtract_differences(row: Float, values: Float, i: int) -> None:
    value = values[i]
    for k in range(i + 1, row.size):
        row[k] -= abs(values[k] - value)


@jit()
def _mirror_upper_triangle(working: Float) -> None:
    """Copy the entries above the diagonal to those below it, and make the diagonal infinite."""
    n = working.shape[0]
    # Copying a whole row to a column would load a new cache line for each entry.
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        for i in range(start, n):
            row = working[i]
            for j in range(start, min(stop, i)):
                row[j] = working[j, i]
    for i in range(n):
        working[i, i] = np.inf


@jit()
def _large_chain_merges(distances: Float, linkage: int) -> Float:
    """Return the merges of a tree, found by the nearest-neighbour chain algorithm.

    The merges are those of the function `_chain_merges` of
    :mod:`~mrshc.core.kernels.agglomeration`, in the same order. The distances to clusters that no
    longer exist are not made infinite, which would write to one distant address for each cluster.
    Instead, infinity is added to them in each search for a nearest neighbour.
    """
    n = distances.shape[0]
    merges, sizes, absent = np.empty((n - 1, 3)), np.empty(n), np.empty(n)
    sizes[:] = 1.0
    absent[:] = 0.0
    chain, length, first = np.empty(n, np.intp), 0, 0
    for m in range(n - 1):
        if length == 0:
            while sizes[first] == 0.0:
                first += 1
            chain[0], length = first, 1
        while True:
            row = distances[chain[length - 1]]
            height = smallest_present(row, absent)
            # If several clusters are equally close, the previous cluster of the chain is preferred,
            # so that the chain ends.
            if length > 1 and row[chain[length - 2]] == height:
                break
            nearest = 0
            while row[nearest] + absent[nearest] != height:
                nearest += 1
            chain[length] = nearest
            length += 1
        x, y = chain[length - 2], chain[length - 1]
        length -= 2
        x, y = min(x, y), max(x, y)
        merges[m, 0], merges[m, 1], merges[m, 2] = x, y, height
        merge_rows(distances[x], distances[y], sizes, x, y, linkage)
        sizes[y] += sizes[x]
        sizes[x] = 0.0
        absent[x] = np.inf
        copy_row_to_column(distances, y, absent)
    return merges


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
