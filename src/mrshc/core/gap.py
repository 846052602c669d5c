"""The gap statistic (Tibshirani, Walther and Hastie 2001) of one group of samples.

log W_k, the dispersion within k clusters, is compared with what the same clustering finds in
samples without clusters: uniform on the box that is aligned with the principal axes of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numba import njit

from mrshc.core.arrays import Float, Index, Labels
from mrshc.core.tree import LINKAGES, Linkage, Metric, pairwise_distances

GapRule = Literal["Tibs2001SEmax", "firstSEmax", "globalSEmax", "firstmax", "globalmax"]
GAP_RULES: tuple[GapRule, ...] = get_args(GapRule)

# Dispersions below this share of the whole count as none: their logarithm must stay finite.
_NO_DISPERSION = 1e-16


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSettings:
    """How a group of samples is tested.

    With the default rule and two clusters, each reference sample needs its top split only.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    n_references: int = 50
    rule: GapRule = "Tibs2001SEmax"
    max_clusters: int = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GapCurve:
    """Gap statistic for 1..k clusters."""

    log_dispersion: Float  # (k,), log W of the data
    reference: Float  # (n_references, k), log W of the reference samples
    gap: Float  # (k,), mean of the reference minus the data
    standard_error: Float  # (k,), of the simulation, for one reference sample more
    n_clusters: int  # what the rule prefers


def gap_curve(
    X: Float,
    distances: Float,
    *,
    partitions: Sequence[Labels],
    rng: np.random.Generator,
    settings: GapSettings,
) -> GapCurve:
    """Return the gap statistic of a group for partitions of it into 1, 2, ... clusters.

    X holds the group's samples, `distances` what the metric says of them.
    """
    plain = dispersion_distances(distances, settings.metric)
    observed = np.log(_floored(np.array([dispersion(plain, labels) for labels in partitions])))
    reference = _reference_log_dispersions(X, len(partitions), rng, settings)
    gap = reference.mean(axis=0) - observed
    inflation = np.sqrt(1 + 1 / settings.n_references)
    standard_error = reference.std(axis=0, ddof=1) * inflation
    return GapCurve(
        log_dispersion=observed,
        reference=reference,
        gap=gap,
        standard_error=standard_error,
        n_clusters=preferred_number(gap, standard_error, settings.rule),
    )


def distance_power(metric: Metric) -> int:
    """Return the power of a length that a metric measures."""
    return 2 if metric == "sqeuclidean" else 1


def dispersion_distances(distances: Float, metric: Metric) -> Float:
    """Return the distances that W_k adds up: plain, not squared, Euclidean ones."""
    return distances if distance_power(metric) == 1 else np.sqrt(distances)


def dispersion(distances: Float, labels: Labels) -> float:
    """Return W_k: over clusters, the sum of distances between pairs over twice the size."""
    total = 0.0
    for label in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == label)
        pairs = distances[np.ix_(members, members)].sum() / 2
        total += pairs / (2 * members.size)
    return total


def _floored(dispersions: Float) -> Float:
    return np.maximum(dispersions, _NO_DISPERSION * dispersions[0])


def _reference_log_dispersions(
    X: Float, max_clusters: int, rng: np.random.Generator, settings: GapSettings
) -> Float:
    box, axes = _principal_box(X)
    code = LINKAGES.index(settings.linkage)
    out = np.empty((settings.n_references, max_clusters))
    for b in range(settings.n_references):
        sample = (rng.random((X.shape[0], box.size)) - 0.5) * box
        if settings.metric == "sqeuclidean":
            # Rotation keeps Euclidean distances: no need to leave the principal axes.
            distances = _squared_from_gram(sample @ sample.T)
            plain = np.sqrt(distances)
        else:
            distances = pairwise_distances(sample @ axes, settings.metric)
            plain = distances.copy()
        out[b] = np.log(_floored(_top_dispersions(distances, plain, code, max_clusters)))
    return out


def _principal_box(X: Float) -> tuple[Float, Float]:
    """Return the range of X along each of its principal axes, and the axes in rows."""
    centred = X - X.mean(axis=0)
    n_axes = min(X.shape[0] - 1, X.shape[1])
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:n_axes]
    return np.ptp(centred @ axes.T, axis=0), axes


@njit(cache=True, nogil=True)
def _squared_from_gram(gram: Float) -> Float:
    n = gram.shape[0]
    squared = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            squared[i, j] = max(gram[i, i] + gram[j, j] - 2.0 * gram[i, j], 0.0)
        squared[i, i] = 0.0
    return squared


