"""Gaussian distributions from which data without clusters are simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from mrshc.core.array_types import Float, Mask

# Ratio of the standard deviation and the median absolute deviation of the normal distribution.
_NORMAL_MAD = 1.4826
# Number of candidate thresholds for the eigenvalues: that of SigClust, so that p-values agree.
_N_THRESHOLDS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianNull:
    """Gaussian distribution of n samples with p features, by k factors and independent noise.

    Attributes
    ----------
    means : ndarray of shape (p,)
        Mean of each feature.
    factors : ndarray of shape (k, p)
        Loadings of the factors. Their cross product is a part of the covariance.
    noise : ndarray of shape (p,)
        Standard deviation of the independent noise of each feature.
    is_missing : ndarray of bool of shape (n, p)
        Mask of the missing values.
    """

    means: Float
    factors: Float
    noise: Float
    is_missing: Mask

    def draw(self, rng: np.random.Generator) -> Float:
        """Return simulated data of shape (n, p). The same values are missing as in the data."""
        n = len(self.is_missing)
        drawn: Float = rng.standard_normal((n, len(self.factors))) @ self.factors
        if self.noise.any():
            drawn += self.noise * rng.standard_normal(drawn.shape)
        drawn += self.means
        drawn[self.is_missing] = np.nan
        return drawn


def estimate_null(X: Float) -> GaussianNull:
    r"""Return a Gaussian distribution with the means, the variances and the factors of data.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Data, with NaN for missing values.

    Notes
    -----
    Let :math:`\lambda_k` and :math:`v_k` be the n - 1 largest eigenvalues of the sample covariance
    and their eigenvectors, and let m be the median of these eigenvalues. It is zero if there are
    few features, since most of these eigenvalues are zero then. The factors are
    :math:`\sqrt{\lambda_k - m} \, v_k` for all eigenvalues above the median. The rest of the
    variance of each feature is independent noise, so the variances are those of X.

    If p is much larger than n, independent noise of variance :math:`\sigma^2` has sample
    eigenvalues near :math:`\sigma^2 p / n` instead of :math:`\sigma^2`. Without the subtraction of
    the median, simulated data would have n - 1 strong factors, and a procedure that selects
    features would find clear splits along them. If the median were replaced by the upper edge of
    the eigenvalues of noise, moderately correlated blocks of features would be lost, and such
    blocks in the data would be mistaken for clusters.
    """
    eigen = _decompose(X)
    median = float(np.median(eigen.values))
    factors = eigen.factors(np.maximum(eigen.values - median, 0.0))
    variances = _column_means((X - eigen.means) ** 2)
    n_values = (~eigen.is_missing).sum(axis=0)
    variances *= n_values / np.maximum(n_values - 1, 1)
    rest = variances - np.einsum("ij,ij->j", factors, factors)
    return GaussianNull(
        means=eigen.means,
        factors=factors,
        noise=np.sqrt(np.maximum(rest, 0.0)),
        is_missing=eigen.is_missing,
    )


def estimate_null_of_sigclust(X: Float) -> GaussianNull:
    """Return the Gaussian distribution of SigClust, whose covariance has a background variance.

    It is used if no features are selected. All features then have the same background variance,
    which would not be suitable for a selection of features with large variances.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Data, with NaN for missing values.
    """
    eigen = _decompose(X)
    # A covariance of p features has p eigenvalues, of which at most n - 1 are not zero.
    n_values = min(X.shape[1], eigen.values.size)
    values = np.zeros(X.shape[1])
    values[:n_values] = eigen.values[:n_values]
    background = background_variance(X)
    excess = np.zeros(eigen.values.size)
    excess[:n_values] = soft_threshold(values, background=background)[:n_values] - background
    return GaussianNull(
        means=eigen.means,
        factors=eigen.factors(excess),
        noise=np.full(eigen.means.size, np.sqrt(background)),
        is_missing=eigen.is_missing,
    )


def background_variance(X: Float) -> float:
    """Return the squared median absolute deviation of all values, scaled for normal data."""
    median = np.nanmedian(X)
    return float((_NORMAL_MAD * np.nanmedian(np.abs(X - median))) ** 2)


def soft_threshold(values: Float, *, background: float) -> Float:
    r"""Return eigenvalues of the null covariance of SigClust, given sample eigenvalues.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Eigenvalues of the sample covariance, in decreasing order.
    background : float
        Variance of the background noise, :math:`\sigma^2`.

    Notes
    -----
    The eigenvalues are :math:`\max(\lambda_k - \tau, \sigma^2)`. The largest candidate of
    :math:`\tau` is the one that preserves the total variance [1]_. Of 100 candidates from zero to
    this value, the one is chosen for which the first eigenvalue has the largest share of the total
    variance, since the split is most likely to follow the first eigenvector.

    References
    ----------
    .. [1] Huang, H., Liu, Y., Yuan, M. and Marron, J. S. (2015). Statistical significance of
       clustering using soft thresholding. Journal of Computational and Graphical Statistics 24(4),
       975-993. doi:10.1080/10618600.2014.948179
    """
    largest = _variance_preserving_threshold(values, background)
    candidates = np.maximum(
        values - largest * np.arange(_N_THRESHOLDS)[:, None] / _N_THRESHOLDS, background
    )
    shares = candidates[:, 0] / candidates.sum(axis=1)
    best: Float = candidates[int(shares.argmax())]
    return best


def _variance_preserving_threshold(values: Float, background: float) -> float:
    """Return the threshold that preserves the sum of the eigenvalues; zero if there is none."""

    def excess(threshold: float) -> float:
        return float(np.maximum(values - threshold, background).sum() - values.sum())

    highest = float(values[0])
    if excess(0.0) <= 0.0 or excess(highest) >= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, highest))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Eigen:
    """Eigenvalues and eigenvectors of the covariance of n samples with p features.

    Attributes
    ----------
    means : ndarray of shape (p,)
        Mean of each feature.
    values : ndarray of shape (n - 1,)
        Eigenvalues of the sample covariance, in decreasing order.
    vectors : ndarray of shape (n - 1, p)
        Eigenvectors; zero for eigenvalues that are zero.
    is_missing : ndarray of bool of shape (n, p)
        Mask of the missing values. They were replaced by the means.
    """

    means: Float
    values: Float
    vectors: Float
    is_missing: Mask

    def factors(self, variances: Float) -> Float:
        """Return the factors with the given variances, without those of zero variance."""
        is_used = variances > 0.0
        return np.sqrt(variances[is_used])[:, None] * self.vectors[is_used]


def _column_means(X: Float) -> Float:
    """Return the mean of the values of each feature; zero for a feature without values."""
    n_values = (~np.isnan(X)).sum(axis=0)
    means: Float = np.nansum(X, axis=0) / np.maximum(n_values, 1)
    return means


def _decompose(X: Float) -> _Eigen:
    """Return the eigenvalues and eigenvectors of the sample covariance of X."""
    means = _column_means(X)
    centred = X - means
    is_missing = np.isnan(centred)
    centred[is_missing] = 0.0
    # The cross product of the samples is small, and has the same non-zero eigenvalues. Its smallest
    # eigenvalue is zero because of the centring.
    squares, rows = np.linalg.eigh(centred @ centred.T)
    squares, rows = np.maximum(squares[:0:-1], 0.0), rows[:, :0:-1]
    # Without this bound, vectors of eigenvalues that are zero except for rounding would be noise.
    is_zero = squares <= squares[0] * len(X) * np.finfo(float).eps
    lengths = np.where(is_zero, np.inf, np.sqrt(squares))
    return _Eigen(
        means=means,
        values=np.where(is_zero, 0.0, squares) / (len(X) - 1),
        vectors=(rows / lengths).T @ centred,
        is_missing=is_missing,
    )
