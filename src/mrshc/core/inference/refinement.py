"""Refinement of a feature set: selection of all features that are associated with its clusters.

The clusters of a feature set are the clusters of the tree that is built from its features. These
features differ between the clusters even if they are noise, because the tree was built from them. A
test of a feature for association with these clusters would therefore be biased. Here, a feature is
tested only for association with clusters of trees that were built without the feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.statistics import column_variances
from mrshc.core.inference.association import (
    benjamini_hochberg,
    cauchy_combination,
    rank_p_values,
)
from mrshc.core.kernels.k_means import run_lloyd_iterations
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.tree import Linkage, Metric, agglomerate, min_features

# A tree is cut into each of these numbers of clusters, and the p-values for all cuts are combined,
# since the true number of clusters is unknown. Few data sets have more than six clusters.
_N_CLUSTERS = (2, 3, 4, 5, 6)

# Number of folds into which a feature set is divided. The features of a fold are tested for
# association with a tree that is built from the other folds. With ten folds, this tree is nearly as
# good as the tree that is built from the whole set.
_N_FOLDS = 10

# Largest number of rounds, for the case that the feature sets neither converge nor repeat.
_MAX_ROUNDS = 10

# Largest number of iterations of k-means. Starting from the cut of a tree, k-means usually
# converges after fewer iterations.
_MAX_LLOYD_ITERATIONS = 20

# Rounds end when at least this share of the features of the larger of the old and the new feature
# set is in both sets, since the few other features have little effect on the tree.
_SETTLED_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementSettings:
    """Settings of the refinement of a feature set.

    Attributes
    ----------
    linkage, metric : str
        Linkage and metric with which trees are built.
    alpha : float
        Largest q-value at which a feature is considered to be associated with the clusters.
    max_features : int
        Largest number of features from which a tree is built. The limit is needed because, in real
        data, half of all features may be associated.
    min_features : int
        Smallest number of associated features for which the clusters are considered to be
        supported.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    alpha: float = 0.05
    max_features: int = 200
    min_features: int = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RefinementResult:
    """Result of a refinement: the features that are associated with the clusters of a tree.

    Attributes
    ----------
    supported : bool or None
        Whether at least `min_features` features are associated with the clusters. If fewer features
        are associated, and the start set itself has fewer than `min_features` features, the value
        is None rather than False.
    features : ndarray of int
        Indices of the features from which the final tree is built, in increasing order. These are
        the features of the start set unless `supported` is True.
    associated : ndarray of int
        Indices of all associated features, in increasing order; empty unless `supported` is True.
    q_values : ndarray of shape (p,)
        Q-values of all p features in the last round.
    n_rounds : int
        Number of rounds that were carried out.
    """

    supported: bool | None
    features: Index
    associated: Index
    q_values: Float
    n_rounds: int


def refine_feature_set(
    matrix: CentredMatrix, start: Index, settings: RefinementSettings
) -> RefinementResult:
    """Refine a feature set by repeated tests of association, and return the result.

    In each round, every feature outside the current set is tested for association with the clusters
    of the tree that is built from the set. The current set is divided into at most ten folds, and
    the features of a fold are tested with a tree that is built from the other folds. The associated
    features form the next set; if there are more than `max_features` of them, those with the
    smallest p-values are used. Rounds end when 95 % of the features stay the same, when the set is
    equal to an earlier set, when fewer than `min_features` features are associated, or after ten
    rounds.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, with n samples and p features.
    start : ndarray of int
        Indices of the features of the first set.
    settings : RefinementSettings
        Settings of the trees and of the tests.

    Returns
    -------
    RefinementResult
        The new feature set, the associated features, and their q-values.
    """
    present, previous = np.sort(start), set[bytes]()
    for n_rounds in range(1, _MAX_ROUNDS + 1):
        p_values = association_p_values(matrix, present, settings=settings)
        q_values = benjamini_hochberg(p_values)
        associated = np.flatnonzero(q_values <= settings.alpha)
        if associated.size < settings.min_features:
            return RefinementResult(
                supported=False if start.size >= settings.min_features else None,
                features=np.sort(start),
                associated=np.empty(0, np.intp),
                q_values=q_values,
                n_rounds=n_rounds,
            )
        previous.add(present.tobytes())
        strongest = np.argsort(p_values[associated], kind="stable")[: settings.max_features]
        following = np.sort(associated[strongest])
        n_common = np.intersect1d(present, following, assume_unique=True).size
        is_settled = n_common >= _SETTLED_SHARE * max(present.size, following.size)
        present = following
        # If a set has occurred before, the same rounds would be repeated.
        if is_settled or present.tobytes() in previous:
            break
    return RefinementResult(
        supported=True,
        features=present,
        associated=associated,
        q_values=q_values,
        n_rounds=n_rounds,
    )


