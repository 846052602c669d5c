"""Average silhouette width of a partition."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Labels


def silhouette_widths(distances: Float, labels: Labels) -> Float:
    """Return the silhouette width of each sample.

    It is zero for a sample alone in its cluster (Rousseeuw 1987), for samples that are as far from
    their own cluster as from the next, and everywhere if there is only one cluster.
    """
    n, k = labels.size, int(labels.max()) + 1
    if k < 2:
        return np.zeros(n)
    membership = np.zeros((n, k))
    membership[np.arange(n), labels] = 1.0
    sizes = membership.sum(axis=0)
    sums = distances @ membership
    own_size = sizes[labels]
    within = sums[np.arange(n), labels] / np.maximum(own_size - 1, 1)
    means = sums / sizes
    means[np.arange(n), labels] = np.inf
    nearest = means.min(axis=1)
    larger = np.maximum(within, nearest)
    widths = np.divide(nearest - within, larger, out=np.zeros(n), where=larger > 0)
    return np.where(own_size > 1, widths, 0.0)


def average_silhouette(distances: Float, labels: Labels) -> float:
    """Return the mean silhouette width, by which Algorithms 3 and 4 compare feature sets."""
    return float(silhouette_widths(distances, labels).mean())
