"""How much a tree says about features that it was not built on.

Clusters that only describe the features that made them explain nothing else; clusters of the
samples themselves show in other features too. What a cut of the tree explains in those is compared
with what it would explain if the samples were shuffled, whose mean and variance are known exactly
(Kazi-Aoual, Hitier, Sabatier and Lebreton 1995).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrshc.core.arrays import Float, Labels

# Cuts over whose evidence a tree is judged: no single one is known to be right. Measured on real
# data, the mean over them chooses much better trees than the evidence of the pruned clusters.
JUDGED_CUTS = 7
# The most clusters that are looked for, and the evidence below which there are none: standard
# deviations of shuffled samples.
MOST_CLUSTERS, SUPPORTED = 10, 4.0


def shuffle_scores(partitions: Sequence[Labels], gram: Float) -> Float:
    """Return for each partition by how much it explains more than if samples were shuffled.

    `gram` holds the inner products of the samples in the features to be explained. The sum of
    squares between clusters is given in standard deviations from its mean over all shuffles; zero
    where there is nothing to explain.
    """
    n = gram.shape[0]
    centred = gram - gram.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    whole = float(np.trace(centred))
    scores = np.zeros(len(partitions))
    rounding = np.finfo(np.float64).eps
    if n < 4 or whole <= rounding * n * float(np.trace(gram)):
        return scores
    centred /= whole  # the unit does not matter, but squares of squares must exist
    total = 1.0
    squares, fourths = float(np.sum(centred**2)), float(np.sum(np.diag(centred) ** 2))
    for i, labels in enumerate(partitions):
        sizes = np.bincount(labels)
        k = sizes.size
        membership = np.zeros((n, k))
        membership[np.arange(n), labels] = 1.0
        between = float(np.sum((membership * (centred @ membership)).sum(axis=0) / sizes))
        freedom = k - 1
        own = float(np.sum((1.0 / sizes[labels] - 1.0 / n) ** 2))
        mean = freedom * total / (n - 1)
        variance = (
            2.0
            * ((n - 1) * freedom - freedom**2)
            * ((n - 1) * squares - total**2)
            / ((n - 1) ** 2 * (n + 1) * (n - 2))
        ) + (
            (n * (n + 1) * own - (n - 1) * (freedom**2 + 2 * freedom))
            * (n * (n + 1) * fourths - (n - 1) * (total**2 + 2 * squares))
            / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
        )
        if variance > rounding:  # of terms that may cancel
            scores[i] = (between - mean) / np.sqrt(variance)
    return scores
