"""Distances between samples of which some cells are missing.

A missing cell is expected to be where the others of its sample and of its feature put it, give or
take: the few columns that a tree is built on are completed from their leading components, and the
expected distance between two samples counts the uncertainty of what was completed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from mrshc.core.arrays import Float, Mask
from mrshc.core.tree import Metric, pairwise_distances

# Measured on the simulations with a fifth of the cells missing: one to five components do.
_N_COMPONENTS = 3
_MAX_ITER, _TOL = 50, 1e-2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Some columns of the data, complete, and what is uncertain about them."""

    values: Float  # (n, q), missing cells completed
    missing: Mask | None  # (n, q), the completed cells; None: all were observed
    variances: Float | None  # (q,), of a completed cell around its true value

    def distances(self, metric: Metric) -> Float:
        """Return the (n, n) expected distances."""
        if self.missing is None or self.variances is None:
            return pairwise_distances(self.values, metric)
        if metric == "sqeuclidean":
            # As if each sample had a further coordinate of its own: still distances of points.
            extra = self.missing @ self.variances
            distances = pairwise_distances(self.values, metric) + extra[:, None] + extra
        else:
            distances = _expected_absolute(self.values, self.missing * self.variances)
        np.fill_diagonal(distances, 0.0)
        return distances


def completed(X: Float) -> Samples:
    """Complete the missing cells (NaN) of a few columns.

    Regularised iterative principal components (Josse and Husson 2012): components are found,
    shrunk by the noise, put in the missing cells, and found again.
    """
    missing = np.isnan(X)
    if not missing.any():
        return Samples(values=X, missing=None, variances=None)
    n, q = X.shape
    rank = min(_N_COMPONENTS, n - 2, q - 1)
    means = np.nanmean(X, axis=0)
    values = np.where(missing, means, X)
    scale = float(np.nanstd(X - means))
    if rank < 1 or scale == 0.0:
        return Samples(values=values, missing=missing, variances=np.nanvar(X, axis=0))
    at = np.nonzero(missing)
    loadings = np.linalg.qr(_leading(values - means, rank))[0]
    spare = (n - 1) * q - rank * (n - 1 + q - rank)  # degrees of freedom of what is left
    for _ in range(_MAX_ITER):
        means = values.mean(axis=0)
        centred = values - means
        # One step towards the leading components of the present values, which move themselves.
        scores = np.linalg.qr(centred @ loadings)[0]
        right, lengths, turn = np.linalg.svd(centred.T @ scores, full_matrices=False)
        loadings, scores = right, scores @ turn.T
        noise = max(float(np.sum(centred**2) - np.sum(lengths**2)), 0.0) / spare
        shrunk = np.maximum(lengths - noise * max(n, q) / np.maximum(lengths, 1e-300), 0.0)
        fit = (scores * shrunk) @ loadings.T + means
        change = np.abs(fit[at] - values[at]).max()
        values[at] = fit[at]
        if change <= _TOL * scale:
            break
    residuals = np.where(missing, 0.0, X - fit)
    observed = (~missing).sum(axis=0)
    variances = np.sum(residuals**2, axis=0) / observed * ((n - 1) * q / spare)
    return Samples(values=values, missing=missing, variances=variances)


def _leading(centred: Float, rank: int) -> Float:
    """Return the leading right singular vectors, in columns, from the smaller Gram matrix."""
    n, q = centred.shape
    if q <= n:
        return np.linalg.eigh(centred.T @ centred)[1][:, -rank:]
    out: Float = centred.T @ np.linalg.eigh(centred @ centred.T)[1][:, -rank:]
    return out


def _expected_absolute(values: Float, variances: Float) -> Float:
    """Return sums of E|x - y| for normal x and y of given means and variances."""
    n, q = values.shape
    total = pairwise_distances(values, "cityblock")
    for j in range(q):
        doubtful = np.flatnonzero(variances[:, j])
        apart = np.abs(values[doubtful, j][:, None] - values[:, j])
        sd = np.sqrt(variances[doubtful, j][:, None] + variances[:, j])
        more = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * (apart / sd) ** 2)
        more += apart * (erf(apart / (sd * np.sqrt(2))) - 1.0)
        total[doubtful] += more
        certain = np.setdiff1d(np.arange(n), doubtful)
        total[np.ix_(certain, doubtful)] += more[:, certain].T
    return total
