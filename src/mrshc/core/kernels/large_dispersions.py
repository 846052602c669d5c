"""Dispersions W_1 and W_2 of reference data sets with many samples.

The functions return the dispersions of :mod:`~mrshc.core.kernels.agglomerated_dispersions` for
squared Euclidean distances. They need one matrix of distances, which the caller provides and can
use again, and no copies of it. The distances are computed in panels of rows, and are computed a
second time after the clustering has overwritten them.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.large_agglomeration import copy_row_to_column, smallest_present
from mrshc.core.kernels.nearest_neighbour_chain import merge_squared_rows
from mrshc.core.kernels.vectors import index_range

# Number of rows of a panel, and of rows and columns of the tiles in which a triangle is copied. The
# inner products of a panel of 10,000 samples take 10 MB. The numbers have not been tuned; they do
# not affect the result.
_PANEL, _TILE = 128, 32


@jit()
def large_top_dispersions(sample: Float, linkage: int, working: Float) -> Float:
    """Return the dispersions W_1 and W_2 within one and two clusters of samples.

    Parameters
    ----------
    sample : array of shape (n, d)
        Coordinates of the samples. The distances are squared Euclidean distances, and W_k is
        computed from their square roots.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`, except centroid and
        median linkage.
    working : array of shape (n, n)
        Array that is overwritten.

    Returns
    -------
    array of shape (2,)
        W_1 and W_2.
    """
    squared_norms = _write_squared_distances(sample, working)
    membership = _large_split_membership(working, linkage)
    return _large_split_dispersions(sample, squared_norms, membership)


@jit()
def _write_squared_distances(sample: Float, working: Float) -> Float:
    """Write the squared distances between samples, infinite on the diagonal, to `working`.

    Return the squared norms of the samples.
    """
    n = sample.shape[0]
    squared_norms = np.empty(n)
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        products = np.dot(sample[start:stop], sample[:stop].T)
        for i in range(start, stop):
            squared_norms[i] = products[i - start, i]
            row = working[i]
            _write_distance_row(products[i - start], squared_norms, i, row)
            row[i] = np.inf
    # Copying a whole row to a column would load a new cache line for each entry.
    for start in range(0, n, _TILE):
        for i in range(start, n):
            row = working[i]
            for j in range(start, min(start + _TILE, i)):
                working[j, i] = row[j]
    return squared_norms


@jit()
def _write_distance_row(products: Float, squared_norms: Float, i: int, row: Float) -> None:
    """Write the squared distances between sample i and the samples before it.

    `products` contains the inner products of sample i with these samples. The formula is that of
    :func:`~mrshc.core.kernels.principal_box.squared_distances_from_gram`.
    """
    squared_norm = squared_norms[i]
    for j in range(i):
        row[j] = max(squared_norm + squared_norms[j] - 2.0 * products[j], 0.0)


@jit()
def _large_split_membership(distances: Float, linkage: int) -> Float:
    """Return 1.0 for the samples on one side of the last merge of a tree, and 0.0 for the others.

    The tree is built with the nearest-neighbour chain algorithm. `distances`, of shape (n, n), is
    overwritten. The distances to clusters that no longer exist are not changed; infinity is added
    to them in each search, as in :mod:`~mrshc.core.kernels.large_agglomeration`.
    """
    n = distances.shape[0]
    sizes, absent, parent = np.empty(n), np.empty(n), index_range(n)
    sizes[:] = 1.0
    absent[:] = 0.0
    chain, length, n_clusters, first = np.empty(n, np.intp), 0, n, 0
    while n_clusters > 2:
        if length == 0:
            while absent[first] > 0.0:
                first += 1
            chain[0], length = first, 1
        row = distances[chain[length - 1]]
        closest = smallest_present(row, absent)
        # If several clusters are equally close, the previous element of the chain is preferred, so
        # that the chain ends.
        if length == 1 or row[chain[length - 2]] != closest:
            nearest = 0
            while row[nearest] + absent[nearest] != closest:
                nearest += 1
            chain[length] = nearest
            length += 1
            continue
        i, j = chain[length - 2], chain[length - 1]
        i, j = min(i, j), max(i, j)
        length -= 2
        merge_squared_rows(distances, i, j, n, sizes, linkage)
        distances[i, i] = np.inf
        absent[j] = np.inf
        copy_row_to_column(distances, i, absent)
        sizes[i] += sizes[j]
        parent[j] = i
        n_clusters -= 1
    membership = np.zeros(n)
    membership[0] = 1.0
    for i in range(n):
        # A cluster is merged into a cluster with a smaller number, so the membership of its parent
        # is already known.
        membership[i] = membership[parent[i]]
    return membership


@jit()
def _large_split_dispersions(sample: Float, squared_norms: Float, membership: Float) -> Float:
    """Return W_1 of all samples and W_2 within two clusters.

    The sums are those of the function `_split_dispersions` of
    :mod:`~mrshc.core.kernels.agglomerated_dispersions`, in the same order.
    """
    n = membership.size
    n_members = 0.0
    for i in range(n):
        n_members += membership[i]
    row = np.empty(n)
    total = within_members = within_others = 0.0
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        products = np.dot(sample[start:stop], sample[:stop].T)
        for i in range(start, stop):
            _write_distance_row(products[i - start], squared_norms, i, row)
            for j in range(i):
                distance = np.sqrt(row[j])
                total += distance
                within_members += distance * (membership[i] * membership[j])
                within_others += distance * ((1.0 - membership[i]) * (1.0 - membership[j]))
    out = np.empty(2)
    out[0] = total / (2 * n)
    out[1] = within_members / (2 * n_members) + within_others / (2 * (n - n_members))
    return out
