"""Distances between samples with missing values: estimates, and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from mrshc.core.trees import correlation_distances, pairwise_distances

# In simulations with a fifth of the values missing, one to five components served as well.
_N_COMPONENTS = 3
# Iterations end when no estimate changes by more than this share of the root mean square of the
# standard deviations of the features, which is small against the error of an estimate.
_TOL = 1e-2
# Estimates have converged by then, or change by less than the noise.
_MAX_ITER = 50


@dataclass(frozen=True, eq=False)
class CompleteSamples:
    """Features (n, q) with estimates of missing values, and the variances of the estimates."""

    values: np.ndarray
    variances: np.ndarray | None = None

    def distances(self, metric: str) -> np.ndarray:
        """Return the expected distances between the samples, as an array (n, n)."""
        values, variances = self.values, self.variances
        if metric == "correlation":
            return correlation_distances(values, variances)
        distances = pairwise_distances(values, metric)
        if variances is None:
            return distances
        if metric == "sqeuclidean":
            # E (x - y)^2 = (E x - E y)^2 + var x + var y for independent x and y.
            extra = variances.sum(axis=1)
            distances += extra[:, None]
            distances += extra
        else:
            _add_cityblock_excess(distances, values, variances)
        np.fill_diagonal(distances, 0.0)
        return distances


def _add_cityblock_excess(distances: np.ndarray, values: np.ndarray, variances: np.ndarray) -> None:
    """Add by how much the expectation of |x - y| for normal x and y exceeds |E x - E y|."""
    for x, variance in zip(values.T, variances.T, strict=True):
        uncertain, certain = np.flatnonzero(variance), np.flatnonzero(variance == 0)
        difference = np.abs(x[uncertain][:, None] - x)
        sd = np.sqrt(variance[uncertain][:, None] + variance)
        excess = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * (difference / sd) ** 2)
        excess += difference * (erf(difference / (sd * np.sqrt(2))) - 1.0)
        distances[uncertain] += excess
        distances[np.ix_(certain, uncertain)] += excess[:, certain].T


def complete(X: np.ndarray, excluded: np.ndarray | None = None) -> CompleteSamples:
    """Return features with missing values estimated by regularised iterative PCA.

    Josse and Husson (2012). Missing values of `excluded` samples are the means of the others and
    have their variances, and these samples do not influence the estimates of the others.
    """
    if excluded is None or not excluded.size or not np.isnan(X).any():
        return _complete(X)
    usual = np.setdiff1d(np.arange(len(X)), excluded)
    rest = _complete(X[usual])
    values, variances = X.copy(), np.zeros(X.shape)
    values[usual] = rest.values
    if rest.variances is not None:
        variances[usual] = rest.variances
    rows, columns = np.nonzero(np.isnan(values))
    values[rows, columns] = rest.values.mean(axis=0)[columns]
    variances[rows, columns] = rest.values.var(axis=0)[columns]
    return CompleteSamples(values, variances)


def _complete(X: np.ndarray) -> CompleteSamples:
    missing = np.isnan(X)
    if not missing.any():
        return CompleteSamples(X)
    n, q = X.shape
    rank = min(_N_COMPONENTS, n - 2, q - 1)  # more would leave no degree of freedom for the noise
    counts = np.maximum((~missing).sum(axis=0), 1)
    means = np.nansum(X, axis=0) / counts
    values = np.where(missing, means, X)
    spread = np.square(values - means).sum(axis=0) / counts
    scale = float(np.sqrt(spread.mean()))
    if rank < 1 or scale == 0.0:
        return CompleteSamples(values, missing * spread)
    loadings = _leading_directions(values - means, rank)
    noise_freedom = (n - 1) * q - rank * (n - 1 + q - rank)
    for _ in range(_MAX_ITER):
        means = values.mean(axis=0)
        centred = values - means
        # One step of subspace iteration: the subspace converges together with the estimates.
        scores = _orthonormal(centred @ _orthonormal(loadings))
        images = centred.T @ scores
        eigenvalues, rotation = np.linalg.eigh(images.T @ images)
        singular = np.sqrt(np.maximum(eigenvalues, np.finfo(np.float64).tiny))
        noise = max(np.square(centred).sum() - eigenvalues.sum(), 0.0) / noise_freedom
        # The squared singular values of noise are about its variance times max(n, q).
        signal = np.maximum(eigenvalues - noise * max(n, q), 0.0)
        scores = scores @ rotation * (signal / singular)
        loadings = images @ rotation / singular
        fitted = (means + scores @ loadings.T)[missing]
        change = np.abs(fitted - values[missing]).max()
        values[missing] = fitted
        if change <= _TOL * scale:
            break
    # The variance of an estimate: that of the residuals of its feature, corrected for the number of
    # parameters, and that due to the uncertain scores of its sample.
    residuals = np.where(missing, 0.0, X - means - scores @ loadings.T)
    rest = np.square(residuals).sum(axis=0) / counts * ((n - 1) * q / noise_freedom)
    uncertain = _score_variances(~missing, loadings, signal / (n - 1), noise)
    return CompleteSamples(values, missing * (rest + uncertain))


def _score_variances(
    observed: np.ndarray, loadings: np.ndarray, component_variances: np.ndarray, noise: float
) -> np.ndarray:
    """Return the variances of values (n, q) that are due to the uncertainty of the scores."""
    q, rank = loadings.shape
    if noise <= 0.0:
        return np.zeros(observed.shape)
    products = (loadings[:, :, None] * loadings[:, None, :]).reshape(q, -1)
    precision = (observed.astype(np.float64) @ products).reshape(-1, rank, rank) / noise
    prior = np.diag(1.0 / np.maximum(component_variances, np.finfo(np.float64).tiny))
    return np.linalg.inv(precision + prior).reshape(-1, rank * rank) @ products.T


def _leading_directions(centred: np.ndarray, rank: int) -> np.ndarray:
    """Return vectors along the leading right singular vectors, from the smaller cross product."""
    if centred.shape[1] <= len(centred):
        return np.linalg.eigh(centred.T @ centred)[1][:, -rank:]
    return centred.T @ np.linalg.eigh(centred @ centred.T)[1][:, -rank:]


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns; zero for directions of rounding errors."""
    eigenvalues, rotation = np.linalg.eigh(columns.T @ columns)
    negligible = eigenvalues[-1] * len(columns) * np.finfo(np.float64).eps
    return columns @ rotation / np.sqrt(np.where(eigenvalues > negligible, eigenvalues, np.inf))
