"""Outlying cells and outlying samples: the first are winsorised, the second set apart.

A cell is moved to the nearest value that is not unusual for its feature. A sample is outlying if
it is isolated: farther from its neighbours than they are from theirs. A small cluster is no
outlier, however far it is from the rest and however loose it is.
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

# Median absolute deviations times this estimate the standard deviation of a normal feature.
_MAD_TO_SD = 1.4826
_USUAL = 2.5  # standard deviations from the median
_FAR = 3.5

# A sample is alone if its third neighbour is unusually far: four samples are a cluster.
_NEIGHBOUR = 3
_ALONE = 4.0  # standard deviations of the logarithm of that distance, from the median
_FEWEST = 10  # of fewer samples, nobody can say what is usual


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobustData:
    """Winsorised data, and the samples that are outlying as a whole."""

    data: DataMatrix  # (n, p)
    outlying: Index  # increasing

    def usual_samples(self) -> DataMatrix:
        """Return the data of the other samples."""
        every = np.arange(self.data.shape[0])
        return self.data.select_samples(np.setdiff1d(every, self.outlying, assume_unique=True))


def detect_outliers(X: NDArray[Any], metric: Metric) -> RobustData:
    """Winsorise unusual cells, and find the samples that are outlying.

    In the other samples, cells that are far out and alone on their side of a feature are taken
    out, to be completed like missing ones; what is usual is learnt from these samples only, so
    that an outlying sample changes nothing for them.
    """
    everyone = np.arange(X.shape[0])
    if everyone.size < _FEWEST:
        X = _winsorise(X, everyone, take_out=False)
        return RobustData(data=ArrayMatrix(X), outlying=np.empty(0, np.intp))
    outlying = _isolated(_winsorise(X, everyone, take_out=False), metric)
    while True:
        others = np.setdiff1d(everyone, outlying, assume_unique=True)
        winsorised = _winsorise(X, others, take_out=True)
        # Few features may not show that a sample is alone; that nothing is left of it, they do.
        gaps = np.isnan(winsorised[others]).sum(axis=1) - np.isnan(X[others]).sum(axis=1)
        erased = others[2 * gaps > (~np.isnan(X[others])).sum(axis=1)]
        if not erased.size:
            return RobustData(data=ArrayMatrix(winsorised), outlying=outlying)
        outlying = np.union1d(outlying, erased)


def winsorise(X: NDArray[Any], outlying: Index) -> NDArray[Any]:
    """Winsorise features as a robust fit does that found these samples to be outlying.

    The limits are estimated from each feature alone, so X may hold some features of the data.
    """
    usual = np.setdiff1d(np.arange(X.shape[0]), outlying)
    return _winsorise(X, usual, take_out=X.shape[0] >= _FEWEST)


def _winsorise(X: NDArray[Any], usual: Index, *, take_out: bool) -> NDArray[Any]:
    """Return a copy in which cells are within bounds that are learnt from the usual samples.

    Cells of these that are far out, and alone in that, are taken out.

    A feature that has the same value in more than half of the samples is left as it is: its median
    absolute deviation is zero, and says nothing.
    """
    out = X.copy(order="K")
    for block in column_blocks(*X.shape):
        part = X[:, block].astype(np.float64)
        known = part[usual]
        known[:, np.isnan(known).all(axis=0)] = 0.0  # observed in outlying samples only
        median = np.nanmedian(known, axis=0)
        deviation = _MAD_TO_SD * np.nanmedian(np.abs(known - median), axis=0)
        unit = np.where(deviation > 0, deviation, np.inf)
        np.clip(part, median - _USUAL * unit, median + _USUAL * unit, out=part)
        if take_out:
            for far in (known > median + _FAR * unit, known < median - _FAR * unit):
                alone = far & (far.sum(axis=0) <= _NEIGHBOUR)
                rows, columns = np.nonzero(alone)
                part[usual[rows], columns] = np.nan
        out[:, block] = part
    return out


def _isolated(X: NDArray[Any], metric: Metric) -> Index:
    """Return the samples that are isolated, by the distances in all features."""
    p = X.shape[1]
    pairs = PairDistances(ArrayMatrix(X), metric)
    distances = pairs.weighted(np.arange(p), np.ones(p))
    np.fill_diagonal(distances, np.inf)
    if pairs.shared is not None:
        distances[pairs.shared == 0] = np.inf
    near = np.argsort(distances, axis=1, kind="stable")[:, :_NEIGHBOUR]
    third = np.take_along_axis(distances, near[:, -1:], axis=1)[:, 0]
    if not third.any() or np.isinf(np.median(third)):
        return np.empty(0, np.intp)
    # Copies have no distance: the smallest that there is stands for none.
    logs = np.log(np.maximum(third, third[third > 0].min()))
    median = np.median(logs)
    spread = _MAD_TO_SD * np.median(np.abs(logs - median))
    # Far for a sample of these data, and far for one of its neighbours.
    usual = np.maximum(median, logs[near].min(axis=1))
    return np.flatnonzero(logs - usual > _ALONE * spread) if spread > 0 else np.empty(0, np.intp)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an outlying sample joins the tree."""

    node: int  # becomes its sibling
    height: float
    before: int  # the merge of the old tree that comes next


