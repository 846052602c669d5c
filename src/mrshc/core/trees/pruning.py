"""Algorithm 2, multi-layer pruning: the well separated clusters of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.trees.gap_statistic import GapCurve, GapSettings, distance_power, gap_curve
from mrshc.core.trees.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedTree:
    """A tree and the splits that the gap statistic supports, from the root down.

    Pruning to k leaves makes the first k - 1 of the splits that unlimited pruning makes, so one
    run answers for every k.
    """

    tree: Tree
    splits: tuple[int, ...]  # nodes that were split, in this order
    tests: dict[int, GapCurve]  # by node: every node that was tested

    @property
    def n_leaves(self) -> int:
        """Number of clusters found."""
        return len(self.splits) + 1

    def nodes(self, max_leaves: int) -> list[int]:
        """Return the leaves of the pruned tree, at most `max_leaves` of them."""
        nodes = [self.tree.root]
        for node in self.splits[: max_leaves - 1]:
            nodes.remove(node)
            nodes.extend(self.tree.children(node))
        return nodes

    def labels(self, max_leaves: int) -> Labels:
        """Return the cluster of each sample, at most `max_leaves` clusters."""
        return self.tree.labels(self.nodes(max_leaves))


def cut_tree(tree: Tree, k: int) -> PrunedTree:
    """Return a tree split into k clusters by undoing its last merges, without any test."""
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

    A node's reference samples come from a stream of their own, keyed by the number of features
    and the node: the verdict on a node depends neither on the order of the tests nor on which
    other feature sets are tried, and equal feature sets get equal verdicts.
    """
    limit = tree.n_samples if max_leaves is None else max_leaves
    # Samples closer than rounding can tell count as duplicates.
    negligible = distances.max() * np.finfo(np.float64).eps ** distance_power(settings.metric)
    active, splits, tests = {tree.root}, list[int](), dict[int, GapCurve]()
    while active and len(splits) + 1 < limit:
        node = max(active, key=lambda a: (tree.height(a), a))
        active.remove(node)
        members = tree.members(node)
        within = distances[np.ix_(members, members)]
        if members.size < 3 or within.max() <= negligible:
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
    """Return the labels of a node's samples in its own 1, 2, ... topmost clusters."""
    members, partitions = tree.members(node), []
    for k in range(1, min(max_clusters, members.size) + 1):
        labels = np.empty(members.size, dtype=np.intp)
        for label, below in enumerate(tree.nodes_at(k, below=node)):
            labels[np.searchsorted(members, tree.members(below))] = label
        partitions.append(labels)
    return partitions
