"""Trees of samples: distances, agglomeration, validation, cuts and subtrees."""

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
# These three are defined by centroids of points in Euclidean space, so that they need Euclidean
# distances; the others are defined for any dissimilarity.
EUCLIDEAN_LINKAGES: tuple[Linkage, ...] = ("ward", "centroid", "median")


def pairwise_distances(X: Float, metric: Metric) -> Float:
    """Return the (n, n) matrix of distances between the rows of X."""
    # Annotated, since scipy has no type information.
    distances: Float = squareform(pdist(X, metric))
    return distances


def agglomerate(distances: Float, linkage: Linkage) -> Tree:
    """Return the tree of samples from their distances.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Distances between samples. Ward's, centroid and median linkage expect squared Euclidean
        distances.
    linkage : str
        One of `LINKAGES`.

    Returns
    -------
    tree : Tree
        Heights of Ward's, centroid and median linkage are Euclidean, as in scipy.
    """
    # Not checked: rounding may leave the matrix not exactly symmetric.
    condensed = squareform(distances, checks=False)
    if linkage in EUCLIDEAN_LINKAGES:
        condensed = np.sqrt(condensed)
    return Tree(linkage_matrix=hierarchy.linkage(condensed, linkage))


def check_linkage(
    linkage_matrix: ArrayLike, *, n_samples: int | None = None, name: str = "linkage_matrix"
) -> Float:
    """Check that a linkage matrix is a tree, and return it as an array of floats.

    Compiled code follows the nodes of a tree without checking them, so that a matrix from a file or
    from a caller must be checked first. Heights need not increase: centroid and median linkage are
    not monotone.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        In scipy's format: the two nodes that each row joins, the height and the number of samples.
    n_samples : int or None, default=None
        Number of samples. If None, it is derived from the number of rows, which must be at least
        one.
    name : str, default="linkage_matrix"
        Name of the matrix in error messages.

    Returns
    -------
    merges : ndarray of shape (n_samples - 1, 4)

    Raises
    ------
    ValueError
        If the matrix is not a tree of `n_samples` samples.
    """
    merges = _as_float_array(linkage_matrix, name)
    if n_samples is None and (merges.ndim != 2 or not len(merges)):
        raise ValueError(
            f"{name} must have a row of four numbers for each merge of a tree, as "
            f"scipy.cluster.hierarchy.linkage returns it, got the shape {merges.shape}."
        )
    n = len(merges) + 1 if n_samples is None else n_samples
    if merges.shape != (n - 1, 4):
        raise ValueError(
            f"{name} must have the shape {(n - 1, 4)} for {n} samples, got {merges.shape}."
        )
    if (row := _first_true(~np.isfinite(merges).all(axis=1))) is not None:
        raise ValueError(f"{name} must be finite, but row {row} has NaN or infinity.")
    _check_nodes(merges, name)
    _check_heights_and_sizes(merges, name)
    return merges


def _as_float_array(values: Any, name: str) -> Float:
    """Return values as an array of floats, or raise ValueError."""
    try:
        array = np.asarray(values)
        # `astype` would parse text as numbers and discard the imaginary part of complex numbers.
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"{name} must be an array of numbers, as scipy.cluster.hierarchy.linkage returns it, got "
        f"{type(values).__name__}."
    )


def _first_true(mask: Any) -> int | None:
    """Return the position of the first True entry; None if there is none."""
    return int(mask.argmax()) if mask.any() else None


def _check_nodes(merges: Float, name: str) -> None:
    """Raise ValueError unless every row joins two existing nodes without a parent."""
    n = len(merges) + 1
    nodes = merges[:, :2]
    fractional = nodes != np.floor(nodes)
    if (row := _first_true(fractional.any(axis=1))) is not None:
        node = nodes[row][fractional[row]][0]
        raise ValueError(f"{name}: row {row} joins node {node:g}, but nodes must be whole numbers.")
    # A row may join samples and the nodes of earlier rows only: this excludes cycles.
    outside = (nodes < 0) | (nodes >= n + np.arange(n - 1)[:, None])
    if (row := _first_true(outside.any(axis=1))) is not None:
        node = nodes[row][outside[row]][0]
        raise ValueError(
            f"{name}: row {row} joins node {node:g}, but must join two of the nodes 0 to "
            f"{n + row - 1}."
        )
    # All nodes but the root, which has no parent.
    uses = np.bincount(nodes.astype(np.intp).ravel(), minlength=2 * n - 2)
    if (node := _first_true(uses > 1)) is not None:
        raise ValueError(
            f"{name} joins node {node} twice, but every node must have a single parent."
        )