def association_p_values(
    matrix: CentredMatrix, present: Index, *, settings: RefinementSettings
) -> Float:
    """Return the p-value of each feature for association with a tree built without the feature.

    The result is an array of shape (p,).

    Parameters
    ----------
    matrix : CentredMatrix
        The data, with n samples and p features.
    present : ndarray of int
        Indices of the features of the current set, in increasing order.
    settings : RefinementSettings
        Settings of the trees.
    """
    p = matrix.shape[1]
    # The p-values of a fold remain 1 if the other folds have too few features for a tree, for
    # example if the set contains a single feature.
    p_values = np.ones(p)
    outside = np.setdiff1d(np.arange(p), present, assume_unique=True)
    X = matrix.columns(present)
    p_values[outside] = _tree_p_values(matrix, X, indices=outside, settings=settings)
    for fold in split_into_folds(column_variances(X)):
        others = np.delete(np.arange(present.size), fold)
        if others.size >= min_features(settings.metric):
            p_values[present[fold]] = _tree_p_values(
                matrix, X[:, others], indices=present[fold], settings=settings
            )
    return p_values


def split_into_folds(variances: Float) -> list[Index]:
    """Return a list of at most ten folds; each fold is an array of positions in `variances`.

    `variances` contains the variance of each feature. The features are assigned to the folds in
    turn, in order of decreasing variance. Each fold thus contains features of large and of small
    variance, so the trees that are built without one of the folds are similar. If there are fewer
    than ten features, each feature is one fold.
    """
    order = np.argsort(-variances, kind="stable")
    return [order[i::_N_FOLDS] for i in range(min(_N_FOLDS, order.size))]


def _tree_p_values(
    matrix: CentredMatrix, X: Float, *, indices: Index, settings: RefinementSettings
) -> Float:
    """Return the p-values of m features for association with the clusters of a tree.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    X : ndarray of shape (n, q)
        The q columns from which the tree is built, with NaN for missing values.
    indices : ndarray of shape (m,)
        Indices of the features to test, none of which is contained in X.
    settings : RefinementSettings
        Settings of the tree.

    Returns
    -------
    ndarray of shape (m,)
        The p-values, combined over cuts of the tree into several numbers of clusters. They are 1 if
        no partition has at least two clusters.
    """
    if not indices.size:
        return np.empty(0)
    partitions = _tree_partitions(X, settings)
    if not partitions:
        return np.ones(indices.size)
    return cauchy_combination(rank_p_values(matrix, partitions, indices=indices))


def _tree_partitions(X: Float, settings: RefinementSettings) -> Sequence[Labels]:
    """Return cluster labels of the samples for several numbers of clusters.

    A tree is built from the columns of X and cut into each number of clusters. K-means clustering
    then starts from each cut, since k-means can correct unfavourable early merges of the tree.
    Partitions into a single cluster are left out.
    """
    distances = complete_missing_cells(X).distances(settings.metric)
    tree = agglomerate(distances, settings.linkage)
    cuts = (tree.cut(k) for k in _N_CLUSTERS if k < tree.n_samples)
    partitions = [run_lloyd_iterations(distances, cut, _MAX_LLOYD_ITERATIONS) for cut in cuts]
    # k-means may leave clusters empty. If only one cluster is left, there is nothing to compare.
    return [labels for labels in partitions if np.unique(labels).size > 1]
