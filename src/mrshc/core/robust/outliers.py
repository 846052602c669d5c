"""Outlying cells, which are winsorised, and outlying samples, which are excluded from the fit.

An outlying cell is moved to the nearest value that is not unusual for its feature. A sample is
outlying if it is isolated: farther from its neighbours than they are from theirs. A small cluster
is not outlying, however far from the other samples and however dispersed it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.statistics import column_blocks
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.trees.pruning import PrunedTree, cut_tree
from mrshc.core.trees.tree import Linkage, Metric, Tree

# The median absolute deviation of a normal distribution times this factor, one over the upper
# quartile of the standard normal distribution, is its standard deviation.
_MAD_TO_SD = 1.4826

# Cells are winsorised at this number of standard deviations from the median: 1.2 % of the values of
# a normal distribution are farther away.
_WINSORISE_SDS = 2.5

# Cells beyond this number of standard deviations are removed if they are few: 0.05 % of the values
# of a normal distribution are farther away, so that such a cell is an error rather than a tail.
_REMOVE_SDS = 3.5

# A sample is isolated if its third nearest neighbour is unusually far away: four samples count as a
# cluster.
_N_NEIGHBOURS = 3

# An isolated sample exceeds the median of the logarithm of that distance by this number of standard
# deviations. In normal data, at most 15 of 10,000 samples do.
_ISOLATION_SDS = 4.0

# Below this number of samples, the median and the median absolute deviation of the distances are
# too uncertain to call a sample outlying.
_MIN_SAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobustData:
    """Winsorised data, and the samples that are outlying as a whole."""

    data: DataMatrix  # (n, p)
    outlying_samples: Index  # outlying samples, in increasing order

    def usual_samples(self) -> DataMatrix:
        """Return the data of the samples that are not outlying."""
        samples = np.arange(self.data.shape[0])
        return self.data.select_samples(
            np.setdiff1d(samples, self.outlying_samples, assume_unique=True)
        )


def detect_outliers(X: NDArray[Any], metric: Metric) -> RobustData:
    """Winsorise outlying cells and detect outlying samples.

    In samples that are not outlying, extreme cells that at most two others accompany on their side
    of a feature are removed, to be completed like missing cells. Limits are estimated from these
    samples only, so that an outlying sample has no influence on the others.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data, NaN where missing.
    metric : {"sqeuclidean", "cityblock"}
        Metric of the distances between samples.

    Returns
    -------
    RobustData
    """
    samples = np.arange(X.shape[0])
    if samples.size < _MIN_SAMPLES:
        X = _winsorise_cells(X, samples, remove_extremes=False)
        return RobustData(data=ArrayMatrix(X), outlying_samples=np.empty(0, np.intp))
    outlying = _isolated_samples(_winsorise_cells(X, samples, remove_extremes=False), metric)
    # Each iteration adds outlying samples or ends, so that there are at most n of them.
    while True:
        usual = np.setdiff1d(samples, outlying, assume_unique=True)
        winsorised = _winsorise_cells(X, usual, remove_extremes=True)
        # With few features a sample may not be isolated, although most of its cells are extreme.
        n_removed = np.isnan(winsorised[usual]).sum(axis=1) - np.isnan(X[usual]).sum(axis=1)
        mostly_removed = usual[2 * n_removed > (~np.isnan(X[usual])).sum(axis=1)]
        if not mostly_removed.size:
            return RobustData(data=ArrayMatrix(winsorised), outlying_samples=outlying)
        outlying = np.union1d(outlying, mostly_removed)


def winsorise(X: NDArray[Any], outlying: Index) -> NDArray[Any]:
    """Winsorise features as in a robust fit with given outlying samples.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Some or all features of the data: limits are estimated for each feature separately.
    outlying : ndarray of int
        Samples that the robust fit has found to be outlying.

    Returns
    -------
    ndarray of shape (n, m)
        A copy of X with winsorised cells, NaN for removed cells.
    """
    usual = np.setdiff1d(np.arange(X.shape[0]), outlying)
    return _winsorise_cells(X, usual, remove_extremes=X.shape[0] >= _MIN_SAMPLES)


def _winsorise_cells(X: NDArray[Any], usual: Index, *, remove_extremes: bool) -> NDArray[Any]:
    """Return a copy of X with all cells within limits that are estimated from usual samples.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data, NaN where missing.
    usual : ndarray of int
        Samples that are not outlying.
    remove_extremes : bool
        Whether extreme cells of usual samples become NaN if there are at most three of them on
        their side of the feature.
    """
    out = X.copy(order="K")
    for block in column_blocks(*X.shape):
        part = X[:, block].astype(np.float64)
        reference = part[usual]
        # A feature that is observed only in outlying samples has no median.
        reference[:, np.isnan(reference).all(axis=0)] = 0.0
        median = np.nanmedian(reference, axis=0)
        deviation = _MAD_TO_SD * np.nanmedian(np.abs(reference - median), axis=0)
        # The deviation is zero if more than half of the samples have the same value. It is then no
        # estimate of the spread, and the feature is not winsorised.
        unit = np.where(deviation > 0, deviation, np.inf)
        np.clip(part, median - _WINSORISE_SDS * unit, median + _WINSORISE_SDS * unit, out=part)
        if remove_extremes:
            above = reference > median + _REMOVE_SDS * unit
            below = reference < median - _REMOVE_SDS * unit
            for extreme in (above, below):
                # More extreme cells on one side may be those of a small cluster.
                is_removed = extreme & (extreme.sum(axis=0) <= _N_NEIGHBOURS)
                rows, columns = np.nonzero(is_removed)
                part[usual[rows], columns] = np.nan
        out[:, block] = part
    return out


def _isolated_samples(X: NDArray[Any], metric: Metric) -> Index:
    """Return the samples that are isolated, by their distances in all features of X, (n, p)."""
    p = X.shape[1]
    pairs = PairDistances(ArrayMatrix(X), metric)
    distances = pairs.weighted_distances(np.arange(p), np.ones(p))
    np.fill_diagonal(distances, np.inf)
    # The distance between samples without a common observed feature is unknown.
    if pairs.n_shared_features is not None:
        distances[pairs.n_shared_features == 0] = np.inf
    neighbours = np.argsort(distances, axis=1, kind="stable")[:, :_N_NEIGHBOURS]
    third = np.take_along_axis(distances, neighbours[:, -1:], axis=1)[:, 0]
    if not third.any() or np.isinf(np.median(third)):
        return np.empty(0, np.intp)
    # The distance between copies is zero and has no logarithm: the smallest positive one replaces
    # it.
    logs = np.log(np.maximum(third, third[third > 0].min()))
    median = np.median(logs)
    spread = _MAD_TO_SD * np.median(np.abs(logs - median))
    # The distance must be large compared with all samples and with one of the neighbours: within a
    # dispersed cluster, the neighbours are isolated to the same degree.
    expected = np.maximum(median, logs[neighbours].min(axis=1))
    if spread > 0:
        return np.flatnonzero(logs - expected > _ISOLATION_SDS * spread)
    return np.empty(0, np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attachment:
    """A merge that adds an outlying sample to a tree."""

    sample: int
    node: int  # of the old tree, which becomes the sibling of the sample
    height: float
    position: int  # index of the merge of the old tree before which this one is inserted


def attach_to_nearest_neighbours(
    pruned: PrunedTree, distances: Float, outlying: Index, *, n_clusters: int, linkage: Linkage
) -> PrunedTree:
    """Return the tree of all samples, with outlying ones attached to their nearest neighbours.

    An outlying sample joins the branch of its nearest neighbour at the height that its distance to
    the branch demands, at most at the top of the cluster of the branch. No cut into `n_clusters` or
    fewer clusters thus separates an outlying sample.

    Parameters
    ----------
    pruned : PrunedTree
        Tree of the samples that are not outlying.
    distances : ndarray of shape (n, n)
        Distances between all samples.
    outlying : ndarray of int
        Outlying samples, in increasing order.
    n_clusters : int
        Number of clusters.
    linkage : str
        Linkage of the tree.

    Returns
    -------
    PrunedTree
    """
    n = distances.shape[0]
    usual = np.setdiff1d(np.arange(n), outlying, assume_unique=True)
    tree = pruned.tree
    # Pruning may split a low branch and leave a higher one whole, so that its clusters differ from
    # those of a cut. No sample is attached above either of them.
    clusters = {*pruned.leaf_nodes(n_clusters), *tree.cluster_nodes(n_clusters)}
    undone = [*pruned.splits[: n_clusters - 1], *cut_tree(tree, n_clusters).splits]
    max_height = min((tree.height(node) for node in undone), default=np.inf)
    parents = _parent_nodes(tree)
    attachments = [
        _find_attachment(
            tree,
            int(sample),
            parents=parents,
            clusters=clusters,
            to_tree=distances[sample, usual],
            within_tree=distances[np.ix_(usual, usual)],
            max_height=max_height,
            linkage=linkage,
        )
        for sample in outlying
    ]
    return _insert_attachments(pruned, attachments, usual=usual)


def _find_attachment(
    tree: Tree,
    sample: int,
    *,
    parents: Index,
    clusters: set[int],
    to_tree: Float,
    within_tree: Float,
    max_height: float,
    linkage: Linkage,
) -> _Attachment:
    """Return the merge that attaches an outlying sample to a tree of n samples.

    Parameters
    ----------
    tree : Tree
        The tree.
    sample : int
        The outlying sample.
    parents : ndarray of shape (2 n - 1,)
        Parent of each node.
    clusters : set of int
        Nodes above which the sample must not be attached.
    to_tree : ndarray of shape (n,)
        Distances between the outlying sample and those of the tree.
    within_tree : ndarray of shape (n, n)
        Distances between the samples of the tree.
    max_height : float
        Largest height of the merge.
    linkage : str
        Linkage of the tree.
    """
    node = int(to_tree.argmin())
    distance = _linkage_distance(to_tree, within_tree, members=tree.members(node), linkage=linkage)
    while node not in clusters and tree.height(int(parents[node])) < distance:
        node = int(parents[node])
        distance = _linkage_distance(
            to_tree, within_tree, members=tree.members(node), linkage=linkage
        )
    height = max(tree.height(node), min(distance, max_height))
    # A cut undoes merges from the last to the first, so that this merge is inserted by its height,
    # after the merge of the node and before the merge of its parent.
    first = max(node - tree.n_samples + 1, 0)
    last = parents[node] - tree.n_samples if node != tree.root else tree.n_samples - 1
    heights = tree.linkage_matrix[first:last, 2]
    higher = np.flatnonzero(heights >= height)
    position = int(first + higher[0]) if higher.size else int(last)
    return _Attachment(sample=sample, node=node, height=height, position=position)


def _linkage_distance(
    to_tree: Float, within_tree: Float, *, members: Index, linkage: Linkage
) -> float:
    """Return the height at which a sample would be merged with the samples of a node.

    Parameters
    ----------
    to_tree : ndarray of shape (n,)
        Distances between the sample and those of the tree.
    within_tree : ndarray of shape (n, n)
        Distances between the samples of the tree.
    members : ndarray of int
        Samples of the node.
    linkage : str
        Linkage of the tree.
    """
    to_members = to_tree[members]
    if linkage == "single":
        return float(to_members.min())
    if linkage == "complete":
        return float(to_members.max())
    if linkage in ("average", "weighted"):
        return float(to_members.mean())
    m = members.size
    # The squared distance to the centroid of m points is the mean squared distance to them minus
    # half of their mean squared distance from each other.
    mean_within = within_tree[np.ix_(members, members)].mean()
    squared = max(float(to_members.mean() - mean_within / 2), 0.0)
    return float(np.sqrt(squared * 2 * m / (m + 1) if linkage == "ward" else squared))


def _parent_nodes(tree: Tree) -> Index:
    """Return the parent of each node of a tree of n samples, (2 n - 1,); -1 for the root."""
    parents = np.full(2 * tree.n_samples - 1, -1)
    parents[tree.linkage_matrix[:, :2].astype(np.intp)] = (
        tree.n_samples + np.arange(tree.n_samples - 1)
    )[:, None]
    return parents


def _insert_attachments(
    pruned: PrunedTree, attachments: list[_Attachment], *, usual: Index
) -> PrunedTree:
    """Return the tree with additional merges; all merges are numbered again.

    Parameters
    ----------
    pruned : PrunedTree
        Tree of the samples that are not outlying.
    attachments : list of _Attachment
        Merges of the outlying samples.
    usual : ndarray of int
        The samples of the tree, as indices among all samples.
    """
    old = pruned.tree.linkage_matrix
    n = usual.size + len(attachments)
    merges = list[tuple[int, int, float, int]]()
    # Node of the new tree that a later merge with a node of the old tree refers to. It changes
    # whenever a sample is attached to the node.
    current = {i: int(sample) for i, sample in enumerate(usual)}
    # Node of the new tree for each merge of the old one, without attached samples.
    renumbered = dict[int, int]()

    def node_size(node: int) -> int:
        return 1 if node < n else merges[node - n][3]

    def append_merge(a: int, b: int, height: float) -> int:
        merges.append((min(a, b), max(a, b), height, node_size(a) + node_size(b)))
        return n + len(merges) - 1

    by_position = dict[int, list[_Attachment]]()
    for attachment in attachments:
        by_position.setdefault(attachment.position, []).append(attachment)
    for position in range(usual.size):
        # Lower merges come first; the sample decides ties, so that the result is unique.
        for new in sorted(by_position.get(position, ()), key=lambda a: (a.height, a.sample)):
            current[new.node] = append_merge(current[new.node], new.sample, new.height)
        if position < old.shape[0]:
            a, b = (current[int(child)] for child in old[position, :2])
            node = usual.size + position
            current[node] = renumbered[node] = append_merge(a, b, float(old[position, 2]))
    return replace(
        pruned,
        tree=Tree(linkage_matrix=np.array(merges, dtype=np.float64)),
        splits=tuple(renumbered[node] for node in pruned.splits),
        tests={renumbered[node]: curve for node, curve in pruned.tests.items()},
    )
