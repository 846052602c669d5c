"""How well partitions of the samples explain features, by ranks; and partitions made tighter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.core.arrays import Float, Labels
from mrshc.core.kernels.jit import jit


@jit()
def rank_shares(
    features: Float, partitions: NDArray[np.intp], shares: Float, freedom: NDArray[np.intp]
) -> None:
    """Fill in the share of the sum of squares of ranks, were they all different, between groups.

    `features` holds features in rows, NaN where nothing was observed; `partitions` the group of
    each sample in rows, negative for samples that take no part. `shares` is (features,
    partitions), `freedom` has the degrees of freedom between and within groups in its last axis;
    where they leave nothing to compare the share is zero.
    """
    p, n = features.shape
    n_groups = partitions.max() + 1
    sums, counts = np.empty(n_groups), np.empty(n_groups)
    for j in range(p):
        order = np.argsort(features[j])
        n_observed = n
        while n_observed > 0 and np.isnan(features[j, order[n_observed - 1]]):  # NaN come last
            n_observed -= 1
        for m in range(partitions.shape[0]):
            groups = partitions[m]
            sums[:] = 0.0
            counts[:] = 0.0
            n_used, start, n_values = 0, 0, 0
            while start < n_observed:
                # Samples with the same value share the mean of their ranks.
                end, tied = start, 0
                while end < n_observed and features[j, order[end]] == features[j, order[start]]:
                    tied += groups[order[end]] >= 0
                    end += 1
                rank = n_used + 0.5 * (tied + 1)
                for i in range(start, end):
                    group = groups[order[i]]
                    if group >= 0:
                        sums[group] += rank
                        counts[group] += 1.0
                n_used += tied
                n_values += tied > 0
                start = end
            mean = 0.5 * (n_used + 1)
            between, n_present = 0.0, 0
            for group in range(n_groups):
                if counts[group] > 0:
                    n_present += 1
                    between += counts[group] * (sums[group] / counts[group] - mean) ** 2
            total = n_used * (n_used * n_used - 1.0) / 12.0  # without ties
            freedom[j, m, 0] = n_present - 1
            freedom[j, m, 1] = n_used - n_present
            comparable = n_present > 1 and n_used > n_present and n_values > 1
            shares[j, m] = min(between / total, 1.0) if comparable else 0.0


@jit()
def consolidated(distances: Float, labels: Labels, max_iter: int) -> Labels:
    """Move each sample to the cluster with the nearest centre, until none moves.

    Centres are never made: from squared Euclidean distances, the distance of a sample to the
    centre of a cluster is its mean distance to the cluster's samples less half of their mean
    distance to each other. A cluster that loses all its samples is gone.
    """
    n = labels.size
    labels = labels.copy()
    k = labels.max() + 1
    for _ in range(max_iter):
        sums, within, sizes = np.zeros((n, k)), np.zeros(k), np.zeros(k)
        for i in range(n):
            sizes[labels[i]] += 1.0
            for j in range(n):
                sums[i, labels[j]] += distances[i, j]
        for i in range(n):
            within[labels[i]] += sums[i, labels[i]]
        moved = False
        for i in range(n):
            nearest, best = labels[i], np.inf
            for c in range(k):
                if sizes[c] > 0:
                    apart = sums[i, c] / sizes[c] - 0.5 * within[c] / (sizes[c] * sizes[c])
                    if apart < best:
                        nearest, best = c, apart
            if nearest != labels[i]:
                labels[i] = nearest
                moved = True
        if not moved:
            break
    return labels
