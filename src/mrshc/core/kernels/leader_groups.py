"""Group similar vectors, and compute the largest inner product of each column with the vectors.

A component that was computed from some columns of the data is optimal for all columns if the
absolute inner products of the other columns with certain vectors do not exceed certain thresholds.
These vectors and thresholds are the certificate of the component. Many of the vectors are similar,
so they are grouped. For each column and each group, one upper bound of the absolute inner products
of the column with the vectors of the group is computed. The inner products themselves are computed
only if the bound is too large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit


class VectorGroups(NamedTuple):
    """Vectors in groups, the certificate of each vector, and the centre of each group.

    The vectors are sorted by group. Missing values are replaced by the mean of all other values.
    When earlier components are subtracted from the data, this mean changes by an amount called
    `fill_change`. The field `shifts` is used to bound the effect of this change on the inner
    products.
    """

    vectors: Float  # (N, n), the N vectors in rows
    # (N,), absolute `fill_change` of the certificate of each vector, divided by the soft threshold
    # of the iteration in which the vector was computed
    shifts: Float
    owners: Index  # (N,), index of the certificate that each vector belongs to
    distances: Float  # (N,), distance of each vector from the centre of its group
    ends: Index  # (n_groups,), position after the last vector of each group
    centres: Float  # (n_groups, n), one vector of each group
    radii: Float  # (n_groups,), largest of the `distances` in each group
    largest_shifts: Float  # (n_groups,), largest of the `shifts` in each group
    # (n_groups,), Euclidean norm of the part of each centre that is orthogonal to a subspace
    rests: Float
    # (n_groups,), bound of the rounding error of an inner product in the subspace, divided by the
    # norm of the column
    errors: Float


class CheckedColumns(NamedTuple):
    """Columns of the data that are checked against the vectors of certificates."""

    values: Float  # (b, n), the columns, stored as the rows of this array
    # Single precision is accurate enough for bounds.
    norms: NDArray[np.float32]  # (b,), Euclidean norms of the columns
    rests: NDArray[np.float32]  # (b,), norms of the parts that are orthogonal to the subspace
    gaps: NDArray[np.float32]  # (b,), square root of the number of missing values in each column


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


@jit()
def find_large_products(
    groups: VectorGroups,
    columns: CheckedColumns,
    subspace_products: NDArray[np.float32],
    limit: float,
) -> Float:
    """Return the largest product of each column with the vectors of each certificate.

    The product of a column x and a vector w is defined here as |x'w| + s g, where s is the entry of
    `groups.shifts` for the vector and g is the entry of `columns.gaps` for the column. Products
    that do not exceed the limit need not be found.

    Parameters
    ----------
    groups : VectorGroups
        The vectors, their groups, and the certificate that each vector belongs to.
    columns : CheckedColumns
        The columns of the data.
    subspace_products : array of shape (n_groups, n_columns)
        Inner products of the centres and the columns after projection onto a subspace.
    limit : float
        Only products above this limit are needed.

    Returns
    -------
    array of shape (n_certificates, n_columns)
        The largest products. Entries that are at most `limit` may be smaller than the largest
        product.

    Notes
    -----
    Most pairs of a group and a column are excluded by upper bounds. Let c be the centre of the
    group, and let c = a + b and x = y + z, where a and y are the projections onto the subspace.
    Then |c'x| <= |a'y| + |b| |z|, and |w'x| <= |c'x| + |w - c| |x| for a vector w of the group, by
    the Cauchy-Schwarz inequality. The second bound is computed for the pairs that the first one
    does not exclude, and the product itself for those that neither excludes.
    """
    vectors, shifts, owners, distances, ends, centres, _, _, _, _ = groups
    values, norms, gaps = columns.values, columns.norms, columns.gaps
    largest = np.zeros((owners.max() + 1, norms.size))
    selected = np.empty(norms.size + 8, np.intp)
    is_selected = np.zeros(8 * ((norms.size + 7) // 8), np.uint8)
    begin = 0
    # The loop over columns is inside the loop over groups, so that the vectors of a group remain in
    # the processor's cache.
    for g in range(ends.size):
        n_selected = _select_columns(
            groups, columns, subspace_products[g], g, limit, selected, is_selected
        )
        for k in range(n_selected):
            j = selected[k]
            central = abs(_inner_product(centres[g], values[j]))
            for m in range(begin, ends[g]):
                if central + distances[m] * norms[j] + shifts[m] * gaps[j] <= limit:
                    continue
                product = abs(_inner_product(vectors[m], values[j])) + shifts[m] * gaps[j]
                if product > largest[owners[m], j]:
                    largest[owners[m], j] = product
        begin = ends[g]
    return largest


@jit()
def _select_columns(
    groups: VectorGroups,
    columns: CheckedColumns,
    products: NDArray[np.float32],
    g: int,
    limit: float,
    selected: Index,
    is_selected: NDArray[np.uint8],
) -> int:
    """Write the columns that may have a large product with group g, and return their number.

    Parameters
    ----------
    groups, columns, limit
        As in `find_large_products`.
    products : array of shape (n_columns,)
        Inner products of the centre of the group and the columns in the subspace.
    g : int
        Number of the group.
    selected : array of shape (n_columns + 8,)
        Output. The indices of the selected columns.
    is_selected : array of uint8 of shape (8 * ceil(n_columns / 8),)
        Array in which the function marks selected columns. Entries beyond the columns are zero.
    """
    norms, rests, gaps = columns.norms, columns.rests, columns.gaps
    single = np.float32
    rest, shift = single(groups.rests[g]), single(groups.largest_shifts[g])
    radius, single_limit = single(groups.radii[g] + groups.errors[g]), single(limit)
    # The first loop has no branches, so the compiler vectorises it. Overflow in single precision
    # may give NaN. The negated comparison is True for NaN, so these columns are selected.
    for j in range(norms.size):
        bound = abs(products[j]) + rest * rests[j] + radius * norms[j] + shift * gaps[j]
        is_selected[j] = not bound <= single_limit
    count = 0
    # Few columns are selected, so eight columns are tested at a time.
    words = is_selected.view(np.uint64)
    for w in range(words.size):
        if words[w] != 0:
            for j in range(8 * w, 8 * w + 8):
                # Every index is written, but it is overwritten by the next index unless the count
                # increases.
                selected[count] = j
                count += is_selected[j]
    return count


# The fastmath options allow the compiler to change the order of summation, and therefore to
# vectorise the loop. The resulting rounding errors do no harm, since the products are compared with
# a limit that includes a margin for rounding errors.
@jit(fastmath={"reassoc", "contract", "nsz"})
def _inner_product(a: Float, b: Float) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total
