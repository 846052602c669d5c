"""The gap statistic of a node of a tree, and multi-layer pruning (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist

from mrshc.core import parallel
from mrshc.core.kernels import CHAIN_METHODS, split_dispersions
from mrshc.core.linkages import SQUARED_METRICS
from mrshc.core.trees import (
    GapTest,
    PrunedTree,
    Tree,
    correlation_distances,
    cut_tree,
    linkage_matrix,
    standardise_rows,
)

# Reference samples are drawn until the decision is at least four standard errors from changing; it
# is looked at after 15, 25, 35, ... samples. Decisions are those of all samples in practice
# (benchmarks), in half of the time. Groups of fewer than 8 samples and single features have long
# tails, which a few samples do not show.
_FIRST_LOOK, _LOOK_STEP, _N_STANDARD_ERRORS = 15, 10, 4.0
_MIN_SAMPLES_TO_STOP, _MIN_FEATURES_TO_STOP = 8, 2

# Nodes of fewer samples are leaves: two samples can be split in only one way.
_MIN_SAMPLES_TO_SPLIT = 3
# Dispersions are at least this share of W_1, so that logarithms are finite.
_SMALLEST_SHARE = 1e-16


def prune(
    tree: Tree,
    X: np.ndarray,
    distances: np.ndarray,
    *,
    linkage: str,
    metric: str,
    n_references: int,
    entropy: int,
    max_leaves: float = np.inf,
) -> PrunedTree:
    """Return the tree after multi-layer pruning with the gap statistic.

    Algorithm 2: the highest active node is split if the gap statistic of its samples prefers two
    clusters to one, and becomes a leaf otherwise, until there are `max_leaves` leaves or no active
    node. Further numbers of clusters need not be tried: the rule of the gap statistic stops at one
    cluster exactly if it is not worse than two.

    Parameters
    ----------
    tree : Tree
        Tree of the n samples.
    X : ndarray of shape (n, q)
        The selected features, with estimates of missing values.
    distances : ndarray of shape (n, n)
        The distances from which the tree was built.
    entropy : int
        Seed. Each node has a stream of its own, so a tree that is pruned further has the same
        tests.
    """
    negligible = _negligible_distance(distances, metric)
    # Samples that are constant have no correlations, and are not drawn.
    is_drawn = ~standardise_rows(X)[2] if metric == "correlation" else np.ones(len(X), dtype=bool)
    active, splits, tests = {tree.root}, list[int](), dict[int, GapTest]()
    while active and len(splits) + 1 < max_leaves:
        # Of several nodes of equal height, the last merge comes first, as in a cut.
        node = max(active, key=lambda a: (tree.height(a), a))
        active.remove(node)
        members = tree.members(node)
        within = distances[np.ix_(members, members)]
        drawn = members[is_drawn[members]]
        if members.size < _MIN_SAMPLES_TO_SPLIT or drawn.size < 2 or within.max() <= negligible:
            continue
        test = gap_test(
            X[drawn],
            within,
            np.isin(members, tree.members(tree.children(node)[1])),
            np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(X.shape[1], node))),
            linkage=linkage,
            metric=metric,
            n_references=n_references,
        )
        tests[node] = test
        if test.is_split:
            splits.append(node)
            active.update(tree.children(node))
    return PrunedTree(tree, tuple(splits), tests)


def _negligible_distance(distances: np.ndarray, metric: str) -> float:
    """Return the largest distance that rounding errors of the data may cause."""
    eps = float(np.finfo(np.float64).eps)
    if metric == "correlation":
        return eps
    return float(distances.max()) * eps ** (2 if metric == "sqeuclidean" else 1)


def gap_test(
    X: np.ndarray,
    distances: np.ndarray,
    is_second: np.ndarray,
    rng: np.random.Generator,
    *,
    linkage: str,
    metric: str,
    n_references: int,
) -> GapTest:
    """Test whether m samples are better described by two clusters than by one.

    Tibshirani, Walther and Hastie (2001), with their rule: the smallest k with
    gap(k) >= gap(k + 1) - se(k + 1). W_k is the sum over clusters of the distances between their
    samples, each pair once, divided by twice the size of the cluster; squared distances are
    replaced by their roots. Reference samples are uniform on the box of the samples along their
    principal axes, and are clustered with the same linkage.

    Parameters
    ----------
    X : ndarray of shape (n, q)
        The samples whose box is drawn from: all m, or those that are not constant.
    distances : ndarray of shape (m, m)
        Distances between all m samples.
    is_second : ndarray of shape (m,)
        Mask of the samples in the second branch.
    """
    observed = _log_dispersions(*_dispersions(distances, is_second, metric))
    can_stop = len(X) >= _MIN_SAMPLES_TO_STOP and X.shape[1] >= _MIN_FEATURES_TO_STOP
    draws = _reference_distances(X, rng, metric, len(distances))
    reference: list[np.ndarray] = []
    for n_wanted in range(_FIRST_LOOK if can_stop else n_references, n_references, _LOOK_STEP):
        _draw(reference, draws, n_wanted, linkage, metric)
        if _is_decided(np.array(reference), observed, n_references):
            break
    else:
        _draw(reference, draws, n_references, linkage, metric)
    drawn = np.array(reference)
    gap = drawn.mean(axis=0) - observed
    standard_error = drawn[:, 1].std(ddof=1) * np.sqrt(1 + 1 / n_references)
    return GapTest(observed, drawn, float(standard_error), bool(gap[0] < gap[1] - standard_error))


def _draw(
    reference: list[np.ndarray],
    draws: Iterator[np.ndarray],
    n_wanted: int,
    linkage: str,
    metric: str,
) -> None:
    """Append log W_1 and log W_2 of further reference samples, until there are `n_wanted`."""

    def cluster(distances: np.ndarray) -> np.ndarray:
        if linkage in CHAIN_METHODS:
            method, is_squared = CHAIN_METHODS[linkage], metric in SQUARED_METRICS
            return _log_dispersions(*split_dispersions(distances, method, is_squared))
        halves = cut_tree(linkage_matrix(distances, linkage), [2])[0]
        return _log_dispersions(*_dispersions(distances, halves == 1, metric))

    next_draws = (next(draws) for _ in range(n_wanted - len(reference)))
    reference += parallel.run(cluster, next_draws)


def _dispersions(distances: np.ndarray, is_second: np.ndarray, metric: str) -> tuple[float, float]:
    """Return W_1 of all samples and W_2 within two groups."""
    roots = np.sqrt(distances) if metric in SQUARED_METRICS else distances
    second = is_second.astype(np.float64)
    first = 1.0 - second
    # Each pair counts twice in the sums over both orders.
    within = [group @ roots @ group / (4 * group.sum()) for group in (first, second)]
    return float(roots.sum() / (4 * len(roots))), float(sum(within))


def _log_dispersions(total: float, within: float) -> np.ndarray:
    return np.log([total, max(within, _SMALLEST_SHARE * total)])


def _reference_distances(
    X: np.ndarray, rng: np.random.Generator, metric: str, n: int
) -> Iterator[np.ndarray]:
    """Yield the distances (n, n) between the samples of uniform reference data, without end."""
    middle, ranges, axes = _principal_box(X, metric)
    while True:
        sample = (rng.random((len(X), ranges.size)) - 0.5) * ranges
        if metric == "sqeuclidean":  # does not change under rotation
            yield _squared_distances(sample)
        elif metric == "cityblock":
            rotated = sample @ axes
            yield cdist(rotated, rotated, metric)
        else:
            # Constant samples have the distance 1 from all others.
            distances = np.ones((n, n))
            distances[: len(X), : len(X)] = correlation_distances(sample @ axes + middle)
            np.fill_diagonal(distances, 0.0)
            yield distances


def _squared_distances(X: np.ndarray) -> np.ndarray:
    distances = X @ X.T
    squares = distances.diagonal().copy()
    distances *= -2.0
    distances += squares
    distances += squares[:, None]
    return np.maximum(distances, 0.0, out=distances)


def _principal_box(X: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the middle, the lengths and the axes of the box along the principal axes of X."""
    means = X.mean(axis=0)
    centred = X - means
    n, q = X.shape
    n_axes = min(n - 1, q)
    if metric != "sqeuclidean":
        axes = np.linalg.svd(centred, full_matrices=False)[2][:n_axes]
        scores = centred @ axes.T
    elif n > q:
        # Only the lengths are needed: from the smaller of the two cross products.
        axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :n_axes].T
        scores = centred @ axes.T
    else:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        axes = np.empty((0, q))
        scores = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :n_axes]
    low, high = scores.min(axis=0), scores.max(axis=0)
    middle = means + (low + high) / 2 @ axes if len(axes) else means
    return middle, high - low, axes


