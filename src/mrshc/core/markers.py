"""Marker features, which differ between a cluster and the other samples, or between two branches.

The features of a tree differ between its clusters by construction, so each fold of them is tested
with a tree of the other folds, whose most similar branches replace the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from mrshc.core.association import analyse_variance, f_tail, split_into_folds
from mrshc.core.data.matrix import DataMatrix, to_host
from mrshc.core.missing_values import complete
from mrshc.core.trees import Tree, linkage_matrix, min_features

# Jaccard index of a group and the branch that replaces it: at least one half, so that two disjoint
# branches cannot replace the same group.
_MIN_JACCARD = 0.5


@dataclass(frozen=True, eq=False)
class Contrast:
    """Two groups of samples that are compared."""

    kind: str  # "cluster" or "split"
    node: int
    inside: np.ndarray
    outside: np.ndarray
    clusters_inside: str = ""  # their labels
    clusters_outside: str = ""


@dataclass(frozen=True, eq=False)
class MarkerStatistics:
    """Statistics of p features for one contrast."""

    mean_inside: np.ndarray
    mean_outside: np.ndarray
    effect_size: np.ndarray  # difference of the means in pooled standard deviations; may be NaN
    p_values: np.ndarray
    q_values: np.ndarray


def contrasts_of_clusters(tree: Tree, labels: np.ndarray, outlying: np.ndarray) -> list[Contrast]:
    """Return a contrast for each cluster, and one for each split above the clusters.

    Samples are numbered without the outlying ones; groups of these only are not compared.
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters < 2:
        return []
    low, high = tree.label_ranges(labels)
    groups = []
    for k in range(n_clusters):
        # A node has a larger number than those below it, so the last is the whole cluster.
        node = int(np.flatnonzero((low == k) & (high == k))[-1])
        groups.append(("cluster", node, np.flatnonzero(labels == k), np.flatnonzero(labels != k)))
    for node in np.flatnonzero(low < high)[::-1].tolist():
        left, right = tree.children(node)
        groups.append(("split", node, tree.members(left), tree.members(right)))
    position = np.cumsum(~np.isin(np.arange(labels.size), outlying)) - 1
    contrasts = []
    for kind, node, *sides in groups:
        names = [", ".join(map(str, np.unique(labels[side]))) for side in sides]
        usual = [position[np.setdiff1d(side, outlying)] for side in sides]
        if all(side.size for side in usual):
            contrasts.append(Contrast(kind, node, *usual, *names))
    return contrasts


def marker_statistics(
    matrix: DataMatrix,
    features: np.ndarray,
    contrasts: Sequence[Contrast],
    *,
    linkage: str,
    metric: str,
    weights: np.ndarray | None = None,
) -> list[MarkerStatistics]:
    """Return the statistics of all features for each contrast.

    Parameters
    ----------
    features : ndarray of int
        The features on which the tree is built.
    weights : ndarray or None
        Their weights in the distances.
    """
    if not contrasts:
        return []
    labels = [_labels(matrix.shape[0], c.inside, c.outside) for c in contrasts]
    p_values = np.hstack(list(matrix.map(lambda block, _: _rank_tests(to_host(block), labels))))
    p_values[:, features] = _cross_fitted_p_values(
        matrix.columns(features), contrasts, linkage=linkage, metric=metric, weights=weights
    )
    moments = matrix.map(lambda block, _: _moments(to_host(block), contrasts))
    means, squares, counts = (np.concatenate(part, axis=2) for part in zip(*moments, strict=True))
    statistics = []
    for i in range(len(contrasts)):
        sd = np.sqrt(squares[i].sum(axis=0) / np.maximum(counts[i].sum(axis=0) - 2, 1))
        difference = means[i, 0] - means[i, 1]
        effect = np.divide(difference, sd, out=np.full(sd.size, np.nan), where=sd > 0)
        q_values = false_discovery_control(p_values[i])
        statistics.append(MarkerStatistics(means[i, 0], means[i, 1], effect, p_values[i], q_values))
    return statistics


def _cross_fitted_p_values(
    X: np.ndarray,
    contrasts: Sequence[Contrast],
    *,
    linkage: str,
    metric: str,
    weights: np.ndarray | None,
) -> np.ndarray:
    """Return the p-values (n_contrasts, q) of the features X of the tree, tested in folds."""
    p_values = np.ones((len(contrasts), X.shape[1]))
    compared = X
    if weights is not None:
        compared = X * (np.sqrt(weights) if metric == "sqeuclidean" else weights)
    for fold in split_into_folds(compared):
        others = np.delete(np.arange(X.shape[1]), fold)
        if others.size >= min_features(metric):
            distances = complete(compared[:, others]).distances(metric)
            tree = Tree(linkage_matrix(distances, linkage))
            labels = [_matching_labels(tree, contrast) for contrast in contrasts]
            p_values[:, fold] = _rank_tests(X[:, fold], labels)
    return p_values


def _matching_labels(tree: Tree, contrast: Contrast) -> np.ndarray:
    """Return labels by the branches that are most similar to the groups of a contrast."""
    n = tree.n_samples
    inside = tree.most_similar_branch(contrast.inside, at_least=_MIN_JACCARD)
    # The complement of a branch is not a branch, so all other samples stay all others.
    if contrast.inside.size + contrast.outside.size == n:
        outside = np.setdiff1d(np.arange(n), inside)
    else:
        outside = tree.most_similar_branch(contrast.outside, at_least=_MIN_JACCARD)
    if not inside.size or not outside.size or np.intersect1d(inside, outside).size:
        return np.full(n, -1)
    return _labels(n, inside, outside)


def _labels(n: int, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return 1 for samples inside, 0 for those outside, and -1 for the others."""
    labels = np.full(n, -1)
    labels[inside], labels[outside] = 1, 0
    return labels


def _rank_tests(X: np.ndarray, partitions: Sequence[np.ndarray]) -> np.ndarray:
    """Return p-values (n_partitions, m); samples with a negative label take no part."""
    p_values = np.ones((len(partitions), X.shape[1]))
    for row, labels in zip(p_values, partitions, strict=True):
        used = labels >= 0
        if used.any():
            row[:] = f_tail(*analyse_variance(X[used], labels[used][None])[:3])[0]
    return p_values


def _moments(X: np.ndarray, contrasts: Sequence[Contrast]) -> tuple[Any, Any, Any]:
    """Return means, sums of squared deviations and numbers of values, (n_contrasts, 2, m) each."""
    means, squares, counts = np.empty((3, len(contrasts), 2, X.shape[1]))
    for i, contrast in enumerate(contrasts):
        for side, members in enumerate((contrast.inside, contrast.outside)):
            group = X[members].astype(np.float64)
            counts[i, side] = (~np.isnan(group)).sum(axis=0)
            mean = np.nansum(group, axis=0) / np.maximum(counts[i, side], 1)
            means[i, side] = np.where(counts[i, side] > 0, mean, np.nan)
            squares[i, side] = np.nansum((group - mean) ** 2, axis=0)
    return means, squares, counts
