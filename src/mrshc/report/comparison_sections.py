"""Variables of the template comparison.html, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrshc.io.result import MAX_CUTS, columns_from_rows
from mrshc.metrics import SCORE_EXPLANATIONS
from mrshc.plotting.search_explanation import search_story
from mrshc.report.section_parts import Figure, Provenance, Table, curve_figures, provenance


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Section "Scores": a table with the scores of each method."""

    truth: str | None  # name of the annotation with the known classes
    n_clusters: int | None  # number of clusters into which the trees were cut; None if not cut
    has_models_without_tree: bool  # such models are scored by their own clusters
    explanations: list[str]  # meaning of the columns with scores against the known classes
    table: Table
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class MethodTree:
    """The heading of the tree of one method, and the curves that explain the choice of features."""

    name: str
    heading: str
    curves: list[Figure]


@dataclass(frozen=True, kw_only=True)
class Trees:
    """Section "Trees": the trees of all methods, cut into the same number of clusters."""

    n_samples: int
    max_cut: int  # largest number of clusters that the slider offers
    cut: int  # number of clusters shown when the page is opened
    methods: list[MethodTree]


@dataclass(frozen=True, kw_only=True)
class ComparisonRun:
    """Section "Data and provenance": how the comparison was made, and how to repeat it."""

    reading_notes: str
    preprocessing: list[str]  # description of each step
    command: str
    provenance: Provenance


def comparison_content(about: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the template comparison.html."""
    n_samples, n_methods = len(about["samples"]), len(_fitted_methods(about))
    return {
        "title": f"Comparison of {n_methods} methods on {n_samples:,} samples",
        "lead": about["data"]["source"],
        "scores": _scores_section(about),
        "trees": _trees_section(about),
        "run": _run_section(about),
    }


def _fitted_methods(about: dict[str, Any]) -> list[str]:
    """Return the names of the methods that did not fail, with and without a tree."""
    return [row["method"] for row in about["scores"] if row.get("error") is None]


def _scores_section(about: dict[str, Any]) -> Scores:
    # `read_comparison` has checked that all rows have the same columns.
    names = list(about["scores"][0])
    rows = [[_format_score(row[name]) for name in names] for row in about["scores"]]
    return Scores(
        truth=about["truth"],
        n_clusters=about["n_clusters"],
        has_models_without_tree=len(_fitted_methods(about)) > len(about["methods"]),
        explanations=[f"{n}: {text}." for n, text in SCORE_EXPLANATIONS.items() if n in names],
        table=Table(headings=names, rows=rows, caption="Scores"),
        notes=about["notes"],
    )


def _format_score(value: Any) -> str:
    """Return a score as text; the text is empty if the score could not be computed."""
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _trees_section(about: dict[str, Any]) -> Trees:
    n_samples = len(about["samples"])
    return Trees(
        n_samples=n_samples,
        max_cut=min(MAX_CUTS, n_samples),
        # The number is None if the user gave neither a number of clusters nor known classes. Each
        # tree is then cut into two clusters.
        cut=about["n_clusters"] or 2,
        methods=[_method_tree(about, name, position=m) for m, name in enumerate(about["methods"])],
    )


def _method_tree(about: dict[str, Any], name: str, *, position: int) -> MethodTree:
    """Return the heading and the curves of a method.

    `position` is the index of the method. It makes the ids of the figures unique.
    """
    search = columns_from_rows(about["methods"][name]["search"])
    curves = search_story(search).curves if search else ()
    return MethodTree(
        name=name,
        heading=_method_heading(name, about),
        curves=curve_figures(curves, prefix=f"curve-{position}-"),
    )


def _method_heading(name: str, about: dict[str, Any]) -> str:
    """Return the name of a method with its number of features and, if it has one, its rank."""
    row = next(row for row in about["scores"] if row["method"] == name)
    rank = "" if row.get("rank") is None else f", rank {row['rank']}"
    return f"{name}: {row['n_features']:,} features{rank}"


def _run_section(about: dict[str, Any]) -> ComparisonRun:
    return ComparisonRun(
        reading_notes=" ".join(about["data"]["notes"]),
        preprocessing=[step["description"] for step in about["preprocessing"]],
        command=about["command"],
        provenance=provenance(about),
    )
