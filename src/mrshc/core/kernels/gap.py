"""The gap statistic of a group of samples: its dispersions and those of reference samples."""

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

# Dispersions below this fraction of W_1 are rounding errors: the logarithm must stay finite.
_NO_DISPERSION = 1e-16


class GapTestSettings(NamedTuple):
    """How a group of samples is tested, and when no more reference samples are drawn."""

    linkage: int  # value of a LinkageMethod
    power: int  # 2: squared Euclidean distances, dispersions of their roots; 1: absolute distances
    n_references: int
    first_check: int  # reference samples drawn before the first check; n_references: no check
    check_interval: int  # reference samples drawn between checks
    n_standard_errors: float  # distance of the margin from zero at which the decision is certain


@jit()
def gap_test(
    X: Float,
    distances: Float,
    partitions: Index,
    rng: np.random.Generator,
    settings: GapTestSettings,
) -> tuple[Float, Float]:
    """Return log W_k of a group, (k,), and of reference samples without clusters, (samples, k).

    W_k is the dispersion within the clusters of the k-th row of `partitions` or, in a reference
    sample, within its topmost k clusters. Reference samples are uniform in a box along the
    principal axes of X. None are drawn after a check finds that the decision is certain.
    """
    power, n_references = settings.power, settings.n_references
    n, max_clusters = X.shape[0], partitions.shape[0]
    dispersions = np.empty(max_clusters)
    for k in range(max_clusters):
        dispersions[k] = dispersion(distances, partitions[k], power)
    observed = _log_dispersions(dispersions)
    if power == 2:  # Euclidean distances are the same after rotation to the principal axes
        box, axes = principal_ranges(X), np.empty((0, 0))
    else:
        box, axes = principal_box(X)
    reference = np.empty((n_references, max_clusters))
    for b in range(n_references):
        if _is_check_due(b, settings) and _is_certain(reference[:b], observed, settings):
            return observed, reference[:b].copy()
        sample = rng.random((n, box.size))
        for i in range(n):
            for k in range(box.size):
                sample[i, k] = (sample[i, k] - 0.5) * box[k]
        if power == 2:
            within = np.dot(sample, sample.T)
            squared_distances_from_gram(within)
        else:
            within = absolute_distances(np.dot(sample, axes))
        top = top_dispersions(within, settings.linkage, power, max_clusters)
        reference[b] = _log_dispersions(top)
    return observed, reference


@jit()
def _is_check_due(n_drawn: int, settings: GapTestSettings) -> bool:
    since_first = n_drawn - settings.first_check
    return since_first >= 0 and since_first % settings.check_interval == 0


@jit()
def _is_certain(reference: Float, observed: Float, settings: GapTestSettings) -> bool:
    """Tell whether the reference samples not drawn yet could hardly change the decision.

    The decision is the sign of gap(2) - se(2) - gap(1). Between the samples drawn so far and all of
    them, this margin changes by the change of a mean and of a standard deviation, whose standard
    errors, for normally distributed samples, are known.
    """
    drawn, n_references = reference.shape[0], settings.n_references
    falls = reference[:, 1] - reference[:, 0]
    spread = reference[:, 1].var() * drawn / (drawn - 1) * (1 + 1 / n_references)
    margin = falls.mean() - np.sqrt(spread) - (observed[1] - observed[0])
    variance_of_mean = falls.var() * drawn / (drawn - 1) * (1 / drawn - 1 / n_references)
    variance_of_error = spread * (1 / (drawn - 1) - 1 / (n_references - 1)) / 2
    return abs(margin) > settings.n_standard_errors * np.sqrt(variance_of_mean + variance_of_error)


@jit()
def _log_dispersions(dispersions: Float) -> Float:
    """Return log W_1, log W_2, ..., finite even where clusters hold identical samples."""
    return np.log(np.maximum(dispersions, _NO_DISPERSION * dispersions[0]))
