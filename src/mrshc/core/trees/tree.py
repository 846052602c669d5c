"""The tree: distances between samples, agglomeration, cuts and subtrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.kernels.leaf_positions import first_leaf_positions

Metric = Literal["sqeuclidean", "cityblock"]
Linkage = Literal["single", "complete", "average", "weighted", "ward", "centroid", "median"]

METRICS: tuple[Metric, ...] = get_args(Metric)
LINKAGES: tuple[Linkage, ...] = get_args(Linkage)
# These three are defined by distances between points in Euclidean space, not by any dissimilarity.
EUCLIDEAN_LINKAGES: tuple[Linkage, ...] = ("ward", "centroid", "median")


def pairwise_distances(X: Float, metric: Metric) -> Float:
    """Return the (n, n) distances between the rows of X."""
    distances: Float = squareform(pdist(X, metric))
    return distances


def agglomerate(distances: Float, linkage: Linkage) -> Tree:
    """Build the tree of samples from their (n, n) distances.

    Ward's, centroid and median linkage expect squared Euclidean distances; their heights are
    Euclidean, as in scipy.
    """
    condensed = squareform(distances, checks=False)
    if linkage in EUCLIDEAN_LINKAGES:
        condensed = np.sqrt(condensed)
    return Tree(linkage_matrix=hierarchy.linkage(condensed, linkage))


def check_linkage(
    linkage_matrix: ArrayLike, *, n_samples: int | None = None, name: str = "linkage_matrix"
) -> Float:
    """Return a linkage matrix that is a tree, or raise ValueError.

    Compiled code follows the nodes of a tree without looking at them again, so that a matrix from
    outside must be checked first. Heights need not increase: centroid and median linkage are not
    monotone.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        In scipy's format: the two nodes that each row joins, the height and the number of samples.
    n_samples : int or None
        Number of samples; by default it follows from the number of rows, at least one.
    name : str
        What an error calls the matrix.
    """
    merges = _numbers(linkage_matrix, name)
    if n_samples is None and (merges.ndim != 2 or not len(merges)):
        raise ValueError(f"{name} must have a row for each merge of a tree, got {merges.shape}.")
    n = len(merges) + 1 if n_samples is None else n_samples
    if merges.shape != (n - 1, 4):
        raise ValueError(
            f"{name} must have the shape {(n - 1, 4)} for {n} samples, got {merges.shape}."
        )
    if (row := _first(~np.isfinite(merges).all(axis=1))) is not None:
        raise ValueError(f"{name} must be finite, but holds NaN or infinity in row {row}.")
    _check_nodes(merges, name)
    _check_heights_and_sizes(merges, name)
    return merges


def _numbers(values: Any, name: str) -> Float:
    try:
        array = np.asarray(values)
        # Text would be read as numbers, and complex numbers would lose a part.
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be an array of numbers in scipy's format of a tree.")


def _first(mask: Any) -> int | None:
    """Return the first row that is marked."""
    return int(mask.argmax()) if mask.any() else None


def _check_nodes(merges: Float, name: str) -> None:
    """Refuse rows that join anything but two nodes that were there and were not joined before."""
    n = len(merges) + 1
    nodes = merges[:, :2]
    fractional = nodes != np.floor(nodes)
    if (row := _first(fractional.any(axis=1))) is not None:
        node = nodes[row][fractional[row]][0]
        raise ValueError(f"{name}: row {row} joins node {node:g}, but nodes have whole numbers.")
    # A row may join samples and the nodes of earlier rows: this excludes cycles.
    outside = (nodes < 0) | (nodes >= n + np.arange(n - 1)[:, None])
    if (row := _first(outside.any(axis=1))) is not None:
        node = nodes[row][outside[row]][0]
        raise ValueError(
            f"{name}: row {row} joins node {node:g}, but must join two of the nodes 0 to "
            f"{n + row - 1}."
        )
    uses = np.bincount(nodes.astype(np.intp).ravel(), minlength=2 * n - 2)
    if (node := _first(uses > 1)) is not None:
        raise ValueError(f"{name} joins node {node} twice, but a node has a single parent.")


def _check_heights_and_sizes(merges: Float, name: str) -> None:
    n = len(merges) + 1
    if (row := _first(merges[:, 2] < 0)) is not None:
        raise ValueError(
            f"{name}: row {row} has the height {merges[row, 2]:g}, but heights are never negative."
        )
    sizes = np.concatenate([np.ones(n), merges[:, 3]])
    expected = sizes[merges[:, :2].astype(np.intp)].sum(axis=1)
    if (row := _first(merges[:, 3] != expected)) is not None:
        raise ValueError(
            f"{name}: row {row} has the size {merges[row, 3]:g}, but joins nodes of "
            f"{expected[row]:g} samples."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """A binary tree of n samples. Nodes are numbered as in scipy: samples first, then merges."""

    linkage_matrix: Float  # (n - 1, 4), scipy's format

    @property
    def n_samples(self) -> int:
        """Number of samples, the leaves of the tree."""
        return int(self.linkage_matrix.shape[0]) + 1

    @property
    def root(self) -> int:
        """The node that holds all samples."""
        return 2 * self.n_samples - 2

    def children(self, node: int) -> tuple[int, int]:
        """Return the two nodes that were merged into `node`."""
        left, right = self.linkage_matrix[node - self.n_samples, :2]
        return int(left), int(right)

    def height(self, node: int) -> float:
        """Return the height at which `node` was made; zero for a sample."""
        is_sample = node < self.n_samples
        return 0.0 if is_sample else float(self.linkage_matrix[node - self.n_samples, 2])

    @property
    def leaf_order(self) -> Index:
        """Samples from left to right, as a dendrogram shows them."""
        return self._spans[0]

    @cached_property
    def _spans(self) -> tuple[Index, Index, Index]:
        """Samples from left to right, and where each node starts and ends among them."""
        n = self.n_samples
        sizes = np.ones(2 * n - 1, dtype=np.intp)
        sizes[n:] = self.linkage_matrix[:, 3]
        children = self.linkage_matrix[:, :2].astype(np.intp)
        starts = first_leaf_positions(children, sizes)
        order = np.empty(n, dtype=np.intp)
        order[starts[:n]] = np.arange(n)
        return order, starts, starts + sizes

    def members(self, node: int) -> Index:
        """Return the samples below `node`, increasing."""
        order, starts, ends = self._spans
        return np.sort(order[starts[node] : ends[node]])

    def label_ranges(self, labels: Labels) -> tuple[Index, Index]:
        """Return the smallest and the largest label of the samples below each node."""
        n = self.n_samples
        low, high = (np.concatenate([labels, np.empty(n - 1, labels.dtype)]) for _ in range(2))
        for node, (a, b) in enumerate(self.linkage_matrix[:, :2].astype(np.intp), start=n):
            low[node], high[node] = min(low[a], low[b]), max(high[a], high[b])
        return low, high

    def branch_like(self, samples: Index, *, at_least: float) -> Index:
        """Return the members of the node that has most in common with some samples.

        What they have in common is counted as a share of what either has; if no node reaches
        `at_least`, there are no members.
        """
        order, starts, ends = self._spans
        wanted = np.zeros(self.n_samples + 1)
        wanted[1:] = np.cumsum(np.isin(order, samples))
        common = wanted[ends] - wanted[starts]
        shares = common / (ends - starts + samples.size - common)
        best = int(shares.argmax())
        return self.members(best) if shares[best] >= at_least else np.empty(0, np.intp)

    def nodes_at(self, k: int, *, below: int | None = None) -> list[int]:
        """Return the k nodes left after undoing the last k - 1 merges below a node (the root).

        Undoing merges in their order is what a cut means even where heights are not monotone.
        """
        nodes = [self.root if below is None else below]
        while len(nodes) < k:
            last = max(nodes)
            nodes.remove(last)
            nodes.extend(self.children(last))
        return nodes

    def cut(self, k: int) -> Labels:
        """Return labels 0..k-1 of the samples, numbered by first appearance."""
        return self.labels(self.nodes_at(k))

    def labels(self, nodes: list[int]) -> Labels:
        """Return the labels of a partition given by its nodes, numbered by first appearance."""
        labels = np.empty(self.n_samples, dtype=np.intp)
        by_first_sample = sorted((self.members(node) for node in nodes), key=lambda m: int(m[0]))
        for label, members in enumerate(by_first_sample):
            labels[members] = label
        return labels
