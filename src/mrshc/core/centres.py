"""Centres of clusters, by which new samples are assigned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mrshc.core.data.matrix import DataMatrix
from mrshc.core.trees import ROUNDING, min_features


@dataclass(frozen=True, eq=False)
class ClusterCentres:
    """Centres of k clusters in the q features on which a tree is built.

    Attributes
    ----------
    metric : str
        Metric of the distances.
    features : ndarray of shape (q,)
        Indices of the features.
    values : ndarray of shape (k, q)
        Means, medians for city-block distances, or means of standardised samples for correlations.
    weights : ndarray of shape (q,)
        Weights of the features in the distances.
    limits : ndarray of shape (2, q) or None
        Limits at which values are winsorised.
    """

    metric: str
    features: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    limits: np.ndarray | None = None

    def distances(self, X: np.ndarray) -> np.ndarray:
        """Return the distances (m, k) of samples (m, q), scaled up if values are missing."""
        X = self._winsorise(X)
        observed = ~np.isnan(X)
        if self.metric == "correlation":
            columns = [_correlation_distances(X, observed, centre) for centre in self.values]
            return np.column_stack(columns)
        term = np.square if self.metric == "sqeuclidean" else np.abs
        columns = [term(np.where(observed, X - c, 0.0)) @ self.weights for c in self.values]
        return np.column_stack(columns) * (self.weights.sum() / (observed @ self.weights))[:, None]

    def comparable(self, X: np.ndarray) -> np.ndarray:
        """Return a mask of the samples whose distances exist."""
        observed = ~np.isnan(X)
        if self.metric != "correlation":
            return (observed & (self.weights > 0)).any(axis=1)
        _, scales = _centred_rows(self._winsorise(X), observed)
        return (observed.sum(axis=1) >= min_features(self.metric)) & (scales > 0)

    def _winsorise(self, X: np.ndarray) -> np.ndarray:
        return X if self.limits is None else np.clip(X, *self.limits)


def cluster_centres(
    matrix: DataMatrix,
    labels: np.ndarray,
    *,
    features: np.ndarray,
    metric: str,
    weights: np.ndarray | None = None,
    excluded: np.ndarray | None = None,
    limits: np.ndarray | None = None,
) -> ClusterCentres:
    """Return the centres of the clusters; excluded samples count only where there are no others."""
    is_usual = np.ones(labels.size, dtype=bool)
    if excluded is not None:
        is_usual[excluded] = False
    groups = []
    for k in range(int(labels.max()) + 1):
        usual = np.flatnonzero((labels == k) & is_usual)
        groups.append(usual if usual.size else np.flatnonzero(labels == k))
    # Samples are standardised over all features; otherwise features are read in parts.
    step = features.size if metric == "correlation" else max((1 << 22) // len(labels), 1)
    values = []
    for start in range(0, features.size, step):
        X = matrix.columns(features[start : start + step])
        if metric == "correlation":
            observed = ~np.isnan(X)
            rows, norms = _centred_rows(X, observed)
            X = np.where(observed, rows / np.where(norms > 0, norms, np.inf)[:, None], np.nan)
        values.append(_averages(X, groups, np.nanmedian if metric == "cityblock" else np.nanmean))
    return ClusterCentres(
        metric=metric,
        features=features,
        values=np.hstack(values),
        weights=np.ones(features.size) if weights is None else weights,
        limits=limits,
    )


def _averages(
    X: np.ndarray, groups: list[np.ndarray], average: Callable[..., np.ndarray]
) -> np.ndarray:
    """Return the averages of each group; those of all samples where a group has no value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # groups without values
        centres = np.array([average(X[rows], axis=0) for rows in groups])
        overall = np.nan_to_num(average(X[np.concatenate(groups)], axis=0))
    return np.where(np.isnan(centres), overall, centres)


def _centred_rows(X: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows minus their means, zero where missing, and their norms; 0 if constant."""
    filled = np.where(observed, X, 0.0)
    counts = np.maximum(observed.sum(axis=1), 1)
    rows = np.where(observed, filled - (filled.sum(axis=1) / counts)[:, None], 0.0)
    norms = np.linalg.norm(rows, axis=1)
    negligible = ROUNDING * np.sqrt(counts) * np.abs(filled).max(axis=1, initial=0.0)
    return rows, np.where(norms <= negligible, 0.0, norms)


def _correlation_distances(X: np.ndarray, observed: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return 1 - r of each row with a centre, over the observed values."""
    rows, row_norms = _centred_rows(X, observed)
    centres, centre_norms = _centred_rows(np.broadcast_to(centre, X.shape), observed)
    norms, products = row_norms * centre_norms, (rows * centres).sum(axis=1)
    correlations = np.divide(products, norms, out=np.zeros(len(X)), where=norms > 0)
    return 1.0 - np.clip(correlations, -1.0, 1.0)
