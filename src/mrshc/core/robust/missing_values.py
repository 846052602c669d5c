"""Distances between samples with missing values.

A tree is built from a few selected columns. Missing values in these columns are estimated from the
leading principal components of the columns. The expected distance between two samples takes the
variance of the estimated values into account. In the docstrings, n is the number of samples and q
is the number of selected columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.completion import complete_cells
from mrshc.core.trees.correlation import standardise_rows
from mrshc.core.trees.tree import Metric, pairwise_distances

# Number of principal components. In simulations with one fifth of the values missing, all numbers
# from one to five were suitable.
_N_COMPONENTS = 3

# Iterations stop when no estimated value changes by more than this fraction of the root mean square
# of the standard deviations of the columns. Such a change is small compared with the standard error
# of an estimated value.
_TOL = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompletedSamples:
    """Columns of the data with estimated missing values, and the variances of the estimates.

    Attributes
    ----------
    values : ndarray of shape (n, q)
        The columns, with estimates in place of missing values.
    variances : ndarray of shape (n, q) or None
        Expected squared errors of the values, which are zero for values that were not missing; None
        if no value was missing.
    """

    values: Float
    variances: Float | None

    def distances(self, metric: Metric) -> Float:
        """Return the expected distances between all samples, as an array of shape (n, n).

        For the metric "correlation", the sums in the formula of the correlation are replaced by
        their expectations.
        """
        if metric == "correlation":
            return standardise_rows(self.values, self.variances).distances()
        if self.variances is None:
            return pairwise_distances(self.values, metric)
        if metric == "sqeuclidean":
            # For independent x and y, E(x - y)^2 = (Ex - Ey)^2 + var x + var y. The result is still
            # a matrix of squared Euclidean distances: the same distances can be obtained by adding
            # one coordinate for each sample.
            extra = self.variances.sum(axis=1)
            distances = pairwise_distances(self.values, metric)
            distances += extra[:, None]
            distances += extra
        else:
            distances = _expected_cityblock_distances(self.values, self.variances)
        # The distance of a sample to itself is zero, even if its values are uncertain.
        np.fill_diagonal(distances, 0.0)
        return distances


def complete_missing_cells(X: Float, *, excluded: Index | None = None) -> CompletedSamples:
    """Return the columns of X with missing values estimated by regularised iterative PCA [1]_.

    Principal components are computed, shrunk according to the variance of the noise, and used to
    estimate the missing values. These steps are repeated with the new estimates until the estimates
    converge or a maximum number of iterations is reached.

    Parameters
    ----------
    X : ndarray of shape (n, q)
        The columns, with NaN for missing values.
    excluded : ndarray of int or None, default=None
        Indices of samples that are excluded from the computation of the principal components, such
        as outliers. The missing values of these samples are replaced by the column means of the
        other samples.

    Returns
    -------
    CompletedSamples
        The completed columns of all samples, and the variances of the estimates.

    References
    ----------
    .. [1] Josse, J. and Husson, F. (2012). Handling missing values in exploratory multivariate data
       analysis methods. Journal de la Société Française de Statistique 153(2), 79-99.
    """
    if not np.isnan(X).any():
        return CompletedSamples(values=X, variances=None)
    if excluded is None or not excluded.size:
        return _complete_by_components(X)
    usual = np.setdiff1d(np.arange(X.shape[0]), excluded, assume_unique=True)
    rest = _complete_by_components(X[usual])
    assert rest.variances is not None
    values, variances = X.copy(), np.zeros(X.shape)
    values[usual], variances[usual] = rest.values, rest.variances
    rows, columns = np.nonzero(np.isnan(values))
    values[rows, columns] = rest.values.mean(axis=0)[columns]
    variances[rows, columns] = rest.values.var(axis=0)[columns]
    return CompletedSamples(values=values, variances=variances)


def _complete_by_components(X: Float) -> CompletedSamples:
    """Return the columns of X with missing values estimated from principal components.

    X has shape (n, q), with NaN for missing values.
    """
    missing = np.isnan(X)
    n, q = X.shape
    # With more components, no degree of freedom would remain to estimate the variance of the noise.
    rank = min(_N_COMPONENTS, n - 2, q - 1)
    counts = (~missing).sum(axis=0)
    means = np.nansum(X, axis=0) / np.maximum(counts, 1)
    values = np.where(missing, means, X)
    spread = np.square(values - means).sum(axis=0) / np.maximum(counts, 1)
    scale = float(np.sqrt(spread.mean()))
    # If no component can be computed, a missing value is estimated by the mean of its column. The
    # variance of the estimate is the variance of the column.
    if rank < 1 or scale == 0.0:
        return CompletedSamples(values=values, variances=missing * spread)
    # The function is compiled for each memory layout of its arguments, so they are made contiguous.
    values = np.ascontiguousarray(values)
    rows, columns = map(np.ascontiguousarray, np.nonzero(missing))
    loadings = np.ascontiguousarray(_leading_right_singular_directions(values - means, rank))
    noise_freedom = (n - 1) * q - rank * (n - 1 + q - rank)  # degrees of freedom of the residuals
    means, scores, loadings, signal, noise = complete_cells(
        values, rows, columns, loadings, noise_freedom, _TOL * scale
    )
    residuals = np.where(missing, 0.0, X - means - scores @ loadings.T)
    # The variance of an estimated value has two parts. The first part is the residual variance of
    # its column, corrected for the number of fitted parameters. The second part is due to the
    # uncertainty of the scores of its sample.
    residual_variances = (
        np.square(residuals).sum(axis=0) / np.maximum(counts, 1) * ((n - 1) * q / noise_freedom)
    )
    score_variances = _score_variances(
        ~missing, loadings, component_variances=signal / (n - 1), noise=noise
    )
    variances = missing * (residual_variances + score_variances)
    return CompletedSamples(values=values, variances=variances)


def _score_variances(
    observed: Mask, loadings: Float, *, component_variances: Float, noise: float
) -> Float:
    """Return the (n, q) array of the variances of values due to the uncertainty of the scores.

    The posterior covariance of the scores of a sample is C = (V'V / s + D^-1)^-1. Here, V contains
    the loadings of the columns in which the sample has non-missing values, s is the variance of the
    noise, and D is the diagonal matrix of the variances of the components. If all values of the
    sample are missing, C equals the prior covariance D. The variance of a value of the sample is
    v'Cv, where v contains the loadings of its column.

    Parameters
    ----------
    observed : ndarray of bool of shape (n, q)
        Whether each value is non-missing.
    loadings : ndarray of shape (q, rank)
        Loadings of the principal components.
    component_variances : ndarray of shape (rank,)
        Variance of the scores of each component over the samples.
    noise : float
        Variance of the noise, which is estimated from the residuals. If it is zero, all returned
        variances are zero.
    """
    q, rank = loadings.shape
    if noise <= 0.0:
        return np.zeros(observed.shape)
    products = (loadings[:, :, None] * loadings[:, None, :]).reshape(q, -1)
    precision = (observed.astype(np.float64) @ products).reshape(-1, rank, rank) / noise
    # A variance of zero is replaced by the smallest positive number, since its reciprocal would be
    # infinite.
    prior = np.diag(1.0 / np.maximum(component_variances, np.finfo(np.float64).tiny))
    variances: Float = (np.linalg.inv(precision + prior).reshape(-1, rank * rank)) @ products.T
    return variances


def _leading_right_singular_directions(centred: Float, rank: int) -> Float:
    """Return vectors in the directions of the leading right singular vectors of a matrix.

    The vectors are the columns of an array of shape (q, rank), for a matrix of shape (n, q). Their
    lengths are arbitrary.
    """
    # Let X be the matrix. The smaller of X'X and XX' is decomposed, since both lead to the same
    # directions.
    n, q = centred.shape
    if q <= n:
        return np.linalg.eigh(centred.T @ centred)[1][:, -rank:]
    out: Float = centred.T @ np.linalg.eigh(centred @ centred.T)[1][:, -rank:]
    return out


def _expected_cityblock_distances(values: Float, variances: Float) -> Float:
    """Return the (n, n) array of expected city-block distances between samples.

    The expected distance between two samples is the sum over columns of E|x - y|, where x and y are
    the values of the samples, which are assumed to be independent and normally distributed. If
    x - y has mean d and standard deviation s, |x - y| has a folded normal distribution with mean
    s sqrt(2 / pi) exp(-d^2 / (2 s^2)) + d erf(d / (s sqrt(2))).

    Parameters
    ----------
    values, variances : ndarray of shape (n, q)
        Means and variances of the values; the variance is zero for a value that was not missing.
    """
    n, q = values.shape
    total = pairwise_distances(values, "cityblock")
    for j in range(q):
        # The expected distance differs from the distance of the means only for pairs in which at
        # least one value is uncertain.
        uncertain = np.flatnonzero(variances[:, j])
        difference = np.abs(values[uncertain, j][:, None] - values[:, j])
        sd = np.sqrt(variances[uncertain, j][:, None] + variances[:, j])
        excess = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * (difference / sd) ** 2)
        excess += difference * (erf(difference / (sd * np.sqrt(2))) - 1.0)
        total[uncertain] += excess
        certain = np.setdiff1d(np.arange(n), uncertain)
        total[np.ix_(certain, uncertain)] += excess[:, certain].T
    return total
