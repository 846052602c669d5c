"""Absolute differences of pairs of samples."""

from __future__ import annotations

import numpy as np

from mrshc.core.arrays import Float
from mrshc.core.kernels.jit import jit


@jit()
def add_absolute(total: Float, features: Float, observed: Float, weights: Float) -> None:
    """Add weighted absolute differences of samples; `features` in rows, `observed` 0 or 1."""
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
def absolute_forms(u: Float, features: Float, observed: Float) -> Float:
    """Return for each feature the sum over pairs of u times their absolute difference."""
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
