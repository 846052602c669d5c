"""Silhouette widths of a partition.

References
----------
Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and validation of
cluster analysis. Journal of Computational and Applied Mathematics 20, 53-65.
https://doi.org/10.1016/0377-0427(87)90125-7
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Labels


def silhouette_widths(distances: Float, labels: Labels) -> Float:
    """Return the silhouette width of each sample.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Distances between samples, zero on the diagonal.
    labels : ndarray of shape (n_samples,)
        Clusters 0, ..., k - 1, none of them empty.

    Returns
    -------
    widths : ndarray of shape (n_samples,)
        (b - a) / max(a, b), where a is the mean distance to the other samples of the same cluster
        and b the smallest mean distance to the samples of another cluster.

    Notes
    -----
    The width is zero for the only sample of a cluster, as Rousseeuw (1987) defines it, where both
    distances are zero, and for all samples if there is only one cluster.
    """
    n, k = labels.size, int(labels.max()) + 1
    if k < 2:
        return np.zeros(n)
    # Sums of distances to all clusters in one matrix product.
    membership = np.zeros((n, k))
    membership[np.arange(n), labels] = 1.0
    sizes = membership.sum(axis=0)
    sums = distances @ membership
    own_size = sizes[labels]
    # The distance of a sample to itself is zero, so the sum is over the others.
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