def _check_heights_and_sizes(merges: Float, name: str) -> None:
    """Raise ValueError if a height is negative or a size is not the sum of those it joins."""
    n = len(merges) + 1
    if (row := _first_true(merges[:, 2] < 0)) is not None:
        raise ValueError(
            f"{name}: row {row} has the height {merges[row, 2]:g}, but heights must not be "
            "negative."
        )
    sizes = np.concatenate([np.ones(n), merges[:, 3]])
    expected = sizes[merges[:, :2].astype(np.intp)].sum(axis=1)
    if (row := _first_true(merges[:, 3] != expected)) is not None:
        raise ValueError(
            f"{name}: row {row} has the size {merges[row, 3]:g}, but joins nodes of "
            f"{expected[row]:g} samples."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """A binary tree of samples.

    Nodes are numbered as in scipy: samples are the nodes 0, ..., n - 1, and merge i is the node
    n + i.

    Attributes
    ----------
    linkage_matrix : ndarray of shape (n_samples - 1, 4)
        In scipy's format.
    """

    linkage_matrix: Float

    @property
    def n_samples(self) -> int:
        """Number of samples, the leaves of the tree."""
        return int(self.linkage_matrix.shape[0]) + 1

    @property
    def root(self) -> int:
        """The node that contains all samples."""
        return 2 * self.n_samples - 2

    def children(self, node: int) -> tuple[int, int]:
        """Return the two nodes that were merged into `node`."""
        left, right = self.linkage_matrix[node - self.n_samples, :2]
        return int(left), int(right)

    def height(self, node: int) -> float:
        """Return the height of the merge that formed `node`; zero for a sample."""
        is_sample = node < self.n_samples
        return 0.0 if is_sample else float(self.linkage_matrix[node - self.n_samples, 2])

    @property
    def leaf_order(self) -> Index:
        """Samples from left to right in a dendrogram, (n,)."""
        return self._leaf_spans[0]

    @cached_property
    def _leaf_spans(self) -> tuple[Index, Index, Index]:
        """The leaf order, (n,), and the start and the end of each node in it, (2n - 1,)."""
        # The samples below a node are consecutive leaves of a dendrogram. Two positions per node
        # replace lists of members, whose total length is quadratic in n for a chain.
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
        order, starts, ends = self._leaf_spans
        return np.sort(order[starts[node] : ends[node]])

    def label_ranges(self, labels: Labels) -> tuple[Index, Index]:
        """Return the smallest and the largest label of the samples below each node, (2n - 1,)."""
        n = self.n_samples
        low, high = (np.concatenate([labels, np.empty(n - 1, labels.dtype)]) for _ in range(2))
        # Children have smaller numbers than their parent, so their ranges are known by then.
        for node, (a, b) in enumerate(self.linkage_matrix[:, :2].astype(np.intp), start=n):
            low[node], high[node] = min(low[a], low[b]), max(high[a], high[b])
        return low, high

    def most_similar_branch(self, samples: Index, *, at_least: float) -> Index:
        """Return the members of the node that is most similar to a set of samples.

        Parameters
        ----------
        samples : ndarray of shape (m,)
            The set of samples.
        at_least : float
            Smallest similarity, the Jaccard index of the set and the members of the node.

        Returns
        -------
        members : ndarray
            Increasing; empty if no node is similar enough.
        """
        order, starts, ends = self._leaf_spans
        # Cumulative counts along the leaf order give the intersection with all nodes at once.
        counts = np.zeros(self.n_samples + 1)
        counts[1:] = np.cumsum(np.isin(order, samples))
        common = counts[ends] - counts[starts]
        jaccard = common / (ends - starts + samples.size - common)
        best = int(jaccard.argmax())
        return self.members(best) if jaccard[best] >= at_least else np.empty(0, np.intp)

    def cluster_nodes(self, k: int, *, below: int | None = None) -> list[int]:
        """Return the k nodes that remain after the last k - 1 merges below a node are undone.

        This defines a cut into k clusters even where heights are not monotone.

        Parameters
        ----------
        k : int
            Number of clusters.
        below : int or None, default=None
            The node; None for the root.
        """
        nodes = [self.root if below is None else below]
        while len(nodes) < k:
            # Nodes are numbered in the order of merges.
            last = max(nodes)
            nodes.remove(last)
            nodes.extend(self.children(last))
        return nodes

    def cut(self, k: int) -> Labels:
        """Return the labels 0, ..., k - 1 of the samples, numbered by first appearance."""
        return self.labels(self.cluster_nodes(k))

    def labels(self, nodes: list[int]) -> Labels:
        """Return the labels of the partition into some nodes, numbered by first appearance."""
        labels = np.empty(self.n_samples, dtype=np.intp)
        # Labels do not depend on the order of the nodes.
        by_first_sample = sorted((self.members(node) for node in nodes), key=lambda m: int(m[0]))
        for label, members in enumerate(by_first_sample):
            labels[members] = label
        return labels
