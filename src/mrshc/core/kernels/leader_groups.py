"""Group similar vectors, and compute the largest inner product of each column with the vectors.

A component that was computed from some columns of the data is optimal for all columns if the
absolute inner products of the other columns with certain vectors do not exceed certain thresholds.
These vectors and thresholds are the certificate of the component. Many of the vectors are similar,
so they are grouped. For each column and each group, the caller computes one upper bound of the
absolute inner products of the column with the vectors of the group. If the bound is too large, this
module computes the inner products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.jit import jit


class VectorGroups(NamedTuple):
    """Grouped vectors, and the certificate that each vector belongs to.

    Missing values are replaced by the mean of all other values. When earlier components are
    subtracted from the data, this mean changes by an amount called `fill_change`. The field
    `shifts` is used to bound the effect of this change on the inner products.
    """

    vectors: Float  # (N, n), the N vectors in rows
    # (N,), absolute `fill_change` of the certificate of each vector, divided by the soft threshold
    # of the iteration in which the vector was computed
    shifts: Float
    owners: Index  # (N,), index of the certificate that each vector belongs to
    order: Index  # (N,), indices of the vectors, sorted by group
    ends: Index  # (n_groups,), position in `order` after the last vector of each group


@jit()
def leader_clustering(vectors: Float, radius: float) -> tuple[Index, Index]:
    """Group vectors by distance; return the leader of each group and the group of each vector.

    The vectors are processed in order. A vector joins the group of the most recent leader whose
    distance from the vector is at most `radius`. If there is no such leader, the vector becomes the
    leader of a new group.

    Parameters
    ----------
    vectors : array of shape (N, n)
        The N vectors, in rows.
    radius : float
        Largest Euclidean distance between a vector and its leader.

    Returns
    -------
    leaders : array of shape (n_leaders,)
        Indices of the vectors that are leaders.
    labels : array of shape (N,)
        Group of each vector: the position in `leaders` of the leader of the group.

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
        # Try the most recent leaders first: successive vectors often come from successive
        # iterations of the same algorithm, and are therefore similar.
        for g in range(n_leaders - 1, -1, -1):
            leader = vectors[leaders[g]]
            squared_distance = 0.0
            for k in range(n):
                squared_distance += (vectors[i, k] - leader[k]) ** 2
                # The partial sum never decreases, so the loop can stop as soon as the sum exceeds
                # the limit. Most leaders are rejected after a few coordinates.
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


# The fastmath options allow the compiler to change the order of summation, and therefore to
# vectorise the loop. The resulting rounding errors do no harm, since the caller compares the
# products with a limit that includes a margin for rounding errors.
@jit(fastmath={"reassoc", "contract", "nsz"})
def update_largest_products(
    groups: VectorGroups, candidates: Mask, columns: Float, gaps: Float, largest: Float
) -> None:
    """Update, in place, the largest product of each column with the vectors of each certificate.

    The product of a column x and a vector w is defined here as |x'w| + s g, where s is the entry of
    `groups.shifts` for the vector and g is the entry of `gaps` for the column.

    Parameters
    ----------
    groups : VectorGroups
        The vectors, their groups, and the certificate that each vector belongs to.
    candidates : array of shape (n_groups, n_columns)
        True if the products of the column with the vectors of the group are to be computed.
    columns : array of shape (n_columns, n)
        Columns of the data matrix, stored as the rows of this array.
    gaps : array of shape (n_columns,)
        Square root of the number of missing values in each column.
    largest : array of shape (n_certificates, n_columns)
        Largest product so far of each column with the vectors of each certificate. The array is
        updated.
    """
    n = columns.shape[1]
    vectors, shifts, owners, order, ends = groups
    begin = 0
    for g in range(ends.size):
        # The loop over columns is inside the loop over groups, so that the vectors of a group
        # remain in the processor's cache.
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
