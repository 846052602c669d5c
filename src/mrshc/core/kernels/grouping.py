"""Vectors that lie together, and what columns have to do with them."""

from __future__ import annotations

import numpy as np

from mrshc.core.arrays import Float, Index, Mask
from mrshc.core.kernels.jit import jit


@jit()
def grouped(vectors: Float, radius: float) -> tuple[Index, Index]:
    """Give each vector to a leader within the radius, or make it one; leaders, and who has which.

    Later leaders are asked first: neighbours come one after the other.
    """
    count, n = vectors.shape
    leaders, labels = np.empty(count, np.intp), np.empty(count, np.intp)
    n_leaders = 0
    enough = radius * radius
    for i in range(count):
        found = -1
        for g in range(n_leaders - 1, -1, -1):
            leader = vectors[leaders[g]]
            apart = 0.0
            for k in range(n):
                apart += (vectors[i, k] - leader[k]) ** 2
                if apart > enough:
                    break
            if apart <= enough:
                found = g
                break
        if found < 0:
            found = n_leaders
            leaders[n_leaders] = i
            n_leaders += 1
        labels[i] = found
    return leaders[:n_leaders].copy(), labels


@jit(fastmath={"reassoc", "contract", "nsz"})
def largest_products(
    suspects: Mask,
    columns: Float,
    gaps: Float,
    vectors: Float,
    shifts: Float,
    owners: Index,
    order: Index,
    ends: Index,
    largest: Float,
) -> None:
    """Note for owners and columns their largest product, among vectors of suspicious groups.

    `suspects` (groups, columns) says which groups to look at for which column; the vectors of a
    group lie in `order` up to its end. A gap in a column adds the vector's shift.
    """
    n = columns.shape[1]
    begin = 0
    for g in range(ends.size):
        for j in range(suspects.shape[1]):
            if suspects[g, j]:
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
