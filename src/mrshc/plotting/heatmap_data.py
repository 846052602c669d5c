"""What a heat map needs to know of features: their scale and their tree. No drawing here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mrshc.core.array_types import Float, Index, Mask
from mrshc.plotting.arguments import check_numbers

# Below this share of the scale, spread is rounding error.
_SPREAD_TOLERANCE = 1e-12
# Two features seen together in fewer samples than this always correlate perfectly.
_MIN_COMMON_SAMPLES = 3


def standardised(selected: ArrayLike, *, outlying: Index | None = None) -> Float:
    """Return features with mean zero and standard deviation one.

    Constant features become zero; what is missing stays missing, and infinite counts as missing.
    Outlying samples have no say in what mean and deviation are.

    Examples
    --------
    >>> from mrshc.plotting import standardised
    >>> standardised([[1.0, 5.0], [3.0, 5.0]]).round(6).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    X = _check_matrix(selected)
    seen = np.isfinite(X)
    counted = seen.copy()
    counted[[] if outlying is None else outlying] = False
    scale = np.where(counted, np.abs(X), 0.0).max(axis=0, initial=0.0)
    # Scaled before it is squared, so that very large and very small numbers stay finite.
    X = np.where(seen, X, 0.0) / np.where(scale > 0, scale, 1.0)
    n_seen = np.maximum(counted.sum(axis=0), 1)
    X = np.where(seen, X - X.sum(axis=0, where=counted) / n_seen, 0.0)
    spread = np.sqrt((X**2).sum(axis=0, where=counted) / n_seen)
    varies = spread > _SPREAD_TOLERANCE
    scaled: Float = np.where(seen, X * varies / np.where(varies, spread, 1.0), np.nan)
    return scaled


def usual_samples(selected: ArrayLike, outlying: Index | None) -> Float:
    """Return the rows of all samples that are not outlying: they say which features go together."""
    X = _check_matrix(selected)
    return X if outlying is None else np.delete(X, outlying, axis=0)


def _check_matrix(selected: ArrayLike) -> Float:
    X = check_numbers("selected", selected)
    if X.ndim != 2:
        raise ValueError(
            "selected must hold samples in rows and features in columns, got the shape "
            f"{X.shape}. Give the selected features, such as model.transform(X)."
        )
    return X


def correlation_distances(selected: ArrayLike) -> Float:
    """Return 1 - correlation between features, over the samples that both were seen in.

    A constant feature, or one that shares too few samples with the other, correlates with nothing.
    """
    X = standardised(selected)
    seen: Mask = np.isfinite(X)
    X, weight = np.where(seen, X, 0.0), seen.astype(np.float64)
    common = weight.T @ weight
    sums, squares = X.T @ weight, (X**2).T @ weight  # of the row's feature, where both are seen
    spread = common * squares - sums**2
    product = spread * spread.T
    known = (spread > 1e-9) & (spread.T > 1e-9) & (common >= _MIN_COMMON_SAMPLES)
    covariance = common * (X.T @ X) - sums * sums.T
    correlation = np.divide(
        covariance, np.sqrt(np.where(known, product, 1.0)), out=np.zeros_like(common), where=known
    )
    distances = 1.0 - np.clip(correlation, -1.0, 1.0)
    np.fill_diagonal(distances, 0.0)
    return (distances + distances.T) / 2


def feature_tree(selected: ArrayLike) -> Float:
    """Return the tree of features by average linkage on 1 - correlation, in scipy's format.

    Parameters
    ----------
    selected : array-like of shape (n_samples, n_features)
        At least two features; NaN marks a missing value.

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
            f"selected must hold at least two features for a tree, got {len(distances)}. Give more."
        )
    condensed = squareform(distances, checks=False)
    # Rounding leaves copies of a feature a hair apart.
    tree: Float = hierarchy.linkage(np.round(condensed, 12), "average")
    return tree
