"""Association of the features of a fold with the clusters of a tree built from the other folds."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.agglomeration import linkage_matrix
from mrshc.core.kernels.association import analyse_variance
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.p_values import write_cauchy_combinations
from mrshc.core.kernels.tree_cuts import cut_into_clusters


@jit()
def tree_cuts(distances: Float, linkage: int, cluster_counts: Index) -> Index:
    """Return the clusters of n samples for several cuts of the tree built from their distances.

    The parameters are those of :func:`~mrshc.core.kernels.agglomeration.linkage_matrix` and
    :func:`~mrshc.core.kernels.tree_cuts.cut_into_clusters`. The result has the shape
    (n_cuts, n).
    """
    children = linkage_matrix(distances, linkage)[:, :2].astype(np.intp)
    return cut_into_clusters(children, cluster_counts)


@jit()
def write_fold_scores(
    features: Float,
    fold: Index,
    distances: Float,
    is_squared: bool,
    linkage: int,
    cluster_counts: Index,
    p_values: Float,
    strengths: Float,
) -> None:
    """Write the association of the features of a fold with a tree built from the other features.

    Parameters
    ----------
    features : array of shape (q, n)
        The q features from which a tree is built, in rows, without missing values.
    fold : array of int of shape (m,)
        Indices of the features of the fold.
    distances : array of shape (n, n)
        Distances between the n samples in all q features, which are sums over the features.
    is_squared : bool
        True for squared Euclidean distances, False for city-block distances.
    linkage : int
        Value of a :class:`~mrshc.core.kernels.linkage_codes.LinkageMethod`, as for
        :func:`~mrshc.core.kernels.agglomeration.linkage_matrix`.
    cluster_counts : array of int of shape (n_cuts,)
        Number of clusters of each cut of the tree.
    p_values, strengths : array of shape (q,)
        Output. For each feature of the fold, the combined p-value of all cuts, and the mean over
        the cuts of the sum of squares between clusters.
    """
    tested = features[fold]
    remaining = distances_without(distances, tested, is_squared)
    tests, between = analyse_variance(tested, tree_cuts(remaining, linkage, cluster_counts))
    combined = np.empty(fold.size)
    write_cauchy_combinations(tests, combined)
    for j in range(fold.size):
        p_values[fold[j]] = combined[j]
        strengths[fold[j]] = between[j].mean()


@jit()
def distances_without(distances: Float, features: Float, is_squared: bool) -> Float:
    """Return the distances between samples after subtracting the part of some of the features.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between the n samples, which are sums over features.
    features : array of shape (m, n)
        The features to subtract, in rows, without missing values.
    is_squared : bool
        True for squared Euclidean distances, False for city-block distances.

    Returns
    -------
    array of shape (n, n)
        The remaining distances, at least zero.
    """
    remaining = distances.copy()
    for i in range(distances.shape[0]):
        row = remaining[i]
        for j in range(features.shape[0]):
            if is_squared:
                _subtract_squared_differences(row, features[j], features[j, i])
            else:
                _subtract_differences(row, features[j], features[j, i])
        for k in range(row.size):
            # Rounding may leave a small negative value.
            row[k] = max(row[k], 0.0)
    return remaining


# The loops are functions of their own, so that the compiler vectorises them.
@jit()
def _subtract_squared_differences(row: Float, values: Float, value: float) -> None:
    for k in range(row.size):
        difference = values[k] - value
        row[k] -= difference * difference


@jit()
def _subtract_differences(row: Float, values: Float, value: float) -> None:
    for k in range(row.size):
        row[k] -= abs(values[k] - value)
