"""Operations on dense and sparse vectors and on sorted indices."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit


@jit()
def dot(a: Float, b: Float) -> float:
    """Return the inner product of two dense vectors of the same length."""
    # Added up from the first entry to the last: BLAS may take another order on another machine.
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit()
def euclidean_distance(a: Float, b: Float) -> float:
    """Return the Euclidean distance between two dense vectors of the same length."""
    # From differences: norms and an inner product would lose all digits for nearly equal vectors.
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) ** 2
    return np.sqrt(total)


@jit()
def l1_distance(indices_a: Index, weights_a: Float, indices_b: Index, weights_b: Float) -> float:
    """Return the L1 distance between two sparse vectors with increasing indices.

    Parameters
    ----------
    indices_a, weights_a : arrays of the same length
        Entries of the first vector, in increasing order of indices.
    indices_b, weights_b : arrays of the same length
        Entries of the second vector.

    Returns
    -------
    float
        The sum of absolute differences over all indices of either vector.
    """
    # Both are merged in one pass, without dense vectors: p may be much larger than either.
    total = 0.0
    a = b = 0
    while a < indices_a.size or b < indices_b.size:
        if b == indices_b.size or (a < indices_a.size and indices_a[a] < indices_b[b]):
            total += abs(weights_a[a])
            a += 1
        elif a == indices_a.size or indices_b[b] < indices_a[a]:
            total += abs(weights_b[b])
            b += 1
        else:  # the same index
            total += abs(weights_a[a] - weights_b[b])
            a += 1
            b += 1
    return total


@jit()
def sorted_union(a: Index, b: Index) -> Index:
    """Return the union of two increasing arrays of indices, in increasing order."""
    out = np.empty(a.size + b.size, np.intp)
    i = j = count = 0
    while i < a.size or j < b.size:
        if j == b.size or (i < a.size and a[i] <= b[j]):
            j += j < b.size and a[i] == b[j]  # an index in both is taken once
            out[count] = a[i]
            i += 1
        else:
            out[count] = b[j]
            j += 1
        count += 1
    return out[:count].copy()
