"""The gap statistic of a group of samples: its dispersions and those of reference samples.

Tibshirani, Walther and Hastie (2001), with reference samples drawn in principal coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.agglomerated_dispersions import dispersion, top_dispersions
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.principal_box import (
    absolute_distances,
    principal_box,
    principal_ranges,
    squared_distances_from_gram,
)

# Dispersions are raised to at least this fraction of W_1, so that their logarithms are finite. It
# is below the relative rounding error of double precision: smaller dispersions mean that the
# samples of each cluster are identical.
_MIN_RELATIVE_DISPERSION = 1e-16


class GapTestSettings(NamedTuple):
    """Settings of the gap test of a group of samples, and of its early stopping."""

    linkage: int  # value of a LinkageMethod
    power: int  # 2: squared Euclidean distances, W_k adds up their roots; 1: city-block distances
    n_references: int
    first_check: int  # reference samples before the first check; n_references for no check
    check_interval: int  # reference samples between checks
    n_standard_errors: float  # distance of the margin from zero at which the decision is certain


@jit()
def gap_test(
    X: Float,
    distances: Float,
    partitions: Index,
    rng: np.random.Generator,
    settings: GapTestSettings,
) -> tuple[Float, Float]:
    """Return log W_k of a group of samples and of reference samples without clusters.

    Reference samples are uniform on a box along the principal axes of X. No more of them are drawn
    once the decision between one and two clusters is certain.

    Parameters
    ----------
    X : array of shape (n, q)
        Samples of the group.
    distances : array of shape (n, n)
        Their distances; squared if `settings.power` is 2.
    partitions : array of shape (max_clusters, n)
        Partitions of the group into 1, 2, ..., max_clusters clusters.
    rng : numpy.random.Generator
        Draws the reference samples.
    settings : GapTestSettings
        Linkage, metric, number of reference samples and early stopping.

    Returns
    -------
    observed : array of shape (max_clusters,)
        log W_k of the partitions.
    reference : array of shape (n_drawn, max_clusters)
        log W_k of the topmost k clusters of each reference sample.
    """
    power, n_references = settings.power, settings.n_references
    n, max_clusters = X.shape[0], partitions.shape[0]
    dispersions = np.empty(max_clusters)
    for k in range(max_clusters):
        dispersions[k] = dispersion(distances, partitions[k], power)
    observed = _log_dispersions(dispersions)
    # Euclidean distances do not change under rotation: reference samples remain in principal
    # coordinates, and the axes are not needed. City-block distances do change.
    if power == 2:
        box, axes = principal_ranges(X), np.empty((0, 0))
    else:
        box, axes = principal_box(X)
    reference = np.empty((n_references, max_clusters))
    for b in range(n_references):
        if _is_check_due(b, settings) and _is_decision_certain(reference[:b], observed, settings):
            return observed, reference[:b].copy()
        # A box around zero: distances do not depend on its centre.
        sample = rng.random((n, box.size))
        for i in range(n):
            for k in range(box.size):
                sample[i, k] = (sample[i, k] - 0.5) * box[k]
        if power == 2:
            # A matrix product is much faster than loops over pairs of samples.
            reference_distances = np.dot(sample, sample.T)
            squared_distances_from_gram(reference_distances)
        else:
            reference_distances = absolute_distances(np.dot(sample, axes))
        sample_dispersions = top_dispersions(
            reference_distances, settings.linkage, power, max_clusters
        )
        reference[b] = _log_dispersions(sample_dispersions)
    return observed, reference


@jit()
def _is_check_due(n_drawn: int, settings: GapTestSettings) -> bool:
    since_first = n_drawn - settings.first_check
    return since_first >= 0 and since_first % settings.check_interval == 0


@jit()
def _is_decision_certain(reference: Float, observed: Float, settings: GapTestSettings) -> bool:
    """Return whether the reference samples not drawn yet are very unlikely to change the decision.

    The decision is the sign of the margin gap(2) - se(2) - gap(1), which consists of a mean and a
    standard deviation over reference samples. Their changes between the samples drawn so far and
    all samples have known standard errors if the samples are normally distributed.
    """
    n_drawn, n_references = reference.shape[0], settings.n_references
    log_ratios = reference[:, 1] - reference[:, 0]
    # se(2)^2, with the factor 1 + 1/B for the simulation error of B reference samples.
    squared_se = reference[:, 1].var() * n_drawn / (n_drawn - 1) * (1 + 1 / n_references)
    margin = log_ratios.mean() - np.sqrt(squared_se) - (observed[1] - observed[0])
    # Variance of the difference between the mean of the samples so far and that of all B.
    variance_of_mean = log_ratios.var() * n_drawn / (n_drawn - 1) * (1 / n_drawn - 1 / n_references)
    # Likewise for the standard deviation s of m normal values, with the variance s^2 / (2 (m - 1)).
    variance_of_se = squared_se * (1 / (n_drawn - 1) - 1 / (n_references - 1)) / 2
    return abs(margin) > settings.n_standard_errors * np.sqrt(variance_of_mean + variance_of_se)


@jit()
def _log_dispersions(dispersions: Float) -> Float:
    """Return log W_1, log W_2, ..., finite even where clusters hold identical samples."""
    return np.log(np.maximum(dispersions, _MIN_RELATIVE_DISPERSION * dispersions[0]))
