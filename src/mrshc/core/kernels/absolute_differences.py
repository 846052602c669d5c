"""Absolute differences between pairs of samples, feature by feature."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def add_absolute_differences(
    total: Float, features: Float, observed: Float, weights: Float
) -> None:
    """Add the weighted absolute differences between samples to `total`, (n, n).

    `features` holds features in rows; `observed` is 0 for missing cells, 1 for others, or empty.
    """
    n = total.shape[0]
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            for j in range(n):
                distance = weights[k] * abs(x[i] - x[j])
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                total[i, j] += distance


@jit()
def absolute_difference_sums(u: Float, features: Float, observed: Float) -> Float:
    """Return for each feature the sum over pairs of samples of u times their difference."""
    n = u.shape[0]
    out = np.zeros(features.shape[0])
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            row = 0.0
            for j in range(i):
                distance = u[i, j] * abs(x[i] - x[j])
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                row += distance
            out[k] += row
    return out
