"""Approximate slopes at new scores u, combined from the slopes at earlier scores.

The slopes of the p columns of the centred data X at u are the entries of X'u. They are linear in u.
If the slopes at some vectors are known, and u is a linear combination of these vectors plus a rest
r, the slopes at u are the same combination of the known slopes, with an error of at most the norm
of r times the norm of the column. The iterations of the alternating algorithm at different L1
bounds have similar scores, so that few vectors are sufficient. For many samples, a combination
takes much less time than the slopes of all columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import copy_into, dot

# A vector is added to the basis only if its distance from the span of the basis is at least this.
# The slopes of closer vectors are approximated well enough without it.
_MIN_DISTANCE = 1e-3

# Bound of the relative rounding errors of slopes. The errors of sums of 100,000 terms in double
# precision are smaller. A larger bound would only make screens slightly larger.
_ROUNDING = 1e-10


class SlopeBasis(NamedTuple):
    """Vectors u at which the slopes of all columns are known; the first `n_used[0]` rows are used.

    For few samples, functions are called with None instead of a basis. Numba then compiles nothing
    but the return of these functions, since it knows the type.
    """

    vectors: Float  # (m, n), the vectors, of unit norm
    slopes: Float  # (m, p), X'u of each vector u
    orthonormal: Float  # (m, n), the vectors after orthonormalisation
    coefficients: Float  # (m, m), row i: the coefficients of vector i in the orthonormal vectors
    n_used: Index  # (1,), number of vectors


@jit()
def has_vectors(basis: SlopeBasis | None) -> bool:
    """Return whether slopes can be combined from those of a basis."""
    if basis is None:
        return False
    return basis.n_used[0] > 0


@jit()
def add_to_basis(basis: SlopeBasis | None, u: Float, slopes: Float) -> None:
    """Add a unit vector u and the slopes of all columns at u to the basis.

    The vector is not added if the basis is full or if u is nearly in its span.
    """
    if basis is None:
        return
    count = basis.n_used[0]
    if count == basis.vectors.shape[0]:
        return
    rest, projections = u.copy(), basis.coefficients[count]
    projections[:] = 0.0
    # The second projection removes the rounding errors of the first.
    for _ in range(2):
        for k in range(count):
            projection = dot(basis.orthonormal[k], rest)
            projections[k] += projection
            _subtract_multiple(rest, basis.orthonormal[k], projection)
    distance = np.sqrt(dot(rest, rest))
    if distance < _MIN_DISTANCE:
        return
    projections[count] = distance
    for i in range(u.size):
        basis.orthonormal[count, i] = rest[i] / distance
    copy_into(basis.vectors[count], u)
    copy_into(basis.slopes[count], slopes)
    basis.n_used[0] = count + 1


@jit()
def combine_slopes(basis: SlopeBasis, u: Float, slopes: Float) -> float:
    """Write approximate slopes at u to `slopes`, of shape (p,), and return their relative error.

    The error of the slope of a column is at most the returned value times the norm of the column.
    """
    count = basis.n_used[0]
    rest, weights, total = u.copy(), np.empty(count), 0.0
    for k in range(count):
        weights[k] = dot(basis.orthonormal[k], u)
    # Coefficients of u in the vectors of the basis, by back substitution.
    for k in range(count - 1, -1, -1):
        for i in range(k + 1, count):
            weights[k] -= weights[i] * basis.coefficients[i, k]
        weights[k] /= basis.coefficients[k, k]
    slopes[:] = 0.0
    for k in range(count):
        _subtract_multiple(slopes, basis.slopes[k], -weights[k])
        _subtract_multiple(rest, basis.vectors[k], weights[k])
        total += abs(weights[k])
    return np.sqrt(dot(rest, rest)) + _ROUNDING * (1.0 + total)


@jit()
def _subtract_multiple(vector: Float, other: Float, factor: float) -> None:
    """Subtract `factor` times `other` from a vector, in place."""
    for i in range(vector.size):
        vector[i] -= factor * other[i]
