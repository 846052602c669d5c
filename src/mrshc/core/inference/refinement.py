"""Refinement of a feature set: all features that are associated with trees built without them.

The features that a search selects agree with each other because they were selected for that, so
that a test against the clusters that they form is biased. Here, a feature is tested only against
trees that were built without it, which in pure noise predict nothing about it.
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
from mrshc.core.trees.tree import Linkage, Metric, agglomerate

# A tree is cut into each of these numbers of clusters and the p-values are combined, since the
# right number is unknown; more clusters are rarely found.
_N_CLUSTERS = (2, 3, 4, 5, 6)

# Members of the set are tested against trees on the other nine tenths of it, which are nearly as
# good as the tree on the whole set.
_N_FOLDS = 10

# Limit in case the sets neither settle nor repeat.
_MAX_ROUNDS = 10

# Limit for the iterations of k-means, which usually converge after fewer from the cut of a tree.
_MAX_LLOYD_ITERATIONS = 20

# A round is the last one if the old and the new set have this share of features in common: smaller
# changes of a set have little effect on its tree.
_SETTLED_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementSettings:
    """Settings of the refinement of a feature set.

    Attributes
    ----------
    linkage, metric : str
        Linkage and metric of the trees.
    alpha : float
        False discovery rate of the associated features.
    max_features : int
        Largest number of features that a tree is built on. In real data half of all genes may be
        associated.
    fewest : int
        Smallest number of associated features that support a clustering.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    alpha: float = 0.05
    max_features: int = 200
    min_features: int = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RefinementResult:
    """The features that are associated with a clustering, and those that the tree is built on.

    Attributes
    ----------
    supported : bool or None
        Whether enough features are associated. If not, the tree is built on the start set; the
        value is None if the start set has fewer features than are needed as support.
    features : ndarray of int
        Features of the tree, in increasing order.
    associated : ndarray of int
        All associated features, in increasing order; empty if the clustering is not supported.
    q_values : ndarray of shape (p,)
        Q-values of all features in the last round.
    n_rounds : int
        Number of rounds.
    """

    supported: bool | None
    features: Index
    associated: Index
    q_values: Float
    n_rounds: int


def refine_feature_set(
    matrix: CentredMatrix, start: Index, settings: RefinementSettings
) -> RefinementResult:
    """Replace a start set by the features that are associated with its clusters, repeatedly.

    In each round, every feature is tested against trees on the present set, the members of the set
    against trees on the nine tenths of it that exclude them. The associated features, or the
    strongest of them if they are many, form the next set. Rounds end when the set hardly changes,
    or when it has occurred before.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, (n, p).
    start : ndarray of int
        Features of the start set.
    settings : RefinementSettings
        Settings of the trees and the tests.

    Returns
    -------
    Refined
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
        # A set that occurred before would repeat the same rounds.
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
    """Return the p-value of each feature, (p,), against trees on the present set without it.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, (n, p).
    present : ndarray of int
        Features of the present set, in increasing order.
    settings : RefinementSettings
        Settings of the trees.
    """
    p = matrix.shape[1]
    # A member stays at one if no other features remain to build a tree on.
    p_values = np.ones(p)
    outside = np.setdiff1d(np.arange(p), present, assume_unique=True)
    X = matrix.columns(present)
    p_values[outside] = _tree_p_values(matrix, X, indices=outside, settings=settings)
    for fold in split_into_folds(column_variances(X)):
        others = np.delete(np.arange(present.size), fold)
        if others.size:
            p_values[present[fold]] = _tree_p_values(
                matrix, X[:, others], indices=present[fold], settings=settings
            )
    return p_values


def split_into_folds(variances: Float) -> list[Index]:
    """Return at most ten folds of features, dealt in turn by decreasing variance.

    Each fold has features of large and of small variance, so that the trees without one of the
    folds are alike. Fewer than ten features form as many folds.
    """
    order = np.argsort(-variances, kind="stable")
    return [order[i::_N_FOLDS] for i in range(min(_N_FOLDS, order.size))]


def _tree_p_values(
    matrix: CentredMatrix, X: Float, *, indices: Index, settings: RefinementSettings
) -> Float:
    """Return the p-values of m features, (m,), against the tree on the columns of X.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    X : ndarray of shape (n, q)
        Columns that the tree is built on, NaN where missing.
    indices : ndarray of shape (m,)
        The features to test, none of which is in X.
    settings : RefinementSettings
        Settings of the tree.
    """
    if not indices.size:
        return np.empty(0)
    partitions = _tree_partitions(X, settings)
    if not partitions:
        return np.ones(indices.size)
    return cauchy_combination(rank_p_values(matrix, partitions, indices=indices))


def _tree_partitions(X: Float, settings: RefinementSettings) -> Sequence[Labels]:
    """Return a partition of the samples for each number of clusters.

    Each is a cut of the tree on the columns of X, (n, q), improved by k-means, which can correct
    early merges of the tree.
    """
    distances = complete_missing_cells(X).distances(settings.metric)
    tree = agglomerate(distances, settings.linkage)
    cuts = (tree.cut(k) for k in _N_CLUSTERS if k < tree.n_samples)
    partitions = [run_lloyd_iterations(distances, cut, _MAX_LLOYD_ITERATIONS) for cut in cuts]
    # k-means may empty clusters until a single one is left, which nothing can be compared with.
    return [labels for labels in partitions if np.unique(labels).size > 1]
