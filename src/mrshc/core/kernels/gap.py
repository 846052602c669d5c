"""Dispersions for the gap statistic of a group of samples (Tibshirani, Walther and Hastie 2001).

W_k is the dispersion within k clusters. The gap statistic compares log W_k of the samples with
log W_k of reference data sets, which are simulated without clusters. Each reference data set is
uniform on the box that encloses the samples and is aligned with their principal axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.agglomerated_dispersions import dispersion, top_dispersions
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.large_dispersions import large_top_dispersions
from mrshc.core.kernels.principal_box import (
    absolute_distances,
    correlation_distances,
    squared_distances_from_gram,
)
from mrshc.core.kernels.vectors import copy_into

# Dispersions smaller than this fraction of W_1 are replaced by this fraction of W_1, so that their
# logarithms are finite. The fraction is below the relative rounding error of double precision, so a
# smaller dispersion means that the samples within each cluster are identical.
_MIN_RELATIVE_DISPERSION = 1e-16


class GapTestSettings(NamedTuple):
    """Settings of the gap test of a group of samples.

    The test simulates reference data sets, which have no clusters. The decision between one and two
    clusters is the sign of the margin gap(2) - se(2) - gap(1). At regular intervals, the test
    checks whether the decision is already certain, and stops early in that case. There are no
    checks if `first_check` equals `n_references`.
    """

    linkage: int  # value of a LinkageMethod
    power: int  # 1: city-block distances; 2: squared distances, W_k is a sum of their square roots
    # the argument of `top_dispersions`: None if there are at most two clusters and the linkage is
    # reducible, otherwise the largest number of clusters
    max_clusters: int | None
    n_references: int  # maximum number of reference data sets
    first_check: int  # number of reference data sets before the first check
    check_interval: int  # number of reference data sets between checks
    # the decision is certain if the margin is more than this many standard errors away from zero
    n_standard_errors: float


class ReferenceBox(NamedTuple):
    """The box on which reference data sets are uniform, and the metric of their distances.

    A reference data set has m samples in the box. If there are n > m samples in the group, the
    other n - m samples are constant. Their correlation distance to every other sample is 1.

    Numba compiles a version of the gap test for each metric, since the types of `axes` and
    `midpoint` depend on the metric.
    """

    n_rows: int  # m
    ranges: Float  # (d,), lengths of the sides of the box, along the d principal axes
    # (d, d'), the axes in the coordinates of the features; None for squared Euclidean distances.
    # These do not change under rotation, so they can be computed from the coordinates along the
    # principal axes. City-block distances and correlations do change.
    axes: Float | None
    # (d',), midpoint of the box, on which correlations depend; None for other metrics
    midpoint: Float | None


@jit()
def gap_test(
    box: ReferenceBox,
    distances: Float,
    partitions: Index,
    rng: np.random.Generator,
    settings: GapTestSettings,
) -> tuple[Float, Float]:
    """Return log W_k of a group of samples and of simulated reference data sets without clusters.

    W_k is the dispersion within k clusters. Each reference data set has the same number of samples
    as the group. Its samples are uniform on a box. The simulation stops early if a check finds that
    the decision between one and two clusters is certain.

    Parameters
    ----------
    box : ReferenceBox
        The box, which is aligned with the principal axes of the samples and encloses them.
    distances : array of shape (n, n)
        Distances between the samples; squared distances if `settings.power` is 2.
    partitions : array of shape (max_clusters, n)
        Partitions of the group into 1, 2, ..., max_clusters clusters, in rows.
    rng : numpy.random.Generator
        Random number generator for the reference data sets.
    settings : GapTestSettings
        Linkage, type of distances, number of reference data sets, and rule for early stopping.

    Returns
    -------
    observed : array of shape (max_clusters,)
        log W_k of the given partitions of the group.
    reference : array of shape (n_drawn, max_clusters)
        log W_k of each of the n_drawn reference data sets. Each data set is clustered
        hierarchically, and its tree is cut into k clusters.
    """
    power, n_references = settings.power, settings.n_references
    n, max_clusters = distances.shape[0], partitions.shape[0]
    dispersions = np.empty(max_clusters)
    for k in range(max_clusters):
        dispersions[k] = dispersion(distances, partitions[k], power)
    observed = log_dispersions(dispersions)
    reference = np.empty((n_references, max_clusters))
    for b in range(n_references):
        if _is_check_due(b, settings) and _is_decision_certain(reference[:b], observed, settings):
            return observed, reference[:b].copy()
        sample = rng.random((box.n_rows, box.ranges.size))
        _scale_to_box(sample, box.ranges)
        sample_dispersions = top_dispersions(
            _reference_distances(sample, box.axes, box.midpoint, n),
            settings.linkage,
            power,
            settings.max_clusters,
        )
        copy_into(reference[b], log_dispersions(sample_dispersions))
    return observed, reference


@jit()
def _scale_to_box(sample: Float, ranges: Float) -> None:
    """Transform points of the unit cube, in place, to points of a box that is centred at zero.

    Distances do not depend on the position of the box. For correlations, the midpoint of the box is
    added later.
    """
    for i in range(sample.shape[0]):
        for k in range(ranges.size):
            sample[i, k] = (sample[i, k] - 0.5) * ranges[k]


@jit()
def _reference_distances(
    sample: Float, axes: Float | None, midpoint: Float | None, n: int
) -> Float:
    """Return the distances between the n samples of a reference data set.

    `sample` contains the coordinates of the samples that are not constant along the principal axes.
    `axes` and `midpoint` are those of a `ReferenceBox`. Numba compiles only the branch of the
    metric, since it knows the types of `axes` and `midpoint`.
    """
    if axes is None:
        # Distances are computed from a matrix product, which is much faster than a loop over pairs
        # of samples.
        distances = np.dot(sample, sample.T)
        squared_distances_from_gram(distances)
        return distances
    if midpoint is None:
        return absolute_distances(np.dot(sample, axes))
    return correlation_distances(np.dot(sample, axes) + midpoint, n)


@jit()
def _is_check_due(n_drawn: int, settings: GapTestSettings) -> bool:
    since_first = n_drawn - settings.first_check
    return since_first >= 0 and since_first % settings.check_interval == 0


@jit()
def _is_decision_certain(reference: Float, observed: Float, settings: GapTestSettings) -> bool:
    """Return whether further reference data sets are very unlikely to change the decision.

    The decision is the sign of the margin gap(2) - se(2) - gap(1). The margin depends on the mean
    of log W_2 - log W_1 and on the standard deviation of log W_2 over the reference data sets. The
    remaining reference data sets would change this mean and this standard deviation. If log W_k is
    normally distributed, the standard errors of these changes are known. The decision is certain if
    the margin is large compared with these standard errors.

    Parameters
    ----------
    reference : array of shape (n_drawn, 2)
        log W_1 and log W_2 of the reference data sets drawn so far.
    observed : array of shape (2,)
        log W_1 and log W_2 of the samples.
    settings : GapTestSettings
        Maximum number of reference data sets, and the number of standard errors by which the margin
        must differ from zero.
    """
    n_drawn, n_references = reference.shape[0], settings.n_references
    log_w2, log_ratios = np.empty(n_drawn), np.empty(n_drawn)
    for b in range(n_drawn):
        log_w2[b], log_ratios[b] = reference[b, 1], reference[b, 1] - reference[b, 0]
    mean_ratio, ratio_variance = _mean_and_variance(log_ratios)
    # squared_se is se(2)^2. The factor 1 + 1/B accounts for the simulation error, where B is the
    # maximum number of reference data sets.
    variance = _mean_and_variance(log_w2)[1]
    squared_se = variance * n_drawn / (n_drawn - 1) * (1 + 1 / n_references)
    margin = mean_ratio - np.sqrt(squared_se) - (observed[1] - observed[0])
    # This is the variance of the difference between the mean over the data sets drawn so far and
    # the mean over all B data sets.
    variance_of_mean = ratio_variance * n_drawn / (n_drawn - 1) * (1 / n_drawn - 1 / n_references)
    # The variance of the change in se(2) is computed in the same way. If s is the standard
    # deviation of m normal values, the variance of s is about s^2 / (2 (m - 1)).
    variance_of_se = squared_se * (1 / (n_drawn - 1) - 1 / (n_references - 1)) / 2
    return abs(margin) > settings.n_standard_errors * np.sqrt(variance_of_mean + variance_of_se)


@jit()
def _mean_and_variance(values: Float) -> tuple[float, float]:
    """Return the mean of a vector, and the mean of the squared deviations from it."""
    total, squares = 0.0, 0.0
    for value in values:
        total += value
    mean = total / values.size
    for value in values:
        squares += (value - mean) * (value - mean)
    return mean, squares / values.size


@jit()
def log_dispersions(dispersions: Float) -> Float:
    """Return the logarithms of the dispersions W_1, W_2, ...

    A dispersion is zero if all samples within each cluster are identical. Dispersions of zero are
    first replaced by a tiny fraction of W_1, so the logarithms are finite unless W_1 is zero.
    """
    out = np.empty(dispersions.size)
    for k in range(dispersions.size):
        out[k] = np.log(np.maximum(dispersions[k], _MIN_RELATIVE_DISPERSION * dispersions[0]))
    return out


# The following functions are the parts of `gap_test`, which `split_test` uses, too. For groups of
# many samples, they are called from Python, so that reference data sets can be processed in several
# threads.
@jit()
def observed_log_dispersions(distances: Float, partitions: Index, power: int) -> Float:
    """Return log W_k of the given partitions of a group; the parameters are those of `gap_test`."""
    dispersions = np.empty(partitions.shape[0])
    for k in range(dispersions.size):
        dispersions[k] = dispersion(distances, partitions[k], power)
    return log_dispersions(dispersions)


@jit()
def reference_log_dispersions(
    sample: Float, box: ReferenceBox, n: int, settings: GapTestSettings
) -> Float:
    """Return log W_k of one reference data set of n samples.

    `sample` contains points of the unit cube and is overwritten. The other parameters are those of
    `gap_test`.
    """
    _scale_to_box(sample, box.ranges)
    distances = _reference_distances(sample, box.axes, box.midpoint, n)
    return log_dispersions(
        top_dispersions(distances, settings.linkage, settings.power, settings.max_clusters)
    )


@jit()
def large_reference_log_dispersions(
    sample: Float, ranges: Float, linkage: int, working: Float
) -> Float:
    """Return log W_1 and log W_2 of one reference data set, with squared Euclidean distances.

    The result is that of `reference_log_dispersions` for reducible linkages and two clusters. The
    distances are computed in `working`, an array of shape (n, n), which is overwritten.
    """
    _scale_to_box(sample, ranges)
    return log_dispersions(large_top_dispersions(sample, linkage, working))


@jit()
def is_test_decided(reference: Float, observed: Float, settings: GapTestSettings) -> bool:
    """Return whether a check is due and finds that the decision is certain.

    `reference` contains log W_k of the reference data sets drawn so far, and `observed` those of
    the samples.
    """
    is_due = _is_check_due(reference.shape[0], settings)
    return is_due and _is_decision_certain(reference, observed, settings)
