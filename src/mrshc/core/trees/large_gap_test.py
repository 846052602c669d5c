"""The gap test of a group of many samples, with reference data sets in several threads."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.gap import (
    GapTestSettings,
    ReferenceBox,
    is_test_decided,
    large_reference_log_dispersions,
    observed_log_dispersions,
    reference_log_dispersions,
)
from mrshc.core.parallel import run_parts
from mrshc.core.trees.matrix_pool import MatrixPool


def large_gap_test(
    box: ReferenceBox,
    distances: Float,
    partitions: Index,
    rng: np.random.Generator,
    settings: GapTestSettings,
) -> tuple[Float, Float]:
    """Return log W_k of a group of samples and of simulated reference data sets without clusters.

    The parameters and the result are those of :func:`mrshc.core.kernels.gap.gap_test`. The
    reference data sets are drawn one after another from the generator. Those between two checks for
    early stopping are processed in the threads of the context
    :func:`~mrshc.core.parallel.threads_for_parts`. For squared Euclidean distances, each thread
    needs one matrix of the distances between the samples.
    """
    n = distances.shape[0]
    observed = observed_log_dispersions(distances, partitions, settings.power)
    reference = np.empty((0, partitions.shape[0]))
    matrices = MatrixPool(n)

    def log_dispersions(sample: Float) -> Float:
        if box.axes is not None or settings.max_clusters is not None:
            return reference_log_dispersions(sample, box, n, settings)
        with matrices.borrow() as working:
            return large_reference_log_dispersions(sample, box.ranges, settings.linkage, working)

    while len(reference) < settings.n_references:
        if is_test_decided(reference, observed, settings):
            break
        count = _n_before_next_check(len(reference), settings)
        samples = ((rng.random((box.n_rows, box.ranges.size)),) for _ in range(count))
        reference = np.concatenate([reference, np.stack(run_parts(log_dispersions, samples))])
    return observed, reference


def _n_before_next_check(n_drawn: int, settings: GapTestSettings) -> int:
    """Return the number of reference data sets to draw before the next check, or the last one."""
    since_first = n_drawn - settings.first_check
    count = -since_first
    if since_first >= 0:
        count = settings.check_interval - since_first % settings.check_interval
    return min(count, settings.n_references - n_drawn)
