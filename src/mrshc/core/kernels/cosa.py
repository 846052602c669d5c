"""Distances and weights of COSA, clustering objects on subsets of attributes.

The distance of two samples contains the terms exp(-|x_i - x_j| / eta) of all features. Computing an
exponential for each pair of samples and each feature would take most of the time. Instead, the
exponentials of x_i / eta and -x_i / eta are computed once for each value: the term is the smaller
one of exp(x_i / eta) exp(-x_j / eta) and exp(-x_i / eta) exp(x_j / eta).
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit

# Number of samples in a block of pairs, and number of features that are read at a time. With 32 and
# 512, the weights and exponentials of two blocks of samples need 768 KiB, which fit into the cache
# of a core. Other numbers change the rounding of sums, and nothing else.
BLOCK_SAMPLES = 32
_BLOCK_FEATURES = 512

# Below this sum of exponentials, digits may have been lost because small terms are not
# representable in double precision; the sum is then computed from logarithms. The value is far
# above the smallest number in double precision, about 1e-308.
_SMALL_SUM = 1e-250


# The fastmath options allow the compiler to change the order of summation, and therefore to
# vectorise the loop. The order is the same for every pair of samples, in every thread.
@jit(fastmath={"reassoc", "contract", "nsz"})
def _add_products(
    sums: Float,
    weights: tuple[Float, Float],
    growths: tuple[Float, Float],
    decays: tuple[Float, Float],
) -> None:
    """Add a pair's weighted exponentials to sums[0], and its weights to sums[1].

    Each tuple contains an array of the same length for each sample of the pair: the weights of some
    features, exp(x / eta) and exp(-x / eta).
    """
    w_i, w_j = weights
    growth_i, growth_j = growths
    decay_i, decay_j = decays
    total = norm = 0.0
    for k in range(w_i.size):
        v = w_i[k] if w_i[k] > w_j[k] else w_j[k]
        one, other = growth_i[k] * decay_j[k], decay_i[k] * growth_j[k]
        total += v * (one if one < other else other)
        norm += v
    sums[0] += total
    sums[1] += norm


@jit(fastmath={"reassoc", "contract", "nsz"})
def _add_observed_products(
    sums: Float,
    weights: tuple[Float, Float],
    growths: tuple[Float, Float],
    decays: tuple[Float, Float],
    observed: tuple[Float, Float],
) -> None:
    """Do the same as `_add_products`, for the features that both samples have.

    `observed` contains 0 for each missing value and 1 for each other value.
    """
    w_i, w_j = weights
    growth_i, growth_j = growths
    decay_i, decay_j = decays
    observed_i, observed_j = observed
    total = norm = 0.0
    for k in range(w_i.size):
        v = (w_i[k] if w_i[k] > w_j[k] else w_j[k]) * (observed_i[k] * observed_j[k])
        one, other = growth_i[k] * decay_j[k], decay_i[k] * growth_j[k]
        total += v * (one if one < other else other)
        norm += v
    sums[0] += total
    sums[1] += norm


@jit()
def _add_exponentials(
    sums: Float, i: int, j: int, data: tuple[Float, Float, Float], eta: float
) -> None:
    """Do the same as `_add_products`, with an exponential for each of the given features."""
    x, weights, observed = data
    for k in range(x.shape[1]):
        if observed.size and observed[i, k] * observed[j, k] == 0.0:
            continue
        v = max(weights[i, k], weights[j, k])
        sums[0] += v * np.exp(-abs(x[i, k] - x[j, k]) / eta)
        sums[1] += v


@jit()
def _distance_from_logarithms(
    i: int, j: int, data: tuple[Float, Float, Float], eta: float
) -> float:
    """Return -eta log(sum_k v_k exp(-d_k / eta) / sum_k v_k) without underflow."""
    x, weights, observed = data
    smallest, norm = np.inf, 0.0
    for k in range(x.shape[1]):
        is_shared = not observed.size or observed[i, k] * observed[j, k] > 0.0
        v = max(weights[i, k], weights[j, k])
        if is_shared and v > 0.0:
            smallest = min(smallest, abs(x[i, k] - x[j, k]))
            norm += v
    if norm == 0.0:  # both samples have underflowing weights in all features that they share
        return 0.0
    total = 0.0
    for k in range(x.shape[1]):
        is_shared = not observed.size or observed[i, k] * observed[j, k] > 0.0
        v = max(weights[i, k], weights[j, k])
        if is_shared and v > 0.0:
            total += (v / norm) * np.exp(-(abs(x[i, k] - x[j, k]) - smallest) / eta)
    return smallest - eta * np.log(total)


@jit()
def write_distances(
    distances: Float,
    first: int,
    data: tuple[Float, Float, Float],
    exponentials: tuple[Float, Float],
    eta: float,
) -> None:
    """Write the distances of a block of samples from themselves and all earlier samples.

    Parameters
    ----------
    distances : array of shape (n, n)
        Matrix in which both triangles are written, for the pairs of a sample of the block and an
        earlier sample.
    first : int
        Index of the first sample of the block, which has at most `BLOCK_SAMPLES` samples.
    data : tuple of arrays of shape (n, p)
        The values x, their weights, and an array with 0 for each missing value and 1 for each other
        value, which has the shape (0, 0) if no value is missing. Missing values must be replaced by
        finite numbers; these numbers do not affect the result.
    exponentials : tuple of arrays of shape (n, m)
        exp(x / eta) and exp(-x / eta) of the last m features, and 0 for missing values.
        For the other features, the exponentials are computed for each pair, as they could overflow.
    eta : float
        Scale of the distances.

    Notes
    -----
    The distance is -eta S log(sum_k v_k exp(-|x_ik - x_jk| / eta) / S), where v_k is the larger
    weight of the two samples, and S is the sum of v_k. The sums are over the features that both
    samples have.
    """
    n = distances.shape[0]
    last = min(first + BLOCK_SAMPLES, n)
    for start in range(0, last, BLOCK_SAMPLES):
        sums = _sums_of_block(first, start, data, exponentials, eta)
        for i in range(first, last):
            for j in range(start, min(start + BLOCK_SAMPLES, i)):
                total, norm = sums[i - first, j - start]
                if total < _SMALL_SUM:
                    distance = norm * _distance_from_logarithms(i, j, data, eta)
                else:
                    distance = -eta * norm * np.log(total / norm)
                # Rounding may give a negative distance of two equal samples.
                distances[i, j] = distances[j, i] = max(distance, 0.0)


@jit()
def _sums_of_block(
    first: int,
    start: int,
    data: tuple[Float, Float, Float],
    exponentials: tuple[Float, Float],
    eta: float,
) -> Float:
    """Return the sums of exponentials and of weights for the pairs of two blocks of samples."""
    x, weights, observed = data
    growth, decay = exponentials
    n, p = x.shape
    n_direct = p - growth.shape[1]
    direct = (x[:, :n_direct], weights[:, :n_direct], observed[:, :n_direct])
    sums = np.zeros((BLOCK_SAMPLES, BLOCK_SAMPLES, 2))
    for low in range(n_direct, p, _BLOCK_FEATURES):
        high = min(low + _BLOCK_FEATURES, p)
        a, b = low - n_direct, high - n_direct  # positions in the arrays of exponentials
        for i in range(first, min(first + BLOCK_SAMPLES, n)):
            for j in range(start, min(start + BLOCK_SAMPLES, i)):
                pair = sums[i - first, j - start]
                w = (weights[i, low:high], weights[j, low:high])
                growths, decays = (growth[i, a:b], growth[j, a:b]), (decay[i, a:b], decay[j, a:b])
                if observed.size:
                    known = (observed[i, low:high], observed[j, low:high])
                    _add_observed_products(pair, w, growths, decays, known)
                else:
                    _add_products(pair, w, growths, decays)
    if n_direct:
        for i in range(first, min(first + BLOCK_SAMPLES, n)):
            for j in range(start, min(start + BLOCK_SAMPLES, i)):
                _add_exponentials(sums[i - first, j - start], i, j, direct, eta)
    return sums


@jit()
def write_weights(
    weights: Float, samples: Index, neighbours: Index, x: Float, observed: Float, scale: float
) -> None:
    """Write the weights of the features for some samples.

    Parameters
    ----------
    weights : array of shape (n, p)
        Matrix in which the rows of the samples are written.
    samples : array of shape (m,)
        Indices of the samples.
    neighbours : array of shape (n, n_neighbours)
        Indices of the nearest neighbours of all samples.
    x, observed : arrays of shape (n, p)
        Values, and 0 for each missing value and 1 for each other value, as in `write_distances`.
    scale : float
        Scale lambda of the weights.

    Notes
    -----
    The weight of a feature is proportional to exp(-m / lambda), where m is the floor(K / 2 + 1)-th
    smallest difference from the K neighbours that have the feature. If the sample or all of its
    neighbours lack the feature, its weight is 1 / p. The weights of a sample sum to one.
    """
    p = x.shape[1]
    for i in samples:
        row = weights[i]
        for low in range(0, p, _BLOCK_FEATURES):
            high = min(low + _BLOCK_FEATURES, p)
            _write_medians(row[low:high], i, neighbours[i], x[:, low:high], observed[:, low:high])
        smallest = np.inf
        for k in range(p):
            smallest = min(smallest, row[k])
        total, n_known = 0.0, 0
        for k in range(p):
            if row[k] < np.inf:
                # Subtracting the smallest exponent avoids that all weights underflow.
                row[k] = np.exp(-(row[k] - smallest) / scale)
                total += row[k]
                n_known += 1
        for k in range(p):
            row[k] = 1.0 / p if row[k] == np.inf else row[k] / total * (n_known / p)


# The fastmath options allow the compiler to vectorise the loops. They do not change the result,
# since there are no NaN.
@jit(fastmath={"nnan", "nsz"})
def _write_medians(medians: Float, i: int, neighbours: Index, x: Float, observed: Float) -> None:
    """Write the floor(K / 2 + 1)-th smallest difference of a sample from K neighbours.

    Parameters
    ----------
    medians : array of shape (p,)
        Array that is written. It is infinite for features that the sample or all neighbours lack.
    i : int
        Index of the sample.
    neighbours : array of shape (n_neighbours,)
        Indices of its neighbours. K is the number of those that have the feature.
    x, observed : arrays of shape (n, p)
        Values, and 0 for each missing value and 1 for each other value.
    """
    p = medians.size
    # The smallest differences so far, in increasing order. A new difference is inserted into the
    # lists of all features together, because these loops can be vectorised.
    smallest = np.full((neighbours.size // 2 + 1, p), np.inf)
    counts = np.zeros(p, np.intp)
    difference = np.empty(p)
    for j in neighbours:
        for k in range(p):
            difference[k] = abs(x[i, k] - x[j, k])
        if observed.size:
            for k in range(p):
                is_shared = observed[i, k] * observed[j, k] > 0.0
                difference[k] = difference[k] if is_shared else np.inf
                counts[k] += is_shared
        for m in range(smallest.shape[0]):
            for k in range(p):
                larger = max(smallest[m, k], difference[k])
                smallest[m, k] = min(smallest[m, k], difference[k])
                difference[k] = larger
    for k in range(p):
        n_known = counts[k] if observed.size else neighbours.size
        medians[k] = smallest[n_known // 2, k]
