"""Parts of both the page of a result and the page of a comparison: tables, figures, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mrshc.plotting.search_explanation import Curve
from mrshc.report.sentences import CITATION


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table in the HTML of the page. Entries of the rows are shown as text."""

    headings: Sequence[str]  # (n_columns,)
    rows: Sequence[Sequence[Any]]  # (n_rows, n_columns)
    caption: str  # describes the table to screen readers


@dataclass(frozen=True, kw_only=True)
class Figure:
    """An HTML element in which the scripts of the page draw a figure."""

    id: str
    heading: str
    label: str  # describes the figure to screen readers


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The data and software from which a result was computed, and how to cite the method."""

    versions: str  # names and versions of packages
    citation: str


def provenance(about: dict[str, Any]) -> Provenance:
    """Return the provenance of a result or a comparison."""
    versions = about["versions"]
    return Provenance(
        versions=", ".join(f"{name} {number}" for name, number in versions.items()),
        citation=CITATION.format(version=versions["mrshc"]),
    )


def curve_figures(curves: Iterable[Curve], *, prefix: str) -> list[Figure]:
    """Return one HTML element for each curve that explains the choice of a search."""
    return [
        Figure(id=f"{prefix}{i}", heading=curve.heading, label=_curve_label(curve))
        for i, curve in enumerate(curves)
    ]


def _curve_label(curve: Curve) -> str:
    chosen = f"{curve.x_name} {curve.ticks[curve.chosen]}"
    return f"{curve.y_name} against {curve.x_name}; chosen: {chosen}"