@njit(cache=True, nogil=True)
def _top_dispersions(distances: Float, plain: Float, linkage: int, max_clusters: int) -> Float:
    """Agglomerate to 1..max_clusters clusters and return W_k of each. Overwrites `distances`.

    Every cluster remembers its nearest neighbour, and the closest pair is merged: this order of
    merges holds for all linkages, also those that are not monotone.
    """
    n = distances.shape[0]
    sizes = np.ones(n)
    parent = np.arange(n)  # the cluster that absorbed this one; itself while alive
    nearest = np.empty(n, dtype=np.intp)
    nearest_distance = np.empty(n)
    for i in range(n):
        distances[i, i] = np.inf
    for i in range(n):
        nearest[i] = _argmin(distances[i])
        nearest_distance[i] = distances[i, nearest[i]]
    out = np.zeros(max_clusters)
    for n_clusters in range(n, 0, -1):
        if n_clusters <= max_clusters:
            out[n_clusters - 1] = _dispersion(plain, parent)
        if n_clusters == 1:
            break
        i = _argmin(nearest_distance)
        j = nearest[i]
        _merge(distances, sizes, i, j, linkage)
        parent[j] = i
        nearest_distance[j] = np.inf
        nearest[i] = _argmin(distances[i])
        nearest_distance[i] = distances[i, nearest[i]]
        for k in range(n):
            if parent[k] != k or k == i:
                continue
            if nearest[k] == i or nearest[k] == j:
                nearest[k] = _argmin(distances[k])
                nearest_distance[k] = distances[k, nearest[k]]
            elif distances[k, i] < nearest_distance[k]:
                nearest[k] = i
                nearest_distance[k] = distances[k, i]
    return out


@njit(cache=True, nogil=True, inline="always")
def _argmin(row: Float) -> int:
    best = 0
    for k in range(1, row.size):
        if row[k] < row[best]:
            best = k
    return best


@njit(cache=True, nogil=True)
def _merge(distances: Float, sizes: Float, i: int, j: int, linkage: int) -> None:
    """Merge cluster j into i: the update of Lance and Williams, by position in LINKAGES."""
    d_ij = distances[i, j]
    n_i, n_j = sizes[i], sizes[j]
    total = n_i + n_j
    for k in range(sizes.size):
        d_ik, d_jk = distances[i, k], distances[j, k]
        if k in (i, j) or d_ik == np.inf:
            continue
        if linkage == 0:  # single
            d = min(d_ik, d_jk)
        elif linkage == 1:  # complete
            d = max(d_ik, d_jk)
        elif linkage == 2:  # average
            d = (n_i * d_ik + n_j * d_jk) / total
        elif linkage == 3:  # weighted
            d = (d_ik + d_jk) / 2
        elif linkage == 4:  # ward
            n_k = sizes[k]
            d = ((n_i + n_k) * d_ik + (n_j + n_k) * d_jk - n_k * d_ij) / (total + n_k)
        elif linkage == 5:  # centroid
            d = (n_i * d_ik + n_j * d_jk - n_i * n_j * d_ij / total) / total
        else:  # median
            d = (d_ik + d_jk) / 2 - d_ij / 4
        distances[i, k] = d
        distances[k, i] = d
    for k in range(sizes.size):
        distances[j, k] = np.inf
        distances[k, j] = np.inf
    sizes[i] = total


@njit(cache=True, nogil=True)
def _dispersion(plain: Float, parent: Index) -> float:
    n = parent.size
    owner = np.empty(n, dtype=np.intp)
    sizes = np.zeros(n)
    sums = np.zeros(n)
    for i in range(n):
        owner[i] = i
        while parent[owner[i]] != owner[i]:
            owner[i] = parent[owner[i]]
        sizes[owner[i]] += 1
    for i in range(n):
        for j in range(i):
            if owner[i] == owner[j]:
                sums[owner[i]] += plain[i, j]
    total = 0.0
    for i in range(n):
        if sizes[i] > 0:
            total += sums[i] / (2 * sizes[i])
    return total


def preferred_number(gap: Float, standard_error: Float, rule: GapRule) -> int:
    """Return the number of clusters that a rule prefers, given the gaps for 1, 2, ... clusters."""
    return _RULES[rule](gap, standard_error)


def _first_maximum(gap: Float) -> int:
    falls = np.flatnonzero(np.diff(gap) <= 0)
    return int(falls[0]) if falls.size else gap.size - 1


def _within_one_error(gap: Float, standard_error: Float, peak: int) -> int:
    """Return the smallest number whose gap is within one error, the peak's, of the peak's gap."""
    close = np.flatnonzero(gap[: peak + 1] >= gap[peak] - standard_error[peak])
    return int(close[0]) + 1


def _tibshirani(gap: Float, standard_error: Float) -> int:
    """Smallest k with gap(k) >= gap(k+1) - se(k+1)."""
    enough = np.flatnonzero(gap[:-1] >= (gap - standard_error)[1:])
    return int(enough[0]) + 1 if enough.size else gap.size


_RULES: dict[GapRule, Callable[[Float, Float], int]] = {
    "Tibs2001SEmax": _tibshirani,
    "firstSEmax": lambda gap, se: _within_one_error(gap, se, _first_maximum(gap)),
    "globalSEmax": lambda gap, se: _within_one_error(gap, se, int(np.argmax(gap))),
    "firstmax": lambda gap, _: _first_maximum(gap) + 1,
    "globalmax": lambda gap, _: int(np.argmax(gap)) + 1,
}
