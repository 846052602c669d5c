"""Outlying values, which are winsorised, and outlying samples, which are attached to the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mrshc.core.trees import ROUNDING, PrunedTree, Tree, min_features

# The median absolute deviation times this is the standard deviation of a normal distribution.
_MAD_TO_SD = 1.4826
# Values are winsorised at 2.5 robust standard deviations, where 1.2 % of normal values are beyond.
# Values beyond 3.5 (.05 %) are removed if they are few, since they are more likely to be errors.
_WINSORISE_SDS, _REMOVE_SDS = 2.5, 3.5
# A sample is isolated if its third nearest neighbour is unusually far away: four samples that are
# close to each other are a cluster. For the same reason, more than three extreme values on a side
# are not removed.
_N_NEIGHBOURS = 3
# How much the log distance of the third neighbour exceeds what is expected, in robust standard
# deviations; 15 of 10,000 samples of normal data do.
_ISOLATION_SDS = 4.0
# With fewer samples, medians are too uncertain to call a sample outlying.
_MIN_SAMPLES = 10


def detect_outliers(X: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the winsorised data (n, p), and the outlying samples."""
    samples = np.arange(len(X))
    if samples.size < _MIN_SAMPLES:
        return winsorise(X, np.empty(0, np.intp)), np.empty(0, np.intp)
    outlying = _isolated_samples(_winsorise(X, samples, remove_extremes=False), metric)
    while True:  # each round adds an outlying sample or is the last
        usual = np.setdiff1d(samples, outlying)
        winsorised = _winsorise(X, usual, remove_extremes=True)
        # With few features, a sample of extreme values may not be isolated.
        n_removed = np.isnan(winsorised[usual]).sum(axis=1) - np.isnan(X[usual]).sum(axis=1)
        mostly = usual[2 * n_removed > (~np.isnan(X[usual])).sum(axis=1)]
        if not mostly.size:
            return winsorised, outlying
        outlying = np.union1d(outlying, mostly)


def winsorise(X: np.ndarray, outlying: np.ndarray) -> np.ndarray:
    """Return winsorised features, as in a robust fit with these outlying samples."""
    usual = np.setdiff1d(np.arange(len(X)), outlying)
    return _winsorise(X, usual, remove_extremes=len(X) >= _MIN_SAMPLES)


def winsorisation_limits(X: np.ndarray, outlying: np.ndarray) -> np.ndarray:
    """Return the lower and the upper limits (2, q) of the features."""
    median, sd = _median_and_sd(np.delete(X, outlying, axis=0))
    return np.array([median - _WINSORISE_SDS * sd, median + _WINSORISE_SDS * sd])


