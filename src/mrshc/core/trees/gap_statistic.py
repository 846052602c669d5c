"""The gap statistic of one group of samples.

The group is divided into k clusters, and W_k denotes the dispersion within these clusters.
Reference data sets without clusters are simulated and are clustered in the same way. The gap
statistic is the mean of log W_k over the reference data sets, minus log W_k of the group. The
samples of a reference data set are uniformly distributed on a box that encloses the group and is
aligned with its principal axes.

References
----------
Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a data set
via the gap statistic. Journal of the Royal Statistical Society B 63(2), 411-423.
https://doi.org/10.1111/1467-9868.00293
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.gap import GapTestSettings, ReferenceBox, gap_test
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.principal_box import (
    principal_box,
    principal_box_of_centred_rows,
    principal_ranges,
)
from mrshc.core.kernels.split_test import split_test
from mrshc.core.parallel import MANY_SAMPLES
from mrshc.core.trees.large_gap_test import large_gap_test
from mrshc.core.trees.tree import (
    COMPILED_LINKAGES,
    SQUARED_EUCLIDEAN_METRICS,
    Linkage,
    Metric,
)

# Rules for choosing the number of clusters from the gap statistic. The names are the same as in the
# function `maxSE` of the R package cluster.
GapRule = Literal["Tibs2001SEmax", "firstSEmax", "globalSEmax", "firstmax", "globalmax"]
GAP_RULES: tuple[GapRule, ...] = get_args(GapRule)

# Constants for early stopping. The first two are the number of reference data sets before the first
# check, and the number of reference data sets between checks. The third is the distance from the
# decision boundary, in standard errors, at which the decision is regarded as certain. With these
# values, decisions hardly ever differ from those based on all reference data sets (measured with
# benchmarks/bench.py).
_FIRST_CHECK, _CHECK_INTERVAL, _N_STANDARD_ERRORS = 15, 10, 4.0

# For groups with fewer samples than this, all reference data sets are simulated. In small groups,
# the distribution of log W_k has a long tail, which cannot be estimated from a few reference data
# sets. Moreover, each simulation takes little time.
_MIN_SAMPLES_TO_STOP_EARLY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSettings:
    """Settings of the gap statistic, which is used to test a group of samples for clusters.

    Attributes
    ----------
    linkage : str, default="complete"
        Linkage of the hierarchical clustering.
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance between samples.
    n_references : int, default=50
        Number of reference data sets, which are simulated and have no clusters.
    rule : str, default="Tibs2001SEmax"
        Rule for choosing the number of clusters, one of `GAP_RULES`.
    max_clusters : int, default=2
        Largest number of clusters that is considered.
    stop_early : bool, default=True
        Whether to stop simulating reference data sets once the decision between one and two
        clusters is practically certain. This applies only to the rule "Tibs2001SEmax" with
        `max_clusters=2`, and not to groups with few samples or only one feature.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    n_references: int = 50
    rule: GapRule = "Tibs2001SEmax"
    max_clusters: int = 2
    stop_early: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GapCurve:
    """The gap statistic of a group of samples for partitions into 1, ..., k clusters.

    Attributes
    ----------
    log_dispersion : ndarray of shape (k,)
        Logarithm of the dispersion within clusters, for the group of samples.
    reference : ndarray of shape (n_drawn, k)
        Logarithm of the dispersion within clusters, for each of the n_drawn reference data sets
        that were simulated.
    gap : ndarray of shape (k,)
        Column means of `reference`, minus `log_dispersion`.
    standard_error : ndarray of shape (k,)
        Standard error of the gap statistic: the standard deviation of each column of `reference`,
        multiplied by sqrt(1 + 1 / B), where B is `GapSettings.n_references`.
    n_clusters : int
        Number of clusters that is chosen by the rule `GapSettings.rule`.
    """

    log_dispersion: Float
    reference: Float
    gap: Float
    standard_error: Float
    n_clusters: int


def gap_curve(
    X: Float,
    distances: Float,
    *,
    partitions: Sequence[Labels],
    rng: np.random.Generator,
    settings: GapSettings,
) -> GapCurve:
    """Return the gap statistic of a group of samples for given partitions of the group.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Data of the n samples of the group. With the metric "correlation", X contains only the
        samples that are not constant, of which there must be at least two.
    distances : ndarray of shape (n, n)
        Distances between the samples, in the metric of the settings.
    partitions : sequence of ndarray of shape (n,)
        Partitions of the group into 1, 2, ... clusters, each given by the cluster labels 0, 1, ...
        of the samples.
    rng : numpy.random.Generator
        Random number generator for the reference data sets.
    settings : GapSettings
        Settings of the gap statistic.
    """
    test_settings = _test_settings(settings, X.shape, n_max=len(partitions))
    labels, n = np.array(partitions), len(distances)
    is_euclidean = settings.metric == "sqeuclidean"
    if is_euclidean and test_settings.max_clusters is None and n < MANY_SAMPLES:
        rows = np.ascontiguousarray(X)
        observed, reference, gap, standard_error = split_test(
            rows, distances, labels, rng, test_settings
        )
    else:
        box = _reference_box(X, settings.metric)
        test = gap_test if n < MANY_SAMPLES else large_gap_test
        observed, reference = test(box, distances, labels, rng, test_settings)
        gap = reference.mean(axis=0) - observed
        standard_error = reference.std(axis=0, ddof=1) * np.sqrt(1 + 1 / settings.n_references)
    return GapCurve(
        log_dispersion=observed,
        reference=reference,
        gap=gap,
        standard_error=standard_error,
        n_clusters=preferred_n_clusters(gap, standard_error, settings.rule),
    )


