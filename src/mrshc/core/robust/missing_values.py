"""Distances between samples of which some cells are missing.

A missing cell is expected to be where the others of its sample and of its feature put it, give or
take: the few columns that a tree is built on are completed from their leading components, and the
expected distance between two samples counts the uncertainty of what was completed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.completion import complete_cells
from mrshc.core.trees.tree import Metric, pairwise_distances

# Measured on the simulations with a fifth of the cells missing: one to five components do.
_N_COMPONENTS = 3

# Completed cells rest when none moves by more than this part of the spread of the columns.
_TOL = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Some columns of the data, complete, and what is uncertain about them."""

    values: Float  # (n, q), missing cells completed
    variances: Float | None  # (n, q), around the true value, zero if observed; None: all were

    def distances(self, metric: Metric) -> Float:
        """Return the (n, n) expected distances."""
        if self.variances is None:
            return pairwise_distances(self.values, metric)
        if metric == "sqeuclidean":
            # As if each sample had a further coordinate of its own: still distances of points.
            extra = self.variances.sum(axis=1)
            distances = pairwise_distances(self.values, metric) + extra[:, None] + extra
        else:
            distances = _expected_absolute(self.values, self.variances)
        np.fill_diagonal(distances, 0.0)
        return distances


def completed(X: Float, *, apart: Index | None = None) -> Samples:
    """Complete the missing cells (NaN) of a few columns.

    Regularised iterative principal components (Josse and Husson 2012): components are found,
    shrunk by the noise, put in the missing cells, and found again. Samples that stand `apart` do
    not take part; their own missing cells are put at the mean.
    """
    if not np.isnan(X).any():
        return Samples(values=X, variances=None)
    if apart is None or not apart.size:
        return _completed(X)
    usual = np.setdiff1d(np.arange(X.shape[0]), apart, assume_unique=True)
    rest = _completed(X[usual])
    assert rest.variances is not None
    values, variances = X.copy(), np.zeros(X.shape)
    values[usual], variances[usual] = rest.values, rest.variances
    rows, columns = np.nonzero(np.isnan(values))
    values[rows, columns] = rest.values.mean(axis=0)[columns]
    variances[rows, columns] = rest.values.var(axis=0)[columns]
    return Samples(values=values, variances=variances)


def _completed(X: Float) -> Samples:
    missing = np.isnan(X)
    n, q = X.shape
    rank = min(_N_COMPONENTS, n - 2, q - 1)
    counts = (~missing).sum(axis=0)
    means = np.nansum(X, axis=0) / np.maximum(counts, 1)
    values = np.where(missing, means, X)
    spread = np.square(values - means).sum(axis=0) / np.maximum(counts, 1)
    scale = float(np.sqrt(spread.mean()))
    if rank < 1 or scale == 0.0:
        return Samples(values=values, variances=missing * spread)
    rows, columns = np.nonzero(missing)
    loadings = np.ascontiguousarray(_leading(values - means, rank))
    spare = (n - 1) * q - rank * (n - 1 + q - rank)  # degrees of freedom of what is left
    means, scores, loadings, signal, noise = complete_cells(
        values, rows, columns, loadings, spare, _TOL * scale
    )
    residuals = np.where(missing, 0.0, X - means - scores @ loadings.T)
    around = np.square(residuals).sum(axis=0) / np.maximum(counts, 1) * ((n - 1) * q / spare)
    doubt = _doubt_of_scores(~missing, loadings, signal / (n - 1), noise)
    return Samples(values=values, variances=missing * (around + doubt))


def _doubt_of_scores(observed: Mask, loadings: Float, spreads: Float, noise: float) -> Float:
    """Return the variance of each completed cell that comes from the scores of its sample.

    The fewer cells of a sample are observed, the less they say where it lies on the components;
    without any, it may lie wherever samples do.
    """
    q, rank = loadings.shape
    if noise <= 0.0:
        return np.zeros(observed.shape)
    products = (loadings[:, :, None] * loadings[:, None, :]).reshape(q, -1)
    known = (observed.astype(np.float64) @ products).reshape(-1, rank, rank) / noise
    prior = np.diag(1.0 / np.maximum(spreads, np.finfo(np.float64).tiny))
    doubt: Float = (np.linalg.inv(known + prior).reshape(-1, rank * rank)) @ products.T
    return doubt


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
