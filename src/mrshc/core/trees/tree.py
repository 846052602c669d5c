"""Hierarchical clustering trees: distances, agglomeration, validation, cuts and subtrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import cdist, pdist, squareform

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.kernels.agglomeration import linkage_matrix
from mrshc.core.kernels.large_agglomeration import large_linkage_matrix, write_working_distances
from mrshc.core.kernels.leaf_positions import first_leaf_positions, labels_of_nodes
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.tree_cuts import cut_into_clusters
from mrshc.core.parallel import MANY_SAMPLES, run_parts
from mrshc.core.trees.correlation import MIN_CORRELATED_FEATURES, standardise_rows

# Metrics that are sums of one term for each feature. Methods with feature weights need such a sum.
AdditiveMetric = Literal["sqeuclidean", "cityblock"]
Metric = Literal[AdditiveMetric, "correlation"]
Linkage = Literal["single", "complete", "average", "weighted", "ward", "centroid", "median"]

METRICS: tuple[Metric, ...] = get_args(Metric)
ADDITIVE_METRICS: tuple[AdditiveMetric, ...] = get_args(AdditiveMetric)
# Metrics that are squared Euclidean distances: between samples, or between standardised samples.
SQUARED_EUCLIDEAN_METRICS: tuple[Metric, ...] = ("sqeuclidean", "correlation")
LINKAGES: tuple[Linkage, ...] = get_args(Linkage)
# These three linkages are defined by the centres of clusters in Euclidean space, so they need a
# metric in `SQUARED_EUCLIDEAN_METRICS`. The other linkages are defined for any dissimilarity.
EUCLIDEAN_LINKAGES: tuple[Linkage, ...] = ("ward", "centroid", "median")
# Linkages for which trees are built by compiled code of this package. Trees of the other two
# linkages, for which that algorithm is not valid, are built by scipy.
COMPILED_LINKAGES: tuple[Linkage, ...] = ("single", "complete", "average", "weighted", "ward")

# Number of samples whose distances to the samples before them are computed in one part, in tiles of
# the same number of rows and columns. The values of so many samples in 500 features fit into the
# second-level cache. The number does not affect the result.
_ROWS_PER_PART = 128


def min_features(metric: Metric) -> int:
    """Return the smallest number of features for which distances are meaningful."""
    return MIN_CORRELATED_FEATURES if metric == "correlation" else 1


def pairwise_distances(X: Float, metric: Metric) -> Float:
    """Return the square matrix of the distances between the rows (samples) of X."""
    if metric == "correlation":
        return standardise_rows(X).distances()
    if len(X) >= MANY_SAMPLES:
        return _pairwise_distances_in_parts(X, metric)
    # The variable has a type annotation because scipy provides no type information.
    distances: Float = squareform(pdist(X, metric))
    return distances


def _pairwise_distances_in_parts(X: Float, metric: AdditiveMetric) -> Float:
    """Return the distances between the rows of X, computed in threads, without further matrices.

    The function `cdist` adds the terms of a distance in the same order as `pdist`.
    """
    n = len(X)
    distances = np.empty((n, n))

    def write_rows(rows: slice) -> None:
        for start in range(0, rows.stop, _ROWS_PER_PART):
            others = slice(start, min(start + _ROWS_PER_PART, rows.stop))
            tile = cdist(X[rows], X[others], metric)
            # A tile on the diagonal is symmetric, so it does not matter that it is written twice.
            distances[rows, others] = tile
            distances[others, rows] = tile.T

    # The last rows have the most distances, and come first, so that the threads end together.
    stops = range(n, 0, -_ROWS_PER_PART)
    run_parts(write_rows, [(slice(max(stop - _ROWS_PER_PART, 0), stop),) for stop in stops])
    return distances


def condensed_distances(X: Float, metric: AdditiveMetric) -> Float:
    """Return the distances between the rows of X above the diagonal, row by row, as `pdist` does.

    The distances are computed in threads, and the array has n (n - 1) / 2 entries for n rows.
    """
    n = len(X)
    distances = np.empty(n * (n - 1) // 2)

    def write_rows(rows: slice) -> None:
        part = np.empty((rows.stop - rows.start, n - rows.start))
        for start in range(rows.start, n, _ROWS_PER_PART):
            stop = min(start + _ROWS_PER_PART, n)
            part[:, start - rows.start : stop - rows.start] = cdist(X[rows], X[start:stop], metric)
        for k, i in enumerate(range(rows.start, rows.stop)):
            first = i * n - i * (i + 1) // 2
            distances[first : first + n - 1 - i] = part[k, k + 1 :]

    starts = range(0, n, _ROWS_PER_PART)
    run_parts(write_rows, [(slice(start, min(start + _ROWS_PER_PART, n)),) for start in starts])
    return distances


def agglomerate(distances: Float, linkage: Linkage) -> Tree:
    """Return the tree that results from agglomerative hierarchical clustering of the samples.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Distances between samples. For Ward's, centroid and median linkage, they must be squared
        Euclidean distances.
    linkage : str
        Name of the linkage, one of `LINKAGES`.

    Returns
    -------
    tree : Tree
        The tree. For Ward's, centroid and median linkage, its heights are on the scale of
        Euclidean distances (not squared), as in scipy.
    """
    if linkage in COMPILED_LINKAGES and np.isfinite(distances).all():
        code = LinkageMethod[linkage].value
        if len(distances) < MANY_SAMPLES:
            return Tree(linkage_matrix=linkage_matrix(distances, code))
        working = np.empty(distances.shape)
        write_working_distances(distances, linkage == "ward", working)
        return Tree(linkage_matrix=large_linkage_matrix(working, code))
    # The function of scipy raises an error if a distance is not finite. The symmetry of the matrix
    # is not checked, since the matrix may be slightly asymmetric because of rounding errors.
    condensed = squareform(distances, checks=False)
    if linkage in EUCLIDEAN_LINKAGES:
        condensed = np.sqrt(condensed)
    return Tree(linkage_matrix=hierarchy.linkage(condensed, linkage))


def check_linkage(
    linkage_matrix: ArrayLike, *, n_samples: int | None = None, name: str = "linkage_matrix"
) -> Float:
    """Return a linkage matrix as an array of floats; raise ValueError if it is not a valid tree.

    A linkage matrix from a file or from a caller must be checked, because compiled code uses the
    node numbers as indices without checking them. Heights need not increase from row to row, since
    centroid and median linkage are not monotone.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        Linkage matrix in the format of scipy. Each row contains the two nodes that are joined, the
        height, and the number of samples below the new node.
    n_samples : int or None, default=None
        Number of samples. If None, the number of samples is the number of rows plus one, and the
        matrix must have at least one row.
    name : str, default="linkage_matrix"
        Name of the matrix in error messages.

    Returns
    -------
    merges : ndarray of shape (n_samples - 1, 4)
        The linkage matrix.

    Raises
    ------
    ValueError
        If the matrix does not contain finite numbers or does not represent a tree of `n_samples`
        samples.
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
    """Return values as an array of floats; raise ValueError if they are not real numbers.

    `name` is the name of the values in the error message.
    """
    try:
        array = np.asarray(values)
        # Only booleans, integers, floats and Python objects are converted. `astype` would also
        # convert text to numbers, and would discard the imaginary parts of complex numbers.
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"{name} must be an array of numbers, as scipy.cluster.hierarchy.linkage returns it, got "
        f"{type(values).__name__}."
    )