def _test_settings(settings: GapSettings, shape: tuple[int, int], *, n_max: int) -> GapTestSettings:
    """Return the settings of the compiled test of a group, for partitions into 1 to n_max clusters.

    `shape` contains the numbers of samples and features.
    """
    # Early stopping is defined only for the comparison of one cluster with two. It is not used if
    # the group has few samples or if there is only one feature.
    is_split_test = settings.rule == "Tibs2001SEmax" and n_max == 2
    is_large = shape[0] >= _MIN_SAMPLES_TO_STOP_EARLY and shape[1] > 1
    has_checks = settings.stop_early and is_split_test and is_large
    return GapTestSettings(
        linkage=LinkageMethod[settings.linkage].value,
        # 1 - correlation is a squared Euclidean distance between standardised samples, so W_k is
        # computed from its square roots, like W_k of squared Euclidean distances.
        power=2 if settings.metric in SQUARED_EUCLIDEAN_METRICS else 1,
        # The compiled linkages are the reducible linkages.
        max_clusters=None if n_max == 2 and settings.linkage in COMPILED_LINKAGES else n_max,
        n_references=settings.n_references,
        first_check=_FIRST_CHECK if has_checks else settings.n_references,
        check_interval=_CHECK_INTERVAL,
        n_standard_errors=_N_STANDARD_ERRORS,
    )


def _reference_box(X: Float, metric: Metric) -> ReferenceBox:
    """Return the box that encloses the samples of X and is aligned with their principal axes."""
    n_rows = X.shape[0]
    if metric == "correlation":
        return ReferenceBox(n_rows, *principal_box_of_centred_rows(X))
    if metric == "cityblock":
        return ReferenceBox(n_rows, *principal_box(X), None)
    return ReferenceBox(n_rows, principal_ranges(X), None, None)


def preferred_n_clusters(gap: Float, standard_error: Float, rule: GapRule) -> int:
    """Return the number of clusters that a rule chooses from the gap statistic.

    Parameters
    ----------
    gap : ndarray of shape (k,)
        Gap statistic for 1, ..., k clusters.
    standard_error : ndarray of shape (k,)
        Standard error of the gap statistic for 1, ..., k clusters.
    rule : str
        Name of the rule, one of `GAP_RULES`.
    """
    return _RULES[rule](gap, standard_error)


def _first_local_maximum(gap: Float) -> int:
    """Return the position, counted from zero, of the first local maximum of `gap`.

    A value is a local maximum if the next value is not larger. If all values increase, the last
    position is returned.
    """
    falls = np.flatnonzero(np.diff(gap) <= 0)
    return int(falls[0]) if falls.size else gap.size - 1


def _smallest_within_one_error(gap: Float, standard_error: Float, peak: int) -> int:
    """Return the smallest number of clusters whose gap is within one standard error of a peak.

    `peak` is the position of the peak in `gap`, counted from zero. Later positions are not
    considered. The standard error is that of the gap at the peak.
    """
    close = np.flatnonzero(gap[: peak + 1] >= gap[peak] - standard_error[peak])
    return int(close[0]) + 1


def _tibshirani_rule(gap: Float, standard_error: Float) -> int:
    """Return the smallest number of clusters k with gap(k) >= gap(k + 1) - se(k + 1).

    If there is no such k, return the largest number of clusters.
    """
    for k in range(1, gap.size):
        if gap[k - 1] >= gap[k] - standard_error[k]:
            return k
    return gap.size


_RULES: dict[GapRule, Callable[[Float, Float], int]] = {
    "Tibs2001SEmax": _tibshirani_rule,
    "firstSEmax": lambda gap, se: _smallest_within_one_error(gap, se, _first_local_maximum(gap)),
    "globalSEmax": lambda gap, se: _smallest_within_one_error(gap, se, int(np.argmax(gap))),
    "firstmax": lambda gap, _: _first_local_maximum(gap) + 1,
    "globalmax": lambda gap, _: int(np.argmax(gap)) + 1,
}
