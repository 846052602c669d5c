"""COSA (Friedman and Meulman 2004): distances in which every sample has weights of its own.

The weights of a sample are large for features in which it is close to its neighbours, and the
neighbours are those by the weighted distances; both are computed in turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mrshc.core import parallel
from mrshc.core.kernels import COSA_SAMPLES, cosa_distances, cosa_weights

_NORMAL_QUARTILE_RANGE = 1.35  # of a normal distribution, in standard deviations
# Settings of R's rCOSA: growth of eta in each iteration as a share of lambda, iterations, and the
# change of the weights, averaged over windows, at which they have converged.
_RELAXATION, _MAX_ITER, _WINDOW, _TOLERANCE = 0.1, 100, 11, 1e-5
# Scaled values are limited, so that differences are finite; only outliers can reach this.
_LARGEST_SCALED = 1e100
# Largest x for which exp(x) is stored: the product of two is below 1e308.
_LARGEST_EXPONENT = 300.0


@dataclass(frozen=True, eq=False)
class CosaResult:
    """Distances (n, n) of the samples and weights (n, p), which sum to one for each sample."""

    distances: np.ndarray
    weights: np.ndarray
    n_iter: int
    converged: bool


def feature_scales(X: np.ndarray) -> np.ndarray:
    """Return the quartile range of each feature, divided by 1.35; it may be zero."""
    ordered = np.sort(X, axis=0).astype(np.float64)  # NaN comes last
    counts = (~np.isnan(ordered)).sum(axis=0)
    low, high = (
        np.take_along_axis(ordered, (np.maximum(count, 1) - 1)[None], axis=0)[0]
        for count in (counts // 4, 3 * counts // 4)
    )
    return (high - low) / _NORMAL_QUARTILE_RANGE


def cosa(X: np.ndarray, scales: np.ndarray, *, scale: float, n_neighbors: int) -> CosaResult:
    """Return the distances and weights of COSA, for features with positive `scales`."""
    n, p = X.shape
    x, observed = _scale(X, scales)
    rescale = p / (observed @ observed.T) if observed.size else np.ones((1, 1))
    weights, distances = np.full((n, p), 1.0 / p), np.zeros((n, n))
    neighbours = np.full((n, n_neighbors), -1)
    changes, converged = list[float](), False
    largest_change = 2.0 * n * (1.0 - 1.0 / p) if p > 1 else 1.0
    while not converged and len(changes) < _MAX_ITER:
        eta = scale * (1.0 + _RELAXATION * len(changes))
        exponentials = _exponentials(x, observed, eta)

        def write_distances(first: int) -> None:
            data = (x, weights, observed)
            cosa_distances(distances, first, data, exponentials, eta)  # noqa: B023

        list(parallel.run(write_distances, range(0, n, COSA_SAMPLES)))
        distances *= rescale
        nearest = _nearest(distances, n_neighbors)
        # The weights depend on the set of neighbours only, which soon changes for few samples.
        moved = np.flatnonzero((nearest != neighbours).any(axis=1))
        neighbours, old = nearest, weights[moved]

        def write_weights(samples: np.ndarray) -> None:
            cosa_weights(weights, samples, neighbours, x, observed, float(scale))  # noqa: B023

        list(parallel.run(write_weights, np.array_split(moved, max(len(moved) // COSA_SAMPLES, 1))))
        changes.append(float(np.abs(weights[moved] - old).sum()) / largest_change)
        if len(changes) % _WINDOW == 0:  # the windows do not overlap, as in rCOSA
            converged = bool(np.mean(changes[-_WINDOW:]) <= _TOLERANCE)
    return CosaResult(distances, weights, len(changes), converged)


def _scale(X: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scaled values around zero, and a mask of those observed, which may be empty."""
    low, high = (f(X, axis=0).astype(np.float64) for f in (np.nanmin, np.nanmax))
    with np.errstate(over="ignore"):
        x = (X.astype(np.float64) - (low / 2.0 + high / 2.0)) / scales
    x = np.ascontiguousarray(np.clip(x, -_LARGEST_SCALED, _LARGEST_SCALED))
    missing = np.isnan(x)
    if not missing.any():
        return x, np.empty((0, 0))
    x[missing] = 0.0
    return x, (~missing).astype(np.float64)


def _exponentials(x: np.ndarray, observed: np.ndarray, eta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return exp(x / eta) and exp(-x / eta), or empty arrays if they could overflow."""
    if np.abs(x).max() > _LARGEST_EXPONENT * eta:
        return np.empty((0, 0)), np.empty((0, 0))
    growth, decay = np.exp(x / eta), np.exp(x / -eta)
    if observed.size:
        growth *= observed
        decay *= observed
    return growth, decay


def _nearest(distances: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return the nearest neighbours of each sample, in increasing order of their indices."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    return np.sort(np.argsort(others, axis=1, kind="stable")[:, :n_neighbors], axis=1)
