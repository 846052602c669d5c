"""Content of the sections of the page of a result, as plain data for its template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrshc.io.result import MOST_CUTS, Result
from mrshc.methods import METHODS
from mrshc.plotting.search_explanation import search_story
from mrshc.report import sentences
from mrshc.report.page_data import marker_contrasts, max_markers_per_contrast
from mrshc.report.section_parts import Figure, Provenance, Table, curve_figures, provenance

# Cells of the table of classes and clusters that a reader can still take in.
_MAX_TABLE_CELLS = 150


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result in numbers and sentences."""

    facts: list[tuple[str, Any]]
    sentences: list[str]
    classes: Table | None  # samples of each class in each cluster
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """What the tree and the heat map show, and the range of their controls."""

    n_samples: int
    n_features: int
    n_clusters: int
    max_cut: int
    cut: int
    loading_name: str
    n_annotations: int
    n_annotations_shown: int


@dataclass(frozen=True, kw_only=True)
class Search:
    """Why this many features and clusters."""

    verdict: str
    curves: list[Figure]  # empty for a single candidate
    legend: str
    cut_by_silhouette: bool
    n_split_tests: int
    n_splits: int
    n_components: int


@dataclass(frozen=True, kw_only=True)
class Markers:
    """The contrasts among which a reader chooses."""

    contrasts: list[str]
    first: int  # the one that is shown at first
    omission: str  # sentence on markers that the page leaves out; empty if it has all


@dataclass(frozen=True, kw_only=True)
class ResultRun:
    """How a result was made, and how it can be repeated."""

    reading_notes: str
    preprocessing: Table | None
    parameters: Table
    command: str
    python: str
    provenance: Provenance


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Ranges of the centres and scales that the values of the page are relative to."""

    centres: str
    scales: str


def result_content(result: Result, *, values: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the template result.html.

    Parameters
    ----------
    result : Result
        What to show.
    values : dict
        Values of the selected features as the page holds them, with their `centre` and `scale`.
    """
    about = result.about
    return {
        "title": sentences.page_title(result),
        "lead": f"{METHODS[about['method']].name} of {about['data']['source']}",
        "refined": bool(about["supported"]),
        "robust": bool(about["parameters"].get("robust")),
        "has_outliers": bool(about["outliers"]),
        "answer": _answer_section(result),
        "heat_map": _heat_map_section(result),
        "search": _search_section(result),
        "markers": _markers_section(result) if result.n_clusters_ > 1 else None,
        "run": _run_section(result),
        "precision": _value_precision(values),
    }


def _answer_section(result: Result) -> Answer:
    return Answer(
        facts=sentences.facts(result),
        sentences=sentences.answer_sentences(result),
        classes=_class_table(result),
        warnings=result.concerns,
    )


def _class_table(result: Result) -> Table | None:
    counts = sentences.classes_in_clusters(result)
    if counts is None or counts.size > _MAX_TABLE_CELLS:
        return None
    return Table(
        headings=[str(counts.index.name), *counts.columns],
        rows=[[name, *row] for name, row in zip(counts.index, counts.to_numpy(), strict=True)],
        caption="Samples of each class in each cluster",
    )


def _heat_map_section(result: Result) -> HeatMap:
    n_samples, n_clusters = len(result.samples), result.n_clusters_
    max_cut = min(MOST_CUTS, n_samples)
    return HeatMap(
        n_samples=n_samples,
        n_features=result.n_features_selected_,
        n_clusters=n_clusters,
        max_cut=max_cut,
        cut=min(n_clusters, max_cut),
        loading_name=METHODS[result.about["method"]].loading_name,
        n_annotations=result.sample_annotations.shape[1],
        n_annotations_shown=len(result.shown_annotations),
    )


def _search_section(result: Result) -> Search:
    about, story = result.about, search_story(result.search_results_)
    finds_clusters = METHODS[about["method"]].finds_number_of_clusters
    return Search(
        verdict=story.verdict,
        curves=curve_figures(story.curves, prefix="curve-"),
        legend=sentences.curve_legend(story),
        cut_by_silhouette=not finds_clusters and about["parameters"]["n_clusters"] is None,
        n_split_tests=len(about["splits"]),
        n_splits=sum(split["split"] for split in about["splits"]),
        n_components=result.loadings.shape[1],
    )


def _markers_section(result: Result) -> Markers:
    marked = marker_contrasts(result)
    counts, most = [len(contrast.rows) for contrast in marked], max_markers_per_contrast(len(marked))
    omits = max(counts) > most
    return Markers(
        contrasts=[sentences.contrast_name(contrast) for contrast in marked],
        first=next((i for i, count in enumerate(counts) if count), 0),
        omission=sentences.omitted_markers_sentence(most, n_all=len(result.markers)) if omits else "",
    )


def _run_section(result: Result) -> ResultRun:
    about = result.about
    parameters = [[name, _format_parameter(value)] for name, value in about["parameters"].items()]
    return ResultRun(
        reading_notes=" ".join(about["data"]["notes"]),
        preprocessing=_preprocessing_table(about["preprocessing"]),
        parameters=Table(headings=["parameter", "value"], rows=parameters, caption="Parameters"),
        command=about["command"],
        python=sentences.python_code(result),
        provenance=provenance(about),
    )


def _preprocessing_table(steps: list[dict[str, Any]]) -> Table | None:
    if not steps:
        return None
    rows = [
        [s["description"], f"{s['n_features_before']:,}", f"{s['n_features_after']:,}"]
        for s in steps
    ]
    headings = ["step", "features before", "after"]
    return Table(headings=headings, rows=rows, caption="Preprocessing")


def _format_parameter(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _value_precision(values: dict[str, Any]) -> Precision:
    # Centres with more digits, since they may be equal but for the last ones.
    return Precision(centres=_format_range(values["centre"], 12), scales=_format_range(values["scale"], 4))


def _format_range(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}g} to {max(values):.{digits}g}"
