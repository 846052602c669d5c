"""Marker features, which differ between a cluster and the other samples, or between two branches.

A contrast consists of the two groups of samples that are compared. A feature that was used to build
a tree tends to differ between the clusters of this tree, even if the feature is noise. Such a
feature is therefore tested with another tree, which is built without the feature. In this test, the
groups are replaced by the most similar branches of the other tree, or by the most similar branch
and its complement.
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
from mrshc.core.inference.feature_scores import split_into_folds
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.tree import Linkage, Metric, Tree, agglomerate, min_features

# Smallest Jaccard index of a group and the branch of another tree that replaces the group. The
# Jaccard index is the number of common samples divided by the number of samples in the union. Two
# disjoint branches cannot both have an index above one half with the same group.
_MIN_JACCARD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contrast:
    """Two disjoint groups of samples that are compared to find markers."""

    inside: Index  # indices of the samples of the first group
    outside: Index  # indices of the samples of the second group


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkerStatistics:
    """Statistics of p features for the comparison of two groups of samples.

    Attributes
    ----------
    mean_inside, mean_outside : ndarray of shape (p,)
        Means of the non-missing values in the first and in the second group; NaN if all values are
        missing.
    effect_size : ndarray of shape (p,)
        Mean of the first group minus mean of the second group, divided by the pooled standard
        deviation; NaN if a mean is NaN or the pooled standard deviation is zero.
    p_values : ndarray of shape (p,)
        P-values of the rank test for a difference between the groups. Features that were used to
        build the tree are tested with groups of another tree; see `marker_statistics`.
    q_values : ndarray of shape (p,)
        The p-values after adjustment by the procedure of Benjamini and Hochberg.
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
    """Return the statistics of all features for each contrast between two groups of samples.

    The groups are branches of a tree, or a branch and all other samples. A feature that was not
    used to build the tree is tested for a difference between the two groups. The features that were
    used to build the tree are divided into at most ten folds. The features of a fold are tested
    with another tree, which is built from the other folds. In this test, the groups are replaced by
    the most similar branches of the other tree, or by the most similar branch and its complement.
    Means and effect sizes always refer to the groups of the contrast.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, with n samples and p features.
    features : ndarray of shape (q,)
        Indices of the q features that were used to build the tree.
    contrasts : sequence of Contrast
        Pairs of groups of samples to compare.
    linkage, metric : str
        Linkage and metric with which the tree was built.
    weights : ndarray of shape (q,) or None, default=None
        Weights of these q features in the distances; None if all weights are equal.

    Returns
    -------
    list of MarkerStatistics
        The statistics, one object for each contrast.
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
    """Return the p-value of each feature for each contrast.

    The parameters are those of `marker_statistics`. The result is an array of shape
    (p, n_contrasts), where p is the number of features of `matrix`.
    """
    n, p = matrix.shape
    # The p-values of a fold remain 1 if the other folds have too few features for a tree, for
    # example if the tree was built from a single feature.
    p_values = np.ones((p, len(contrasts)))
    outside = np.setdiff1d(np.arange(p), features, assume_unique=True)
    given = [_contrast_labels(n, inside=c.inside, outside=c.outside) for c in contrasts]
    p_values[outside] = rank_p_values(matrix, given, indices=outside)
    X = matrix.columns(features)
    if weights is not None:
        # A weight multiplies the squared difference of a feature for "sqeuclidean", and the
        # absolute difference for "cityblock". The values are therefore multiplied by the square
        # root of the weight in the first case, and by the weight in the second. Distances in other
        # metrics have no weights.
        X = X * (np.sqrt(weights) if metric == "sqeuclidean" else weights)
    for fold in split_into_folds(column_variances(X)):
        others = np.delete(np.arange(features.size), fold)
        if others.size >= min_features(metric):
            distances = complete_missing_cells(X[:, others]).distances(metric)
            partitions = _matching_partitions(agglomerate(distances, linkage), contrasts)
            p_values[features[fold]] = rank_p_values(matrix, partitions, indices=features[fold])
    return p_values


def _matching_partitions(tree: Tree, contrasts: Sequence[Contrast]) -> list[Labels]:
    """Return, for each contrast, labels of the samples according to the branches of a tree.

    A label is 1 in the branch that is most similar to the first group, 0 in the branch that is most
    similar to the second group, and -1 for other samples. If the groups contain all samples, the
    label is 0 in the complement of the first branch. All labels are -1 if these branches are not
    similar enough to the groups or overlap; the rank test then returns a p-value of 1.
    """
    n = tree.n_samples
    partitions = []
    for contrast in contrasts:
        inside = tree.most_similar_branch(contrast.inside, at_least=_MIN_JACCARD)
        # If the contrast compares a branch with all other samples, the second group is replaced by
        # the complement of the first branch, since a complement is not a branch in general.
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
    """Return labels of n samples: 1 in `inside`, 0 in `outside`, and -1 for all other samples."""
    labels = np.full(n, -1, dtype=np.intp)
    labels[inside] = 1
    labels[outside] = 0
    return labels


def _group_moments(X: Float, contrasts: Sequence[Contrast]) -> tuple[Float, Float, Float]:
    """Return statistics of the m columns of X for both groups of each contrast.

    Returns
    -------
    means, squares, counts : ndarray of shape (n_contrasts, 2, m)
        For each contrast, group and column: the mean, the sum of squared deviations from the mean,
        and the number of non-missing values. The mean is NaN if all values are missing.
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
    """Return the statistics of p features for one contrast.

    Parameters
    ----------
    means, squares, counts : ndarray of shape (2, p)
        For each of the two groups and each feature: the mean, the sum of squared deviations from
        the mean, and the number of non-missing values.
    p_values : ndarray of shape (p,)
        P-values of the features in the rank test.
    """
    # Two degrees of freedom are subtracted because two means are estimated.
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
