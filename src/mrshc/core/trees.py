"""Distances between samples, trees in scipy's format, and their cuts.

Nodes are numbered as in :func:`scipy.cluster.hierarchy.linkage`: 0, ..., n - 1 are the samples, and
merge i forms node n + i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

from mrshc.core.kernels import (
    CHAIN_METHODS,
    chain_merges,
    cut_labels,
    number_nodes,
    squared_distances,
)
from mrshc.core.linkages import EUCLIDEAN_LINKAGES

# A sample is constant if no value differs from its mean by more than this share of its largest
# absolute value: a few units in the last place, such as the difference of 0.1 + 0.2 and 0.3.
ROUNDING = 4 * np.finfo(np.float64).eps


def min_features(metric: str) -> int:
    """Return the smallest number of features for which distances are meaningful."""
    return 3 if metric == "correlation" else 1  # with two, every correlation is 1 or -1


def pairwise_distances(X: np.ndarray, metric: str) -> np.ndarray:
    """Return the distances between the rows of X (n, q), without missing values."""
    if metric == "correlation":
        return correlation_distances(X)
    if metric == "sqeuclidean":  # scipy takes several times as long
        return squared_distances(np.ascontiguousarray(X))
    return squareform(pdist(X, metric))


def standardise_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of mean zero, their largest deviations, and a mask of the constant rows.

    The rows are divided by their largest deviations, so that squares neither under- nor overflow.
    """
    rows = X - X.mean(axis=1, keepdims=True)
    rows -= rows.mean(axis=1, keepdims=True)  # the mean has a rounding error
    unit = np.abs(rows).max(axis=1)
    is_constant = unit <= ROUNDING * np.abs(X).max(axis=1)
    if X.shape[1] < min_features("correlation"):
        is_constant[:] = True
    rows[is_constant] = 0.0
    unit = np.where(is_constant, 1.0, unit)
    return rows / unit[:, None], unit, is_constant


def correlation_distances(X: np.ndarray, variances: np.ndarray | None = None) -> np.ndarray:
    """Return 1 - r for all pairs of rows of X, r their correlation; 1 for constant rows.

    If values are estimates, `variances` (n, q) are added to the variances of the rows, so that
    uncertain rows are farther from all others.
    """
    n, q = X.shape
    rows, unit, is_constant = standardise_rows(np.ascontiguousarray(X))
    extra = np.zeros(n)
    if variances is not None:
        extra = variances.sum(axis=1) * (1.0 - 1.0 / q) / unit / unit
    extra[is_constant] = 1.0
    # The squared distance of rows of norm sqrt(1 / 2) is 1 - r. Differences of rows keep the digits
    # of small distances, which 1 - r would lose.
    doubled = 2.0 * (np.square(rows).sum(axis=1) + extra)
    distances = squared_distances(rows / np.sqrt(doubled)[:, None])
    own = extra / doubled
    distances += own[:, None] + own
    distances[is_constant] = distances[:, is_constant] = 1.0
    np.fill_diagonal(distances, 0.0)
    return distances


def linkage_matrix(distances: np.ndarray, linkage: str) -> np.ndarray:
    """Return the tree of agglomerative clustering in scipy's format.

    `distances` (n, n) are squared Euclidean distances for Ward's, centroid and median linkage.
    """
    roots = np.sqrt if linkage in EUCLIDEAN_LINKAGES else np.array
    if linkage in ("single", "centroid", "median"):
        return hierarchy.linkage(roots(squareform(distances, checks=False)), linkage)
    # A round of association tests builds a hundred trees, in threads, which scipy would not run at
    # the same time; for 60 samples scipy takes five times as long.
    if not np.isfinite(distances).all():
        raise ValueError("The distances between samples must be finite.")
    merges = np.empty((len(distances) - 1, 3))
    chain_merges(roots(distances), CHAIN_METHODS[linkage], merges)
    return number_nodes(merges, np.argsort(merges[:, 2], kind="stable"))


