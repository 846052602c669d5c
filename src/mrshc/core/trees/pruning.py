"""Algorithm 2, multi-layer pruning: the well separated clusters of a tree.

References
----------
Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
https://arxiv.org/abs/1409.0745
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.trees.gap_statistic import GapCurve, GapSettings, distance_power, gap_curve
from mrshc.core.trees.tree import Tree

# Nodes with fewer samples are leaves: two samples have a single split, whose gap statistic is the
# same for all data up to scale.
_MIN_SAMPLES_TO_SPLIT = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedTree:
    """A tree and the splits that the gap statistic supports, from the root downwards.

    Pruning to k leaves consists of the first k - 1 splits of unlimited pruning, so that one pruned
    tree serves all k.

    Attributes
    ----------
    tree : Tree
        The whole tree.
    splits : tuple of int
        Nodes that were split, in this order.
    tests : dict of int to GapCurve
        Gap statistic of every node that was tested.
    """

    tree: Tree
    splits: tuple[int, ...]
    tests: dict[int, GapCurve]

    @property
    def n_leaves(self) -> int:
        """Number of leaves, the clusters that were found."""
        return len(self.splits) + 1

    def leaf_nodes(self, max_leaves: int) -> list[int]:
        """Return the leaves of the pruned tree, at most `max_leaves` of them."""
        nodes = [self.tree.root]
        for node in self.splits[: max_leaves - 1]:
            nodes.remove(node)
            nodes.extend(self.tree.children(node))
        return nodes

    def labels(self, max_leaves: int) -> Labels:
        """Return the cluster of each sample, with at most `max_leaves` clusters."""
        return self.tree.labels(self.leaf_nodes(max_leaves))


def cut_tree(tree: Tree, k: int) -> PrunedTree:
    """Return a tree split into k clusters by undoing its last k - 1 merges, without any test."""
    # Merges are numbered in their order, the last one is the root.
    return PrunedTree(tree=tree, splits=tuple(range(tree.root, tree.root - k + 1, -1)), tests={})


def prune(
    tree: Tree,
    X: Float,
    *,
    distances: Float,
    settings: GapSettings,
    entropy: int,
    max_leaves: int | None = None,
) -> PrunedTree:
    """Split nodes, the highest first, while their own samples prefer more than one cluster.

    Parameters
    ----------
    tree : Tree
        Tree of the samples.
    X : ndarray of shape (n_samples, n_features)
        The samples.
    distances : ndarray of shape (n_samples, n_samples)
        Their distances.
    settings : GapSettings
        How nodes are tested.
    entropy : int
        Seed of all reference samples.
    max_leaves : int or None, default=None
        Largest number of leaves; None for no limit.

    Notes
    -----
    The reference samples of a node come from a random stream of its own, keyed by the number of
    features and the node. The decision at a node therefore depends neither on the order of the
    tests nor on which other feature sets are tried, and equal feature sets get equal decisions.
    """
    limit = tree.n_samples if max_leaves is None else max_leaves
    # Samples count as duplicates if their distance is within the rounding errors of coordinates.
    negligible = distances.max() * np.finfo(np.float64).eps ** distance_power(settings.metric)
    active, splits, tests = {tree.root}, list[int](), dict[int, GapCurve]()
    while active and len(splits) + 1 < limit:
        # Nodes of equal height are taken in decreasing order of their numbers, the last merge
        # first, as in a cut of the tree.
        node = max(active, key=lambda a: (tree.height(a), a))
        active.remove(node)
        members = tree.members(node)
        within = distances[np.ix_(members, members)]
        if members.size < _MIN_SAMPLES_TO_SPLIT or within.max() <= negligible:
            continue
        seed = np.random.SeedSequence(entropy, spawn_key=(X.shape[1], node))
        tests[node] = gap_curve(
            X[members],
            within,
            partitions=_subtree_partitions(tree, node, max_clusters=settings.max_clusters),
            rng=np.random.default_rng(seed),
            settings=settings,
        )
        if tests[node].n_clusters > 1:
            splits.append(node)
            active.update(tree.children(node))
    return PrunedTree(tree=tree, splits=tuple(splits), tests=tests)


def _subtree_partitions(tree: Tree, node: int, *, max_clusters: int) -> list[Labels]:
    """Return the labels of the samples below a node in its topmost 1, 2, ... clusters."""
    members, partitions = tree.members(node), []
    for k in range(1, min(max_clusters, members.size) + 1):
        labels = np.empty(members.size, dtype=np.intp)
        for label, cluster in enumerate(tree.cluster_nodes(k, below=node)):
            # Members are sorted, so their positions among those of the node can be searched for.
            labels[np.searchsorted(members, tree.members(cluster))] = label
        partitions.append(labels)
    return partitions
