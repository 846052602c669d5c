"""Stability of clusters, branches and selected features under resampling of the samples.

A method is applied to random subsamples of the samples. Clusters that recur in most subsamples do
not depend on single samples. Stability is not significance: a method that always splits a
homogeneous group in the same way is stable, although there are no clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.trees.tree import Tree

# Branches are compared in groups of this size, which limits the memory to about a thousand values
# for each sample.
_BRANCHES_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refit:
    """Result of a method on a subsample of m of the n samples.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Indices of the samples of the subsample, in increasing order.
    tree : Tree
        Tree of the subsample. Its samples are numbered 0, ..., m - 1, in the order of `rows`.
    labels : ndarray of shape (m,)
        Cluster of each sample of the subsample.
    support : ndarray of bool of shape (p,)
        Mask of the selected features.
    """

    rows: Index
    tree: Tree
    labels: Labels
    support: Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StabilityResult:
    """Stability of clusters, branches and features; returned by :func:`mrshc.stability`.

    Attributes
    ----------
    cluster_jaccard : ndarray of shape (n_clusters,)
        For each cluster, the mean Jaccard index with the most similar cluster of a subsample; NaN
        if there is only one cluster.
    feature_frequency : ndarray of shape (n_features,)
        Share of the subsamples in which each feature was selected.
    branch_support : ndarray of shape (n_samples - 1,)
        Support of the branch below each node, in the order of the rows of the linkage matrix: 1 if
        a branch with the same samples exists in the tree of every subsample, and 0 if no tree has a
        branch that is more similar than a single sample. It is NaN for the root, since every tree
        has a branch with all samples, and for branches that no subsample contains in part.
    consensus : ndarray of shape (n_samples, n_samples)
        Of the subsamples that contain both samples of a pair, the share in which both are in the
        same cluster; NaN if no subsample contains both samples.
    n_resamples : int
        Number of subsamples.

    See Also
    --------
    mrshc.stability : Compute the stability of a fitted estimator.
    """

    cluster_jaccard: Float
    feature_frequency: Float
    branch_support: Float
    consensus: Float
    n_resamples: int


def summarise_refits(
    tree: Tree, labels: Labels, n_features: int, refits: Iterable[Refit]
) -> StabilityResult:
    """Return the stability of a result, given results on subsamples.

    Parameters
    ----------
    tree : Tree
        Tree of all n samples.
    labels : ndarray of shape (n,)
        Cluster of each sample, numbered from 0.
    n_features : int
        Number of features, p.
    refits : iterable of Refit
        Results on subsamples, of which only one is in memory at a time.
    """
    n, n_clusters = tree.n_samples, int(labels.max()) + 1
    jaccard, support = _RunningMean(n_clusters), _RunningMean(n - 1)
    selected = np.zeros(n_features, dtype=np.intp)
    together, drawn = np.zeros((n, n)), np.zeros((n, n))
    n_resamples = 0
    for refit in refits:
        n_resamples += 1
        jaccard.add(best_jaccard_indices(labels[refit.rows], refit.labels, n_clusters=n_clusters))
        support.add(transfer_support(tree, refit.rows, refit.tree))
        selected += refit.support
        pairs = np.ix_(refit.rows, refit.rows)
        drawn[pairs] += 1.0
        together[pairs] += refit.labels[:, None] == refit.labels
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN for pairs that were never drawn
        consensus = together / drawn
    return StabilityResult(
        # A single cluster recurs in every subsample, whatever the data.
        cluster_jaccard=jaccard.mean() if n_clusters > 1 else np.full(1, np.nan),
        feature_frequency=selected / n_resamples,
        branch_support=support.mean(),
        consensus=consensus,
        n_resamples=n_resamples,
    )


class _RunningMean:
    """Mean of vectors of length `size`, of which each ignores its NaN."""

    def __init__(self, size: int) -> None:
        self._sum, self._count = np.zeros(size), np.zeros(size)

    def add(self, values: Float) -> None:
        """Add one vector."""
        is_defined = ~np.isnan(values)
        self._sum[is_defined] += values[is_defined]
        self._count += is_defined

    def mean(self) -> Float:
        """Return the mean of each element; NaN where no vector has a value."""
        with np.errstate(invalid="ignore"):
            mean: Float = self._sum / self._count
        return mean


def best_jaccard_indices(labels: Labels, others: Labels, *, n_clusters: int) -> Float:
    """Return the Jaccard index of each cluster with the most similar one of a partition [1]_.

    Parameters
    ----------
    labels : ndarray of shape (m,)
        Cluster of each sample, from 0 to `n_clusters` - 1.
    others : ndarray of shape (m,)
        Cluster of each sample in the other partition, numbered from 0.
    n_clusters : int
        Number of clusters. Some of them may have no sample in `labels`.

    Returns
    -------
    ndarray of shape (n_clusters,)
        The indices; NaN for a cluster without samples.

    References
    ----------
    .. [1] Hennig, C. (2007). Cluster-wise assessment of cluster stability. Computational Statistics
       and Data Analysis 52(1), 258-271. doi:10.1016/j.csda.2006.11.025
    """
    common = np.zeros((n_clusters, int(others.max()) + 1))
    np.add.at(common, (labels, others), 1.0)
    sizes, other_sizes = common.sum(axis=1, keepdims=True), common.sum(axis=0)
    best: Float = (common / (sizes + other_sizes - common)).max(axis=1)
    return np.where(sizes[:, 0] > 0, best, np.nan)


def transfer_support(tree: Tree, rows: Index, other: Tree) -> Float:
    r"""Return how well each branch of a tree is found in the tree of a subsample.

    Parameters
    ----------
    tree : Tree
        Tree of n samples.
    rows : ndarray of shape (m,)
        Indices of the samples of the subsample, in increasing order.
    other : Tree
        Tree of the subsample.

    Returns
    -------
    ndarray of shape (n - 1,)
        Support of each branch, in the order of the linkage matrix. It is NaN for a branch with
        fewer than two samples in the subsample, and for a branch with all of them, since every tree
        has such a branch.

    Notes
    -----
    Let s be the number of samples of the branch in the subsample, and let d be the smallest number
    of samples that have to be added to or removed from the branch to obtain a branch of the other
    tree. The support is :math:`1 - d / (s - 1)`, but at least 0. A single sample of the branch has
    the distance s - 1. This is the transfer support of Lemoine and others [1]_ for rooted trees.
    The usual support, the share of trees with exactly the same branch, is small for large branches
    even if only one sample moves.

    References
    ----------
    .. [1] Lemoine, F., Domelevo Entfellner, J.-B., Wilkinson, E., Correia, D., Davila Felipe, M.,
       De Oliveira, T. and Gascuel, O. (2018). Renewing Felsenstein's phylogenetic bootstrap in the
       era of big data. Nature 556, 452-456. doi:10.1038/s41586-018-0043-0
    """
    n, m = tree.n_samples, rows.size
    position = np.full(n, -1, dtype=np.intp)
    position[rows] = np.arange(m)
    # Both trees list the samples below each of their nodes as a range of positions in their order
    # of leaves. Samples below a pair of nodes are counted by cumulative sums along these orders.
    order, starts, ends = tree.leaf_spans
    other_order, other_starts, other_ends = other.leaf_spans
    leaf_of = np.empty(m, dtype=np.intp)
    leaf_of[other_order] = np.arange(m)
    drawn = position[order]
    sizes = np.concatenate([[0], np.cumsum(drawn >= 0)])
    sizes = (sizes[ends] - sizes[starts])[n:]
    other_sizes = other_ends - other_starts
    support = np.full(n - 1, np.nan)
    tested = np.flatnonzero((sizes >= 2) & (sizes < m))
    for first in range(0, tested.size, _BRANCHES_AT_ONCE):
        branches = tested[first : first + _BRANCHES_AT_ONCE]
        counts = np.zeros((branches.size, m + 1), dtype=np.int32)
        for row, branch in zip(counts, branches, strict=True):
            below = drawn[starts[n + branch] : ends[n + branch]]
            row[leaf_of[below[below >= 0]] + 1] = 1
        np.cumsum(counts, axis=1, out=counts)
        common = counts[:, other_ends] - counts[:, other_starts]
        size = sizes[branches]
        distance = (size[:, None] + other_sizes - 2 * common).min(axis=1)
        support[branches] = np.maximum(1.0 - distance / (size - 1), 0.0)
    return support


def draw_subsample(n_samples: int, *, fraction: float, seed: int) -> Index:
    """Return the indices of the samples of a random subsample, in increasing order.

    The samples are drawn without replacement. Their number is `fraction` times `n_samples`,
    rounded.
    """
    order = np.random.default_rng(seed).permutation(n_samples)
    return np.sort(order[: round(fraction * n_samples)])
