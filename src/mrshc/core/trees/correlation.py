"""Correlation distances between samples.

The distance between two samples is 1 - r, where r is the Pearson correlation of their values over
the features. If rows are centred at zero and scaled to the norm sqrt(1/2), the squared Euclidean
distance between two rows is exactly 1 - r. Methods for squared Euclidean distances can therefore be
applied to such standardised rows.

A sample with the same value in all features has no correlation with other samples. Its distance to
every other sample is defined as 1, as if the correlation were zero. This is still a squared
Euclidean distance: the sample is represented by one coordinate on an axis of its own. Values that
replace missing values are uncertain, which is represented by such a coordinate, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.statistics import column_blocks

# Smallest number of features for which correlations are meaningful. With two features, every
# correlation is 1 or -1.
MIN_CORRELATED_FEATURES = 3

# A row is constant if no value differs from the mean of the row by more than this fraction of its
# largest absolute value. Differences of a few units in the last place are rounding errors, such as
# that between 0.1 + 0.2 and 0.3.
_ROUNDING = 4 * np.finfo(np.float64).eps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandardisedRows:
    """Samples as points whose squared Euclidean distances are 1 - correlation.

    Each sample has one coordinate for each feature, and one coordinate on an axis of its own. The
    norm of all coordinates of a sample is sqrt(1/2).

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        Coordinates for the features: the values minus the mean of the sample, scaled; zero for
        constant samples.
    own_squares : ndarray of shape (n_samples,)
        Square of the coordinate on the own axis of each sample: 1/2 for constant samples, and zero
        for other samples without missing values.
    is_constant : ndarray of shape (n_samples,)
        Whether all values of each sample are equal, up to rounding errors. If there are fewer than
        three features, all samples are treated as constant.
    """

    values: Float
    own_squares: Float
    is_constant: Mask

    def distances(self) -> Float:
        """Return the distances between the samples, as an array of shape (n_samples, n_samples)."""
        # Differences of rows are used instead of 1 - r, which would have no correct digits for rows
        # that are nearly equal.
        distances: Float = squareform(pdist(self.values, "sqeuclidean"))
        distances += self.own_squares[:, None] + self.own_squares
        # Distances to constant samples are 1 by definition. They are set to exactly 1, so that they
        # are equal to each other.
        distances[self.is_constant] = 1.0
        distances[:, self.is_constant] = 1.0
        np.fill_diagonal(distances, 0.0)
        return distances


def standardise_rows(X: Float, variances: Float | None = None) -> StandardisedRows:
    """Return the rows of X as points whose squared Euclidean distances are 1 - correlation.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data without missing values.
    variances : ndarray of shape (n_samples, n_features) or None, default=None
        Expected squared errors of values that are estimates; zero for other values. None if no
        value is an estimate.

    Notes
    -----
    The correlation of two rows x and y is x'y / sqrt(x'x y'y) after the mean is subtracted from
    each row. If values are estimates with independent errors, the expectation of the numerator does
    not change. The expectation of x'x increases by the sum of the variances of the row, multiplied
    by 1 - 1 / n_features because the mean is subtracted. Correlations are computed with these
    expectations.
    """
    # The order in which numpy adds values depends on the memory layout. Rows are made contiguous,
    # so that the result is the same for every layout.
    X = np.ascontiguousarray(X, dtype=np.float64)
    n, q = X.shape
    rows = X - X.mean(axis=1, keepdims=True)
    # The mean has a rounding error, which the second step removes. Otherwise a constant row could
    # have a deviation that is not negligible.
    rows -= rows.mean(axis=1, keepdims=True)
    largest = np.abs(rows).max(axis=1)
    is_constant = largest <= _ROUNDING * np.abs(X).max(axis=1)
    if q < MIN_CORRELATED_FEATURES:
        is_constant[:] = True
    rows[is_constant] = 0.0
    # Division by the largest deviation prevents underflow and overflow of the squares.
    unit = np.where(is_constant, 1.0, largest)
    rows /= unit[:, None]
    squares = np.square(rows).sum(axis=1)
    uncertain = np.zeros(n)
    if variances is not None:
        uncertain = variances.sum(axis=1) * (1.0 - 1.0 / q) / unit / unit
    uncertain[is_constant] = 1.0
    doubled = 2.0 * (squares + uncertain)
    rows /= np.sqrt(doubled)[:, None]
    return StandardisedRows(values=rows, own_squares=uncertain / doubled, is_constant=is_constant)


def shared_feature_correlation_distances(X: NDArray[Any]) -> tuple[Float, Float]:
    """Return the distances 1 - r between rows with missing values, and numbers of shared features.

    The correlation of two rows is computed from the features that are observed in both rows. If one
    of the rows is constant in these features, or if there are fewer than three of them, the
    distance is 1.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, with NaN for missing values. Every row must have a value that is not missing.

    Returns
    -------
    distances : ndarray of shape (n_samples, n_samples)
        The distances, zero on the diagonal.
    n_shared : ndarray of shape (n_samples, n_samples)
        Number of features that are observed in both samples of each pair.
    """
    n = X.shape[0]
    centre, scale = _row_centres_and_scales(X)
    n_shared, sums, squares, products = (np.zeros((n, n)) for _ in range(4))
    # Element (i, j) of `sums` and `squares` is a sum over the values of row i in the features that
    # are also observed in row j.
    for block in column_blocks(*X.shape):
        values = (X[:, block] - centre) / scale
        observed = (~np.isnan(values)).astype(np.float64)
        values = np.nan_to_num(values)
        n_shared += observed @ observed.T
        sums += values @ observed.T
        squares += np.square(values) @ observed.T
        products += values @ values.T
    counts = np.maximum(n_shared, 1.0)
    deviations = squares - np.square(sums) / counts
    # The values are at most 1 in absolute value, so the rounding error of a sum of m squares is of
    # the order of m eps. A row whose sum is no larger is constant in the shared features.
    is_constant = deviations <= _ROUNDING * counts
    is_undefined = is_constant | is_constant.T | (n_shared < MIN_CORRELATED_FEATURES)
    scales = np.where(is_undefined, 1.0, deviations)
    covariances = products - sums * sums.T / counts
    correlations = np.clip(covariances / np.sqrt(scales * scales.T), -1.0, 1.0)
    distances = np.where(is_undefined, 1.0, 1.0 - correlations)
    np.fill_diagonal(distances, 0.0)
    return distances, n_shared


def _row_centres_and_scales(X: NDArray[Any]) -> tuple[Float, Float]:
    """Return the mean of each row of X and its largest deviation from the mean.

    Missing values are ignored. Both arrays have the shape (n_samples, 1). The scale of a constant
    row is infinite, so that division by the scale makes the row zero.
    """
    centre, largest, deviation = (np.zeros((X.shape[0], 1)) for _ in range(3))
    counts = (~np.isnan(X)).sum(axis=1, keepdims=True)
    # The mean has a rounding error, which the second step removes.
    for _ in range(2):
        total = np.zeros_like(centre)
        for block in column_blocks(*X.shape):
            total += np.nansum(X[:, block] - centre, axis=1, keepdims=True)
        centre += total / counts
    for block in column_blocks(*X.shape):
        values, differences = np.nan_to_num(X[:, block]), np.nan_to_num(X[:, block] - centre)
        np.maximum(largest, np.abs(values).max(axis=1, keepdims=True), out=largest)
        np.maximum(deviation, np.abs(differences).max(axis=1, keepdims=True), out=deviation)
    return centre, np.where(deviation <= _ROUNDING * largest, np.inf, deviation)
