"""Approximate slopes of all columns, by which most columns are excluded from a computation.

The slopes of the columns of the centred data X at scores u are the entries of X'u. For small data,
they are approximated by products in single precision, which take a quarter of the time of exact
ones. For many samples, they are combined from the slopes at earlier scores
(:mod:`~mrshc.core.kernels.slope_basis`). The error of an approximation is bounded, so a column is
excluded only if its exact slope cannot matter. For large data, slopes at similar scores give upper
bounds instead (:mod:`~mrshc.core.kernels.slope_bounds`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.kernels.column_copies import ColumnCopies
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.slope_basis import SlopeBasis, combine_slopes, has_vectors
from mrshc.core.kernels.slope_bounds import SlopeBounds

# Largest relative rounding error of a number in single precision.
_UNIT_ROUNDOFF = 2.0**-24
# Products smaller than this lose digits in single precision, or become zero. Values are divided by
# the largest norm of a column before, so that only products that do not matter are this small.
_SMALLEST_PRODUCT = 1e-37


class SinglePrecision(NamedTuple):
    """A copy of the centred data in single precision; an array without rows if there is none."""

    values: NDArray[np.float32]  # (n, p), the centred data divided by `scale`
    scale: float


class SlopeApproximation(NamedTuple):
    """What slopes are approximated or bounded by."""

    single: SinglePrecision  # for small data
    bounds: SlopeBounds  # for large data; without rows for small data
    # For many samples; None for few, so that numba compiles nothing but the return of the functions
    # that are called with it.
    basis: SlopeBasis | None
    copies: ColumnCopies | None  # copies of columns, for many samples; None for few


@jit(allocates=False)
def can_approximate(approximation: SlopeApproximation) -> bool:
    """Return whether slopes at any scores can be approximated."""
    return approximation.single.values.shape[0] > 0 or has_vectors(approximation.basis)


@jit(allocates=False)
def approximate_slopes(
    single: SinglePrecision, basis: SlopeBasis | None, u: Float, slopes: Float
) -> float:
    """Write approximate slopes at u to `slopes`, of shape (p,), and return their relative error.

    The error of the slope of a column is at most the returned value times the norm of the column,
    plus `absolute_error`. `single` and `basis` are attributes of a `SlopeApproximation`.
    """
    if basis is None:
        return _single_precision_slopes(single, u, slopes)
    return combine_slopes(basis, u, slopes)


@jit(allocates=False)
def absolute_error(single: SinglePrecision) -> float:
    """Return the part of the error of approximate slopes that does not depend on the column."""
    return single.values.shape[0] * single.scale * _SMALLEST_PRODUCT


# The products may be added in any order, and without rounding of the single products, since the
# bound of the error holds for every order.
@jit(fastmath={"contract", "reassoc", "nsz"})
def _single_precision_slopes(single: SinglePrecision, u: Float, slopes: Float) -> float:
    """Write X'u, computed in single precision, to `slopes`; return its relative error."""
    values, scale = single.values, single.scale
    n, p = values.shape
    rounded, sums = np.zeros(n + 8, np.float32), np.zeros(p, np.float32)
    for i in range(n):
        rounded[i] = u[i]
    i = 0
    # Eight rows at a time, so that each sum is loaded and stored once for eight rows.
    while i + 8 <= n:
        a, b, c, d = rounded[i], rounded[i + 1], rounded[i + 2], rounded[i + 3]
        e, f, g, h = rounded[i + 4], rounded[i + 5], rounded[i + 6], rounded[i + 7]
        for j in range(p):
            sums[j] += (
                values[i, j] * a
                + values[i + 1, j] * b
                + values[i + 2, j] * c
                + values[i + 3, j] * d
                + values[i + 4, j] * e
                + values[i + 5, j] * f
                + values[i + 6, j] * g
                + values[i + 7, j] * h
            )
        i += 8
    while i < n:
        a = rounded[i]
        for j in range(p):
            sums[j] += values[i, j] * a
        i += 1
    for j in range(p):
        slopes[j] = scale * sums[j]
    # The usual bound of the error of an inner product of n terms is n unit roundoffs times the
    # product of the norms. Two more are due to the rounding of the factors. The factor 2 covers
    # terms of higher order.
    return 2.0 * (n + 2.0) * _UNIT_ROUNDOFF
