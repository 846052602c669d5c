"""The gap statistic (Tibshirani, Walther and Hastie 2001) of one group of samples.

log W_k, the dispersion within k clusters, is compared with what the same clustering finds in
samples without clusters: uniform on the box that is aligned with the principal axes of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.gap import GapTestSettings, gap_test
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.trees.tree import Linkage, Metric

GapRule = Literal["Tibs2001SEmax", "firstSEmax", "globalSEmax", "firstmax", "globalmax"]
GAP_RULES: tuple[GapRule, ...] = get_args(GapRule)

# When to look whether the verdict is certain already, and how many standard errors make it so
# (measured by benchmarks/bench.py). In small groups log W has a long tail, which few samples do not
# show; there they are cheap, and all are drawn.
_FIRST_LOOK, _BETWEEN_LOOKS, _CERTAIN = 15, 10, 4.0
_SMALL_GROUP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSettings:
    """How a group of samples is tested.

    With the default rule and two clusters, each reference sample needs its top split only.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    n_references: int = 50
    rule: GapRule = "Tibs2001SEmax"
    max_clusters: int = 2
    stop_early: bool = True  # draw no more reference samples once the verdict is certain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GapCurve:
    """Gap statistic for 1..k clusters."""

    log_dispersion: Float  # (k,), log W of the data
    reference: Float  # (drawn, k), log W of the reference samples
    gap: Float  # (k,), mean of the reference minus the data
    standard_error: Float  # (k,), of the simulation, as if all wanted samples had been drawn
    n_clusters: int  # what the rule prefers


def gap_curve(
    X: Float,
    distances: Float,
    *,
    partitions: Sequence[Labels],
    rng: np.random.Generator,
    settings: GapSettings,
) -> GapCurve:
    """Return the gap statistic of a group for partitions of it into 1, 2, ... clusters.

    X holds the group's samples, `distances` what the metric says of them.
    """
    is_split_test = settings.rule == "Tibs2001SEmax" and len(partitions) == 2
    is_large = X.shape[0] >= _SMALL_GROUP and X.shape[1] > 1
    looks = settings.stop_early and is_split_test and is_large
    test_settings = GapTestSettings(
        linkage=LinkageMethod[settings.linkage].value,
        power=distance_power(settings.metric),
        n_references=settings.n_references,
        first_check=_FIRST_LOOK if looks else settings.n_references,
        check_interval=_BETWEEN_LOOKS,
        n_standard_errors=_CERTAIN,
    )
    observed, reference = gap_test(X, distances, np.stack(partitions), rng, test_settings)
    gap = reference.mean(axis=0) - observed
    standard_error = reference.std(axis=0, ddof=1) * np.sqrt(1 + 1 / settings.n_references)
    return GapCurve(
        log_dispersion=observed,
        reference=reference,
        gap=gap,
        standard_error=standard_error,
        n_clusters=preferred_number(gap, standard_error, settings.rule),
    )


def distance_power(metric: Metric) -> int:
    """Return the power of a length that a metric measures."""
    return 2 if metric == "sqeuclidean" else 1


def preferred_number(gap: Float, standard_error: Float, rule: GapRule) -> int:
    """Return the number of clusters that a rule prefers, given the gaps for 1, 2, ... clusters."""
    return _RULES[rule](gap, standard_error)


def _first_maximum(gap: Float) -> int:
    falls = np.flatnonzero(np.diff(gap) <= 0)
    return int(falls[0]) if falls.size else gap.size - 1


def _within_one_error(gap: Float, standard_error: Float, peak: int) -> int:
    """Return the smallest number whose gap is within one error, the peak's, of the peak's gap."""
    close = np.flatnonzero(gap[: peak + 1] >= gap[peak] - standard_error[peak])
    return int(close[0]) + 1


def _tibshirani(gap: Float, standard_error: Float) -> int:
    """Smallest k with gap(k) >= gap(k+1) - se(k+1)."""
    enough = np.flatnonzero(gap[:-1] >= (gap - standard_error)[1:])
    return int(enough[0]) + 1 if enough.size else gap.size


_RULES: dict[GapRule, Callable[[Float, Float], int]] = {
    "Tibs2001SEmax": _tibshirani,
    "firstSEmax": lambda gap, se: _within_one_error(gap, se, _first_maximum(gap)),
    "globalSEmax": lambda gap, se: _within_one_error(gap, se, int(np.argmax(gap))),
    "firstmax": lambda gap, _: _first_maximum(gap) + 1,
    "globalmax": lambda gap, _: int(np.argmax(gap)) + 1,
}