def _median_and_sd(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median and the robust standard deviation of each feature.

    The deviation is infinite, so nothing is winsorised, where more than half of the values are
    equal: the median absolute deviation is then no estimate.
    """
    reference = X.astype(np.float64)
    reference[:, np.isnan(reference).all(axis=0)] = 0.0
    median = np.nanmedian(reference, axis=0)
    deviation = _MAD_TO_SD * np.nanmedian(np.abs(reference - median), axis=0)
    return median, np.where(deviation > 0, deviation, np.inf)


def _winsorise(X: np.ndarray, usual: np.ndarray, *, remove_extremes: bool) -> np.ndarray:
    """Return a copy of X, winsorised at limits that are estimated from the usual samples."""
    out = X.copy(order="K")
    step = max((1 << 19) // len(X), 1)
    for start in range(0, X.shape[1], step):
        part = X[:, start : start + step].astype(np.float64)
        reference = part[usual]
        median, sd = _median_and_sd(reference)
        np.clip(part, median - _WINSORISE_SDS * sd, median + _WINSORISE_SDS * sd, out=part)
        if remove_extremes:
            for extreme in (
                reference > median + _REMOVE_SDS * sd,
                reference < median - _REMOVE_SDS * sd,
            ):
                rows, columns = np.nonzero(extreme & (extreme.sum(axis=0) <= _N_NEIGHBOURS))
                part[usual[rows], columns] = np.nan
        out[:, start : start + step] = part
    return out


def _isolated_samples(X: np.ndarray, metric: str) -> np.ndarray:
    distances = _distances_in_all_features(X, metric)
    np.fill_diagonal(distances, np.inf)
    neighbours = np.argsort(distances, axis=1, kind="stable")[:, :_N_NEIGHBOURS]
    third = np.take_along_axis(distances, neighbours[:, -1:], axis=1)[:, 0]
    if not third.any() or np.isinf(np.median(third)):
        return np.empty(0, np.intp)
    logs = np.log(np.maximum(third, third[third > 0].min()))
    median = np.median(logs)
    spread = _MAD_TO_SD * np.median(np.abs(logs - median))
    # Distances must also be large compared with those of the neighbours, so that samples of a
    # dispersed cluster are not isolated.
    expected = np.maximum(median, logs[neighbours].min(axis=1))
    if spread > 0:
        return np.flatnonzero(logs - expected > _ISOLATION_SDS * spread)
    return np.empty(0, np.intp)


def _distances_in_all_features(X: np.ndarray, metric: str) -> np.ndarray:
    """Return distances from the features that both samples have, scaled up to all features.

    The distance is infinite if there is no such feature, and 1 for undefined correlations.
    """
    observed = (~np.isnan(X)).astype(np.float64)
    shared = observed @ observed.T
    counts = np.maximum(shared, 1.0)
    if metric == "cityblock":
        distances = np.array([np.nansum(np.abs(X - row), axis=1) for row in X])
        distances *= X.shape[1] / counts
    elif metric == "sqeuclidean":
        values = np.nan_to_num(X - np.nanmedian(X, axis=0), nan=0.0)
        squares = np.square(values) @ observed.T
        distances = np.maximum(squares + squares.T - 2.0 * values @ values.T, 0.0)
        distances *= X.shape[1] / counts
    else:
        return _shared_correlation_distances(X, observed, shared)
    distances[shared == 0] = np.inf
    return distances


def _shared_correlation_distances(
    X: np.ndarray, observed: np.ndarray, shared: np.ndarray
) -> np.ndarray:
    """Return 1 - r from the features that both samples have; 1 if they are too few or constant."""
    counts = np.maximum(shared, 1.0)
    centred = X - np.nanmean(X, axis=1, keepdims=True)
    centred -= np.nanmean(centred, axis=1, keepdims=True)  # the mean has a rounding error
    deviation = np.nanmax(np.abs(centred), axis=1, keepdims=True)
    is_varying = deviation > ROUNDING * np.nanmax(np.abs(X), axis=1, keepdims=True)
    values = np.nan_to_num(centred / np.where(is_varying, deviation, np.inf))
    sums, squares = values @ observed.T, np.square(values) @ observed.T
    deviations = squares - np.square(sums) / counts
    is_constant = deviations <= ROUNDING * counts
    is_undefined = is_constant | is_constant.T | (shared < min_features("correlation"))
    scales = np.where(is_undefined, 1.0, deviations)
    covariances = values @ values.T - sums * sums.T / counts
    correlations = np.clip(covariances / np.sqrt(scales * scales.T), -1.0, 1.0)
    distances = np.where(is_undefined, 1.0, 1.0 - correlations)
    distances[shared == 0] = np.inf
    return distances


def attach_outliers(
    pruned: PrunedTree,
    distances: np.ndarray,
    outlying: np.ndarray,
    *,
    n_clusters: int,
    linkage: str,
) -> PrunedTree:
    """Return the tree of all samples, with the outlying ones attached to their nearest neighbours.

    An outlying sample joins the branch of its nearest neighbour, where its linkage distance from
    the branch is no larger than the height of the next merge, but never above a cluster of the
    pruned tree or of the cut into `n_clusters`, so the clusters of the other samples do not change.

    Parameters
    ----------
    pruned : PrunedTree
        Tree of the other samples.
    distances : ndarray of shape (n, n)
        Distances between all samples.
    """
    tree, n = pruned.tree, len(distances)
    usual = np.setdiff1d(np.arange(n), outlying)
    clusters = {*pruned.leaves(n_clusters), *tree.cluster_nodes(n_clusters)}
    undone = {*pruned.splits[: n_clusters - 1], *range(tree.root, tree.root - n_clusters + 1, -1)}
    max_height = min((tree.height(node) for node in undone), default=np.inf)
    parents = np.full(2 * usual.size - 1, -1)
    parents[tree.linkage_matrix[:, :2].astype(np.intp)] = (
        usual.size + np.arange(usual.size - 1)[:, None]
    )
    within = distances[np.ix_(usual, usual)]
    attached: dict[int, list[tuple[float, int, int]]] = {}  # position: (height, sample, node)
    for sample in outlying.tolist():
        to_tree = distances[sample, usual]
        node = int(to_tree.argmin())
        height = _linkage_distance(to_tree, within, tree.members(node), linkage)
        while node not in clusters and tree.height(int(parents[node])) < height:
            node = int(parents[node])
            height = _linkage_distance(to_tree, within, tree.members(node), linkage)
        height = max(tree.height(node), min(height, max_height))
        # Cuts undo merges in reverse order, so the merge is inserted in the order of heights, after
        # the merge that forms the node and before that of its parent.
        first = max(node - usual.size + 1, 0)
        last = parents[node] - usual.size if node != tree.root else usual.size - 1
        higher = np.flatnonzero(tree.linkage_matrix[first:last, 2] >= height)
        position = int(first + higher[0]) if higher.size else int(last)
        attached.setdefault(position, []).append((height, sample, node))
    return _insert(pruned, attached, usual, n)


def _linkage_distance(
    to_tree: np.ndarray, within: np.ndarray, members: np.ndarray, linkage: str
) -> float:
    """Return the linkage distance between a sample and a branch."""
    to_members = to_tree[members]
    if linkage == "single":
        return float(to_members.min())
    if linkage == "complete":
        return float(to_members.max())
    if linkage in ("average", "weighted"):
        return float(to_members.mean())
    # The squared distance from the centroid: the mean squared distance from the members, minus half
    # of that between them.
    m = members.size
    squared = to_members.mean() - within[np.ix_(members, members)].mean() / 2
    squared = max(float(squared), 0.0) * (2 * m / (m + 1) if linkage == "ward" else 1)
    return float(np.sqrt(squared))


def _insert(
    pruned: PrunedTree,
    attached: dict[int, list[tuple[float, int, int]]],
    usual: np.ndarray,
    n: int,
) -> PrunedTree:
    """Return the tree with further merges before the merges at the given positions."""
    old = pruned.tree.linkage_matrix
    merges: list[tuple[int, int, float, int]] = []
    # The node that now stands for each node of the old tree, with samples attached to it, and the
    # node that its own merge forms.
    current = {i: int(sample) for i, sample in enumerate(usual)}
    renumbered: dict[int, int] = {}

    def merge(a: int, b: int, height: float) -> int:
        size = sum(1 if node < n else merges[node - n][3] for node in (a, b))
        merges.append((min(a, b), max(a, b), height, size))
        return n + len(merges) - 1

    for position in range(usual.size):
        for height, sample, node in sorted(attached.get(position, [])):
            current[node] = merge(current[node], sample, height)
        if position < len(old):
            a, b = (current[int(child)] for child in old[position, :2])
            node = usual.size + position
            current[node] = renumbered[node] = merge(a, b, float(old[position, 2]))
    return replace(
        pruned,
        tree=Tree(np.array(merges, dtype=np.float64)),
        splits=tuple(renumbered[node] for node in pruned.splits),
        tests={renumbered[node]: test for node, test in pruned.tests.items()},
    )
