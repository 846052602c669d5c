"""Algorithm 2 of Zhang and Zamar (2014), multi-layer pruning: find the clusters of a tree.

Nodes of the tree are considered from the root downwards. The gap statistic decides whether a node
is split; the nodes below a node that is not split are not considered.

References
----------
Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
https://arxiv.org/abs/1409.0745
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.parallel import start_if_idle
from mrshc.core.trees.correlation import standardise_rows
from mrshc.core.trees.gap_statistic import GapCurve, GapSettings, gap_curve
from mrshc.core.trees.tree import Metric, Tree

# Nodes with fewer samples than this are not split. A node with two samples can be split in only one
# way, and the gap statistic of this split does not depend on the data.
_MIN_SAMPLES_TO_SPLIT = 3

# Nodes with fewer samples than this are not tested in another thread, since handing over a task
# takes as long as such a test. The number does not affect the result.
_MIN_SAMPLES_FOR_THREAD = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedTree:
    """A tree of samples, and the nodes that are split to obtain clusters.

    The leaves of the pruned tree are its clusters. If only the first k - 1 splits are used, there
    are at most k clusters. One pruned tree therefore defines the clusters for every k.

    Attributes
    ----------
    tree : Tree
        The complete tree, whose leaves are the samples.
    splits : tuple of int
        Nodes that are split, in the order in which they are split.
    tests : dict of int to GapCurve
        Maps each node that was tested to its gap statistic; empty if the gap statistic was not
        used.
    """

    tree: Tree
    splits: tuple[int, ...]
    tests: dict[int, GapCurve]

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the pruned tree, which is the number of clusters."""
        return len(self.splits) + 1

    def leaf_nodes(self, max_leaves: int) -> list[int]:
        """Return the leaf nodes of the tree after it is pruned to at most `max_leaves` leaves."""
        nodes = [self.tree.root]
        for node in self.splits[: max_leaves - 1]:
            nodes.remove(node)
            nodes.extend(self.tree.children(node))
        return nodes

    def labels(self, max_leaves: int) -> Labels:
        """Return the cluster label of each sample, for at most `max_leaves` clusters."""
        return self.tree.labels(self.leaf_nodes(max_leaves))


def cut_tree(tree: Tree, k: int) -> PrunedTree:
    """Return the pruned tree that results from cutting a tree into k clusters.

    The last k - 1 merges are undone. The gap statistic is not used.
    """
    # Nodes are numbered in the order of the merges, and the last merge forms the root.
    return PrunedTree(tree=tree, splits=tuple(range(tree.root, tree.root - k + 1, -1)), tests={})


def split_further(pruned: PrunedTree, k: int) -> PrunedTree:
    """Return a pruned tree after further splits, so that it has at least k leaves.

    All splits of the pruned tree are kept. Further leaves are split in the order of a cut: the leaf
    that was formed by the last merge is split first. The gap statistic is not used. A pruned tree
    that already has k leaves is not changed.
    """
    leaves, splits = pruned.leaf_nodes(pruned.n_leaves), list(pruned.splits)
    while len(leaves) < k:
        # Nodes are numbered in the order of the merges, so the last merge has the largest number.
        last = max(leaves)
        leaves.remove(last)
        leaves.extend(pruned.tree.children(last))
        splits.append(last)
    return replace(pruned, splits=tuple(splits))


def prune(
    tree: Tree,
    X: Float,
    *,
    distances: Float,
    settings: GapSettings,
    entropy: int,
    max_leaves: int | None = None,
) -> PrunedTree:
    """Return a tree after multi-layer pruning with the gap statistic (Algorithm 2).

    Nodes are tested from the root downwards, in decreasing order of height. A node is split if the
    gap statistic of the samples below the node indicates more than one cluster. The two children of
    a split node are tested later. A node is not tested if it has fewer than three samples or if all
    its samples are identical up to rounding errors. With the metric "correlation", a node is not
    tested either if fewer than two of its samples have a correlation, that is, are not constant.

    Parameters
    ----------
    tree : Tree
        Tree of the samples.
    X : ndarray of shape (n_samples, n_features)
        Data of the samples.
    distances : ndarray of shape (n_samples, n_samples)
        Distances between the samples.
    settings : GapSettings
        Settings of the gap statistic.
    entropy : int
        Seed of the random numbers for the gap statistic.
    max_leaves : int or None, default=None
        Largest number of leaves (clusters); None for no limit.

    Notes
    -----
    The gap statistic simulates data sets without clusters. The random numbers for a node are
    determined by `entropy`, the number of features, and the node number. The decision at a node
    therefore does not depend on the order of the tests or on other feature sets, and equal feature
    sets give equal decisions.
    """
    limit = tree.n_samples if max_leaves is None else max_leaves
    tester = _NodeTester(tree, X, distances=distances, settings=settings, entropy=entropy)
    active, splits, tests = {tree.root}, list[int](), dict[int, GapCurve]()
    while active and len(splits) + 1 < limit:
        # Of several nodes with equal height, the node that was formed by the last merge is tested
        # first. A cut of the tree undoes merges in the same order.
        node = max(active, key=lambda a: (tree.height(a), a))
        active.remove(node)
        # Without a limit, the other nodes are tested too.
        if max_leaves is None:
            tester.start(active)
        curve = tester.test(node)
        if curve is None:
            continue
        tests[node] = curve
        if curve.n_clusters > 1:
            splits.append(node)
            active.update(tree.children(node))
    return PrunedTree(tree=tree, splits=tuple(splits), tests=tests)


