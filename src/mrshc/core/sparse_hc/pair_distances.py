"""Products with the matrix of pairwise distances in each feature, which is never formed.

D has a row for each pair of samples and a column for each feature: the distance of the pair in that
feature. Sparse hierarchical clustering needs Dw, the weighted distances between samples, and D'u, a
quadratic form for each feature. Both are computed from matrix products of the data, in blocks of
features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.host_transfer import to_device_of, to_host
from mrshc.core.data.passes import Passes
from mrshc.core.data.statistics import column_blocks
from mrshc.core.kernels.absolute_differences import (
    absolute_difference_sums,
    add_absolute_differences,
)
from mrshc.core.trees.tree import Metric

# Up to this fraction of the features, the columns with a weight are read on their own; above it, a
# pass over all columns is used instead. Not tuned: it affects the time, and results only by the
# order of additions.
_MAX_FRACTION_READ_SINGLY = 1 / 8


class PairDistances:
    """Products with the matrix D of one data set, in multiples of `unit`.

    A missing cell (NaN) removes the pairs of its sample from its feature. The distance of a pair in
    the other features is multiplied by p over the number of features observed in both samples, as
    in R's sparcl.

    Parameters
    ----------
    data : DataMatrix
        The data, (n_samples, n_features).
    metric : {"sqeuclidean", "cityblock"}
        Distance in one feature: squared or absolute difference.
    n_threads : int, default=1
        Number of threads for passes over the data.

    Attributes
    ----------
    shape : tuple of int
        Numbers of samples and features.
    in_memory : bool
        Whether the data are an array in memory.
    unit : float
        Products times `unit` are in the units of the data (squared for "sqeuclidean").
    shared : ndarray of shape (n_samples, n_samples) or None
        For each pair of samples the number of features observed in both; None if no cell is
        missing.
    """

    def __init__(self, data: DataMatrix, metric: Metric, *, n_threads: int = 1) -> None:
        summary = data.summary(n_threads=n_threads)
        self.shape = data.shape
        self.in_memory = data.in_memory
        self._data = data
        self._passes = Passes(data, n_threads=n_threads, n_passes=1)
        self._metric = metric
        # The alternation multiplies distances with each other: fourth powers of very large or very
        # small data would overflow or underflow. Division by a power of two is exact.
        spread = summary.highest - summary.lowest
        length = float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0
        self.unit = length if metric == "cityblock" else length**2
        # Distances do not depend on the centre, but their rounding errors do. Medians, since one
        # outlier could move a mean so far away that the differences of all other samples would be
        # lost to cancellation.
        has_missing = summary.has_missing
        function = partial(_medians_and_shared_counts, has_missing=has_missing)
        medians, shared = zip(*self._passes.map(function), strict=True)
        self._scaling = _ColumnScaling(
            center=np.concatenate(medians), length=length, has_missing=has_missing
        )
        self.n_shared_features: Float | None = np.sum(shared, axis=0) if has_missing else None
        self._missing_scale = None
        if self.n_shared_features is not None:
            # Pairs without a common feature have a distance of zero; the scale must stay finite.
            self._missing_scale = self.shape[1] / np.maximum(self.n_shared_features, 1.0)

    @property
    def n_passes(self) -> int:
        """Number of passes over the data so far, including that for their summary."""
        return self._passes.n_passes

    @property
    def incomparable_pair(self) -> tuple[int, int] | None:
        """Two samples without a feature observed in both; None if there are none."""
        if self.n_shared_features is None or self.n_shared_features.min() > 0:
            return None
        i, j = np.unravel_index(int(self.n_shared_features.argmin()), self.n_shared_features.shape)
        return int(i), int(j)

    def weighted_distances(self, indices: Index, weights: Float) -> Float:
        """Return Dw as (n, n) distances.

        Parameters
        ----------
        indices : ndarray of shape (q,)
            Features with a non-zero weight.
        weights : ndarray of shape (q,)
            Their weights, not negative.
        """
        n, p = self.shape
        total = np.zeros((n, n))
        if indices.size > p * _MAX_FRACTION_READ_SINGLY:
            all_weights = np.zeros(p)
            all_weights[indices] = weights
            function = partial(
                _block_distances, scaling=self._scaling, weights=all_weights, metric=self._metric
            )
            for part in self._passes.map(function):
                total += part
        else:
            for block in column_blocks(n, indices.size):
                features = indices[block]
                columns = self._data.columns(features)
                scaling = self._scaling.subset(features)
                total += _block_distances(
                    columns, 0, np, scaling=scaling, weights=weights[block], metric=self._metric
                )
        if self._missing_scale is not None:
            total *= self._missing_scale
            # With missing cells, the distance of a sample to itself is a difference of two sums
            # that are added up in different ways.
            np.fill_diagonal(total, 0.0)
        return total

    def slopes(self, u: Float) -> Float:
        """Return D'u, one value for each feature, for a symmetric (n, n) matrix u."""
        scaled = u if self._missing_scale is None else u * self._missing_scale
        function = partial(_block_slopes, scaling=self._scaling, u=scaled, metric=self._metric)
        return np.concatenate(list(self._passes.map(function)))

    def feature_distances(self, block: slice) -> Float:
        """Return the transposed columns of D for a block of features, (features, pairs)."""
        indices = np.arange(block.start, block.stop)
        values, observed = self._scaling.subset(indices)(self._data.columns(indices), 0, np)
        i, j = np.triu_indices(values.shape[0], 1)
        differences = values[i] - values[j]
        distances = np.abs(differences) if self._metric == "cityblock" else np.square(differences)
        if observed is not None and self._missing_scale is not None:
            distances *= observed[i] * observed[j] * self._missing_scale[i, j][:, None]
        return np.ascontiguousarray(distances.T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ColumnScaling:
    """Centring and scaling of columns.

    Attributes
    ----------
    center : ndarray of shape (n_features,)
        Subtracted from each column.
    length : float
        All columns are divided by it.
    has_missing : bool
        Whether some cells are missing.
    """

    center: Float
    length: float
    has_missing: bool

    def subset(self, indices: Index) -> _ColumnScaling:
        """Return the scaling of some columns."""
        return replace(self, center=self.center[indices])

    def __call__(self, block: Any, start: int, xp: Any) -> tuple[Any, Any]:
        """Scale a block of columns, the first of which is column `start`.

        Returns
        -------
        values : array of shape (n_samples, b)
            Scaled columns, zero in missing cells.
        observed : array of shape (n_samples, b) or None
            One in observed cells, zero in missing ones; None if no cell is missing.
        """
        center = to_device_of(block, self.center[start : start + block.shape[1]], xp)
        values = (xp.astype(block, xp.float64) - center) / self.length
        if not self.has_missing:
            return values, None
        missing = xp.isnan(values)
        return xp.where(missing, 0.0, values), xp.astype(~missing, xp.float64)


def _medians_and_shared_counts(
    block: Any, _: int, xp: Any, *, has_missing: bool
) -> tuple[Float, Float | None]:
    """Return the medians of columns, and for each pair of samples the features observed in both."""
    if xp is np and not has_missing:
        # In double precision: the sum of two large values overflows in single precision.
        return np.median(block.astype(np.float64, copy=False), axis=0), None
    # The array API has neither median nor nanmedian: sort, with missing cells last.
    missing = xp.isnan(block)
    observed = xp.astype(~missing, xp.float64)
    ranked = xp.sort(xp.astype(xp.where(missing, xp.inf, block), xp.float64), axis=0)
    counts = to_host(xp.sum(observed, axis=0)).astype(np.intp)
    low, high = np.maximum((counts - 1) // 2, 0), np.maximum(counts // 2, 0)
    ranked = to_host(ranked)
    all_columns = np.arange(counts.size)
    medians = (ranked[low, all_columns] + ranked[high, all_columns]) / 2
    shared = to_host(observed @ observed.T) if has_missing else None
    return np.where(counts > 0, medians, 0.0), shared


def _block_distances(
    block: Any, start: int, xp: Any, *, scaling: _ColumnScaling, weights: Float, metric: Metric
) -> Float:
    """Return the part of Dw that a block of features contributes, (n, n).

    For squared differences it is g_i + g_j - 2 h_i'h_j, where h are the rows of the block times the
    roots of the weights and g their squared lengths over the features observed in both samples.
    """
    values, observed = scaling(block, start, xp)
    block_weights = weights[start : start + block.shape[1]]
    if metric == "cityblock":
        total = np.zeros((block.shape[0], block.shape[0]))
        add_absolute_differences(
            total, _features_in_rows(values), _features_in_rows(observed), block_weights
        )
        return total
    rooted = values * to_device_of(block, np.sqrt(block_weights), xp)
    products = rooted @ rooted.T
    if observed is None:
        # From the same products, so that the distance of a sample to itself is exactly zero.
        squares = xp.linalg.diagonal(products)
        sums = squares[:, None] + squares[None, :]
    else:
        squares = (rooted * rooted) @ observed.T
        sums = squares + squares.T
    distances = sums - 2.0 * products
    # Rounding may leave small negative numbers.
    return to_host(xp.where(distances > 0.0, distances, 0.0))


def _block_slopes(
    block: Any, start: int, xp: Any, *, scaling: _ColumnScaling, u: Float, metric: Metric
) -> Float:
    """Return D'u for the features of a block, (b,).

    For squared differences it is x'Lx for a feature x, where L is the Laplacian of the graph with
    the edge weights u, restricted to the observed cells.
    """
    values, observed = scaling(block, start, xp)
    if metric == "cityblock":
        return absolute_difference_sums(u, _features_in_rows(values), _features_in_rows(observed))
    device_u = to_device_of(block, u, xp)
    degrees = xp.sum(device_u, axis=1)[:, None] if observed is None else device_u @ observed
    return to_host(xp.sum(values * (degrees * values - device_u @ values), axis=0))


def _features_in_rows(values: Any | None) -> Float:
    """Return a contiguous array with features in rows, as the kernels take it; empty for None."""
    return np.empty((0, 0)) if values is None else np.ascontiguousarray(to_host(values).T)
