"""Bounds of the combined p-values of many features, from tabulated quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


class BoundTable(NamedTuple):
    """Upper bounds of Cauchy quantiles of p-values, given shares of explained variance."""

    # (n_cuts, m), for each number of clusters, bounds for m intervals of shares that start at zero
    bounds: Float
    n_steps_per_unit: float  # number of intervals between shares of zero and one
    smallest_mean: float  # a p-value is small if the mean of the quantiles is at least this number
    error: float  # bound of the rounding error of a coordinate
    # a p-value may be rounded to 1 if the first coordinate is not larger than this number
    smallest_coordinate: float


@jit()
def mark_small_p_values(coordinates: Float, table: BoundTable, marked: NDArray[np.uint8]) -> None:
    """Mark the features and trees whose combined p-value may be small.

    Parameters
    ----------
    coordinates : array of shape (p, n_trees * n_cuts)
        Inner products of the ranks of each feature with orthonormal contrasts. The sum of the first
        k squares for a tree is the share of the variance of the ranks that cut k explains.
    table : BoundTable
        Bounds of the quantiles of the p-values.
    marked : array of uint8 of shape (p, n_trees)
        Output. One if the mean of the quantiles may be large enough, or if a p-value may be 1.
    """
    n_cuts, n_bounds = table.bounds.shape
    n_trees = marked.shape[1]
    smallest_total = table.smallest_mean * n_cuts
    for j in range(coordinates.shape[0]):
        for tree in range(n_trees):
            share, total, first = 0.0, 0.0, n_cuts * tree
            for k in range(n_cuts):
                size = abs(coordinates[j, first + k]) + table.error
                share += size * size
                position = np.intp(share * table.n_steps_per_unit)
                total += table.bounds[k, position] if position < n_bounds else np.inf
            # The mean of the quantiles ignores p-values of 1. No p-value is 1 if that of the first
            # cut is not, since the shares of the others are at least as large.
            may_be_one = abs(coordinates[j, first]) <= table.smallest_coordinate
            marked[j, tree] = may_be_one or total >= smallest_total
