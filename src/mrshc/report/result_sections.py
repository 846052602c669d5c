"""Variables of the template result.html, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrshc.io.result import MAX_CUTS, Result
from mrshc.methods import METHODS, describe_method
from mrshc.plotting.result_pictures import MARKERS_CAVEAT
from mrshc.plotting.search_explanation import search_story
from mrshc.report import sentences
from mrshc.report.branch_table import branch_table
from mrshc.report.confidence_section import confidence_section
from mrshc.report.gene_sets_section import gene_sets_section
from mrshc.report.page_data import marker_contrasts, max_markers_per_direction
from mrshc.report.section_parts import Figure, Provenance, Table, curve_figures, provenance

# Largest number of cells of the table of classes and clusters. A larger table, such as one with 50
# classes, would make the summary too long. The limit is not tuned: it does not affect any result.
_MAX_TABLE_CELLS = 150


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Section "Summary": the result in numbers and sentences."""

    facts: list[tuple[str, Any]]
    sentences: list[str]
    classes: Table | None  # number of samples of each known class in each cluster
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Section "Tree and heat map": sizes of the figures and ranges of the controls."""

    n_samples: int
    n_features: int
    n_clusters: int
    max_cut: int  # largest number of clusters that the slider offers
    cut: int  # number of clusters shown when the page is opened
    loading_name: str  # "loading" or "weight", depending on the method
    n_annotations: int
    n_annotations_shown: int
    branches: Table | None  # branches that consist of whole clusters, with their names


@dataclass(frozen=True, kw_only=True)
class Search:
    """Section "Choice of features and clusters"."""

    verdict: str
    curves: list[Figure]  # empty if there was only one candidate
    legend: str
    has_single_candidate: bool
    cut_by_silhouette: bool  # whether the average silhouette determined the number of clusters
    cut_sentence: str | None  # how the number of clusters was chosen, if by the drop ratios
    n_split_tests: int  # number of nodes that the gap statistic tested
    n_splits: int  # number of nodes that were split
    n_components: int  # number of columns of loadings or weights


@dataclass(frozen=True, kw_only=True)
class Markers:
    """Section "Markers": the comparisons of two groups of samples that the reader can select."""

    contrasts: list[str]
    first: int  # position of the contrast shown when the page is opened
    caveat: str  # sentence on the use of markers: they are not evidence for the clusters
    omission: str  # sentence on markers that the page omits; empty if it omits none


@dataclass(frozen=True, kw_only=True)
class ResultRun:
    """Section "Data and provenance": how the result was made, and how to repeat it."""

    reading_notes: str
    preprocessing: Table | None
    parameters: Table
    command: str
    python: str
    provenance: Provenance


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Ranges of the centres and scales with which the values on the page are encoded, as text."""

    centres: str
    scales: str


def result_content(result: Result, *, values: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the template result.html."""
    about = result.about
    return {
        "title": sentences.page_title(result),
        "lead": f"{describe_method(about['method'], about['parameters']).name} of "
        f"{about['data']['source']}",
        # Whether the tree is built on associated features, and whether these replaced the result
        # of a finished search.
        "associated": bool(about["supported"]),
        "robust": bool(about["parameters"].get("robust")),
        "has_outliers": bool(about["outliers"]),
        "distance_features": METHODS[about["method"]].distance_features,
        "silhouette_caveat": METHODS[about["method"]].silhouette_caveat,
        "answer": _answer_section(result),
        "heat_map": _heat_map_section(result),
        "confidence": confidence_section(result),
        "search": _search_section(result),
        "markers": _markers_section(result) if result.n_clusters_ > 1 else None,
        "gene_sets": gene_sets_section(result),
        "run": _run_section(result),
        "precision": _value_precision(values),
    }


def _answer_section(result: Result) -> Answer:
    return Answer(
        facts=sentences.facts(result),
        sentences=sentences.answer_sentences(result),
        classes=_class_table(result),
        warnings=sentences.caveats(result),
    )


def _class_table(result: Result) -> Table | None:
    """Return a table with the number of samples of each class in each cluster.

    Return None if no classes were given, or if the table would be too large.
    """
    counts = sentences.classes_in_clusters(result)
    if counts is None or counts.size > _MAX_TABLE_CELLS:
        return None
    return Table(
        headings=[str(counts.index.name), *counts.columns],
        rows=[[name, *row] for name, row in zip(counts.index, counts.to_numpy(), strict=True)],
        caption="Number of samples of each class in each cluster",
    )


def _heat_map_section(result: Result) -> HeatMap:
    n_samples, n_clusters = len(result.samples), result.n_clusters_
    max_cut = min(MAX_CUTS, n_samples)
    return HeatMap(
        n_samples=n_samples,
        n_features=result.n_features_selected_,
        n_clusters=n_clusters,
        max_cut=max_cut,
        cut=min(n_clusters, max_cut),
        loading_name=METHODS[result.about["method"]].loading_name,
        n_annotations=result.sample_annotations.shape[1],
        n_annotations_shown=len(result.annotations_to_plot),
        branches=branch_table(result),
    )


def _search_section(result: Result) -> Search:
    about, story = result.about, search_story(result.search_results_)
    # If a method does not determine the number of clusters and the user did not give it, the tree
    # is cut into the number of clusters with the largest average silhouette.
    finds_clusters = METHODS[about["method"]].finds_number_of_clusters
    return Search(
        verdict=story.verdict,
        curves=curve_figures(story.curves, prefix="curve-"),
        legend=sentences.curve_legend(story),
        has_single_candidate=len(about["search"]) < 2,
        cut_by_silhouette=not finds_clusters and about["parameters"]["n_clusters"] is None,
        cut_sentence=sentences.cut_sentence(result),
        n_split_tests=len(about["splits"]),
        n_splits=sum(split["split"] for split in about["splits"]),
        n_components=result.loadings.shape[1],
    )


def _markers_section(result: Result) -> Markers:
    marked = marker_contrasts(result)
    counts = [len(contrast.rows) for contrast in marked]
    n_most = max_markers_per_direction(len(marked))
    by_direction = [contrast.rows["direction"].value_counts() for contrast in marked]
    is_truncated = any((direction_counts > n_most).any() for direction_counts in by_direction)
    return Markers(
        contrasts=[sentences.contrast_name(contrast) for contrast in marked],
        # The first contrast that has markers is shown, since an empty table would look like an
        # error.
        first=next((i for i, count in enumerate(counts) if count), 0),
        caveat=MARKERS_CAVEAT,
        omission=sentences.omitted_markers_sentence(n_most, n_all=len(result.markers))
        if is_truncated
        else "",
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
    """Return a table with the number of features before and after each preprocessing step.

    Return None if there are no steps.
    """
    if not steps:
        return None
    rows = [
        [s["description"], f"{s['n_features_before']:,}", f"{s['n_features_after']:,}"]
        for s in steps
    ]
    headings = ["step", "features before", "features after"]
    return Table(headings=headings, rows=rows, caption="Preprocessing")


def _format_parameter(value: Any) -> str:
    """Return the value of a parameter as text.

    Floats are rounded to four significant digits, which are enough to recognise the value.
    """
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _value_precision(values: dict[str, Any]) -> Precision:
    # Centres are shown with twelve digits, since the centres of features with a common offset
    # differ only in the last digits. Scales are powers of two, for which four digits are enough.
    return Precision(
        centres=_format_range(values["centre"], 12), scales=_format_range(values["scale"], 4)
    )


def _format_range(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}g} to {max(values):.{digits}g}"
