"""Iterations of k-means from pairwise distances between samples."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.jit import jit


@jit()
def run_lloyd_iterations(distances: Float, labels: Labels, max_iter: int) -> Labels:
    """Assign each sample to the cluster with the nearest mean, until no label changes.

    Parameters
    ----------
    distances : array of shape (n, n)
        Squared Euclidean distances between samples.
    labels : array of shape (n,)
        Clusters 0, 1, ... from which the iterations start. They are not changed.
    max_iter : int
        Largest number of iterations.

    Returns
    -------
    array of shape (n,)
        The new clusters. A cluster that loses all its samples is no longer used as a label.

    Notes
    -----
    This is the algorithm of Lloyd (1982), Least squares quantization in PCM, IEEE Transactions on
    Information Theory 28(2), 129-137, doi:10.1109/TIT.1982.1056489, without coordinates: the
    squared distance of a sample to the mean of a cluster is its mean squared distance to the
    cluster's samples minus half of their mean squared distance to each other.
    """
    n = labels.size
    labels = labels.copy()
    k = labels.max() + 1
    for _ in range(max_iter):
        sums, within_sums, sizes = np.zeros((n, k)), np.zeros(k), np.zeros(k)
        for i in range(n):
            sizes[labels[i]] += 1.0
            for j in range(n):
                sums[i, labels[j]] += distances[i, j]
        for i in range(n):
            within_sums[labels[i]] += sums[i, labels[i]]
        has_changed = False
        for i in range(n):
            # Strict comparison below: among ties, the cluster with the smallest number is taken.
            nearest, best = labels[i], np.inf
            for c in range(k):
                if sizes[c] > 0:  # an empty cluster has no mean
                    distance = sums[i, c] / sizes[c] - 0.5 * within_sums[c] / (sizes[c] * sizes[c])
                    if distance < best:
                        nearest, best = c, distance
            if nearest != labels[i]:
                labels[i] = nearest
                has_changed = True
        if not has_changed:
            break
    return labels
