"""Stability of clusters, branches and selected features when samples are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mrshc.core.trees import Tree

_BRANCHES_AT_ONCE = 256  # limits the memory to a thousand values a sample


@dataclass(frozen=True, eq=False)
class Refit:
    """The result of a method for a subsample."""

    rows: np.ndarray  # the samples, in increasing order
    tree: Tree
    labels: np.ndarray
    support: np.ndarray  # mask of the selected features


@dataclass(frozen=True, eq=False)
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
        Transfer support of the branch below each row of the linkage matrix: 1 if every subsample
        has the branch, 0 if none has a branch that is more similar than a single sample. NaN for
        the root and for branches that no subsample contains in part.
    consensus : ndarray of shape (n_samples, n_samples)
        Of the subsamples with both samples of a pair, the share that has them in the same cluster;
        NaN if there is none.
    n_resamples : int
        Number of subsamples.
    """

    cluster_jaccard: np.ndarray
    feature_frequency: np.ndarray
    branch_support: np.ndarray
    consensus: np.ndarray
    n_resamples: int


def summarise_refits(
    tree: Tree, labels: np.ndarray, n_features: int, refits: Iterable[Refit]
) -> StabilityResult:
    """Return the stability of a tree and its clusters, given the results for subsamples."""
    n, n_clusters = tree.n_samples, int(labels.max()) + 1
    jaccard, support, selected = [], [], np.zeros(n_features, dtype=np.intp)
    together, drawn = np.zeros((2, n, n))
    for refit in refits:
        jaccard.append(best_jaccard(labels[refit.rows], refit.labels, n_clusters))
        support.append(transfer_support(tree, refit.rows, refit.tree))
        selected += refit.support
        pairs = np.ix_(refit.rows, refit.rows)
        drawn[pairs] += 1.0
        together[pairs] += refit.labels[:, None] == refit.labels
    with np.errstate(invalid="ignore"):  # 0 / 0 for pairs that were never drawn
        consensus = together / drawn
    return StabilityResult(
        # A single cluster recurs in every subsample, whatever the data.
        cluster_jaccard=_nanmean(jaccard) if n_clusters > 1 else np.full(1, np.nan),
        feature_frequency=selected / len(jaccard),
        branch_support=_nanmean(support),
        consensus=consensus,
        n_resamples=len(jaccard),
    )


def _nanmean(rows: list[np.ndarray]) -> np.ndarray:
    """Return the mean of each column; NaN where there is no value."""
    values = np.array(rows)
    with np.errstate(invalid="ignore"):
        return np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0)


def best_jaccard(labels: np.ndarray, others: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the Jaccard index of each cluster with the most similar one (Hennig 2007)."""
    common = np.zeros((n_clusters, int(others.max()) + 1))
    np.add.at(common, (labels, others), 1.0)
    sizes, other_sizes = common.sum(axis=1, keepdims=True), common.sum(axis=0)
    best = (common / (sizes + other_sizes - common)).max(axis=1)
    return np.where(sizes[:, 0] > 0, best, np.nan)


def transfer_support(tree: Tree, rows: np.ndarray, other: Tree) -> np.ndarray:
    """Return how well each branch of a tree is found in the tree of a subsample.

    Let s be the samples of the branch in the subsample, and d the smallest number of samples to add
    or to remove to get a branch of the other tree. The support is 1 - d / (s - 1), at least 0
    (Lemoine and others 2018). It is NaN for branches with fewer than two or with all samples of the
    subsample.
    """
    n, m = tree.n_samples, rows.size
    position = np.full(n, -1)
    position[rows] = np.arange(m)
    # The samples below a node are a range in the order of leaves, so samples below a pair of nodes
    # are counted by cumulative sums.
    order, starts, ends = tree.leaf_spans
    other_order, other_starts, other_ends = other.leaf_spans
    leaf_of = np.empty(m, dtype=np.intp)
    leaf_of[other_order] = np.arange(m)
    drawn = position[order]
    sizes = np.concatenate([[0], np.cumsum(drawn >= 0)])
    sizes = (sizes[ends] - sizes[starts])[n:]
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
        transfers = size[:, None] + (other_ends - other_starts) - 2 * common
        support[branches] = np.maximum(1.0 - transfers.min(axis=1) / (size - 1), 0.0)
    return support