def cut_tree(Z: np.ndarray, n_clusters: Any) -> np.ndarray:
    """Return the labels of cuts into several numbers of clusters, as an array (n_cuts, n).

    A cut into k clusters undoes the last k - 1 merges. Labels are in the order of first samples.
    """
    return cut_labels(Z, np.asarray(n_clusters, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of n samples, given by its linkage matrix, and questions about its nodes."""

    linkage_matrix: np.ndarray

    @property
    def n_samples(self) -> int:
        return len(self.linkage_matrix) + 1

    @property
    def root(self) -> int:
        return 2 * self.n_samples - 2

    def children(self, node: int) -> tuple[int, int]:
        left, right = self.linkage_matrix[node - self.n_samples, :2]
        return int(left), int(right)

    def height(self, node: int) -> float:
        """Return the height of the merge that formed a node; zero for a sample."""
        n = self.n_samples
        return 0.0 if node < n else float(self.linkage_matrix[node - n, 2])

    def n_samples_below(self, node: int) -> int:
        n = self.n_samples
        return 1 if node < n else int(self.linkage_matrix[node - n, 3])

    @cached_property
    def leaf_spans(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The samples from left to right, and where those below each node start and end."""
        n = self.n_samples
        sizes = np.ones(2 * n - 1, dtype=np.intp)
        sizes[n:] = self.linkage_matrix[:, 3]
        starts = np.zeros(2 * n - 1, dtype=np.intp)
        children = self.linkage_matrix[:, :2].astype(np.intp).tolist()
        for merge in range(n - 2, -1, -1):
            left, right = children[merge]
            starts[left] = starts[n + merge]
            starts[right] = starts[n + merge] + sizes[left]
        order = np.empty(n, dtype=np.intp)
        order[starts[:n]] = np.arange(n)
        return order, starts, starts + sizes

    @property
    def leaf_order(self) -> np.ndarray:
        return self.leaf_spans[0]

    def members(self, node: int) -> np.ndarray:
        """Return the samples below a node, in increasing order."""
        order, starts, ends = self.leaf_spans
        return np.sort(order[starts[node] : ends[node]])

    def cluster_nodes(self, k: int) -> list[int]:
        """Return the nodes that remain after the last k - 1 merges are undone."""
        return split_last_merges(self, [self.root], k)

    def labels(self, nodes: list[int]) -> np.ndarray:
        """Return the labels of the samples if these nodes are the clusters, by first samples."""
        labels = np.empty(self.n_samples, dtype=np.intp)
        groups = sorted((self.members(node) for node in nodes), key=lambda group: group[0])
        for label, group in enumerate(groups):
            labels[group] = label
        return labels

    def cut(self, k: int) -> np.ndarray:
        """Return the labels of the cut into k clusters, in the order of first samples."""
        return cut_tree(self.linkage_matrix, [k])[0]

    def label_ranges(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest label of the samples below each node."""
        n = self.n_samples
        low, high = (np.concatenate([labels, np.empty(n - 1, labels.dtype)]) for _ in range(2))
        for node, (a, b) in enumerate(self.linkage_matrix[:, :2].astype(np.intp), start=n):
            low[node], high[node] = min(low[a], low[b]), max(high[a], high[b])
        return low, high

    def number_by_leaves(self, labels: np.ndarray) -> np.ndarray:
        """Return labels numbered in the order of the leaves, from left to right."""
        order = self.leaf_order
        _, first, inverse = np.unique(labels[order], return_index=True, return_inverse=True)
        numbered = np.empty(labels.size, dtype=np.intp)
        numbered[order] = np.argsort(np.argsort(first))[inverse]
        return numbered

    def most_similar_branch(self, samples: np.ndarray, *, at_least: float) -> np.ndarray:
        """Return the samples of the branch with the largest Jaccard index; none if it is small."""
        order, starts, ends = self.leaf_spans
        counts = np.concatenate([[0], np.cumsum(np.isin(order, samples))])
        common = counts[ends] - counts[starts]
        jaccard = common / (ends - starts + samples.size - common)
        best = int(jaccard.argmax())
        return self.members(best) if jaccard[best] >= at_least else np.empty(0, np.intp)


def split_last_merges(tree: Tree, nodes: list[int], k: int) -> list[int]:
    """Return k nodes: of the given ones, those that were merged last are split."""
    nodes = list(nodes)
    while len(nodes) < k:
        last = max(nodes)
        nodes.remove(last)
        nodes += tree.children(last)
    return nodes


@dataclass(frozen=True, eq=False)
class GapTest:
    """The gap statistic of a group of samples for one and for two clusters.

    Attributes
    ----------
    observed : ndarray of shape (2,)
        log W_1 and log W_2 of the samples.
    reference : ndarray of shape (n_drawn, 2)
        The same of each reference sample.
    standard_error : float
        Standard error of the gap for two clusters, with the factor sqrt(1 + 1 / B).
    is_split : bool
        Whether two clusters are preferred: gap(1) < gap(2) - standard_error.
    """

    observed: np.ndarray
    reference: np.ndarray
    standard_error: float
    is_split: bool


@dataclass(frozen=True, eq=False)
class PrunedTree:
    """A tree, and the nodes that are split to obtain clusters, in the order of the splits."""

    tree: Tree
    splits: tuple[int, ...]
    tests: dict[int, GapTest]

    @property
    def n_leaves(self) -> int:
        return len(self.splits) + 1

    def leaves(self, max_leaves: int) -> list[int]:
        """Return the nodes that are the clusters after at most `max_leaves` - 1 splits."""
        nodes = [self.tree.root]
        for node in self.splits[: max_leaves - 1]:
            nodes.remove(node)
            nodes += self.tree.children(node)
        return nodes

    def labels(self, max_leaves: int) -> np.ndarray:
        return self.tree.labels(self.leaves(max_leaves))

    def split_into(self, k: int) -> PrunedTree:
        """Return the tree with at least k leaves: the nodes merged last are split further."""
        leaves, splits = self.leaves(self.n_leaves), list(self.splits)
        while len(leaves) < k:
            splits.append(max(leaves))
            leaves = split_last_merges(self.tree, leaves, len(leaves) + 1)
        return replace(self, splits=tuple(splits))


def cut(tree: Tree, k: int) -> PrunedTree:
    """Return the tree with the last k - 1 merges undone."""
    return PrunedTree(tree, tuple(range(tree.root, tree.root - k + 1, -1)), {})


def average_silhouettes(distances: np.ndarray, partitions: Any) -> np.ndarray:
    """Return the mean silhouette width of each partition; 0 for a single cluster."""
    return np.array([silhouette_widths(distances, labels).mean() for labels in partitions])


def silhouette_widths(distances: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the silhouette width of each sample (Rousseeuw 1987); 0 in a cluster of its own."""
    sizes = np.bincount(labels)
    if sizes.size < 2:
        return np.zeros(labels.size)
    sums = distances @ (labels[:, None] == np.arange(sizes.size)).astype(np.float64)
    rows, own_size = np.arange(labels.size), sizes[labels]
    own = sums[rows, labels] / np.maximum(own_size - 1, 1)
    means = sums / sizes
    means[rows, labels] = np.inf
    other = means.min(axis=1)
    larger = np.maximum(own, other)
    widths = np.divide(other - own, larger, out=np.zeros(labels.size), where=larger > 0)
    return np.where(own_size > 1, widths, 0.0)


def check_linkage(
    linkage_matrix: Any, *, n_samples: int | None = None, name: str = "linkage_matrix"
) -> np.ndarray:
    """Return a linkage matrix as floats; raise ValueError if it is not a tree of the samples."""
    try:
        Z = np.asarray(linkage_matrix, dtype=np.float64)
    except (TypeError, ValueError):
        Z = np.empty(0)
    n = len(Z) + 1 if n_samples is None else n_samples
    if Z.ndim != 2 or Z.shape != (n - 1, 4) or n < 2:
        raise ValueError(
            f"{name} must have a row of four numbers for each merge of a tree, as "
            f"scipy.cluster.hierarchy.linkage returns it"
            + ("" if n_samples is None else f", with {n - 1} rows for {n} samples")
            + f", got the shape {np.shape(linkage_matrix)}."
        )
    if not np.isfinite(Z).all() or (Z[:, 2] < 0).any():
        raise ValueError(f"{name} must be finite and have heights of at least 0.")
    nodes = Z[:, :2]
    is_known = (nodes >= 0) & (nodes < n + np.arange(n - 1)[:, None]) & (nodes == np.floor(nodes))
    if not is_known.all():
        row, side = np.argwhere(~is_known)[0]
        raise ValueError(
            f"{name}: row {row} joins node {nodes[row, side]:g}, but must join two of the nodes 0 "
            f"to {n + row - 1}."
        )
    uses = np.bincount(nodes.astype(np.intp).ravel(), minlength=2 * n - 2)
    sizes = np.concatenate([np.ones(n), Z[:, 3]])
    if (uses > 1).any() or (sizes[nodes.astype(np.intp)].sum(axis=1) != Z[:, 3]).any():
        raise ValueError(
            f"{name} must join every node once, with the number of samples in its last column."
        )
    return Z
