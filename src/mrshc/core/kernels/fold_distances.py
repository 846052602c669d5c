"""Distances between samples without the features of a fold."""

from __future__ import annotations

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def distances_without(distances: Float, features: Float, is_squared: bool) -> Float:
    """Return the distances between samples after subtracting the part of some of the features.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between the n samples, which are sums over features.
    features : array of shape (m, n)
        The features to subtract, in rows, without missing values.
    is_squared : bool
        True for squared Euclidean distances, False for city-block distances.

    Returns
    -------
    array of shape (n, n)
        The remaining distances, at least zero.
    """
    remaining = distances.copy()
    for i in range(distances.shape[0]):
        row = remaining[i]
        for j in range(features.shape[0]):
            if is_squared:
                _subtract_squared_differences(row, features[j], features[j, i])
            else:
                _subtract_differences(row, features[j], features[j, i])
        for k in range(row.size):
            # Rounding may leave a small negative value.
            row[k] = max(row[k], 0.0)
    return remaining


# The loops are functions of their own, so that the compiler vectorises them.
@jit()
def _subtract_squared_differences(row: Float, values: Float, value: float) -> None:
    for k in range(row.size):
        difference = values[k] - value
        row[k] -= difference * difference


@jit()
def _subtract_differences(row: Float, values: Float, value: float) -> None:
    for k in range(row.size):
        row[k] -= abs(values[k] - value)
