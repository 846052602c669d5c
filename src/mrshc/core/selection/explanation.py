"""Explanation of why a search chose a candidate: text, and curves of the compared scores.

A candidate is one of the alternatives that a search compares, usually a pair (q, r) of a number of
features and a rank. In a curve, a rank or an L1 bound can also be a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.selection.candidates import CandidateTable

CandidateState = Literal["kept", "removed", "screened out"]

# Titles of the horizontal axis: for a curve over ranks, and for a curve over numbers of features.
RANK_AXIS, N_FEATURES_AXIS = "rank (number of sparse components)", "number of features q"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Scores of m candidates of a search, to be plotted as a curve.

    Attributes
    ----------
    heading : str
        Title of the plot.
    x_name, y_name : str
        Titles of the axes.
    ticks : tuple of str of length m
        Tick label of each candidate, for example its rank. Candidates are plotted at the horizontal
        positions 0, ..., m - 1.
    values : ndarray of shape (m,)
        Score of each candidate.
    errors : ndarray of shape (m,) or None
        Half the length of the error bar of each candidate; None for no error bars.
    states : tuple of {"kept", "removed", "screened out"} of length m
        State of each candidate. A candidate is "screened out" if it was excluded before the
        comparison, "removed" if it was excluded during the comparison, and "kept" otherwise.
    notes : tuple of str of length m
        Text that is shown next to the point of each candidate; an empty string for no text.
    chosen : int
        Position of the chosen candidate, counted from zero.

    See Also
    --------
    SearchStory : All curves of a search, with explanatory text.
    mrshc.plotting.search_curves : Plot the curves of a search.
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
    """Explanation of why a search chose a candidate: text and curves.

    Attributes
    ----------
    verdict : str
        Text that describes the chosen candidate.
    rule : str
        Text that describes how a candidate is chosen; an empty string if there are no curves.
    curves : tuple of Curve
        Curves of the scores that were compared; an empty tuple if no scores were compared, for
        example because there was only one candidate.
    screened_out : str
        Text for the legend of the curves. It gives the reason why candidates are screened out, for
        example "fewer than 3 clusters". The text is empty if candidates are never screened out.

    See Also
    --------
    mrshc.plotting.search_story : Return the explanation for a table of candidates.
    mrshc.plotting.search_curves : Plot the curves of a search.
    """

    verdict: str
    rule: str
    curves: tuple[Curve, ...]
    screened_out: str


def make_curve(
    values: Float, *, heading: str, x_name: str, y_name: str, ticks: Iterable[Any], chosen: int
) -> Curve:
    """Return a curve without error bars or notes, in which the state of every candidate is "kept".

    Parameters
    ----------
    values : ndarray of shape (m,)
        Score of each of the m candidates.
    heading, x_name, y_name : str
        Titles of the plot and of its axes.
    ticks : iterable of length m
        Values that are converted to tick labels, for example the rank of each candidate.
    chosen : int
        Position of the chosen candidate, counted from zero.
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
    """Return the state "kept" for each of n candidates."""
    return tuple("kept" for _ in range(n))


def chosen_row(table: CandidateTable) -> int:
    """Return the row of the chosen candidate in a table of candidates, counted from zero."""
    return int(np.flatnonzero(table["chosen"])[0])


def describe_choice(table: CandidateTable, score: str) -> str:
    """Return text that describes the candidate that a search chose.

    Parameters
    ----------
    table : mapping of str to ndarray
        Table of candidates, with a row for each pair (q, r) of a number of features and a rank.
    score : str
        Name and value of the score of the chosen candidate, for example "evidence 5.2".
    """
    row = chosen_row(table)
    q, n_features = int(table["n_features_target"][row]), int(table["n_features"][row])
    # The number of selected features may differ from q, since Algorithm 1 cannot always find a set
    # of exactly q features.
    wanted = "" if n_features == q else f" ({q} were wanted)"
    clusters = format_count(int(table["n_leaves"][row]), "cluster")
    return (
        f"Chosen: q = {format_count(n_features, 'feature')}{wanted}, "
        f"rank {int(table['rank'][row])} ({score}, {clusters})"
    )


def format_count(number: int, thing: str) -> str:
    """Return a number followed by a noun in the singular or plural, for example "2 samples"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
