"""Distances between pairs of samples, feature by feature, without holding them.

D has a row for each pair of samples and a column for each feature: the distance of the pair in that
feature. All that sparse hierarchical clustering asks of it are Dw, the distances between weighted
samples, and D'u, a quadratic form for each feature: matrix products of the data, made in blocks of
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core import compiled
from mrshc.core.arrays import Float, Index
from mrshc.core.matrix import column_blocks
from mrshc.core.tree import Metric


class PairDistances:
    """The matrix D of one data set, in multiples of `unit`, by what it does to weights.

    A missing cell (NaN) takes its sample's pairs out of its feature; what a pair has in the other
    features is scaled up by p over the number of features that both samples have.
    """

    def __init__(self, X: NDArray[Any], metric: Metric) -> None:
        self._X = X
        self._metric = metric
        # The alternation multiplies distances with each other: near the range of the data itself,
        # their fourth powers would leave the range of numbers. A power of two costs no digits.
        spread = float(np.nanmax(X)) - float(np.nanmin(X))
        self._length = float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0
        self.unit = self._length if metric == "cityblock" else self._length**2
        # Distances do not depend on the centre, but digits do: far from a mean that one outlier
        # draws away, the differences of all other samples would drown.
        blocks = column_blocks(*X.shape)
        self._center = np.concatenate([np.nanmedian(X[:, block], axis=0) for block in blocks])
        # For each pair of samples the features that both have; None: all.
        self.shared = _shared_features(X) if np.isnan(np.min(X)) else None
        self._scale = None if self.shared is None else X.shape[1] / np.maximum(self.shared, 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        n, p = self._X.shape
        return n, p

    @property
    def strangers(self) -> tuple[int, int] | None:
        """Two samples with no feature in common, if there are any."""
        if self.shared is None or self.shared.min() > 0:
            return None
        i, j = np.unravel_index(int(self.shared.argmin()), self.shared.shape)
        return int(i), int(j)

    def weighted(self, indices: Index, weights: Float) -> Float:
        """Return Dw as (n, n) distances, for the w that is `weights` at `indices`."""
        n = self._X.shape[0]
        total = np.zeros((n, n))
        for block in column_blocks(n, indices.size):
            part, observed = self._columns(indices[block])
            if self._metric == "cityblock":
                compiled.add_absolute(total, _rows(part), _rows(observed), weights[block])
            else:
                total += _weighted_squares(part, observed, weights[block])
        return total if self._scale is None else total * self._scale

    def slopes(self, u: Float) -> Float:
        """Return D'u, one number for each feature, from a symmetric (n, n) u."""
        scaled = u if self._scale is None else u * self._scale
        out = np.empty(self._X.shape[1])
        for block in column_blocks(*self._X.shape):
            part, observed = self._columns(block)
            if self._metric == "cityblock":
                out[block] = compiled.absolute_forms(scaled, _rows(part), _rows(observed))
            else:
                degrees = scaled.sum(axis=1)[:, None] if observed is None else scaled @ observed
                out[block] = np.sum(part * (degrees * part - scaled @ part), axis=0)
        return out

    def columns(self, block: slice) -> Float:
        """Return D itself for some features, (features, pairs)."""
        part, observed = self._columns(block)
        i, j = np.triu_indices(part.shape[0], 1)
        apart = part[i] - part[j]
        distances = np.abs(apart) if self._metric == "cityblock" else np.square(apart)
        if observed is not None and self._scale is not None:
            distances *= observed[i] * observed[j] * self._scale[i, j][:, None]
        return np.ascontiguousarray(distances.T)

    def _columns(self, columns: slice | Index) -> tuple[Float, Float | None]:
        """Return some columns, centred, with zero where nothing was observed, and where it was."""
        part = (self._X[:, columns].astype(np.float64) - self._center[columns]) / self._length
        if self._scale is None:
            return part, None
        observed = ~np.isnan(part)
        return np.where(observed, part, 0.0), observed.astype(np.float64)


def _shared_features(X: NDArray[Any]) -> Float:
    """Return, for each pair of samples, the number of features that both have."""
    n, p = X.shape
    shared = np.zeros((n, n))
    for block in column_blocks(n, p):
        observed = (~np.isnan(X[:, block])).astype(np.float64)
        shared += observed @ observed.T
    return shared


def _weighted_squares(part: Float, observed: Float | None, weights: Float) -> Float:
    half = part * np.sqrt(weights)
    products = half @ half.T
    if observed is None:
        lengths = np.diag(products)
        return np.maximum(lengths[:, None] + lengths - 2 * products, 0.0)
    lengths = np.square(half) @ observed.T
    return np.maximum(lengths + lengths.T - 2 * products, 0.0)


def _rows(part: Float | None) -> Float:
    """Return features in rows, as the kernels want them; no rows if there is nothing."""
    return np.empty((0, 0)) if part is None else np.ascontiguousarray(part.T)
