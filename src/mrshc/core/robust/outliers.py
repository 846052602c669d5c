"""Outlying values, which are winsorised, and outlying samples, which are excluded from the fit.

An outlying value of a feature is replaced by the nearest limit of the usual range of the feature
(winsorised). If only a few values of a feature are extreme, these values are removed, that is,
replaced by NaN. Let d be the distance of a sample to its third nearest neighbour. A sample is
isolated if its d is much larger than the median of d over all samples, and also much larger than
the smallest d of its three nearest neighbours. A sample is outlying if it is isolated or if more
than half of its values are removed. The samples of a cluster of at least four samples are not
isolated, even if the cluster is far from the other samples or widely dispersed.

Standard deviations are estimated by the median absolute deviation multiplied by 1.4826. Samples
that are not outlying are called usual samples.
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
from mrshc.core.trees.correlation import shared_feature_correlation_distances
from mrshc.core.trees.pruning import PrunedTree, cut_tree
from mrshc.core.trees.tree import Linkage, Metric, Tree

# For a normal distribution, the median absolute deviation multiplied by this factor equals the
# standard deviation. The factor is the reciprocal of the upper quartile of the standard normal
# distribution.
_MAD_TO_SD = 1.4826

# Values are winsorised at this number of standard deviations from the median. In a normal
# distribution, 1.2 % of the values are farther from the median than this limit.
_WINSORISE_SDS = 2.5

# Values farther than this number of standard deviations from the median are removed if there are
# few such values. In a normal distribution, only 0.05 % of the values are farther from the median,
# so such a value is more likely to be an error than part of the tail of the distribution.
_REMOVE_SDS = 3.5

# A sample is isolated if its third nearest neighbour is unusually far away. With three neighbours,
# four samples that are close to each other are considered a cluster. For the same reason, extreme
# values are removed only if at most three samples have extreme values on the same side.
_N_NEIGHBOURS = 3

# The logarithm of the distance between an isolated sample and its third nearest neighbour exceeds
# the median of these logarithms by more than this number of standard deviations. In normally
# distributed data, at most 15 of 10,000 samples exceed this limit.
_ISOLATION_SDS = 4.0

# With fewer samples, no sample is considered outlying and no value is removed, because the median
# and the median absolute deviation would be too uncertain.
_MIN_SAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobustData:
    """Winsorised data, and the indices of outlying samples."""

    data: DataMatrix  # (n, p), winsorised data of all samples
    outlying_samples: Index  # indices of the outlying samples, in increasing order

    def usual_samples(self) -> DataMatrix:
        """Return the winsorised data of the samples that are not outlying."""
        samples = np.arange(self.data.shape[0])
        return self.data.select_samples(
            np.setdiff1d(samples, self.outlying_samples, assume_unique=True)
        )


def detect_outliers(X: NDArray[Any], metric: Metric) -> RobustData:
    """Return the winsorised data and the outlying samples.

    The limits of a feature are estimated from the usual samples, so outlying samples do not affect
    the values of usual samples. In usual samples, a value that is more than 3.5 standard deviations
    above the median of its feature is replaced by NaN, unless more than three usual samples have
    such a value. The same applies to values below the median. The values that are replaced by NaN
    are later estimated like missing values. With fewer than ten samples, values are only
    winsorised, and no sample is outlying.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data, with NaN for missing values.
    metric : {"sqeuclidean", "cityblock", "correlation"}
        Metric of the distances with which isolated samples are detected.

    Returns
    -------
    RobustData
        The winsorised data, and the indices of the outlying samples.
    """
    samples = np.arange(X.shape[0])
    if samples.size < _MIN_SAMPLES:
        X = _winsorise_cells(X, samples, remove_extremes=False)
        return RobustData(data=ArrayMatrix(X), outlying_samples=np.empty(0, np.intp))
    outlying = _isolated_samples(_winsorise_cells(X, samples, remove_extremes=False), metric)
    # Each iteration either adds at least one outlying sample or is the last, so the loop ends.
    while True:
        usual = np.setdiff1d(samples, outlying, assume_unique=True)
        winsorised = _winsorise_cells(X, usual, remove_extremes=True)
        # If there are few features, a sample with mostly extreme values may not be isolated. A
        # sample is therefore also outlying if more than half of its non-missing values are removed.
        n_removed = np.isnan(winsorised[usual]).sum(axis=1) - np.isnan(X[usual]).sum(axis=1)
        mostly_removed = usual[2 * n_removed > (~np.isnan(X[usual])).sum(axis=1)]
        if not mostly_removed.size:
            return RobustData(data=ArrayMatrix(winsorised), outlying_samples=outlying)
        outlying = np.union1d(outlying, mostly_removed)


def winsorise(X: NDArray[Any], outlying: Index) -> NDArray[Any]:
    """Return winsorised features, as in a robust fit with the given outlying samples.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Values of n samples in some or all features of the data. Each feature is winsorised
        separately, so the result for a feature does not depend on the other features.
    outlying : ndarray of int
        Indices of the samples that are outlying in the robust fit.

    Returns
    -------
    ndarray of shape (n, m)
        A copy of X with winsorised values, and with NaN in place of extreme values that are
        removed.
    """
    usual = np.setdiff1d(np.arange(X.shape[0]), outlying)
    return _winsorise_cells(X, usual, remove_extremes=X.shape[0] >= _MIN_SAMPLES)


def winsorisation_limits(X: NDArray[Any], outlying: Index) -> Float:
    """Return the limits at which a robust fit winsorises features, an array of shape (2, m).

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Values of n samples in some or all features of the data, before they are winsorised.
    outlying : ndarray of int
        Indices of the samples that are outlying in the robust fit.

    Returns
    -------
    ndarray of shape (2, m)
        Lower and upper limit of each feature; infinite if the feature is not winsorised.
    """
    usual = np.setdiff1d(np.arange(X.shape[0]), outlying)
    median, unit = _median_and_unit(X[usual].astype(np.float64))
    return np.array([median - _WINSORISE_SDS * unit, median + _WINSORISE_SDS * unit])


def _median_and_unit(reference: Float) -> tuple[Float, Float]:
    """Return the median and the standard deviation of each feature of the usual samples.

    The standard deviation is infinite if the feature is not winsorised. Missing values are ignored;
    columns without observed values are set to zero in place.
    """
    # If a feature is missing in all usual samples, its median is undefined. The missing values are
    # then replaced by zeros, to avoid a warning.
    reference[:, np.isnan(reference).all(axis=0)] = 0.0
    median = np.nanmedian(reference, axis=0)
    deviation = _MAD_TO_SD * np.nanmedian(np.abs(reference - median), axis=0)
    # The median absolute deviation is zero if more than half of the samples have the same value. In
    # this case, it is not an estimate of the spread of the feature, and the feature is not
    # winsorised.
    return median, np.where(deviation > 0, deviation, np.inf)


def _winsorise_cells(X: NDArray[Any], usual: Index, *, remove_extremes: bool) -> NDArray[Any]:
    """Return a copy of X, winsorised at limits that are estimated from the usual samples.

    The limits of a feature are its median plus and minus 2.5 standard deviations. A feature is not
    winsorised if its median absolute deviation is zero.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data, with NaN for missing values.
    usual : ndarray of int
        Indices of the samples that are not outlying.
    remove_extremes : bool
        Whether to replace extreme values of usual samples by NaN. A value is extreme if it is more
        than 3.5 standard deviations above the median of its feature. Extreme values of a feature
        are kept if more than three usual samples have such values. The same applies to values below
        the median.
    """
    out = X.copy(order="K")
    for block in column_blocks(*X.shape):
        part = X[:, block].astype(np.float64)
        reference = part[usual]
        median, unit = _median_and_unit(reference)
        np.clip(part, median - _WINSORISE_SDS * unit, median + _WINSORISE_SDS * unit, out=part)
        if remove_extremes:
            above = reference > median + _REMOVE_SDS * unit
            below = reference < median - _REMOVE_SDS * unit
            for extreme in (above, below):
                # More than three extreme values on one side may belong to a small cluster, so they
                # are not removed.
                is_removed = extreme & (extreme.sum(axis=0) <= _N_NEIGHBOURS)
                rows, columns = np.nonzero(is_removed)
                part[usual[rows], columns] = np.nan
        out[:, block] = part
    return out


def _isolated_samples(X: NDArray[Any], metric: Metric) -> Index:
    """Return the indices of isolated samples, in increasing order.

    A sample is isolated if its third nearest neighbour is unusually far away. Distances are
    computed from all features (columns) of X.
    """
    distances, n_shared = _distances_in_all_features(X, metric)
    np.fill_diagonal(distances, np.inf)
    # The distance between two samples is unknown if no feature is non-missing in both samples. Such
    # a distance is treated as infinite.
    if n_shared is not None:
        distances[n_shared == 0] = np.inf
    neighbours = np.argsort(distances, axis=1, kind="stable")[:, :_N_NEIGHBOURS]
    third = np.take_along_axis(distances, neighbours[:, -1:], axis=1)[:, 0]
    if not third.any() or np.isinf(np.median(third)):
        return np.empty(0, np.intp)
    # Identical samples have a distance of zero. It is replaced by the smallest positive distance,
    # since the logarithm of zero is not defined.
    logs = np.log(np.maximum(third, third[third > 0].min()))
    median = np.median(logs)
    spread = _MAD_TO_SD * np.median(np.abs(logs - median))
    # The distance between an isolated sample and its third nearest neighbour must be large compared
    # with the median of these distances over all samples. It must also be large compared with the
    # smallest of these distances among the three nearest neighbours. Samples of a dispersed cluster
    # are therefore not isolated, since the distances of their neighbours are similarly large.
    expected = np.maximum(median, logs[neighbours].min(axis=1))
    if spread > 0:
        return np.flatnonzero(logs - expected > _ISOLATION_SDS * spread)
    return np.empty(0, np.intp)


def _distances_in_all_features(X: NDArray[Any], metric: Metric) -> tuple[Float, Float | None]:
    """Return the distances between samples, each computed from the features observed in both.

    The second value contains the number of these features for each pair of samples. It may be None
    if no value of X is missing.
    """
    if metric == "correlation":
        return shared_feature_correlation_distances(X)
    p = X.shape[1]
    pairs = PairDistances(ArrayMatrix(X), metric)
    return pairs.weighted_distances(np.arange(p), np.ones(p)), pairs.n_shared_features


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attachment:
    """A merge that adds an outlying sample to a tree by joining the sample with a node."""

    sample: int
    node: int  # node of the original tree with which the sample is merged
    height: float
    position: int  # index of the merge of the original tree before which this merge is inserted


def attach_to_nearest_neighbours(
    pruned: PrunedTree, distances: Float, outlying: Index, *, n_clusters: int, linkage: Linkage
) -> PrunedTree:
    """Return the tree of all samples, with outlying samples attached to their nearest neighbours.

    An outlying sample is merged with a branch that contains its nearest neighbour among the usual
    samples. The height of the merge is the linkage distance between the sample and the branch. The
    height is reduced if the sample would otherwise be merged above the cluster that contains the
    branch. Therefore no outlying sample forms a cluster of its own when the tree is cut into
    `n_clusters` or fewer clusters.

    Parameters
    ----------
    pruned : PrunedTree
        Tree of the samples that are not outlying.
    distances : ndarray of shape (n, n)
        Distances between all n samples, including outlying samples. For Ward's, centroid and median
        linkage, they must be squared Euclidean distances.
    outlying : ndarray of int
        Indices of the outlying samples, in increasing order.
    n_clusters : int
        Number of clusters into which the tree is divided.
    linkage : str
        Linkage with which the tree was built.

    Returns
    -------
    PrunedTree
        The tree of all n samples.
    """
    n = distances.shape[0]
    usual = np.setdiff1d(np.arange(n), outlying, assume_unique=True)
    tree = pruned.tree
    # Pruning may split a branch of small height and leave a branch of larger height unsplit, so the
    # clusters of the pruned tree may differ from the clusters of a cut. Outlying samples are not
    # attached above a cluster of the pruned tree or of the cut.
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
    """Return the merge that attaches an outlying sample to a tree of n other samples.

    Parameters
    ----------
    tree : Tree
        The tree.
    sample : int
        Index of the outlying sample.
    parents : ndarray of shape (2 n - 1,)
        Parent of each node of the tree; -1 for the root.
    clusters : set of int
        Nodes that are clusters. The sample must not be attached above these nodes.
    to_tree : ndarray of shape (n,)
        Distances between the outlying sample and the samples of the tree.
    within_tree : ndarray of shape (n, n)
        Distances between the samples of the tree.
    max_height : float
        Largest height of the merge. If the node with which the sample is merged is higher, the
        height of the node is used.
    linkage : str
        Linkage with which the tree was built.
    """
    node = int(to_tree.argmin())
    distance = _linkage_distance(to_tree, within_tree, members=tree.members(node), linkage=linkage)
    while node not in clusters and tree.height(int(parents[node])) < distance:
        node = int(parents[node])
        distance = _linkage_distance(
            to_tree, within_tree, members=tree.members(node), linkage=linkage
        )
    height = max(tree.height(node), min(distance, max_height))
    # A cut undoes merges in reverse order. The new merge is therefore inserted in the order of
    # heights. It must come after the merge that forms the node, and before the merge that forms the
    # parent of the node.
    first = max(node - tree.n_samples + 1, 0)
    last = parents[node] - tree.n_samples if node != tree.root else tree.n_samples - 1
    heights = tree.linkage_matrix[first:last, 2]
    higher = np.flatnonzero(heights >= height)
    position = int(first + higher[0]) if higher.size else int(last)
    return _Attachment(sample=sample, node=node, height=height, position=position)


def _linkage_distance(
    to_tree: Float, within_tree: Float, *, members: Index, linkage: Linkage
) -> float:
    """Return the linkage distance between a sample and a node of a tree of n other samples.

    For weighted and median linkage, which depend on the order of merges, the distances of average
    and centroid linkage are returned instead. For Ward's, centroid and median linkage, the given
    distances must be squared Euclidean distances; the returned distance is not squared.

    Parameters
    ----------
    to_tree : ndarray of shape (n,)
        Distances between the sample and the samples of the tree.
    within_tree : ndarray of shape (n, n)
        Distances between the samples of the tree.
    members : ndarray of int
        Indices of the samples of the node.
    linkage : str
        Linkage with which the tree was built.
    """
    to_members = to_tree[members]
    if linkage == "single":
        return float(to_members.min())
    if linkage == "complete":
        return float(to_members.max())
    if linkage in ("average", "weighted"):
        return float(to_members.mean())
    m = members.size
    # The squared distance from a sample to the centroid of m points equals the mean squared
    # distance from the sample to the points, minus half of the mean squared distance between the
    # points (over all m^2 ordered pairs).
    mean_within = within_tree[np.ix_(members, members)].mean()
    squared = max(float(to_members.mean() - mean_within / 2), 0.0)
    return float(np.sqrt(squared * 2 * m / (m + 1) if linkage == "ward" else squared))


def _parent_nodes(tree: Tree) -> Index:
    """Return the parent of each of the 2 n - 1 nodes of a tree of n samples; -1 for the root."""
    parents = np.full(2 * tree.n_samples - 1, -1)
    parents[tree.linkage_matrix[:, :2].astype(np.intp)] = (
        tree.n_samples + np.arange(tree.n_samples - 1)
    )[:, None]
    return parents


def _insert_attachments(
    pruned: PrunedTree, attachments: list[_Attachment], *, usual: Index
) -> PrunedTree:
    """Return the tree with additional merges for outlying samples, and with nodes renumbered.

    Parameters
    ----------
    pruned : PrunedTree
        Tree of the samples that are not outlying.
    attachments : list of _Attachment
        Merges that attach the outlying samples.
    usual : ndarray of int
        Index of each sample of the tree in the data of all samples.
    """
    old = pruned.tree.linkage_matrix
    n = usual.size + len(attachments)
    merges = list[tuple[int, int, float, int]]()
    # Maps each node of the original tree to the node of the new tree that replaces it in later
    # merges. The entry changes whenever an outlying sample is attached to the node.
    current = {i: int(sample) for i, sample in enumerate(usual)}
    # Maps each node that a merge of the original tree forms to the node of the new tree that this
    # merge forms, before outlying samples are attached to the node.
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
        # New merges at the same position are sorted by height, and by sample if heights are equal,
        # so that the result does not depend on the order of `attachments`.
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
