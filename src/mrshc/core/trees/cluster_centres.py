"""Centres of clusters, and distances between samples and these centres.

New samples are assigned to the cluster with the nearest centre. The distance is that of the tree:
it has the same metric, the same features and the same weights of the features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.statistics import column_blocks
from mrshc.core.trees.correlation import MIN_CORRELATED_FEATURES
from mrshc.core.trees.tree import Metric

# A sample is constant if its standard deviation is at most this fraction of its largest absolute
# value. Differences of a few units in the last place are rounding errors.
_ROUNDING = 4 * np.finfo(np.float64).eps

# Functions for averages of complete data, and of data with missing values.
_Averages = tuple[Callable[..., Any], Callable[..., Any]]
_MEANS: _Averages = (np.mean, np.nanmean)
_MEDIANS: _Averages = (np.median, np.nanmedian)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterCentres:
    """Centres of clusters in the features on which a tree is built.

    Attributes
    ----------
    metric : {"sqeuclidean", "cityblock", "correlation"}
        Metric of the distances.
    features : ndarray of shape (q,)
        Indices of the features.
    values : ndarray of shape (n_clusters, q)
        Centres. For the metric "sqeuclidean", a centre is the mean of the samples of a cluster, for
        "cityblock" their median in each feature. For "correlation", it is the mean of the samples
        after each sample is centred at zero and scaled to norm 1.
    weights : ndarray of shape (q,)
        Weights of the features in the distances; 1 if all features have the same weight.
    limits : ndarray of shape (2, q) or None
        Lower and upper limits at which new samples are winsorised; None for no limits.
    """

    metric: Metric
    features: Index
    values: Float
    weights: Float
    limits: Float | None = None

    def distances(self, X: Float) -> Float:
        """Return the distances between samples and centres, of shape (n_samples, n_clusters).

        Parameters
        ----------
        X : ndarray of shape (n_samples, q)
            Values of the samples in the features of the centres, with NaN for missing values. Every
            sample must be comparable; see `comparable_samples`.

        Notes
        -----
        A distance is computed from the features that are observed in the sample. For the additive
        metrics, it is multiplied by the sum of all weights over the sum of the weights of these
        features. Distances of samples with and without missing values are then comparable.
        """
        X = self._winsorise(X)
        observed = ~np.isnan(X)
        if self.metric == "correlation":
            columns = [_correlation_distances(X, observed, centre) for centre in self.values]
            return np.column_stack(columns)
        filled = np.where(observed, X, 0.0)
        columns = []
        for centre in self.values:
            difference = np.where(observed, filled - centre, 0.0)
            terms = np.square(difference) if self.metric == "sqeuclidean" else np.abs(difference)
            columns.append(terms @ self.weights)
        return np.column_stack(columns) * (self.weights.sum() / (observed @ self.weights))[:, None]

    def comparable_samples(self, X: Float) -> Mask:
        """Return a mask of the samples for which the distances to the centres exist.

        Such a sample has an observed value in a feature with a positive weight. For the metric
        "correlation", it has at least three observed values, which are not all equal.
        """
        observed = ~np.isnan(X)
        if self.metric != "correlation":
            return np.asarray((observed & (self.weights > 0)).any(axis=1))
        _, scales = _centred_rows(np.where(observed, self._winsorise(X), 0.0), observed)
        return (observed.sum(axis=1) >= MIN_CORRELATED_FEATURES) & (scales > 0)

    def _winsorise(self, X: Float) -> Float:
        """Return X with its values moved into the limits; missing values remain missing."""
        return X if self.limits is None else np.clip(X, *self.limits)


def cluster_centres(
    data: DataMatrix,
    labels: Labels,
    *,
    features: Index,
    metric: Metric,
    weights: Float | None = None,
    excluded: Index | None = None,
    limits: Float | None = None,
) -> ClusterCentres:
    """Return the centres of clusters.

    Parameters
    ----------
    data : DataMatrix of shape (n_samples, n_features)
        The data.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample, numbered from 0.
    features : ndarray of shape (q,)
        Indices of the features on which the tree is built. Other features are not read.
    metric : {"sqeuclidean", "cityblock", "correlation"}
        Metric of the tree.
    weights : ndarray of shape (q,) or None, default=None
        Weights of the features in the distances; None if all weights are equal.
    excluded : ndarray of int or None, default=None
        Indices of samples that do not influence the centres, such as outlying samples. A cluster
        that consists of such samples only has the centre of these samples.
    limits : ndarray of shape (2, q) or None, default=None
        Limits at which new samples are winsorised.

    Notes
    -----
    Missing values are ignored. If all values of a feature are missing in a cluster, the mean or
    median over the samples of all clusters is used instead.
    """
    groups = _samples_of_clusters(labels, np.empty(0, np.intp) if excluded is None else excluded)
    values = np.empty((len(groups), features.size))
    if metric == "correlation":
        # The samples are standardised over all features at once.
        X = data.columns(features).astype(np.float64)
        values[:] = _group_centres(_standardise_observed(X), groups, _MEANS)
    else:
        averages = _MEANS if metric == "sqeuclidean" else _MEDIANS
        # Columns are read in blocks, since all features may have a weight.
        for block in column_blocks(data.shape[0], features.size):
            X = data.columns(features[block]).astype(np.float64)
            values[:, block] = _group_centres(X, groups, averages)
    return ClusterCentres(
        metric=metric,
        features=features,
        values=values,
        weights=np.ones(features.size) if weights is None else weights,
        limits=limits,
    )


def _samples_of_clusters(labels: Labels, excluded: Index) -> list[Index]:
    """Return the indices of the samples of each cluster that are not excluded.

    If all samples of a cluster are excluded, all of them are returned.
    """
    is_usual = np.ones(labels.size, dtype=bool)
    is_usual[excluded] = False
    groups = []
    for k in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == k)
        usual = members[is_usual[members]]
        groups.append(usual if usual.size else members)
    return groups


def _group_centres(X: Float, groups: list[Index], averages: _Averages) -> Float:
    """Return the average of each column in each group of rows, of shape (n_groups, n_columns)."""
    average, average_observed = averages
    if not np.isnan(X).any():
        return np.array([average(X[rows], axis=0) for rows in groups])
    with warnings.catch_warnings():
        # If a feature is missing in all samples of a group, the average is NaN, and is replaced.
        warnings.simplefilter("ignore", RuntimeWarning)
        centres = np.array([average_observed(X[rows], axis=0) for rows in groups])
        overall = np.nan_to_num(average_observed(X[np.concatenate(groups)], axis=0))
    return np.where(np.isnan(centres), overall, centres)


def _centred_rows(filled: Float, observed: Mask) -> tuple[Float, Float]:
    """Return rows minus their means, and the norms of the result; zero for constant rows.

    Parameters
    ----------
    filled : ndarray of shape (n, q)
        Rows, with zero for missing values. The values are not NaN.
    observed : ndarray of shape (n, q)
        Whether each value is observed. Only observed values are used.
    """
    counts = np.maximum(observed.sum(axis=1), 1)
    rows = np.where(observed, filled - (filled.sum(axis=1) / counts)[:, None], 0.0)
    norms = np.sqrt(np.square(rows).sum(axis=1))
    largest = np.abs(filled).max(axis=1, initial=0.0)
    is_constant = norms <= _ROUNDING * np.sqrt(counts) * largest
    return rows, np.where(is_constant, 0.0, norms)


def _standardise_observed(X: Float) -> Float:
    """Return the rows of X, centred at zero and scaled to norm 1; zero for constant rows.

    Missing values (NaN) remain missing.
    """
    observed = ~np.isnan(X)
    rows, norms = _centred_rows(np.where(observed, X, 0.0), observed)
    scaled = np.where(norms[:, None] > 0, rows / np.where(norms > 0, norms, 1.0)[:, None], 0.0)
    return np.where(observed, scaled, np.nan)


def _correlation_distances(X: Float, observed: Mask, centre: Float) -> Float:
    """Return 1 - r for each row of X, where r is its correlation with a centre.

    The correlation of a row is computed from its observed values. If the row or the centre is
    constant in these features, the distance is 1.
    """
    rows, row_norms = _centred_rows(np.where(observed, X, 0.0), observed)
    centres, centre_norms = _centred_rows(np.where(observed, centre, 0.0), observed)
    norms = row_norms * centre_norms
    products = (rows * centres).sum(axis=1)
    correlations = np.divide(products, norms, out=np.zeros(len(X)), where=norms > 0)
    return np.asarray(1.0 - np.clip(correlations, -1.0, 1.0))
