"""Group vectors by distance and bound each column's inner products with a group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.jit import jit


class VectorGroups(NamedTuple):
    """Vectors in groups, each with a shift and an owner."""

    vectors: Float  # (N, n)
    shifts: Float  # (N,), added to a product for a column with gaps, per unit of gap
    owners: Index  # (N,)
    order: Index  # (N,), the vectors of the first group, of the second, ...
    ends: Index  # (groups,), where each group ends in `order`


@jit()
def leader_clustering(vectors: Float, radius: float) -> tuple[Index, Index]:
    """Assign each vector to a leader within the radius; without one, it becomes a leader itself.

    Returns the indices of the leaders, and for each vector the position of its leader among them.
    This is the leader algorithm (Hartigan 1975). The latest leaders are tried first, since similar
    vectors follow each other.
    """
    count, n = vectors.shape
    leaders, labels = np.empty(count, np.intp), np.empty(count, np.intp)
    n_leaders = 0
    squared_radius = radius * radius
    for i in range(count):
        label = -1
        for g in range(n_leaders - 1, -1, -1):
            leader = vectors[leaders[g]]
            squared_distance = 0.0
            for k in range(n):
                squared_distance += (vectors[i, k] - leader[k]) ** 2
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


@jit(fastmath={"reassoc", "contract", "nsz"})
def update_largest_products(
    groups: VectorGroups, candidates: Mask, columns: Float, gaps: Float, largest: Float
) -> None:
    """Raise `largest` (owners, columns) to the largest product of a column and a vector.

    Only the vectors of the groups that `candidates` (groups, columns) names for a column are
    multiplied with it; a product is in absolute value, plus the vector's shift times the column's
    gap.
    """
    n = columns.shape[1]
    vectors, shifts, owners, order, ends = groups
    begin = 0
    for g in range(ends.size):
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