def _first_true(mask: Any) -> int | None:
    """Return the position of the first True entry of a mask; None if all entries are False."""
    return int(mask.argmax()) if mask.any() else None


def _check_nodes(merges: Float, name: str) -> None:
    """Raise ValueError unless each row joins two existing nodes that have not been joined before.

    `merges` is a linkage matrix, and `name` is its name in error messages.
    """
    n = len(merges) + 1
    nodes = merges[:, :2]
    fractional = nodes != np.floor(nodes)
    if (row := _first_true(fractional.any(axis=1))) is not None:
        node = nodes[row][fractional[row]][0]
        raise ValueError(f"{name}: row {row} joins node {node:g}, but nodes must be whole numbers.")
    # A row may join only samples and nodes that were formed by earlier rows. This excludes cycles.
    outside = (nodes < 0) | (nodes >= n + np.arange(n - 1)[:, None])
    if (row := _first_true(outside.any(axis=1))) is not None:
        node = nodes[row][outside[row]][0]
        raise ValueError(
            f"{name}: row {row} joins node {node:g}, but must join two of the nodes 0 to "
            f"{n + row - 1}."
        )
    # Count how often each node is joined to another node. The root is not counted, since it is
    # never joined.
    uses = np.bincount(nodes.astype(np.intp).ravel(), minlength=2 * n - 2)
    if (node := _first_true(uses > 1)) is not None:
        raise ValueError(
            f"{name} joins node {node} twice, but every node must have a single parent."
        )