class _NodeTester:
    """Tests nodes of a tree with the gap statistic.

    The parameters are those of `prune`.
    """

    def __init__(
        self, tree: Tree, X: Float, *, distances: Float, settings: GapSettings, entropy: int
    ) -> None:
        self._tree, self._settings, self._entropy = tree, settings, entropy
        self._X, self._distances = X, distances
        # Samples are treated as identical if their distance is at most `_negligible`.
        self._negligible = _negligible_distance(distances, settings.metric)
        self._is_drawn = _has_reference_samples(X, settings.metric)
        self._started: dict[int, Callable[[], GapCurve | None]] = {}

    def start(self, nodes: Iterable[int]) -> None:
        """Start to test nodes in idle threads, as many as there are."""
        for node in nodes:
            is_large = self._tree.n_samples_below(node) >= _MIN_SAMPLES_FOR_THREAD
            if node not in self._started and is_large:
                result = start_if_idle(self._test, node)
                if result is None:
                    return
                self._started[node] = result

    def test(self, node: int) -> GapCurve | None:
        """Return the gap statistic of a node; None if the node is not tested."""
        result = self._started.pop(node, None)
        return self._test(node) if result is None else result()

    def _test(self, node: int) -> GapCurve | None:
        members = self._tree.members(node)
        # All samples are below the root, whose distances need not be copied.
        is_root = node == self._tree.root
        within = self._distances if is_root else self._distances[members[:, None], members]
        drawn = members[self._is_drawn[members]]
        # The box of the reference data sets is computed from at least two samples.
        is_small = members.size < _MIN_SAMPLES_TO_SPLIT or drawn.size < 2
        if is_small or within.max() <= self._negligible:
            return None
        seed = np.random.SeedSequence(self._entropy, spawn_key=(self._X.shape[1], node))
        n_clusters = self._settings.max_clusters
        return gap_curve(
            self._X[drawn],
            within,
            partitions=_subtree_partitions(
                self._tree, node, members=members, max_clusters=n_clusters
            ),
            rng=np.random.default_rng(seed),
            settings=self._settings,
        )


def _negligible_distance(distances: Float, metric: Metric) -> float:
    """Return the largest distance that can result from rounding errors of the data."""
    eps = float(np.finfo(np.float64).eps)
    # A correlation r close to 1 has a rounding error of eps, and so has the distance 1 - r.
    if metric == "correlation":
        return eps
    # A difference of coordinates is squared for "sqeuclidean", and its rounding error with it.
    return float(distances.max()) * eps ** (2 if metric == "sqeuclidean" else 1)


def _has_reference_samples(X: Float, metric: Metric) -> Mask:
    """Return whether each sample is represented by simulated samples in reference data sets.

    This holds for all samples unless the metric is "correlation". In that case, a constant sample
    has the distance 1 to every other sample, in the reference data sets as in the data.
    """
    if metric == "correlation":
        return ~standardise_rows(X).is_constant
    return np.ones(X.shape[0], dtype=bool)


def _subtree_partitions(
    tree: Tree, node: int, *, members: Index, max_clusters: int
) -> list[Labels]:
    """Return partitions of the samples below a node into 1, 2, ..., `max_clusters` clusters.

    Each partition is given by the cluster labels of the samples, which are `members`. The partition
    into k clusters results from undoing the last k - 1 merges below the node. There are no
    partitions into more clusters than samples.
    """
    partitions = []
    for k in range(1, min(max_clusters, members.size) + 1):
        labels = np.zeros(tree.n_samples, dtype=np.intp)
        # The samples of the first cluster keep the label 0.
        for label, cluster in enumerate(tree.cluster_nodes(k, below=node)[1:], start=1):
            labels[tree.members(cluster)] = label
        partitions.append(labels[members])
    return partitions
