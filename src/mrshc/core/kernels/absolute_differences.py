"""Weighted sums of the absolute differences between pairs of samples in each feature."""

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
        Distances between the n samples, to which the weighted differences in the p features are
        added.
    features : array of shape (p, n)
        Data with features in rows. In this layout, the inner loop reads contiguous memory. Missing
        values must be replaced by finite numbers; these numbers do not affect the result.
    observed : array of shape (p, n) or (0, 0)
        0 for each missing value and 1 for each other value; empty if no value is missing.
    weights : array of shape (p,)
        Weight of each feature.
    """
    n = total.shape[0]
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            # Write both triangles, because the result is used as a full symmetric matrix.
            for j in range(n):
                distance = weights[k] * abs(x[i] - x[j])
                # `observed` is an empty array, not None, because numba would compile a second
                # version of this function for None.
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                total[i, j] += distance


@jit()
def absolute_difference_sums(u: Float, features: Float, observed: Float) -> Float:
    """Return, for each feature x, the sum of u[i, j] |x[i] - x[j]| over all pairs of samples i, j.

    Parameters
    ----------
    u : array of shape (n, n)
        Weight of each pair of the n samples. Only the entries below the diagonal are used.
    features : array of shape (p, n)
        Data with features in rows. Missing values must be replaced by finite numbers; these numbers
        do not affect the result.
    observed : array of shape (p, n) or (0, 0)
        0 for each missing value and 1 for each other value; empty if no value is missing.

    Returns
    -------
    array of shape (p,)
        The sum for each feature. Each pair of samples is counted once. A pair is left out if the
        value of the feature is missing in one of the two samples.
    """
    n = u.shape[0]
    out = np.zeros(features.shape[0])
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            # Summing each row separately limits the rounding error of a sum of n^2 / 2 terms.
            row = 0.0
            for j in range(i):
                distance = u[i, j] * abs(x[i] - x[j])
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                row += distance
            out[k] += row
    return out
