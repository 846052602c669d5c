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
from mrshc.core.kernels.silhouettes import write_silhouette_widths


def silhouette_widths(distances: Float, labels: Labels) -> Float:
    """Return the silhouette width of each sample.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Distances between samples, zero on the diagonal.
    labels : ndarray of shape (n_samples,)
        Cluster labels 0, ..., k - 1 of the samples. No cluster may be empty.

    Returns
    -------
    widths : ndarray of shape (n_samples,)
        The silhouette width of each sample. It is (b - a) / max(a, b). Here a is the mean distance
        to the other samples of the same cluster, and b is the smallest mean distance to the samples
        of another cluster.

    Notes
    -----
    The width is zero in three cases: if the sample is the only one in its cluster, as defined by
    Rousseeuw (1987); if a and b are both zero; and if there is only one cluster.
    """
    widths = np.empty(labels.size)
    write_silhouette_widths(
        np.ascontiguousarray(distances), labels.astype(np.intp, copy=False), widths
    )
    return widths


def average_silhouette(distances: Float, labels: Labels) -> float:
    """Return the mean silhouette width over all samples.

    `distances` contains the distances between samples, in an array of shape (n_samples, n_samples),
    and `labels` contains the cluster labels of the samples. Algorithms 3 and 4 of Zhang and Zamar
    (2014) use this mean to compare feature sets.
    """
    return float(silhouette_widths(distances, labels).mean())
