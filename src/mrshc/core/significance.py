"""Significance of the splits of a tree: null distributions, statistics and sequential tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

from mrshc.core.trees import Tree

# Smallest number of samples below a node that is tested, as in sigclust2, and of each branch.
# Smaller branches are outlying samples: noise with long tails forms branches of one to three.
MIN_NODE_SAMPLES, MIN_BRANCH_SAMPLES = 10, 4
# Simulations end after 10, 20, 40, 60, ... where the decision is clear: the p-value is above .25,
# or, with at least 20 simulations, below a tenth of the threshold.
_LOOKS, _LOOK_STEP = (10, 20), 20
_CLEARLY_LARGE, _CLEARLY_SMALL, _MIN_SIMULATIONS_OF_SMALL = 0.25, 0.1, 20
_NORMAL_MAD = 1.4826
_N_THRESHOLDS = 100  # candidates for the threshold of eigenvalues, as in SigClust


@dataclass(frozen=True, eq=False)
class NodeTest:
    """The test of one node."""

    statistic: float
    p_value: float
    agreement: float  # adjusted Rand index of the tested split and that in the tree
    n_simulations: int


NO_TEST = NodeTest(np.nan, 1.0, np.nan, 0)  # no split with enough samples in both branches


# ----------------------------------------------------------------------- Null distributions


@dataclass(frozen=True, eq=False)
class GaussianNull:
    """Gaussian distribution of n samples with p features, by factors (k, p) and noise (p,)."""

    means: np.ndarray
    factors: np.ndarray
    noise: np.ndarray
    is_missing: np.ndarray

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return simulated data (n, p), with the missing values of the data."""
        drawn = rng.standard_normal((len(self.is_missing), len(self.factors))) @ self.factors
        if self.noise.any():
            drawn += self.noise * rng.standard_normal(drawn.shape)
        drawn += self.means
        drawn[self.is_missing] = np.nan
        return drawn


def estimate_null(X: np.ndarray) -> GaussianNull:
    """Return a Gaussian with the means, the variances and the factors of the data.

    The factors are the principal components, with the median eigenvalue subtracted from their
    variances; the noise of each feature is the rest of its variance.
    """
    means, is_missing, values, vectors = _decompose(X)
    factors = _factors(np.maximum(values - float(np.median(values)), 0.0), vectors)
    n_values = (~is_missing).sum(axis=0)
    variances = _column_means((X - means) ** 2) * n_values / np.maximum(n_values - 1, 1)
    noise = np.sqrt(np.maximum(variances - np.einsum("ij,ij->j", factors, factors), 0.0))
    return GaussianNull(means, factors, noise, is_missing)


def estimate_null_of_sigclust(X: np.ndarray) -> GaussianNull:
    """Return the Gaussian of SigClust (Huang and others 2015), with one background variance."""
    means, is_missing, values, vectors = _decompose(X)
    p = X.shape[1]
    n_values = min(p, values.size)  # the others are zero
    eigenvalues = np.zeros(p)
    eigenvalues[:n_values] = values[:n_values]
    background = background_variance(X)
    excess = np.zeros(values.size)
    excess[:n_values] = soft_threshold(eigenvalues, background)[:n_values] - background
    return GaussianNull(
        means, _factors(excess, vectors), np.full(p, np.sqrt(background)), is_missing
    )


def background_variance(X: np.ndarray) -> float:
    """Return the squared robust standard deviation of all values."""
    return float((_NORMAL_MAD * np.nanmedian(np.abs(X - np.nanmedian(X)))) ** 2)


def soft_threshold(values: np.ndarray, background: float) -> np.ndarray:
    """Return the null eigenvalues of SigClust, given those of the sample covariance.

    Eigenvalues are reduced by a threshold, but not below the background. Of the thresholds up to
    the one that preserves the total variance, that with the largest first share is taken.
    """

    def excess(threshold: float) -> float:
        return float(np.maximum(values - threshold, background).sum() - values.sum())

    largest, highest = 0.0, float(values[0])
    if excess(0.0) > 0.0 > excess(highest):
        largest = float(brentq(excess, 0.0, highest))
    thresholds = largest * np.arange(_N_THRESHOLDS)[:, None] / _N_THRESHOLDS
    candidates = np.maximum(values - thresholds, background)
    return candidates[int((candidates[:, 0] / candidates.sum(axis=1)).argmax())]


