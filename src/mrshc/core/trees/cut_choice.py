"""The choice of a cut of a tree, that is, of the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.agglomerated_dispersions import dispersion

# Largest number of clusters that is chosen by the scores of cuts. More clusters are difficult to
# interpret.
MAX_CLUSTERS = 10


def best_cut(scores: Float) -> int:
    """Return the number of clusters, at most 10, of the cut with the largest score.

    `scores` contains the scores of the cuts into 2, 3, ... clusters. The result is 1 if there are
    no scores, that is, if there is a single sample.
    """
    # Cuts into more than 10 clusters are made only if the user gave such a number of clusters.
    considered = scores[: MAX_CLUSTERS - 1]
    return int(considered.argmax()) + 2 if considered.size else 1


def drop_ratios(distances: Float, partitions: Sequence[Labels]) -> Float:
    r"""Return, for each cut, by how much its last split exceeds the next split.

    Parameters
    ----------
    distances : ndarray of shape (n, n)
        Distances between the samples.
    partitions : sequence of ndarray of shape (n,)
        Cluster labels of the samples for the cuts of one tree into 1, 2, ..., m clusters.

    Returns
    -------
    ratios : ndarray of shape (m - 2,)
        Ratio of each cut into 2, 3, ..., m - 1 clusters.

    Notes
    -----
    Let :math:`W_k` be the dispersion within k clusters: the sum, over clusters, of the distances
    between all pairs of samples in the cluster, divided by the number of its samples. For squared
    Euclidean distances, it is the sum of squares within clusters. The ratio is

    .. math::

        \frac{W_{k-1} - W_k}{W_k - W_{k+1}}.

    It is large if the split into k clusters reduces the dispersion much more than the next split. A
    plot of :math:`W_k` then has an elbow at k. The ratio has no unit and no tuning constant.
    """
    # The kernel divides each sum by twice the size of the cluster.
    dispersions = [dispersion(distances, labels, 1) for labels in partitions]
    drops = -2.0 * np.diff(dispersions)
    # Splits of identical samples have a drop of zero. The lower limit keeps the ratio finite.
    negligible = np.finfo(np.float64).eps * max(float(distances.sum()), np.finfo(np.float64).tiny)
    limited = np.maximum(drops, negligible)
    ratios: Float = limited[:-1] / limited[1:]
    return ratios
