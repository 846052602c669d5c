"""Absolute differences between pairs of samples, feature by feature."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def add_absolute_differences(
    total: Float, features: Float, observed: Float, weights: Float
) -> None:
    """Add the weighted absolute differences between all pairs of samples to `total`, in place.

    Parameters
    ----------
    total : array of shape (n, n)
        Distances between samples, to which the differences in these features are added.
    features : array of shape (p, n)
        Features in rows, so that the inner loop reads contiguous memory.
    observed : array of shape (p, n) or (0, 0)
        0 for missing cells and 1 for others; empty if no cell is missing.
    weights : array of shape (p,)
        Weight of each feature.
    """
    n = total.shape[0]
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            # Both triangles are written, since the result is used as a full symmetric matrix.
            for j in range(n):
                distance = weights[k] * abs(x[i] - x[j])
                # An empty array in place of None: numba would compile a second version for None.
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                total[i, j] += distance


@jit()
def absolute_difference_sums(u: Float, features: Float, observed: Float) -> Float:
    """Return for each feature the sum over pairs of samples of u times their absolute difference.

    Parameters
    ----------
    u : array of shape (n, n)
        Weight of each pair of samples; only the entries below the diagonal are used.
    features : array of shape (p, n)
        Features in rows.
    observed : array of shape (p, n) or (0, 0)
        0 for missing cells and 1 for others; empty if no cell is missing.

    Returns
    -------
    array of shape (p,)
        Each pair is counted once.
    """
    n = u.shape[0]
    out = np.zeros(features.shape[0])
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            # A sum for each row limits the growth of rounding errors over n^2 / 2 terms.
            row = 0.0
            for j in range(i):
                distance = u[i, j] * abs(x[i] - x[j])
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                row += distance
            out[k] += row
    return out
