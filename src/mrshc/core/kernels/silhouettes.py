"""Silhouette widths of the samples of a partition."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.partitions import count_groups


@jit()
def write_silhouette_widths(distances: Float, labels: Index, widths: Float) -> None:
    """Write the silhouette width of each of n samples.

    The definition is that of :func:`mrshc.core.trees.silhouette.silhouette_widths`.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances between the samples, zero on the diagonal.
    labels : array of int of shape (n,)
        Cluster labels 0, ..., k - 1 of the samples. No cluster may be empty.
    widths : array of shape (n,)
        Output.
    """
    n, k = labels.size, count_groups(labels)
    sizes = np.zeros(k)
    for label in labels:
        sizes[label] += 1.0
    sums = np.empty(k)  # of the distances between a sample and the samples of each cluster
    for i in range(n):
        own, nearest = labels[i], np.inf
        sums[:] = 0.0
        for j in range(n):
            sums[labels[j]] += distances[i, j]
        for label in range(k):
            if label != own:
                nearest = min(nearest, sums[label] / sizes[label])
        # The sum includes the distance of the sample to itself, which is zero. The sum is therefore
        # divided by the size of the cluster minus one.
        within = sums[own] / max(sizes[own] - 1.0, 1.0)
        larger = max(within, nearest)
        is_defined = k > 1 and sizes[own] > 1.0 and larger > 0.0
        widths[i] = (nearest - within) / larger if is_defined else 0.0
