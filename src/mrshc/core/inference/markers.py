"""Marker features of clusters and of the two sides of a split.

A feature that contributed to a cluster always seems to be a marker of it. A feature of the tree is
therefore tested against the cluster in a tree without the feature: the branch that has most samples
in common with the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.statistics import column_variances
from mrshc.core.inference.association import benjamini_hochberg, rank_p_values
from mrshc.core.inference.refinement import split_into_folds
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.tree import Linkage, Metric, Tree, agglomerate

# A branch represents a cluster only if its Jaccard index with the cluster is at least one half: two
# disjoint branches cannot both reach more than that.
_MIN_JACCARD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contrast:
    """Two disjoint groups of samples that are compared."""

    inside: Index  # samples of the first group
    outside: Index  # samples of the second group


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkerStatistics:
    """Differences of each feature between the two groups of a contrast.

    Attributes
    ----------
    mean_inside, mean_outside : ndarray of shape (p,)
        Means of the observed cells of the two groups; NaN if there are none.
    effect_size : ndarray of shape (p,)
        Difference of the means divided by the pooled standard deviation; NaN if that is zero.
    p_values : ndarray of shape (p,)
        P-values of the rank test.
    q_values : ndarray of shape (p,)
        The p-values after the correction of Benjamini and Hochberg.
    """

    mean_inside: Float
    mean_outside: Float
    effect_size: Float
    p_values: Float
    q_values: Float


def marker_statistics(
    matrix: CentredMatrix,
    features: Index,
    contrasts: Sequence[Contrast],
    *,
    linkage: Linkage,
    metric: Metric,
    weights: Float | None = None,
) -> list[MarkerStatistics]:
    """Return the statistics of all features for each contrast of a tree.

    Features of the tree are tested against trees on nine tenths of its features that exclude them,
    all others against the tree itself.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, (n, p).
    features : ndarray of shape (q,)
        Features of the tree.
    contrasts : sequence of Contrast
        Groups of samples to compare.
    linkage, metric : str
        Linkage and metric of the tree.
    weights : ndarray of shape (q,) or None, default=None
        Weights of the features in the distances; None if they are equal.

    Returns
    -------
    list of MarkerStatistics
        One for each contrast.
    """
    if not contrasts:
        return []
    p = matrix.shape[1]
    p_values = _cross_fitted_p_values(
        matrix, features, contrasts=contrasts, linkage=linkage, metric=metric, weights=weights
    )
    means, squares, counts = (np.empty((len(contrasts), 2, p)) for _ in range(3))
    for positions, moments in matrix.map_columns(
        np.arange(p), partial(_group_moments, contrasts=contrasts)
    ):
        means[..., positions], squares[..., positions], counts[..., positions] = moments
    return [
        _make_statistics(means[i], squares[i], counts=counts[i], p_values=p_values[:, i])
        for i in range(len(contrasts))
    ]


def _cross_fitted_p_values(
    matrix: CentredMatrix,
    features: Index,
    *,
    contrasts: Sequence[Contrast],
    linkage: Linkage,
    metric: Metric,
    weights: Float | None,
) -> Float:
    """Return the p-value of each feature for each contrast, (p, n_contrasts)."""
    n, p = matrix.shape
    # A feature stays at one if no tree remains without it.
    p_values = np.ones((p, len(contrasts)))
    outside = np.setdiff1d(np.arange(p), features, assume_unique=True)
    given = [_contrast_labels(n, inside=c.inside, outside=c.outside) for c in contrasts]
    p_values[outside] = rank_p_values(matrix, given, indices=outside)
    X = matrix.columns(features)
    if weights is not None:
        # Squared differences are weighted, so that values are scaled by the root of the weight.
        X = X * (np.sqrt(weights) if metric == "sqeuclidean" else weights)
    for fold in split_into_folds(column_variances(X)):
        others = np.delete(np.arange(features.size), fold)
        if others.size:
            distances = complete_missing_cells(X[:, others]).distances(metric)
            partitions = _matching_partitions(agglomerate(distances, linkage), contrasts)
            p_values[features[fold]] = rank_p_values(matrix, partitions, indices=features[fold])
    return p_values


def _matching_partitions(tree: Tree, contrasts: Sequence[Contrast]) -> list[Labels]:
    """Return the partition into those branches of a tree that are most similar to each contrast.

    Labels are 1 for the first group, 0 for the second and -1 for other samples. All are -1 if the
    tree has no such branches, so that nothing is compared.
    """
    n = tree.n_samples
    partitions = []
    for contrast in contrasts:
        inside = tree.most_similar_branch(contrast.inside, at_least=_MIN_JACCARD)
        # The complement of a cluster is in general not a branch.
        if contrast.inside.size + contrast.outside.size == n:
            outside = np.setdiff1d(np.arange(n), inside, assume_unique=True)
        else:
            outside = tree.most_similar_branch(contrast.outside, at_least=_MIN_JACCARD)
        are_disjoint = np.intersect1d(inside, outside, assume_unique=True).size == 0
        if are_disjoint and inside.size and outside.size:
            partitions.append(_contrast_labels(n, inside=inside, outside=outside))
        else:
            partitions.append(np.full(n, -1, dtype=np.intp))
    return partitions


def _contrast_labels(n: int, *, inside: Index, outside: Index) -> Labels:
    """Return labels of n samples: 1 inside, 0 outside, -1 in neither group."""
    labels = np.full(n, -1, dtype=np.intp)
    labels[inside] = 1
    labels[outside] = 0
    return labels


def _group_moments(X: Float, contrasts: Sequence[Contrast]) -> tuple[Float, Float, Float]:
    """Return statistics of the columns of X, (n, m), for both groups of each contrast.

    Returns
    -------
    means, squares, counts : ndarray of shape (n_contrasts, 2, m)
        Means, sums of squares about the means, and numbers of observed cells.
    """
    means, squares, counts = (np.empty((len(contrasts), 2, X.shape[1])) for _ in range(3))
    for i, contrast in enumerate(contrasts):
        for side, members in enumerate((contrast.inside, contrast.outside)):
            group = X[members]
            counts[i, side] = (~np.isnan(group)).sum(axis=0)
            mean = np.nansum(group, axis=0) / np.maximum(counts[i, side], 1)
            means[i, side] = np.where(counts[i, side] > 0, mean, np.nan)
            squares[i, side] = np.nansum((group - mean) ** 2, axis=0)
    return means, squares, counts


def _make_statistics(
    means: Float, squares: Float, *, counts: Float, p_values: Float
) -> MarkerStatistics:
    """Return the statistics of a contrast.

    Parameters
    ----------
    means, squares, counts : ndarray of shape (2, p)
        Means, sums of squares about them and numbers of observed cells of the two groups.
    p_values : ndarray of shape (p,)
        P-values of the features.
    """
    # Two degrees of freedom are used by the two means.
    pooled_sd = np.sqrt(squares.sum(axis=0) / np.maximum(counts.sum(axis=0) - 2, 1))
    difference = means[0] - means[1]
    effect = np.full(difference.size, np.nan)
    np.divide(difference, pooled_sd, out=effect, where=pooled_sd > 0)
    return MarkerStatistics(
        mean_inside=means[0],
        mean_outside=means[1],
        effect_size=effect,
        p_values=p_values,
        q_values=benjamini_hochberg(p_values),
    )
