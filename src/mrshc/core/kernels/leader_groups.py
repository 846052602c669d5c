"""Group vectors by distance, and find the largest inner product of each column with them.

Certification compares the inner products of all columns with many similar vectors. A bound for a
group excludes all its vectors at once; only the remaining products are computed here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.jit import jit


class VectorGroups(NamedTuple):
    """Vectors in groups, each with the certificate that owns it."""

    vectors: Float  # (N, n)
    shifts: Float  # (N,), change of the fill of missing cells, relative to the threshold
    owners: Index  # (N,), number of the certificate of each vector
    order: Index  # (N,), the vectors of the first group, of the second, ...
    ends: Index  # (groups,), end of each group in `order`


@jit()
def leader_clustering(vectors: Float, radius: float) -> tuple[Index, Index]:
    """Assign each vector to a leader within the radius; if there is none, it becomes a leader.

    Parameters
    ----------
    vectors : array of shape (N, n)
        Vectors in rows.
    radius : float
        Largest Euclidean distance of a vector from its leader.

    Returns
    -------
    leaders : array of shape (n_leaders,)
        Indices of the vectors that are leaders.
    labels : array of shape (N,)
        Position of the leader of each vector in `leaders`.

    Notes
    -----
    This is the leader algorithm of Hartigan (1975), Clustering Algorithms, Wiley.
    """
    count, n = vectors.shape
    leaders, labels = np.empty(count, np.intp), np.empty(count, np.intp)
    n_leaders = 0
    squared_radius = radius * radius
    for i in range(count):
        label = -1
        # The latest leaders are tried first: iterates of one alternation follow each other, and
        # are similar.
        for g in range(n_leaders - 1, -1, -1):
            leader = vectors[leaders[g]]
            squared_distance = 0.0
            for k in range(n):
                squared_distance += (vectors[i, k] - leader[k]) ** 2
                # The partial sum only grows: most leaders are rejected after a few coordinates.
                if squared_distance > squared_radius:
                    break
            if squared_distance <= squared_radius:
                label = g
                break
        if label < 0:
            label = n_leaders
            leaders[n_leaders] = i
            n_leaders += 1
        labels[i] = label
    return leaders[:n_leaders].copy(), labels


# The order of summation is free, which allows vectorisation: products are compared with thresholds
# that include a margin for rounding errors.
@jit(fastmath={"reassoc", "contract", "nsz"})
def update_largest_products(
    groups: VectorGroups, candidates: Mask, columns: Float, gaps: Float, largest: Float
) -> None:
    """Raise `largest`, in place, to the largest product of each column with an owner's vectors.

    A product is the absolute inner product plus the shift of the vector times the gap of the
    column.

    Parameters
    ----------
    groups : VectorGroups
        Vectors in groups.
    candidates : array of shape (n_groups, n_columns)
        True where a column is to be multiplied with the vectors of a group.
    columns : array of shape (n_columns, n)
        Columns of the data, in rows.
    gaps : array of shape (n_columns,)
        Square root of the number of missing cells of each column.
    largest : array of shape (n_owners, n_columns)
        Largest products so far; updated.
    """
    n = columns.shape[1]
    vectors, shifts, owners, order, ends = groups
    begin = 0
    for g in range(ends.size):
        # Columns in the inner loop: the vectors of a group remain in the processor's cache.
        for j in range(candidates.shape[1]):
            if candidates[g, j]:
                column = columns[j]
                for m in range(begin, ends[g]):
                    vector = vectors[order[m]]
                    product = 0.0
                    for i in range(n):
                        product += column[i] * vector[i]
                    product = abs(product) + shifts[order[m]] * gaps[j]
                    owner = owners[order[m]]
                    if product > largest[owner, j]:
                        largest[owner, j] = product
        begin = ends[g]
