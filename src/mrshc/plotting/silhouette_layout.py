"""Order and positions of the bars of a silhouette plot. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrshc.plotting.arguments import check_numbers
from mrshc.plotting.colours import natural_sort_key


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SilhouetteRows:
    """Order and vertical positions of the bars of a silhouette plot.

    Samples are sorted by cluster, and within each cluster in decreasing order of silhouette width.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Indices of the samples from top to bottom.
    places : ndarray of shape (n_samples,)
        Vertical positions of the samples, from top to bottom. Clusters are separated by gaps.
    clusters : ndarray of shape (n_samples,)
        Clusters of the samples from top to bottom, given as positions in `names`.
    names : tuple of str, of length n_clusters
        Names of the clusters.
    averages : ndarray of shape (n_clusters,)
        Average silhouette width of each cluster.
    centres : ndarray of shape (n_clusters,)
        Vertical position of the middle of each cluster.
    """

    order: NDArray[np.intp]
    places: NDArray[np.float64]
    clusters: NDArray[np.intp]
    names: tuple[str, ...]
    averages: NDArray[np.float64]
    centres: NDArray[np.float64]


def silhouette_rows(widths: ArrayLike, labels: ArrayLike) -> SilhouetteRows:
    """Return the order and positions of the bars of a silhouette plot.

    Parameters
    ----------
    widths : array-like of shape (n_samples,)
        Silhouette width of each sample.
    labels : array-like of shape (n_samples,)
        Cluster of each sample. Integer labels 0, 1, ... are named "cluster 1", "cluster 2", ...

    Returns
    -------
    rows : SilhouetteRows
        Order and positions of the samples, and names and averages of the clusters.

    Examples
    --------
    >>> from mrshc.plotting import silhouette_rows
    >>> silhouette_rows([0.1, 0.5, 0.3], [0, 1, 0]).order
    array([2, 0, 1])
    """
    values, sample_labels = check_numbers("widths", widths), np.asarray(labels)
    if values.ndim != 1 or sample_labels.shape != values.shape or not values.size:
        raise ValueError(
            "widths and labels must hold one entry for each sample, got the shapes "
            f"{values.shape} and {sample_labels.shape}. Pass both for the same samples."
        )
    levels = sorted(set(sample_labels.tolist()), key=natural_sort_key)
    position = {level: k for k, level in enumerate(levels)}
    clusters = np.array([position[level] for level in sample_labels.tolist()], dtype=np.intp)
    order = np.lexsort((-values, clusters))
    # The gap between two clusters is 2 % of the height of all bars, but at least the height of one
    # bar. A gap of one bar would not be visible among hundreds of bars.
    gap = max(1.0, 0.02 * values.size)
    places = np.arange(values.size) + gap * clusters[order]
    members = [clusters[order] == k for k in range(len(levels))]
    are_integers = np.issubdtype(sample_labels.dtype, np.integer)
    return SilhouetteRows(
        order=order,
        places=places,
        clusters=clusters[order],
        names=tuple(f"cluster {level + 1}" if are_integers else str(level) for level in levels),
        averages=np.array([values[order][m].mean() for m in members]),
        centres=np.array([places[m].mean() for m in members]),
    )
