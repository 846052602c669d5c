"""Products with the matrix D of pairwise distances in each feature.

D has a row for each pair of samples and a column for each feature. Each entry is the distance
between the two samples in that feature. Sparse hierarchical clustering needs two products. Dw
contains the distances between samples when the features have the weights w. D'u contains one value
for each feature, where u has one value for each pair of samples. Both products are computed
directly from the data, in blocks of features, because storing the matrix D may take too much
memory.
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
from mrshc.core.trees.tree import AdditiveMetric

# If at most this fraction of the features have non-zero weights, only the columns of these features
# are read; otherwise all columns are read in one pass. The value has not been tuned. It affects the
# computation time. It changes results only by rounding errors, since it changes the order of
# additions.
_MAX_FRACTION_READ_SINGLY = 1 / 8


class PairDistances:
    """Products with the matrix D of the distances between all pairs of samples in each feature.

    D has a row for each pair of samples and a column for each feature. If a sample has a missing
    value (NaN) in a feature, the distances between this sample and all other samples in this
    feature are set to zero. To compensate, each row of D is multiplied by the number of all
    features and divided by the number of features that are observed in both samples of the pair.
    The R package sparcl uses the same correction.

    Parameters
    ----------
    data : DataMatrix
        The data, with samples in rows and features in columns.
    metric : {"sqeuclidean", "cityblock"}
        Distance between two samples in one feature: the squared difference ("sqeuclidean") or the
        absolute difference ("cityblock") of their values.
    n_threads : int, default=1
        Number of threads for passes over the data.

    Attributes
    ----------
    shape : tuple of int
        Shape of the data (not of D): number of samples, and number of features.
    in_memory : bool
        Whether the data are an array in memory.
    unit : float
        Value by which all distances in D are divided. Products with D have to be multiplied by
        `unit` to obtain values on the original scale of the distances.
    n_shared_features : ndarray of shape (n_samples, n_samples) or None
        For each pair of samples, the number of features that are observed in both samples; None if
        no value is missing.
    """

    def __init__(self, data: DataMatrix, metric: AdditiveMetric, *, n_threads: int = 1) -> None:
        summary = data.summary(n_threads=n_threads)
        self.shape = data.shape
        self.in_memory = data.in_memory
        self._data = data
        self._passes = Passes(data, n_threads=n_threads, n_passes=1)
        self._metric = metric
        # Sparse hierarchical clustering multiplies distances with each other. Without scaling,
        # fourth powers of very large or very small values would overflow or underflow.
        length = summary.length_unit
        self.unit = length if metric == "cityblock" else length**2
        # Columns are centred to reduce rounding errors; centring does not change the distances.
        # Columns are centred at their medians, not at their means. An outlier could move the mean
        # of a column so far from all other values that the differences between these values would
        # be lost to rounding errors.
        has_missing = summary.has_missing
        function = partial(_medians_and_shared_counts, has_missing=has_missing)
        medians, shared = zip(*self._passes.map(function), strict=True)
        self._scaling = _ColumnScaling(
            center=np.concatenate(medians), length=length, has_missing=has_missing
        )
        self.n_shared_features: Float | None = np.sum(shared, axis=0) if has_missing else None
        self._missing_scale = None
        if self.n_shared_features is not None:
            # `np.maximum` avoids a division by zero for pairs of samples without a shared feature.
            # The distance between the samples of such a pair is zero.
            self._missing_scale = self.shape[1] / np.maximum(self.n_shared_features, 1.0)

    @property
    def n_passes(self) -> int:
        """Number of passes over the data so far, including the pass that computed their summary."""
        return self._passes.n_passes

    @property
    def incomparable_pair(self) -> tuple[int, int] | None:
        """Indices of two samples for which no feature is observed in both samples.

        The value is None if every two samples share at least one observed feature.
        """
        if self.n_shared_features is None or self.n_shared_features.min() > 0:
            return None
        i, j = np.unravel_index(int(self.n_shared_features.argmin()), self.n_shared_features.shape)
        return int(i), int(j)

    def weighted_distances(self, indices: Index, weights: Float) -> Float:
        """Return the weighted distances Dw as a matrix of shape (n_samples, n_samples).

        Parameters
        ----------
        indices : ndarray of shape (q,)
            Indices of the q features with a non-zero weight.
        weights : ndarray of shape (q,)
            Weights of these features. They must not be negative.
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
            # If values are missing, the distance of a sample to itself is computed as the
            # difference of two sums with different rounding errors, so it may not be exactly zero.
            np.fill_diagonal(total, 0.0)
        return total

    def slopes(self, u: Float) -> Float:
        """Return D'u, an array with one value for each feature.

        `u` is a symmetric matrix of shape (n_samples, n_samples). Its entry (i, j) is the value of
        u for the pair of samples i and j.
        """
        scaled = u if self._missing_scale is None else u * self._missing_scale
        function = partial(_block_slopes, scaling=self._scaling, u=scaled, metric=self._metric)
        return np.concatenate(list(self._passes.map(function)))

    def feature_distances(self, block: slice) -> Float:
        """Return the distances between all pairs of samples in each feature of a block.

        The result has the shape (n_features_in_block, n_pairs); its rows are columns of D. `block`
        is the slice of the features.
        """
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
    """Function that centres and scales columns.

    Attributes
    ----------
    center : ndarray of shape (n_features,)
        Values that are subtracted from the columns, one for each column.
    length : float
        Value by which all columns are divided.
    has_missing : bool
        Whether some values of the data are missing.
    """

    center: Float
    length: float
    has_missing: bool

    def subset(self, indices: Index) -> _ColumnScaling:
        """Return the function that centres and scales the columns at `indices`."""
        return replace(self, center=self.center[indices])

    def __call__(self, block: Any, start: int, xp: Any) -> tuple[Any, Any]:
        """Return a block of b centred and scaled columns, and a mask of its observed values.

        `start` is the index of the first column of the block, and `xp` is the array namespace of
        the block.

        Returns
        -------
        values : array of shape (n_samples, b)
            Centred and scaled columns. Missing values are replaced by zero.
        observed : array of shape (n_samples, b) or None
            One where a value is observed and zero where it is missing; None if the data have no
            missing values.
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
    """Return the median of each column of a block, and counts of shared features.

    Medians are taken over the observed values; the median of a column without observed values is
    zero. The counts are an array of shape (n_samples, n_samples). Each entry is the number of
    features in the block that are observed in both samples. If `has_missing` is False, None is
    returned instead of the counts.
    """
    if xp is np and not has_missing:
        # The medians are computed in double precision, since the sum of two large values could
        # overflow in single precision.
        return np.median(block.astype(np.float64, copy=False), axis=0), None
    # The array API standard has neither median nor nanmedian. The columns are therefore sorted,
    # with missing values last.
    missing = xp.isnan(block)
    observed = xp.astype(~missing, xp.float64)
    ranked = xp.sort(xp.astype(xp.where(missing, xp.inf, block), xp.float64), axis=0)
    counts = to_host(xp.sum(observed, axis=0)).astype(np.intp)
    low, high = np.maximum((counts - 1) // 2, 0), counts // 2
    ranked = to_host(ranked)
    all_columns = np.arange(counts.size)
    medians = (ranked[low, all_columns] + ranked[high, all_columns]) / 2
    shared = to_host(observed @ observed.T) if has_missing else None
    return np.where(counts > 0, medians, 0.0), shared


def _block_distances(
    block: Any,
    start: int,
    xp: Any,
    *,
    scaling: _ColumnScaling,
    weights: Float,
    metric: AdditiveMetric,
) -> Float:
    """Return the contribution of a block of features to the weighted distances Dw.

    The result has the shape (n_samples, n_samples). For squared differences, its entry (i, j) is
    g_ij + g_ji - 2 h_i'h_j. Here h_i is row i of the centred and scaled block, multiplied by the
    square roots of the weights and set to zero where values are missing. The number g_ij is the sum
    of the squared entries of h_i over the features that are observed in sample j.
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
        # The squared norms are taken from the diagonal of the product, so that the distance of each
        # sample to itself is exactly zero.
        squares = xp.linalg.diagonal(products)
        sums = squares[:, None] + squares[None, :]
    else:
        squares = (rooted * rooted) @ observed.T
        sums = squares + squares.T
    distances = sums - 2.0 * products
    # Rounding errors may result in small negative distances. These are set to zero.
    return to_host(xp.where(distances > 0.0, distances, 0.0))


def _block_slopes(
    block: Any, start: int, xp: Any, *, scaling: _ColumnScaling, u: Float, metric: AdditiveMetric
) -> Float:
    """Return D'u for the b features of a block, an array of shape (b,).

    For squared differences, the value for a feature with the column x is the quadratic form x'Lx.
    Here L is the Laplacian matrix of the graph whose nodes are the samples with an observed value
    of the feature and whose edge weights are the entries of u.
    """
    values, observed = scaling(block, start, xp)
    if metric == "cityblock":
        return absolute_difference_sums(u, _features_in_rows(values), _features_in_rows(observed))
    device_u = to_device_of(block, u, xp)
    degrees = xp.sum(device_u, axis=1)[:, None] if observed is None else device_u @ observed
    return to_host(xp.sum(values * (degrees * values - device_u @ values), axis=0))


def _features_in_rows(values: Any | None) -> Float:
    """Return the transpose of `values`, with features in rows, as a contiguous numpy array.

    If `values` is None, return an empty array, because the compiled functions do not accept None.
    """
    return np.empty((0, 0)) if values is None else np.ascontiguousarray(to_host(values).T)
