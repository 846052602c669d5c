"""Distances of COSA, in which every sample has its own weights of the features.

References
----------
Friedman, J. H. and Meulman, J. J. (2004). Clustering objects on subsets of attributes (with
discussion). Journal of the Royal Statistical Society B 66(4), 815-849.
https://doi.org/10.1111/j.1467-9868.2004.02059.x
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.cosa import BLOCK_SAMPLES, write_distances, write_weights
from mrshc.core.parallel import run_in_parallel

# The interquartile range of a normal distribution is 1.35 standard deviations.
_NORMAL_QUARTILE_RANGE = 1.35

# The settings of the R package rCOSA: increase of eta in each iteration, as a fraction of lambda;
# largest number of iterations; number of iterations over which the change of the weights is
# averaged; and largest average change at which the algorithm has converged.
_RELAXATION = 0.1
_MAX_ITER = 100
_WINDOW = 11
_TOLERANCE = 1e-5

# Scaled values are limited to this size, so that differences are finite. Only the ratio of an
# extreme outlier to the quartile range could be larger.
_LARGEST_SCALED = 1e100

# Largest exponent x / eta for which exp(x / eta) is stored. The product of two such exponentials is
# representable in double precision, whose largest number is about exp(709).
_LARGEST_EXPONENT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CosaResult:
    """Distances and weights of COSA for n samples and p features."""

    distances: Float  # (n, n), symmetric
    weights: Float  # (n, p), the weights of a sample sum to one
    n_iter: int  # number of iterations
    converged: bool  # whether the weights stopped changing


def feature_scales(X: NDArray[Any]) -> Float:
    """Return the quartile range of each feature divided by 1.35, which may be zero.

    The quartiles of n values are the floor(n / 4)-th and the floor(3 n / 4)-th smallest value, or
    the smallest value if this number is zero. Missing values (NaN) are left out.
    """
    ordered = np.sort(X, axis=0).astype(np.float64, copy=False)  # NaN is sorted to the end
    counts = (~np.isnan(ordered)).sum(axis=0)
    quartiles = [
        np.take_along_axis(ordered, (np.maximum(count, 1) - 1)[None], axis=0)[0]
        for count in (counts // 4, 3 * counts // 4)
    ]
    scales: Float = (quartiles[1] - quartiles[0]) / _NORMAL_QUARTILE_RANGE
    return scales


def cosa_distances(
    X: NDArray[Any],
    scales: Float,
    *,
    scale: float,
    n_neighbors: int,
    n_jobs: int | None,
) -> CosaResult:
    """Return the distances and weights of COSA.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data; NaN marks a missing value. Every two samples must have a feature in common.
    scales : ndarray of shape (p,)
        Scale of each feature, by which differences are divided; greater than zero.
    scale : float
        Scale lambda of the weights.
    n_neighbors : int
        Number K of nearest neighbours of a sample that determine its weights.
    n_jobs : int or None
        Number of workers. It does not affect the result.

    Returns
    -------
    CosaResult
        The result. The distances are those of the last iteration, before the last change of the
        weights.
    """
    data = _ScaledData(X, scales)
    n, p = X.shape
    weights = np.full((n, p), 1.0 / p)
    distances = np.zeros((n, n))
    neighbours = np.full((n, n_neighbors), -1)
    changes: list[float] = []
    converged = False
    while not converged and len(changes) < _MAX_ITER:
        eta = scale * (1.0 + _RELAXATION * len(changes))
        _update_distances(distances, weights, data=data, eta=eta, n_jobs=n_jobs)
        nearest = _nearest_neighbours(distances, n_neighbors)
        # The weights of a sample depend on the set of its neighbours only. Most of these sets do
        # not change after a few iterations.
        moved = np.flatnonzero((nearest != neighbours).any(axis=1))
        neighbours, old = nearest, weights[moved]
        _update_weights(weights, moved, neighbours, data=data, scale=scale, n_jobs=n_jobs)
        largest_change = 2.0 * n * (1.0 - 1.0 / p) if p > 1 else 1.0
        changes.append(float(np.abs(weights[moved] - old).sum()) / largest_change)
        # The windows do not overlap, as in rCOSA.
        if len(changes) % _WINDOW == 0:
            converged = bool(np.mean(changes[-_WINDOW:]) <= _TOLERANCE)
    return CosaResult(
        distances=distances,
        weights=data.restore_order(weights),
        n_iter=len(changes),
        converged=converged,
    )


class _ScaledData:
    """Data divided by the scales of the features, without missing values.

    The features are in decreasing order of their ranges. The exponentials of the first features
    could overflow, and those of the other features cannot.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data; NaN marks a missing value.
    scales : ndarray of shape (p,)
        Scale of each feature.

    Attributes
    ----------
    x : ndarray of shape (n, p)
        Scaled values; 0 for missing values. The smallest and the largest value of each feature have
        the same absolute value.
    observed : ndarray of shape (n, p) or (0, 0)
        0 for each missing value and 1 for each other value; empty if no value is missing.
    """

    def __init__(self, X: NDArray[Any], scales: Float) -> None:
        low, high = (f(X, axis=0).astype(np.float64) for f in (np.nanmin, np.nanmax))
        with np.errstate(over="ignore"):
            half_ranges = np.minimum((high / 2.0 - low / 2.0) / scales, _LARGEST_SCALED)
        self._order: Index = np.argsort(-half_ranges, kind="stable")
        self._half_ranges = half_ranges[self._order]
        middles = (low / 2.0 + high / 2.0)[self._order]
        self.x: Float = np.ascontiguousarray(X[:, self._order], dtype=np.float64)
        self.x -= middles
        with np.errstate(over="ignore"):
            self.x /= scales[self._order]
        np.clip(self.x, -_LARGEST_SCALED, _LARGEST_SCALED, out=self.x)
        is_missing: Mask = np.isnan(self.x)
        self.observed: Float = np.empty((0, 0))
        self._rescaling: Float | None = None
        if is_missing.any():
            self.x[is_missing] = 0.0
            self.observed = (~is_missing).astype(np.float64)
            counts = self.observed @ self.observed.T
            self._rescaling = X.shape[1] / counts

    def exponentials(self, eta: float) -> tuple[Float, Float]:
        """Return exp(x / eta) and exp(-x / eta) of the features for which both are representable.

        These features are the last columns of `x`. The results are 0 for missing values.
        """
        n_large = int(np.count_nonzero(self._half_ranges > _LARGEST_EXPONENT * eta))
        growth = self.x[:, n_large:] / eta
        decay = np.negative(growth)
        for array in (growth, decay):
            np.exp(array, out=array)  # in place, since the arrays are as large as the data
        if self.observed.size:
            growth *= self.observed[:, n_large:]
            decay *= self.observed[:, n_large:]
        return growth, decay

    def rescale(self, distances: Float) -> None:
        """Multiply distances by p and divide by the number of common features, in place."""
        if self._rescaling is not None:
            distances *= self._rescaling

    def restore_order(self, weights: Float) -> Float:
        """Return the columns of an array of shape (n, p) in the order of the features of X."""
        restored = np.empty_like(weights)
        restored[:, self._order] = weights
        return restored


def _update_distances(
    distances: Float, weights: Float, *, data: _ScaledData, eta: float, n_jobs: int | None
) -> None:
    """Compute the distances of all pairs of samples for given weights, in place."""
    shared = {
        "distances": distances,
        "data": (data.x, weights, data.observed),
        "exponentials": data.exponentials(eta),
        "eta": eta,
    }
    _run(
        write_distances,
        [{"first": first, **shared} for first in range(0, len(distances), BLOCK_SAMPLES)],
        n_jobs=n_jobs,
    )
    data.rescale(distances)


def _update_weights(
    weights: Float,
    samples: Index,
    neighbours: Index,
    *,
    data: _ScaledData,
    scale: float,
    n_jobs: int | None,
) -> None:
    """Compute the weights of some samples from their neighbours, in place."""
    shared = {
        "weights": weights,
        "neighbours": neighbours,
        "x": data.x,
        "observed": data.observed,
        "scale": scale,
    }
    blocks = [samples[i : i + BLOCK_SAMPLES] for i in range(0, samples.size, BLOCK_SAMPLES)]
    _run(write_weights, [{"samples": block, **shared} for block in blocks], n_jobs=n_jobs)


def _run(
    function: Callable[..., None], arguments: list[dict[str, Any]], *, n_jobs: int | None
) -> None:
    """Call a compiled function that writes into arrays once for each dict of arguments."""
    with closing(run_in_parallel(function, arguments, n_jobs=n_jobs, share_memory=True)) as results:
        for _ in results:
            pass


def _nearest_neighbours(distances: Float, n_neighbors: int) -> Index:
    """Return the nearest neighbours of each sample, in increasing order of their indices.

    Of several samples at the same distance, those with the smallest indices are nearest.
    """
    others = distances.copy()
    np.fill_diagonal(others, np.inf)  # a sample is not its own neighbour
    order = np.argsort(others, axis=1, kind="stable")[:, :n_neighbors]
    return np.sort(order, axis=1)