def _column_means(X: np.ndarray) -> np.ndarray:
    return np.nansum(X, axis=0) / np.maximum((~np.isnan(X)).sum(axis=0), 1)


def _decompose(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return means, missing cells, and the eigenvalues and eigenvectors (n - 1, p) of X."""
    means = _column_means(X)
    centred = X - means
    is_missing = np.isnan(centred)
    centred[is_missing] = 0.0
    squares, rows = np.linalg.eigh(centred @ centred.T)
    squares, rows = np.maximum(squares[:0:-1], 0.0), rows[:, :0:-1]  # the smallest is zero
    is_zero = squares <= squares[0] * len(X) * np.finfo(float).eps
    vectors = (rows / np.where(is_zero, np.inf, np.sqrt(squares))).T @ centred
    return means, is_missing, np.where(is_zero, 0.0, squares) / (len(X) - 1), vectors


def _factors(variances: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    is_used = variances > 0.0
    return np.sqrt(variances[is_used])[:, None] * vectors[is_used]


# ------------------------------------------------------------------------------- Statistics


def separation(X: np.ndarray, is_first: np.ndarray) -> float:
    """Return 1 - (sd within the branches) / (sd of all), along the line through their means.

    Each sample is projected with its own branch's mean computed without it.
    """
    centred = X - X.mean(axis=0)
    n_first, n_second = int(is_first.sum()), int((~is_first).sum())
    first = centred @ centred[is_first].mean(axis=0)
    second = centred @ centred[~is_first].mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    own_first = (n_first * first - squares) / (n_first - 1)
    own_second = (n_second * second - squares) / (n_second - 1)
    scores = np.where(is_first, own_first - second, first - own_second)
    total = scores.std(ddof=1)
    if total == 0.0:
        return 0.0
    a, b = scores[is_first], scores[~is_first]
    within = (a.std(ddof=1) + b.std(ddof=1)) / 2
    return float((1.0 - within / total) * np.sign(a.mean() - b.mean()))


def cluster_index(X: np.ndarray, is_first: np.ndarray) -> float:
    """Return the sum of squares within two groups, divided by the total."""
    total = ((X - X.mean(axis=0)) ** 2).sum()
    within = sum(((X[g] - X[g].mean(axis=0)) ** 2).sum() for g in (is_first, ~is_first))
    return float(within / total) if total > 0.0 else 1.0


# ----------------------------------------------------------------------------------- Splits


# A split: its statistic, the samples that are not outlying, and which are in the first branch.
Split = tuple[float, np.ndarray, np.ndarray]


def first_split(X: np.ndarray, divide: Any, statistic: Any) -> Split:
    """Return the first split in which both branches have enough samples.

    Smaller branches are left out, and the rest is divided again: features that were selected for
    outlying samples do not show clusters of the others.
    """
    rows = np.arange(len(X))
    while rows.size >= MIN_NODE_SAMPLES:
        columns, is_first = divide(X[rows])
        n_first = int(is_first.sum())
        if min(n_first, rows.size - n_first) >= MIN_BRANCH_SAMPLES:
            return statistic(columns, is_first), rows, is_first
        rows = rows[is_first == (2 * n_first > rows.size)]
    return np.nan, rows[:0], np.empty(0, dtype=bool)


def as_compared(columns: np.ndarray, metric: str) -> np.ndarray:
    """Return samples of mean zero and length one for correlations, else as they are."""
    if metric != "correlation":
        return columns
    centred = columns - columns.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.where(lengths > 0.0, lengths, 1.0)


def fill_missing(columns: np.ndarray) -> np.ndarray:
    """Return the columns with their means for missing values."""
    missing = np.isnan(columns)
    if not missing.any():
        return columns
    means = np.nansum(columns, axis=0) / (~missing).sum(axis=0).clip(min=1)
    return np.where(missing, means, columns)


# ------------------------------------------------------------------------------------ Tests


def sequential_p_value(
    observed: float,
    simulate: Callable[[range], np.ndarray],
    *,
    n_simulations: int,
    threshold: float,
) -> tuple[float, int]:
    """Return the p-value of a statistic for which large values are extreme.

    `simulate(numbers)` returns the statistics of simulated data with these numbers. Also return how
    many simulations were made; they end early where the decision is clear.
    """
    simulated, p_value = np.empty(0), 1.0
    looks = [*_LOOKS, *range(2 * _LOOK_STEP, n_simulations, _LOOK_STEP)]
    for n_wanted in [*(look for look in looks if look < n_simulations), n_simulations]:
        simulated = np.concatenate([simulated, simulate(range(simulated.size, n_wanted))])
        p_value = upper_tail(observed, simulated)
        is_small = p_value < _CLEARLY_SMALL * threshold
        if p_value > max(_CLEARLY_LARGE, 2.0 * threshold) or (
            is_small and simulated.size >= _MIN_SIMULATIONS_OF_SMALL
        ):
            break
    return p_value, simulated.size


def upper_tail(observed: float, simulated: np.ndarray) -> float:
    """Return the probability of a larger value, of a normal distribution fitted to simulations.

    The tail is that of Student's t, which accounts for the errors of the mean and the deviation.
    """
    values = simulated[~np.isnan(simulated)]
    m = values.size
    if m < 2:
        return 1.0
    scale = values.std(ddof=1) * np.sqrt(1.0 + 1.0 / m)
    if scale == 0.0:
        return 1.0 if observed <= values[0] else 0.0
    return float(stdtr(m - 1, -(observed - values.mean()) / scale))


def top_down_tests(
    tree: Tree, alpha: float, test_node: Callable[[int, float], NodeTest]
) -> Iterator[tuple[int, float, NodeTest]]:
    """Yield node, threshold and test from the root downwards; children of significant nodes follow.

    The threshold of a node with m of n samples is alpha (m - 1) / (n - 1) (Meinshausen 2008).
    """
    waiting = [tree.root]
    while waiting:
        node = _skip_small_branches(tree, waiting.pop(0))
        if node is None:
            continue
        threshold = alpha * (tree.n_samples_below(node) - 1) / (tree.n_samples - 1)
        result = test_node(node, threshold)
        yield node, threshold, result
        if result.p_value <= threshold:
            waiting.extend(tree.children(node))


def _skip_small_branches(tree: Tree, node: int) -> int | None:
    """Return the first node, downwards, whose branches are both large enough."""
    while tree.n_samples_below(node) >= MIN_NODE_SAMPLES:
        smaller, larger = sorted(tree.children(node), key=tree.n_samples_below)
        if tree.n_samples_below(smaller) >= MIN_BRANCH_SAMPLES:
            return node
        node = larger
    return None


def groups_around(tree: Tree, node: int) -> np.ndarray:
    """Return the partition into the samples below a node and the branches around it."""
    groups = np.zeros(tree.n_samples, dtype=np.intp)
    present, n_groups, first_sample = tree.root, 0, tree.members(node)[0]
    while present != node:
        inside, outside = tree.children(present)
        if first_sample not in tree.members(inside):
            inside, outside = outside, inside
        groups[tree.members(outside)] = n_groups
        n_groups += 1
        groups[tree.members(inside)] = n_groups
        present = inside
    return groups


def label_by_splits(tree: Tree, nodes: np.ndarray) -> np.ndarray:
    """Return the clusters if a tree is divided at some nodes; -1 for outlying samples above them.

    Clusters are numbered in the order of the leaves.
    """
    labels = np.zeros(tree.n_samples, dtype=np.intp)
    for node in nodes:
        # The rest of the cluster that contained the node are small branches above it.
        labels[labels == labels[tree.members(node)[0]]] = -1
        for child in tree.children(node):
            labels[tree.members(child)] = child
    order = tree.leaf_order
    in_order = [label for label in dict.fromkeys(labels[order].tolist()) if label != -1]
    numbers = {label: number for number, label in enumerate(in_order)} | {-1: -1}
    return np.array([numbers[label] for label in labels.tolist()])