def _is_decided(reference: np.ndarray, observed: np.ndarray, n_references: int) -> bool:
    """Return whether further reference samples are very unlikely to change the decision."""
    m = len(reference)
    ratios = reference[:, 1] - reference[:, 0]
    squared_error = reference[:, 1].var(ddof=1) * (1 + 1 / n_references)
    margin = ratios.mean() - np.sqrt(squared_error) - (observed[1] - observed[0])
    # Variance of the difference between the means of the samples so far and of all samples, and
    # the same for the standard error, whose variance is s^2 / (2 (m - 1)) for normal values.
    variance = ratios.var(ddof=1) * (1 / m - 1 / n_references)
    variance += squared_error * (1 / (m - 1) - 1 / (n_references - 1)) / 2
    return bool(abs(margin) > _N_STANDARD_ERRORS * np.sqrt(variance))


def split_table(pruned: PrunedTree, n_leaves: int, outlying: np.ndarray) -> dict[str, np.ndarray]:
    """Return the table of the tests of nodes; outlying samples took no part in them."""
    nodes, tests = list(pruned.tests), list(pruned.tests.values())
    drops = [test.reference[:, 0] - test.reference[:, 1] for test in tests]
    references = np.empty(len(drops), dtype=object)  # of different lengths
    references[:] = drops
    members = [np.setdiff1d(pruned.tree.members(node), outlying) for node in nodes]
    return {
        "node": np.array(nodes, dtype=np.intp),
        "n_samples": np.array([some.size for some in members], dtype=np.intp),
        "height": np.array([pruned.tree.height(node) for node in nodes]),
        "drop": np.array([test.observed[0] - test.observed[1] for test in tests]),
        "expected_drop": np.array([drop.mean() for drop in drops]),
        "standard_error": np.array([test.standard_error for test in tests]),
        "supported": np.array([test.is_split for test in tests], dtype=bool),
        "split": np.isin(nodes, pruned.splits[: n_leaves - 1]),
        "reference_drops": references,
    }
