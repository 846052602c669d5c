"""Outcomes of gap tests. Nothing is drawn here.

The gap test of a node of a tree is the test, by the gap statistic, of whether the samples of the
node form two clusters rather than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.plotting.arguments import check_table

Verdict = Literal["made", "made, not supported", "not supported", "supported, not made"]
Table = Mapping[str, Any]

_COLUMNS = ("node", "height", "drop", "expected_drop", "standard_error", "supported", "split")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitMark:
    """Outcome of the gap test of one node of the tree.

    Attributes
    ----------
    node : int
        Number of the node as in scipy, where the first merge has the number n_samples.
    verdict : {"made", "made, not supported", "not supported", "supported, not made"}
        Whether the node was split, and whether the gap statistic supports the split. "made" stands
        for a split that is supported, and "not supported" for a split that was not made.
    excess : float
        Decrease in the log of the within-cluster dispersion due to the split, minus the decrease
        expected in data without clusters, in units of the standard error.
    label : str
        The value of `excess` as text, with its sign.
    """

    node: int
    verdict: Verdict
    excess: float
    label: str


def split_marks(tests: Table) -> list[SplitMark]:
    """Return the outcomes of the gap tests of a tree, in decreasing order of the node heights.

    Parameters
    ----------
    tests : mapping of str to array-like
        Table with one row for each test, such as `split_tests_` of an estimator.

    Returns
    -------
    marks : list of SplitMark
        Outcome for each tested node.

    Notes
    -----
    Splitting a node decreases the log of the within-cluster dispersion by `drop`. In simulated
    reference data sets without clusters, the mean decrease is `expected_drop`. The excess is the
    difference `drop - expected_drop`, divided by `standard_error`. By the rule of Tibshirani,
    Walther and Hastie (2001), a split is supported if the excess is larger than 1.

    References
    ----------
    Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a data
    set via the gap statistic. Journal of the Royal Statistical Society B 63(2), 411-423.
    https://doi.org/10.1111/1467-9868.00293

    Examples
    --------
    >>> from mrshc.plotting import split_marks
    >>> tests = {"node": [4], "height": [1.0], "drop": [0.5], "expected_drop": [0.3],
    ...          "standard_error": [0.1], "supported": [True], "split": [True]}
    >>> mark, = split_marks(tests)
    >>> mark.verdict, mark.label
    ('made', '+2.0')
    """
    check_table("tests", tests, columns=_COLUMNS)
    columns = {name: np.asarray(column) for name, column in tests.items()}
    difference = np.asarray(columns["drop"] - columns["expected_drop"], dtype=np.float64)
    error = np.asarray(columns["standard_error"], dtype=np.float64)
    # If all reference data sets give the same value, the standard error is zero. The excess is then
    # set to plus or minus infinity, according to the sign of the difference, or to zero if the
    # difference is zero.
    limit = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    excess = np.divide(difference, error, out=limit, where=error > 0)
    return [
        SplitMark(
            node=int(columns["node"][i]),
            verdict=_split_verdict(
                supported=bool(columns["supported"][i]), split=bool(columns["split"][i])
            ),
            excess=float(excess[i]),
            label=_format_signed(float(excess[i])),
        )
        for i in np.lexsort((columns["node"], columns["height"]))[::-1]
    ]


def _split_verdict(*, supported: bool, split: bool) -> Verdict:
    if split:
        return "made" if supported else "made, not supported"
    return "supported, not made" if supported else "not supported"


def _format_signed(value: float) -> str:
    """Return a number as text, with its sign and one decimal.

    Numbers of 100 or more in absolute value are written without decimals, to keep labels short.
    """
    if np.isinf(value):
        return ("+" if value > 0 else "-") + "\N{INFINITY}"
    return f"{value:+.1f}" if abs(value) < 100 else f"{value:+.0f}"
