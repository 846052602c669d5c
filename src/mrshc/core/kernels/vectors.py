"""Operations on dense vectors, on sparse vectors and on sorted arrays of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit


@jit(allocates=False)
def dot(a: Float, b: Float) -> float:
    """Return the inner product of two dense vectors of the same length."""
    # The products are added from the first entry to the last. BLAS may use different orders on
    # different machines.
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit(allocates=False)
def euclidean_distance(a: Float, b: Float) -> float:
    """Return the Euclidean distance between two dense vectors of the same length."""
    # The differences are squared and summed. For nearly equal vectors, computing the distance from
    # the norms and the inner product would lose most digits to cancellation.
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) ** 2
    return np.sqrt(total)


@jit(allocates=False)
def l1_distance(indices_a: Index, weights_a: Float, indices_b: Index, weights_b: Float) -> float:
    """Return the L1 distance between two sparse vectors.

    Parameters
    ----------
    indices_a, weights_a : arrays of the same length
        Indices and values of the non-zero entries of the first vector, in increasing order of the
        indices.
    indices_b, weights_b : arrays of the same length
        Indices and values of the non-zero entries of the second vector, in increasing order of the
        indices.

    Returns
    -------
    float
        The sum of the absolute differences between corresponding entries.
    """
    # The sorted indices of both vectors are merged. The sparse vectors are not converted to dense
    # vectors, which may be much longer than the number of non-zero entries.
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
def copy_into(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Write the entries of the vector `source` to the vector `target` of the same length."""
    # The assignment target[:] = source would do the same, but numba then also compiles the error
    # message about different shapes, which takes longer than most functions of this package.
    for i in range(source.size):
        target[i] = source[i]


@jit()
def index_range(n: int) -> Index:
    """Return the vector 0, 1, ..., n - 1."""
    # Numba compiles this loop faster than its own function for np.arange.
    out = np.empty(n, np.intp)
    for i in range(n):
        out[i] = i
    return out


@jit()
def take(values: NDArray[Any], indices: Index) -> NDArray[Any]:
    """Return the entries of a vector at the given indices."""
    out = np.empty(indices.size, values.dtype)
    for k in range(indices.size):
        out[k] = values[indices[k]]
    return out


@jit()
def sorted_union(a: Index, b: Index) -> Index:
    """Return the union of two increasing arrays of indices, in increasing order."""
    out = np.empty(a.size + b.size, np.intp)
    i = j = count = 0
    while i < a.size or j < b.size:
        if j == b.size or (i < a.size and a[i] <= b[j]):
            j += j < b.size and a[i] == b[j]  # skip b[j] if the same index is taken from a
            out[count] = a[i]
            i += 1
        else:
            out[count] = b[j]
            j += 1
        count += 1
    return out[:count].copy()
