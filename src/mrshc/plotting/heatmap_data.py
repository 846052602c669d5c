"""Scaling and clustering of features for a heat map. Nothing is drawn here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mrshc.plotting.arguments import check_numbers

# A feature counts as constant if its standard deviation is at most this proportion of its largest
# absolute value. Rounding errors can make the standard deviation of a constant feature positive:
# double precision has about 16 digits, and sums over samples lose some of these digits.
_SPREAD_TOLERANCE = 1e-12
# The correlation of two features is computed only if both features are observed in at least this
# number of samples. With only two such samples, every correlation would be plus or minus 1.
_MIN_COMMON_SAMPLES = 3
# The correlation of two features is computed from the m samples in which both features are
# observed. A standardised feature counts as constant in these samples if m squared times its
# variance is at most this limit. The limit allows for rounding errors.
_VARIANCE_TOLERANCE = 1e-9


def standardised(
    selected: ArrayLike, *, outlying: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """Return features scaled to mean zero and standard deviation one.

    Parameters
    ----------
    selected : array-like of shape (n_samples, n_features)
        Values of the features; NaN and infinite values count as missing.
    outlying : ndarray of int or None, default=None
        Indices of samples that are not used to compute means and standard deviations. The values of
        these samples are standardised like all other values.

    Returns
    -------
    scaled : ndarray of shape (n_samples, n_features)
        Standardised values. All values of a constant feature are zero. Missing values are NaN.

    Examples
    --------
    >>> from mrshc.plotting import standardised
    >>> standardised([[1.0, 5.0], [3.0, 5.0]]).round(6).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    X = _check_matrix(selected)
    observed = np.isfinite(X)
    used = observed.copy()
    used[[] if outlying is None else outlying] = False
    scale = np.where(used, np.abs(X), 0.0).max(axis=0, initial=0.0)
    # Divide by the largest absolute value first, since squares of very large or very small numbers
    # would overflow or underflow.
    X = np.where(observed, X, 0.0) / np.where(scale > 0, scale, 1.0)
    n_used = np.maximum(used.sum(axis=0), 1)
    X = np.where(observed, X - X.sum(axis=0, where=used) / n_used, 0.0)
    spread = np.sqrt((X**2).sum(axis=0, where=used) / n_used)
    varies = spread > _SPREAD_TOLERANCE
    scaled: NDArray[np.float64] = np.where(
        observed, X * varies / np.where(varies, spread, 1.0), np.nan
    )
    return scaled


def usual_samples(selected: ArrayLike, outlying: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """Return the rows of all samples that are not outlying.

    A heat map computes its tree of features from these rows, since a single outlying sample could
    make unrelated features appear correlated.

    Parameters
    ----------
    selected : array-like of shape (n_samples, n_features)
        Values of features.
    outlying : ndarray of int or None
        Indices of the outlying samples; None if there are none.

    Returns
    -------
    X : ndarray of shape (n_samples - n_outlying, n_features)
        Rows of the samples that are not outlying.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.plotting import usual_samples
    >>> usual_samples([[1, 2], [90, 80], [2, 3]], np.array([1])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    X = _check_matrix(selected)
    return X if outlying is None else np.delete(X, outlying, axis=0)


def _check_matrix(selected: ArrayLike) -> NDArray[np.float64]:
    """Return the selected features as a float64 matrix.

    Raise ValueError if `selected` is not a two-dimensional array of real numbers.
    """
    X = check_numbers("selected", selected)
    if X.ndim != 2:
        raise ValueError(
            "selected must hold samples in rows and features in columns, got the shape "
            f"{X.shape}. Pass the selected features, such as model.transform(X)."
        )
    return X


def correlation_distances(selected: ArrayLike) -> NDArray[np.float64]:
    """Return 1 - correlation for each pair of features.

    The correlation of two features is computed from the samples in which both features are
    observed.
    """
    X = standardised(selected)
    observed: NDArray[np.bool_] = np.isfinite(X)
    X, weight = np.where(observed, X, 0.0), observed.astype(np.float64)
    n_common = weight.T @ weight
    # Entry (i, j) of `sums` is the sum of the values of feature i in the samples in which features
    # i and j are both observed. `squares` contains the corresponding sums of squares.
    sums, squares = X.T @ weight, (X**2).T @ weight
    spread = n_common * squares - sums**2
    product = spread * spread.T
    is_defined = (
        (spread > _VARIANCE_TOLERANCE)
        & (spread.T > _VARIANCE_TOLERANCE)
        & (n_common >= _MIN_COMMON_SAMPLES)
    )
    covariance = n_common * (X.T @ X) - sums * sums.T
    correlation = np.divide(
        covariance,
        np.sqrt(np.where(is_defined, product, 1.0)),
        out=np.zeros_like(n_common),
        where=is_defined,
    )
    distances = 1.0 - np.clip(correlation, -1.0, 1.0)
    np.fill_diagonal(distances, 0.0)
    # The upper and the lower triangle may differ by rounding errors, but scipy requires a symmetric
    # matrix. The two triangles are therefore averaged.
    return (distances + distances.T) / 2


def feature_tree(selected: ArrayLike) -> NDArray[np.float64]:
    """Return a tree of features, built by average linkage with the distance 1 - correlation.

    Parameters
    ----------
    selected : array-like of shape (n_samples, n_features)
        Values of at least two features; NaN marks a missing value.

    Returns
    -------
    linkage_matrix : ndarray of shape (n_features - 1, 4)
        The tree in scipy's format.

    Examples
    --------
    >>> from mrshc.plotting import feature_tree
    >>> X = [[0, 0, 5], [1, 2, 1], [2, 4, 3], [3, 6, 2]]
    >>> feature_tree(X)[0, :3].tolist()
    [0.0, 1.0, 0.0]
    """
    distances = correlation_distances(selected)
    if len(distances) < 2:
        raise ValueError(
            "selected must hold at least two features to build a tree of features, got "
            f"{len(distances)}. Pass more features."
        )
    condensed = squareform(distances, checks=False)
    # Rounding errors can give identical features a distance of about 1e-16 instead of zero. The
    # distances are rounded to 12 decimals, so ties are broken in the same way on every machine.
    tree: NDArray[np.float64] = hierarchy.linkage(np.round(condensed, 12), "average")
    return tree
