"""Explanation of a choice: the verdict, the rule as text, and the curves of compared scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.selection.candidates import CandidateTable

CandidateState = Literal["kept", "removed", "screened out"]

# Titles of the horizontal axes of a search over (q, rank).
RANK_AXIS, N_FEATURES_AXIS = "rank (number of sparse components)", "number of features q"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Scores of candidates, to be plotted at the positions 0, 1, ... from left to right.

    Attributes
    ----------
    heading : str
        Title of the plot.
    x_name, y_name : str
        Titles of the axes.
    ticks : tuple of str of length m
        Tick labels: the value of each candidate, such as its rank.
    values : ndarray of shape (m,)
        Score of each candidate.
    errors : ndarray of shape (m,) or None
        Lengths of the error bars; None for no error bars.
    states : tuple of {"kept", "removed", "screened out"} of length m
        Whether each candidate took part in the choice.
    notes : tuple of str of length m
        Texts next to the points; may be empty.
    chosen : int
        Position of the chosen candidate.

    See Also
    --------
    SearchStory : All curves of a search, with texts.
    mrshc.plotting.search_curves : Draws them.
    """

    heading: str
    x_name: str
    y_name: str
    ticks: tuple[str, ...]
    values: Float
    errors: Float | None
    states: tuple[CandidateState, ...]
    notes: tuple[str, ...]
    chosen: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchStory:
    """Explanation of the choice of a search: the choice, the candidates and the rule.

    Attributes
    ----------
    verdict : str
        The choice.
    rule : str
        Text that explains the rule; empty if there are no curves.
    curves : tuple of Curve
        Compared scores; empty if there was only one candidate.
    screened_out : str
        Legend of the candidates that were screened out: the condition that they meet.

    See Also
    --------
    mrshc.plotting.search_story : The explanation of a fitted estimator or a result.
    mrshc.plotting.search_curves : Draws it.
    """

    verdict: str
    rule: str
    curves: tuple[Curve, ...]
    screened_out: str


def make_curve(
    values: Float, *, heading: str, x_name: str, y_name: str, ticks: Iterable[Any], chosen: int
) -> Curve:
    """Return a curve of candidates all of which took part in the choice.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Score of each candidate.
    heading, x_name, y_name : str
        Titles of the plot and of its axes.
    ticks : iterable of length m
        Value of each candidate, such as its rank.
    chosen : int
        Position of the chosen candidate.
    """
    return Curve(
        heading=heading,
        x_name=x_name,
        y_name=y_name,
        ticks=tuple(str(tick) for tick in ticks),
        values=values,
        errors=None,
        states=kept_states(values.size),
        notes=("",) * values.size,
        chosen=chosen,
    )


def kept_states(n: int) -> tuple[CandidateState, ...]:
    """Return the states of n candidates all of which took part in the choice."""
    return tuple("kept" for _ in range(n))


def chosen_row(table: CandidateTable) -> int:
    """Return the number of the row of the chosen candidate."""
    return int(np.flatnonzero(table["chosen"])[0])


def describe_choice(table: CandidateTable, score: str) -> str:
    """Return the verdict of a search over (q, rank).

    Parameters
    ----------
    table : mapping of str to ndarray
        Table of candidates.
    score : str
        Name and value of the score of the chosen candidate.
    """
    row = chosen_row(table)
    q, n_features = int(table["n_features_target"][row]), int(table["n_features"][row])
    # Algorithm 1 cannot reach every number of features.
    wanted = "" if n_features == q else f" ({q} were wanted)"
    clusters = format_count(int(table["n_leaves"][row]), "cluster")
    return (
        f"Chosen: q = {format_count(n_features, 'feature')}{wanted}, "
        f"rank {int(table['rank'][row])} ({score}, {clusters})"
    )


def format_count(number: int, thing: str) -> str:
    """Return a count with its noun in the singular or plural: 1 sample, 2 samples."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
