"""The gap test that decides whether a group of samples is split into two clusters.

The function `split_test` does the same as :func:`~mrshc.core.kernels.gap.gap_test` in the case that
pruning needs most often: one cluster against two, squared Euclidean distances, and a reducible
linkage. All steps are compiled together, and all reference data sets share their arrays.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.agglomerated_dispersions import split_workspace, write_split_dispersions
from mrshc.core.kernels.gap import (
    GapTestSettings,
    is_test_decided,
    log_dispersions,
    observed_log_dispersions,
)
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.principal_box import principal_ranges
from mrshc.core.kernels.vectors import copy_into


@jit()
def split_test(
    X: Float,
    distances: Float,
    partitions: Index,
    rng: np.random.Generator,
    settings: GapTestSettings,
) -> tuple[Float, Float, Float, Float]:
    """Test whether a group of samples consists of one cluster or of two.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Data of the n samples.
    distances : array of shape (n, n)
        Squared Euclidean distances between the samples.
    partitions : array of shape (2, n)
        Partitions of the group into one and into two clusters.
    rng : numpy.random.Generator
        Random number generator for the reference data sets.
    settings : GapTestSettings
        Settings of the test; `power` is 2, `max_clusters` is None, and there are at least two
        reference data sets.

    Returns
    -------
    observed : array of shape (2,)
        log W_1 and log W_2 of the group.
    reference : array of shape (n_drawn, 2)
        log W_1 and log W_2 of each of the n_drawn reference data sets.
    gap : array of shape (2,)
        Column means of `reference`, minus `observed`.
    standard_error : array of shape (2,)
        Standard errors of `gap`.
    """
    n, n_references = X.shape[0], settings.n_references
    observed = observed_log_dispersions(distances, partitions, settings.power)
    ranges = principal_ranges(X)
    reference, dispersions = np.empty((n_references, 2)), np.empty(2)
    workspace, sample, n_drawn = split_workspace(n), np.empty((n, ranges.size)), 0
    while n_drawn < n_references and not is_test_decided(reference[:n_drawn], observed, settings):
        _draw_in_box(rng, ranges, sample)
        # Distances are computed from a matrix product, which is much faster than a loop over pairs
        # of samples.
        np.dot(sample, sample.T, workspace.products)
        write_split_dispersions(workspace, settings.linkage, dispersions)
        copy_into(reference[n_drawn], log_dispersions(dispersions))
        n_drawn += 1
    drawn = reference[:n_drawn].copy()
    gap, standard_error = _gap_and_standard_error(observed, drawn, n_references)
    return observed, drawn, gap, standard_error


@jit(allocates=False)
def _draw_in_box(rng: np.random.Generator, ranges: Float, out: Float) -> None:
    """Write points that are uniformly distributed on a box to the rows of `out`.

    The box is centred at zero, since distances do not depend on its position.
    """
    for i in range(out.shape[0]):
        for k in range(ranges.size):
            out[i, k] = (rng.random() - 0.5) * ranges[k]


@jit()
def _gap_and_standard_error(
    observed: Float, reference: Float, n_references: int
) -> tuple[Float, Float]:
    """Return the gap statistic of one and of two clusters, and its standard error.

    The standard error refers to `n_references` reference data sets, of which fewer may have been
    drawn. The operations are those of the numpy functions for means and standard deviations, so
    that the results are the same in every digit.
    """
    n_drawn = reference.shape[0]
    gap, standard_error = np.empty(2), np.empty(2)
    for k in range(2):
        total = squares = 0.0
        for b in range(n_drawn):
            total += reference[b, k]
        mean = total / n_drawn
        for b in range(n_drawn):
            squares += (reference[b, k] - mean) * (reference[b, k] - mean)
        gap[k] = mean - observed[k]
        standard_error[k] = np.sqrt(squares / (n_drawn - 1)) * np.sqrt(1 + 1 / n_references)
    return gap, standard_error
