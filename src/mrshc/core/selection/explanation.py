"""Why a candidate was chosen: the verdict, the rule in words, and the curves behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.selection.candidates import Table

State = Literal["kept", "removed", "screened out"]

# What the curves of a search over (q, rank) have on their horizontal axis.
RANK_AXIS, NUMBER_AXIS = "rank (number of sparse components)", "number of features q"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Candidates side by side, at 0, 1, ... from left to right."""

    heading: str
    x_name: str
    y_name: str
    ticks: tuple[str, ...]  # (m,), what each candidate is
    values: Float  # (m,)
    errors: Float | None  # (m,)
    states: tuple[State, ...]  # (m,)
    notes: tuple[str, ...]  # (m,), written next to the points
    chosen: int  # position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchStory:
    """Why these parameters: what was chosen, among what, by which rule."""

    verdict: str
    rule: str
    curves: tuple[Curve, ...]  # empty if there was nothing to choose from
    screened_out: str  # what the screen asked for


def plain_curve(
    values: Float, *, heading: str, x_name: str, y_name: str, ticks: Iterable[Any], chosen: int
) -> Curve:
    """Return a curve of candidates none of which was set aside or removed.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Score of each candidate.
    heading, x_name, y_name : str
        Texts of the plot and of its axes.
    ticks : iterable of length m
        What each candidate is, such as its rank.
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
        states=all_kept(values.size),
        notes=("",) * values.size,
        chosen=chosen,
    )


def all_kept(n: int) -> tuple[State, ...]:
    """Return the states of candidates none of which was set aside or removed."""
    return tuple("kept" for _ in range(n))


def chosen_row(table: Table) -> int:
    """Return the row of the chosen candidate."""
    return int(np.flatnonzero(table["chosen"])[0])


def describe_choice(table: Table, score: str) -> str:
    """Return the verdict of a search over (q, rank); `score` names the score of the choice."""
    row = chosen_row(table)
    q, n_features = int(table["n_features_target"][row]), int(table["n_features"][row])
    wanted = "" if n_features == q else f" ({q} were wanted)"
    clusters = counted(int(table["n_leaves"][row]), "cluster")
    return (
        f"Chosen: q = {counted(n_features, 'feature')}{wanted}, rank {int(table['rank'][row])} "
        f"({score}, {clusters})"
    )


def counted(number: int, thing: str) -> str:
    """Return a number with what it counts: 1 sample, 2 samples."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
