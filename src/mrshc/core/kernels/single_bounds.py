"""Bounds of inner products in single precision, which exclude most columns from an exact check.

The conditions of certificates are checked in double precision
(:func:`~mrshc.core.kernels.leader_groups.find_large_products`). This takes much less time if it is
done only for the few columns that may violate a condition. The functions of this module find these
columns in single precision, with bounds that include all rounding errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

Single = NDArray[np.float32]

# Number of rows and columns of the tiles in which a matrix is transposed. Sixteen numbers fill a
# cache line. The number does not affect the result.
_TILE = 16


class SingleGroups(NamedTuple):
    """Vectors in groups as in `VectorGroups`, in single precision.

    The errors bound the rounding error of an inner product, divided by the norm of the column.
    """

    vectors: Single  # (N, n), the vectors in rows, sorted by group
    distances: Single  # (N,), distance of each vector from the centre of its group
    shifts: Single  # (N,)
    vector_errors: Single  # (N,)
    ends: Index  # (n_groups,), position after the last vector of each group
    centres: Single  # (n_groups, n)
    radii: Single  # (n_groups,), largest of the distances in each group
    largest_shifts: Single  # (n_groups,), largest of the shifts in each group
    rests: Single  # (n_groups,), norm of the part of each centre orthogonal to the subspace
    errors: Single  # (n_groups,)


class SingleColumns(NamedTuple):
    """Columns of the data in single precision, as in `CheckedColumns`."""

    values: Single  # (b, n), the columns, stored as the rows of this array
    norms: Single  # (b,), Euclidean norms of the columns
    rests: Single  # (b,), norms of the parts that are orthogonal to the subspace
    gaps: Single  # (b,), square root of the number of missing values in each column


@jit(error_model="numpy")
def write_centred_columns(
    block: NDArray[Any],
    first: int,
    offsets: Float,
    fill: float,
    unit: float,
    centred: Single,
    squares: Float,
    n_missing: Float,
) -> None:
    """Write consecutive columns of a block after they have been centred and divided by a unit.

    Parameters
    ----------
    block : array of shape (n, b)
        Columns before centring, with NaN for missing values.
    first : int
        Position of the first of the m columns in the block.
    offsets : array of shape (m,)
        Offsets that are subtracted from the m columns.
    fill : float
        Value that replaces missing values after centring.
    unit : float
        Number by which the centred values are divided.
    centred : array of shape (n, m)
        Output. The columns in single precision.
    squares : array of shape (m,)
        Output. Sums of squares of the columns, after division by the unit.
    n_missing : array of shape (m,)
        Output. Numbers of missing values.
    """
    n, m = centred.shape
    factor = 1.0 / unit
    squares[:] = 0.0
    n_missing[:] = 0.0
    # Unsigned indices cannot count from the end, so that the compiler vectorises the loop.
    start = np.uintp(first)
    for i in range(np.uintp(n)):
        for j in range(np.uintp(m)):
            value = np.float64(block[i, start + j]) - offsets[j]
            is_missing = np.isnan(value)
            value = (fill if is_missing else value) * factor
            n_missing[j] += 1.0 if is_missing else 0.0
            squares[j] += value * value
            centred[i, j] = value


@jit()
def write_transposed(matrix: Single, out: Single) -> None:
    """Write the transpose of a matrix to `out`."""
    n, m = np.uintp(matrix.shape[0]), np.uintp(matrix.shape[1])
    # In tiles, so that the cache lines of the output stay in the cache until they are full.
    tile = np.uintp(_TILE)
    for left in range(np.uintp(0), m, tile):
        for top in range(np.uintp(0), n, tile):
            for j in range(left, min(left + tile, m)):
                for i in range(top, min(top + tile, n)):
                    out[j, i] = matrix[i, j]


@jit()
def mark_large_products(
    groups: SingleGroups, columns: SingleColumns, products: Single, limit: float
) -> NDArray[np.uint8]:
    """Return one for columns that may have a product above a limit with a vector, zero for others.

    The product of a column and a vector is defined as in
    :func:`~mrshc.core.kernels.leader_groups.find_large_products`, which also describes the bounds.

    Parameters
    ----------
    groups : SingleGroups
        The vectors and their groups.
    columns : SingleColumns
        The columns of the data.
    products : array of shape (n_groups, b)
        Inner products of the centres and the columns after projection onto a subspace.
    limit : float
        The limit, which is positive.

    Returns
    -------
    array of uint8 of shape (b,)
        One for each column that has to be checked. If bounds overflow, the column is marked.
    """
    # The arrays of the named tuples are assigned to local variables. Otherwise numba would update
    # their reference counts for every pair of a group and a column.
    values, norms, rests, gaps = columns
    vectors, distances, shifts, vector_errors, ends = groups[:5]
    centres, radii, largest_shifts, group_rests, errors = groups[5:]
    n_columns = norms.size
    # Eight columns are tested at a time, and further entries remain zero.
    is_large = np.zeros(8 * ((n_columns + 7) // 8), np.uint8)
    is_marked = np.zeros(n_columns, np.uint8)
    # The factor covers the rounding errors of the sums of bounds.
    single_limit = np.float32(limit * (1.0 - 1e-5))
    words, begin = is_large.view(np.uint64), 0
    for g in range(ends.size):
        rest, shift, end = group_rests[g], largest_shifts[g], ends[g]
        radius, of_group = radii[g] + errors[g], products[g]
        # The loop has no branches, so the compiler vectorises it. The negated comparison is True
        # for NaN.
        for j in range(n_columns):
            bound = abs(of_group[j]) + rest * rests[j] + radius * norms[j] + shift * gaps[j]
            is_large[j] = not bound <= single_limit
        for w in range(words.size):
            if words[w] == 0:
                continue
            for j in range(8 * w, min(8 * w + 8, n_columns)):
                if is_large[j] and not is_marked[j]:
                    norm, gap = norms[j], gaps[j]
                    central = abs(_inner_product(centres[g], values[j])) + errors[g] * norm
                    if central + radii[g] * norm + shift * gap <= single_limit:
                        continue
                    for m in range(begin, end):
                        added = shifts[m] * gap
                        if central + distances[m] * norm + added <= single_limit:
                            continue
                        product = abs(_inner_product(vectors[m], values[j])) + added
                        if not product + vector_errors[m] * norm <= single_limit:
                            is_marked[j] = 1
                            break
        begin = end
    return is_marked


# The fastmath options allow the compiler to change the order of summation, and therefore to
# vectorise the loop. The bounds of rounding errors hold for every order.
@jit(fastmath={"reassoc", "contract", "nsz"})
def _inner_product(a: Single, b: Single) -> np.float32:
    total = np.float32(0.0)
    for i in range(a.size):
        total += a[i] * b[i]
    return total
