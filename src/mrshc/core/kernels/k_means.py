"""K-means clustering, computed from the pairwise distances between samples."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.jit import jit


@jit()
def run_lloyd_iterations(distances: Float, labels: Labels, max_iter: int) -> Labels:
    """Return the labels of a k-means clustering that starts from given labels.

    Each iteration assigns every sample to the cluster with the nearest mean. The iterations end
    when no label changes, or after `max_iter` iterations.

    Parameters
    ----------
    distances : array of shape (n, n)
        Squared Euclidean distances between the n samples.
    labels : array of shape (n,)
        Initial cluster of each sample. Clusters are numbered from 0. The array is not changed.
    max_iter : int
        Maximum number of iterations.

    Returns
    -------
    array of shape (n,)
        New cluster of each sample. A cluster may become empty; its number then does not occur in
        the labels.

    Notes
    -----
    This is the algorithm of Lloyd (1982), Least squares quantization in PCM, IEEE Transactions on
    Information Theory 28(2), 129-137, doi:10.1109/TIT.1982.1056489. Coordinates of the samples are
    not needed. The squared distance between a sample x and the mean of a cluster is a - b / 2. Here
    a is the mean squared distance between x and the samples of the cluster, and b is the mean
    squared distance over all ordered pairs of samples of the cluster, including the pairs of a
    sample with itself.
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
            # If several means are equally near, the strict comparison below selects the cluster
            # with the smallest number.
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
