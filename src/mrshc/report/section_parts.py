"""Tables, figures and provenance: parts of the sections of both pages, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mrshc.core.selection import Curve
from mrshc.report.sentences import CITATION


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table; its cells are shown by `str`."""

    headings: Sequence[str]  # (m,)
    rows: Sequence[Sequence[Any]]  # (any, m)
    caption: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """An element in which the scripts of the page draw a figure."""

    id: str
    heading: str
    label: str  # its description for screen readers


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The data and the software that a result was made with."""

    fingerprint: str
    versions: str
    citation: str


def provenance(about: dict[str, Any]) -> Provenance:
    """Return the provenance of a result or a comparison.

    Parameters
    ----------
    about : dict
        Content of result.json or comparison.json.
    """
    versions = about["versions"]
    return Provenance(
        fingerprint=about["data"]["fingerprint"],
        versions=", ".join(f"{name} {number}" for name, number in versions.items()),
        citation=CITATION.format(version=versions["mrshc"]),
    )


def curve_figures(curves: Iterable[Curve], *, prefix: str) -> list[Figure]:
    """Return the figures of the curves that explain a choice.

    Parameters
    ----------
    curves : iterable of Curve
        Curves, in the order of the data of the page.
    prefix : str
        Begin of their ids; the number of the curve follows.
    """
    return [
        Figure(id=f"{prefix}{i}", heading=curve.heading, label=_curve_label(curve))
        for i, curve in enumerate(curves)
    ]


def _curve_label(curve: Curve) -> str:
    chosen = f"{curve.x_name} {curve.ticks[curve.chosen]}"
    return f"{curve.y_name} over {curve.x_name}; chosen: {chosen}"
