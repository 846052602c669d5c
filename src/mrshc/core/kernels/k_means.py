"""Iterations of k-means from pairwise distances."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.jit import jit


@jit()
def lloyd_iterations(distances: Float, labels: Labels, max_iter: int) -> Labels:
    """Move each sample to the cluster with the nearest mean, until none moves (Lloyd 1982).

    From squared Euclidean distances alone: the distance of a sample to the mean of a cluster is
    its mean distance to the cluster's samples minus half of their mean distance to each other. A
    cluster that loses all its samples disappears.
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
                    distance = sums[i, c] / sizes[c] - 0.5 * within[c] / (sizes[c] * sizes[c])
                    if distance < best:
                        nearest, best = c, distance
            if nearest != labels[i]:
                labels[i] = nearest
                moved = True
        if not moved:
            break
    return labels