def attached(
    pruned: PrunedTree, distances: Float, outlying: Index, *, n_clusters: int, linkage: Linkage
) -> PrunedTree:
    """Return the tree of all samples: outlying ones join the branch of their nearest neighbour.

    `distances` are those of all samples; the tree is that of the others. An outlying sample joins
    where its distance to the branch fits between the heights of the tree, at most on top of the
    cluster that the branch belongs to: no cut into `n_clusters` or fewer falls on it.
    """
    n = distances.shape[0]
    kept = np.setdiff1d(np.arange(n), outlying, assume_unique=True)
    tree = pruned.tree
    parents = _parents(tree)
    # Pruning may split a low branch and leave a higher one whole, so a cut is not the pruned tree.
    clusters = {*pruned.nodes(n_clusters), *tree.nodes_at(n_clusters)}
    undone = [*pruned.splits[: n_clusters - 1], *cut_tree(tree, n_clusters).splits]
    lid = min((tree.height(node) for node in undone), default=np.inf)
    places = dict[int, list[tuple[_Place, int]]]()
    for sample in outlying:
        near = distances[sample, kept]
        place = _place(tree, parents, clusters, near, distances[np.ix_(kept, kept)], lid, linkage)
        places.setdefault(place.before, []).append((place, int(sample)))
    return _rebuilt(pruned, places, kept)


def _place(
    tree: Tree,
    parents: Index,
    clusters: set[int],
    near: Float,
    among: Float,
    lid: float,
    linkage: Linkage,
) -> _Place:
    node = int(near.argmin())
    apart = _linkage_distance(near, among, tree.members(node), linkage)
    while node not in clusters and tree.height(int(parents[node])) < apart:
        node = int(parents[node])
        apart = _linkage_distance(near, among, tree.members(node), linkage)
    height = max(tree.height(node), min(apart, lid))
    # Merges are undone from the last to the first, so this one goes where its height belongs,
    # after those below it and before the one above.
    first = max(node - tree.n_samples + 1, 0)
    last = parents[node] - tree.n_samples if node != tree.root else tree.n_samples - 1
    heights = tree.linkage_matrix[first:last, 2]
    higher = np.flatnonzero(heights >= height)
    return _Place(node, height, int(first + higher[0]) if higher.size else int(last))


def _linkage_distance(near: Float, among: Float, members: Index, linkage: Linkage) -> float:
    """Return the height at which a sample would join the samples of a node."""
    to_members = near[members]
    if linkage == "single":
        return float(to_members.min())
    if linkage == "complete":
        return float(to_members.max())
    if linkage in ("average", "weighted"):
        return float(to_members.mean())
    m = members.size
    squared = max(float(to_members.mean() - among[np.ix_(members, members)].mean() / 2), 0.0)
    return float(np.sqrt(squared * 2 * m / (m + 1) if linkage == "ward" else squared))


def _parents(tree: Tree) -> Index:
    parents = np.full(2 * tree.n_samples - 1, -1)
    parents[tree.linkage_matrix[:, :2].astype(np.intp)] = (
        tree.n_samples + np.arange(tree.n_samples - 1)
    )[:, None]
    return parents


def _rebuilt(
    pruned: PrunedTree, places: dict[int, list[tuple[_Place, int]]], kept: Index
) -> PrunedTree:
    """Return the tree with all merges numbered anew, the new ones in their places."""
    tree = pruned.tree
    old = tree.linkage_matrix
    n = kept.size + sum(map(len, places.values()))
    merges = list[tuple[int, int, float, int]]()
    # The node of the new tree that stands for a node of the old one, as it grows.
    stands_for = {i: int(sample) for i, sample in enumerate(kept)}
    made = dict[int, int]()  # where the old merge itself went

    def size(node: int) -> int:
        return 1 if node < n else merges[node - n][3]

    def merge(a: int, b: int, height: float) -> int:
        merges.append((min(a, b), max(a, b), height, size(a) + size(b)))
        return n + len(merges) - 1

    for position in range(kept.size):
        for place, sample in sorted(
            places.get(position, ()), key=lambda entry: (entry[0].height, entry[1])
        ):
            stands_for[place.node] = merge(stands_for[place.node], sample, place.height)
        if position < old.shape[0]:
            a, b = (stands_for[int(child)] for child in old[position, :2])
            node = kept.size + position
            stands_for[node] = made[node] = merge(a, b, float(old[position, 2]))
    return replace(
        pruned,
        tree=Tree(linkage_matrix=np.array(merges, dtype=np.float64)),
        splits=tuple(made[node] for node in pruned.splits),
        tests={made[node]: curve for node, curve in pruned.tests.items()},
    )
