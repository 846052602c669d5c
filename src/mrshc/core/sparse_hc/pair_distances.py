"""Distances between pairs of samples, feature by feature, without holding them.

D has a row for each pair of samples and a column for each feature: the distance of the pair in that
feature. All that sparse hierarchical clustering asks of it are Dw, the distances between weighted
samples, and D'u, a quadratic form for each feature: matrix products of the data, made in blocks of
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


class PairDistances:
    """The matrix D of one data set, in multiples of `unit`, by what it does to weights.

    A missing cell (NaN) takes its sample's pairs out of its feature; what a pair has in the other
    features is scaled up by p over the number of features that both samples have.
    """

    def __init__(self, data: DataMatrix, metric: Metric, *, n_threads: int = 1) -> None:
        summary = data.summary(n_threads=n_threads)
        self.shape = data.shape
        self.in_memory = data.in_memory
        self._data = data
        self._passes = Passes(data, n_threads=n_threads, n_passes=1)
        self._metric = metric
        # The alternation multiplies distances with each other: near the range of the data itself,
        # their fourth powers would leave the range of numbers. A power of two costs no digits.
        spread = summary.highest - summary.lowest
        length = float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0
        self.unit = length if metric == "cityblock" else length**2
        # Distances do not depend on the centre, but digits do: far from a mean that one outlier
        # draws away, the differences of all other samples would drown.
        gaps = summary.has_missing
        about = partial(_medians_and_shared, gaps=gaps)
        medians, shared = zip(*self._passes.map(about), strict=True)
        self._scaling = _Scaling(center=np.concatenate(medians), length=length, gaps=gaps)
        # For each pair of samples the features that both have; None: all.
        self.shared: Float | None = np.sum(shared, axis=0) if gaps else None
        self._scale = None
        if self.shared is not None:
            self._scale = self.shape[1] / np.maximum(self.shared, 1.0)

    @property
    def n_passes(self) -> int:
        """Passes over the data so far, with that for their summary."""
        return self._passes.n_passes

    @property
    def strangers(self) -> tuple[int, int] | None:
        """Two samples with no feature in common, if there are any."""
        if self.shared is None or self.shared.min() > 0:
            return None
        i, j = np.unravel_index(int(self.shared.argmin()), self.shared.shape)
        return int(i), int(j)

    def weighted(self, indices: Index, weights: Float) -> Float:
        """Return Dw as (n, n) distances, for the w that is `weights` at `indices`."""
        n, p = self.shape
        total = np.zeros((n, n))
        if indices.size > p / 8:
            dense = np.zeros(p)
            dense[indices] = weights
            add = partial(
                _weighted_block, scaling=self._scaling, weights=dense, metric=self._metric
            )
            for part in self._passes.map(add):
                total += part
        else:
            for block in column_blocks(n, indices.size):
                some = indices[block]
                columns = self._data.columns(some)
                scaling = self._scaling.of(some)
                total += _weighted_block(
                    columns, 0, np, scaling=scaling, weights=weights[block], metric=self._metric
                )
        if self._scale is not None:
            total *= self._scale
            np.fill_diagonal(total, 0.0)  # where pairs share what others lack, rounding is left
        return total

    def slopes(self, u: Float) -> Float:
        """Return D'u, one number for each feature, from a symmetric (n, n) u."""
        scaled = u if self._scale is None else u * self._scale
        forms = partial(_forms_of_block, scaling=self._scaling, u=scaled, metric=self._metric)
        return np.concatenate(list(self._passes.map(forms)))

    def columns(self, block: slice) -> Float:
        """Return D itself for some features, (features, pairs)."""
        indices = np.arange(block.start, block.stop)
        part, observed = self._scaling.of(indices)(self._data.columns(indices), 0, np)
        i, j = np.triu_indices(part.shape[0], 1)
        apart = part[i] - part[j]
        distances = np.abs(apart) if self._metric == "cityblock" else np.square(apart)
        if observed is not None and self._scale is not None:
            distances *= observed[i] * observed[j] * self._scale[i, j][:, None]
        return np.ascontiguousarray(distances.T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scaling:
    """How columns are brought to a common centre and unit."""

    center: Float  # of each column
    length: float
    gaps: bool  # some cells are missing

    def of(self, indices: Index) -> _Scaling:
        """Return that of some columns."""
        return replace(self, center=self.center[indices])

    def __call__(self, block: Any, start: int, xp: Any) -> tuple[Any, Any]:
        """Return columns, centred, with zero where nothing was observed, and where it was."""
        center = to_device_of(block, self.center[start : start + block.shape[1]], xp)
        part = (xp.astype(block, xp.float64) - center) / self.length
        if not self.gaps:
            return part, None
        missing = xp.isnan(part)
        return xp.where(missing, 0.0, part), xp.astype(~missing, xp.float64)


def _medians_and_shared(block: Any, _: int, xp: Any, *, gaps: bool) -> tuple[Float, Float | None]:
    """Return medians of columns, and for each pair of samples the features that both have."""
    if xp is np and not gaps:
        # In double precision: the sum of two large values overflows in single precision.
        return np.median(block.astype(np.float64, copy=False), axis=0), None
    missing = xp.isnan(block)
    observed = xp.astype(~missing, xp.float64)
    ranked = xp.sort(xp.astype(xp.where(missing, xp.inf, block), xp.float64), axis=0)
    counts = to_host(xp.sum(observed, axis=0)).astype(np.intp)
    low, high = np.maximum((counts - 1) // 2, 0), np.maximum(counts // 2, 0)
    ranked = to_host(ranked)
    every = np.arange(counts.size)
    medians = (ranked[low, every] + ranked[high, every]) / 2
    shared = to_host(observed @ observed.T) if gaps else None
    return np.where(counts > 0, medians, 0.0), shared


def _weighted_block(
    block: Any, start: int, xp: Any, *, scaling: _Scaling, weights: Float, metric: Metric
) -> Float:
    """Return the block's part of Dw."""
    part, observed = scaling(block, start, xp)
    here = weights[start : start + block.shape[1]]
    if metric == "cityblock":
        total = np.zeros((block.shape[0], block.shape[0]))
        add_absolute_differences(total, _rows(part), _rows(observed), here)
        return total
    half = part * to_device_of(block, np.sqrt(here), xp)
    products = half @ half.T
    if observed is None:
        squares = xp.linalg.diagonal(products)  # so that the distance to itself is none
        sums = squares[:, None] + squares[None, :]
    else:
        squares = (half * half) @ observed.T
        sums = squares + squares.T
    distances = sums - 2.0 * products
    return to_host(xp.where(distances > 0.0, distances, 0.0))


def _forms_of_block(
    block: Any, start: int, xp: Any, *, scaling: _Scaling, u: Float, metric: Metric
) -> Float:
    """Return D'u for the block's features."""
    part, observed = scaling(block, start, xp)
    if metric == "cityblock":
        return absolute_difference_sums(u, _rows(part), _rows(observed))
    v = to_device_of(block, u, xp)
    degrees = xp.sum(v, axis=1)[:, None] if observed is None else v @ observed
    return to_host(xp.sum(part * (degrees * part - v @ part), axis=0))


def _rows(part: Any | None) -> Float:
    """Return features in rows, as the kernels want them; no rows if there is nothing."""
    return np.empty((0, 0)) if part is None else np.ascontiguousarray(to_host(part).T)
