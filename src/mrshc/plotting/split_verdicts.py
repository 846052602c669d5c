"""The gap test of each node of a tree as a verdict and a label. No drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.plotting.arguments import check_table

Verdict = Literal["made", "not supported", "supported, not made"]
Table = Mapping[str, Any]

_COLUMNS = ("node", "height", "drop", "expected_drop", "standard_error", "supported", "split")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitMark:
    """A node of the tree that was tested, and what came of it."""

    node: int
    verdict: Verdict
    excess: float  # drop in log dispersion beyond the expected one, in standard errors
    label: str


def split_marks(tests: Table) -> list[SplitMark]:
    """Return the tested nodes, the highest first.

    Parameters
    ----------
    tests : mapping of str to array-like
        `split_tests_` of an estimator.

    Examples
    --------
    >>> from mrshc.plotting import split_marks
    >>> tests = {"node": [4], "height": [1.0], "drop": [0.5], "expected_drop": [0.3],
    ...          "standard_error": [0.1], "supported": [True], "split": [True]}
    >>> mark, = split_marks(tests)
    >>> mark.verdict, mark.label
    ('made', '+2.0')
    """
    check_table("tests", tests, _COLUMNS)
    columns = {name: np.asarray(column) for name, column in tests.items()}
    beyond = np.asarray(columns["drop"] - columns["expected_drop"], dtype=np.float64)
    error = np.asarray(columns["standard_error"], dtype=np.float64)
    # Without spread in the reference samples any difference is infinitely many errors.
    limit = np.where(beyond == 0, 0.0, np.copysign(np.inf, beyond))
    excess = np.divide(beyond, error, out=limit, where=error > 0)
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
        return "made"
    return "supported, not made" if supported else "not supported"


def _format_signed(value: float) -> str:
    if np.isinf(value):
        return ("+" if value > 0 else "-") + "\N{INFINITY}"
    return f"{value:+.1f}" if abs(value) < 100 else f"{value:+.0f}"