def _check_heights_and_sizes(merges: Float, name: str) -> None:
    """Raise ValueError if a height is negative or the number of samples below a node is wrong.

    `merges` is a linkage matrix, and `name` is its name in error messages. The number of samples
    below a node must be the sum of the numbers of samples below its two children.
    """
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
    """A binary tree of samples, which is the result of hierarchical clustering.

    Nodes are numbered as in scipy. For n samples, the samples are the nodes 0, ..., n - 1, and row
    i of the linkage matrix forms node n + i.

    Attributes
    ----------
    linkage_matrix : ndarray of shape (n_samples - 1, 4)
        Linkage matrix in the format of scipy. Each row contains the two nodes that are merged, the
        height, and the number of samples below the new node.
    """

    linkage_matrix: Float

    @property
    def n_samples(self) -> int:
        """Number of samples, which are the leaves of the tree."""
        return int(self.linkage_matrix.shape[0]) + 1

    @property
    def root(self) -> int:
        """Node number of the root, the node that contains all samples."""
        return 2 * self.n_samples - 2

    def children(self, node: int) -> tuple[int, int]:
        """Return the two nodes that were merged into `node`."""
        left, right = self.linkage_matrix[node - self.n_samples, :2]
        return int(left), int(right)

    def height(self, node: int) -> float:
        """Return the height of the merge that formed `node`; zero for a sample."""
        is_sample = node < self.n_samples
        return 0.0 if is_sample else float(self.linkage_matrix[node - self.n_samples, 2])

    def n_samples_below(self, node: int) -> int:
        """Return the number of samples below `node`; 1 for a sample."""
        is_sample = node < self.n_samples
        return 1 if is_sample else int(self.linkage_matrix[node - self.n_samples, 3])

    @property
    def leaf_order(self) -> Index:
        """Indices of the samples in the order of the leaves of a dendrogram, from left to right.

        The array has the shape (n_samples,).
        """
        return self.leaf_spans[0]

    @cached_property
    def leaf_spans(self) -> tuple[Index, Index, Index]:
        """Three arrays: the leaf order, and the start and end positions of each node in this order.

        For n samples, the leaf order has the shape (n,), and the two arrays of positions have the
        shape (2n - 1,). An end position is the position after the last sample below the node.
        """
        # The samples below a node are consecutive in the leaf order, so they can be represented by
        # two positions. Lists of the samples below each node could need much more memory: their
        # total length is quadratic in n if the samples are merged one at a time.
        n = self.n_samples
        sizes = np.ones(2 * n - 1, dtype=np.intp)
        sizes[n:] = self.linkage_matrix[:, 3]
        children = self.linkage_matrix[:, :2].astype(np.intp)
        starts = first_leaf_positions(children, sizes)
        order = np.empty(n, dtype=np.intp)
        order[starts[:n]] = np.arange(n)
        return order, starts, starts + sizes

    def members(self, node: int) -> Index:
        """Return the indices of the samples below `node`, in increasing order."""
        order, starts, ends = self.leaf_spans
        return np.sort(order[starts[node] : ends[node]])

    def label_ranges(self, labels: Labels) -> tuple[Index, Index]:
        """Return the smallest and the largest label of the samples below each node.

        `labels` contains the label of each sample. The two returned arrays have one entry for each
        node of the tree, so their shape is (2 * n_samples - 1,).
        """
        n = self.n_samples
        low, high = (np.concatenate([labels, np.empty(n - 1, labels.dtype)]) for _ in range(2))
        # The children of a node have smaller numbers than the node, so the ranges of the children
        # have already been computed.
        for node, (a, b) in enumerate(self.linkage_matrix[:, :2].astype(np.intp), start=n):
            low[node], high[node] = min(low[a], low[b]), max(high[a], high[b])
        return low, high

    def number_by_leaves(self, labels: Labels) -> Labels:
        """Return cluster labels, numbered 0, 1, ... in the order of the leaves.

        The first cluster is the one that contains the first (leftmost) leaf of the dendrogram. The
        next number is given to the first further cluster, from left to right. Estimators, files,
        plots and the report number clusters in this order. Only the numbers change, not the
        clusters.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            Cluster of each sample.
        """
        order = self.leaf_order
        levels, first, positions = np.unique(labels[order], return_index=True, return_inverse=True)
        numbers = np.empty(levels.size, dtype=np.intp)
        numbers[np.argsort(first)] = np.arange(levels.size)
        renumbered = np.empty(labels.size, dtype=np.intp)
        renumbered[order] = numbers[positions]
        return renumbered

    def most_similar_branch(self, samples: Index, *, at_least: float) -> Index:
        """Return the samples below the node that is most similar to a given set of samples.

        The similarity is the Jaccard index of the set and the samples below the node.

        Parameters
        ----------
        samples : ndarray of shape (m,)
            Indices of the samples of the set.
        at_least : float
            Smallest similarity that is accepted.

        Returns
        -------
        members : ndarray of shape (n_members,)
            Indices of the samples below the most similar node, in increasing order. The array is
            empty if the similarity of every node is below `at_least`.
        """
        order, starts, ends = self.leaf_spans
        # The number of samples of the set that are below a node is the difference of two cumulative
        # counts along the leaf order.
        counts = np.zeros(self.n_samples + 1)
        counts[1:] = np.cumsum(np.isin(order, samples))
        common = counts[ends] - counts[starts]
        jaccard = common / (ends - starts + samples.size - common)
        best = int(jaccard.argmax())
        return self.members(best) if jaccard[best] >= at_least else np.empty(0, np.intp)

    def cluster_nodes(self, k: int, *, below: int | None = None) -> list[int]:
        """Return the k nodes that remain after undoing the last k - 1 merges below a node.

        These nodes are the clusters of a cut into k clusters. The cut is defined by the order of
        the merges, so it exists even if the heights are not monotone.

        Parameters
        ----------
        k : int
            Number of clusters.
        below : int or None, default=None
            The node that is cut into clusters; None for the root.
        """
        nodes = [self.root if below is None else below]
        while len(nodes) < k:
            # Nodes are numbered in the order of the merges: the last merge has the largest number.
            last = max(nodes)
            nodes.remove(last)
            nodes.extend(self.children(last))
        return nodes

    def cut(self, k: int) -> Labels:
        """Return the cluster label of each sample for a cut into k clusters.

        The labels are 0, ..., k - 1. Clusters are numbered in increasing order of the smallest
        sample index in each cluster, as in the function `cutree` of R. Estimators number them by
        the leaves of the tree instead (`number_by_leaves`).
        """
        return self.labels(self.cluster_nodes(k))

    def cuts(self, cluster_counts: Sequence[int] | Index) -> list[Labels]:
        """Return the cluster labels of the samples for several cuts; see `cut`."""
        children = self.linkage_matrix[:, :2].astype(np.intp)
        return list(cut_into_clusters(children, np.asarray(cluster_counts)))

    def labels(self, nodes: list[int]) -> Labels:
        """Return the cluster label of each sample if the clusters are the given nodes.

        Each sample must be below exactly one of the nodes. Clusters are numbered from zero, in
        increasing order of the smallest sample index in each cluster.
        """
        return labels_of_nodes(*self.leaf_spans, np.array(nodes, dtype=np.intp))
