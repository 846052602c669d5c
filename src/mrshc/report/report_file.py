"""Makes the report of a result or of a comparison."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from mrshc.core.selection import Curve
from mrshc.io.comparison_file_version import ABOUT_COMPARISON
from mrshc.io.result import MOST_CUTS, Result, columns, load_result
from mrshc.methods import METHODS
from mrshc.plotting.search_explanation import search_story
from mrshc.report import sentences as words
from mrshc.report.comparison_reading import read_comparison
from mrshc.report.html_page import (
    asset,
    code,
    data_table,
    fact_list,
    page,
    paragraphs,
    plot,
    table,
)
from mrshc.report.page_data import (
    MarkedContrast,
    comparison_data,
    contrasts,
    most_markers,
    result_data,
)
from mrshc.utils.atomic_files import write_text

REPORT = "report.html"
_NAMED = 10
_MOST_CELLS = 150


def write_report(folder: Path) -> Path:
    """Write the report of a folder that holds a result or a comparison."""
    if (folder / ABOUT_COMPARISON).exists():
        html = comparison_report(read_comparison(folder))
    else:
        html = result_report(load_result(folder))
    write_text(folder / REPORT, html)
    return folder / REPORT


def result_report(result: Result) -> str:
    """Return the page of a result."""
    about = result.about
    n, k = about["data"]["n_samples"], about["chosen"]["n_clusters"]
    method = METHODS[about["method"]].name
    lead = paragraphs([f"{method} of {about['data']['source']}"], kind="soft")
    data = result_data(result)
    sections = [
        ("answer", "The answer", _answer(result)),
        ("look", "Tree and heat map", _look(result)),
        ("why", "Why this many features and clusters", _why(result)),
        *([("markers", "What marks each cluster", _markers(result))] if k > 1 else []),
        ("features", "Selected features", _about_features(result)),
        ("samples", "Samples", _about_samples(result)),
        ("how", "How it was made", _how(result) + _precision(data["values"])),
    ]
    title = f"{n:,} samples in {k} {'cluster' if k == 1 else 'clusters'}"
    return page(title, sections=sections, lead=lead, data=data)


def _answer(result: Result) -> str:
    sizes = enumerate(result.about["cluster_sizes"], start=1)
    clusters = ", ".join(f"cluster {k} with {_counted(size, 'sample')}" for k, size in sizes)
    best = [str(name) for name in result.features.index[: min(_NAMED, result.n_features_selected_)]]
    sentences = [words.how_sure(result)]
    more = (words.score_sentence(result), words.refined(result))
    sentences += [text for text in more if text is not None]
    if result.n_clusters_ > 1:
        sentences.insert(0, f"Found: {clusters}.")
        sentences.append(f"The features that separate them most: {', '.join(best)}.")
    if scores := result.about["scores"]:
        sentences.append(
            f"Against the known {scores['truth']}, the classification error rate (share of pairs "
            f"of samples on which clusters and classes disagree, also where one class is found in "
            f"several clusters) is {scores['cer']:.3f}; {scores['purity']:.1%} of the samples lie "
            "with the majority of their cluster."
        )
    warned = "".join(
        f'<p class="warning" role="note">{escape(text)}</p>' for text in result.concerns
    )
    counts = words.classes_in_clusters(result)
    known = ""
    if counts is not None and counts.size <= _MOST_CELLS:
        rows = [[name, *row] for name, row in zip(counts.index, counts.to_numpy(), strict=True)]
        headings = [str(counts.index.name), *counts.columns]
        known = table(headings, rows, caption="Samples of each class in each cluster")
    return fact_list(words.facts(result)) + paragraphs(sentences) + known + warned


def _look(result: Result) -> str:
    loading = METHODS[result.about["method"]].loading_name
    n, q, k = len(result.samples), result.n_features_selected_, result.n_clusters_
    most = min(MOST_CUTS, n)
    controls = asset("controls.html").format(most=most, k=min(k, most), loading=loading)
    hint = (
        "The tree joins samples that are alike; colours mark the clusters. Below, each column is a "
        "sample, each row a selected feature. Drag to zoom, double-click to see all; click where "
        "branches join to highlight what is below."
    )
    shown, there = len(result.shown_annotations), result.sample_annotations.shape[1]
    if shown < there:
        hint += f" Bars show {shown} of {there} annotations; the table of samples has all."
    return (
        paragraphs([hint], kind="note")
        + controls
        + '<div id="legend"></div>'
        + plot("tree", f"Tree of {n} samples in {k} clusters, with bars of annotations below")
        + plot("heat", f"Heat map of {q} selected features in {n} samples, ordered as the tree")
    )


def _why(result: Result) -> str:
    story = search_story(result.search_results_)
    verdict = [f"{story.verdict}."]
    if result.about["supported"]:
        verdict.append(
            "So far the search. Then the features were refined: the tree, the clusters and all "
            "tables are those of the refined ones."
        )
    parts = [paragraphs(verdict)]
    curves = [
        f"<div><h3>{escape(curve.heading)}</h3>{plot(f'curve-{i}', _curve_words(curve))}</div>"
        for i, curve in enumerate(story.curves)
    ]
    if curves:
        parts.append(f'<div class="two">{"".join(curves)}</div>')
        states = {state for curve in story.curves for state in curve.states}
        looks = {
            "removed": "Hollow: removed, since both neighbours separate better.",
            "screened out": f"Cross: set aside, {story.screened_out}.",
        }
        seen = [looks[state] for state in looks if state in states]
        parts.append(paragraphs([" ".join(["Star: chosen.", *seen, story.rule])], kind="note"))
    else:
        parts.append(paragraphs(["There was a single candidate: nothing to choose from."]))
    finds_clusters = METHODS[result.about["method"]].finds_number_of_clusters
    if not finds_clusters and result.about["parameters"]["n_clusters"] is None:
        k = result.n_clusters_
        parts.append(
            paragraphs(
                [f"The tree is cut into {k} clusters, where the average silhouette is largest."]
            )
        )
    if result.about["splits"]:
        parts.append(
            "<h3>Is a branch one cluster or two?</h3>"
            + plot("splits", _splits_words(result.about["splits"]))
            + paragraphs([_SPLITS], kind="note")
        )
    if result.loadings.shape[1]:
        figures = "".join(
            "<div>" + plot(f"loadings-{i}", f"Largest loadings of component {i + 1}") + "</div>"
            for i in range(result.loadings.shape[1])
        )
        parts.append(f'<h3>Which features carry it?</h3><div class="two">{figures}</div>')
        if result.about["supported"]:
            parts.append(paragraphs([_LOADINGS], kind="note"))
    return "".join(parts)


_SPLITS = (
    "For each branch that was tested: how much splitting it gains (diamond), how much splitting "
    "gains in random samples of the same spread without clusters (dots), and what had to be "
    "exceeded (line: their mean plus one standard error). Filled diamonds: split."
)


_LOADINGS = (
    "What the search found, of the features that are left. A refined feature without a loading was "
    "found by its association."
)


def _curve_words(curve: Curve) -> str:
    chosen = f"{curve.x_name} {curve.ticks[curve.chosen]}"
    return f"{curve.y_name} over {curve.x_name}; chosen: {chosen}"


def _splits_words(splits: list[dict[str, Any]]) -> str:
    made = sum(split["split"] for split in splits)
    return f"Gap test of {len(splits)} branches; {made} of them were split"


def _markers(result: Result) -> str:
    told = contrasts(result)
    n_all, most = len(result.markers), most_markers(len(told))
    sentences = [_MARKERS]
    if any(len(contrast.rows) > most for contrast in told):
        sentences.append(
            f"Here are the {most} strongest of each; the file markers.csv has all {n_all:,}."
        )
    first = next((i for i, contrast in enumerate(told) if len(contrast.rows)), 0)
    options = "".join(
        f'<option value="{i}"{" selected" if i == first else ""}>{escape(text)}</option>'
        for i, text in enumerate(map(_contrast_words, told))
    )
    choice = (
        '<div class="controls"><label>Cluster or split <select id="contrast">'
        f'{options}<option value="">all</option></select></label></div>'
    )
    return (
        paragraphs([" ".join(sentences)], kind="note") + choice + data_table("markers", "markers")
    )


_MARKERS = (
    "Features that differ between the samples of a cluster and all others, or between the two "
    "branches of a split of the tree, at a false discovery rate of 5 %. One that helped to make a "
    "cluster is tested against the cluster as trees without it see it. Effect size: difference of "
    "the means, in standard deviations within the two groups. They belong to the clusters as "
    "found."
)


def _contrast_words(contrast: MarkedContrast) -> str:
    what = (
        f"cluster {contrast.inside}"
        if contrast.kind == "cluster"
        else f"split {contrast.inside} | {contrast.outside}"
    )
    return f"{what}: {_counted(len(contrast.rows), 'marker')}"


def _about_features(result: Result) -> str:
    sentence = (
        "Effect size: share of the variance between the clusters. The dots show the samples, a row "
        "for each cluster. A feature was selected because it separates samples: its effect size "
        "alone does not show that the clusters are real."
    )
    if result.about["supported"]:
        sentence += (
            " The q-value is the false discovery rate at which the feature passes, tested against "
            "trees that never saw it. The file features.csv has those of all features."
        )
    if result.about["parameters"].get("robust"):
        sentence += (
            " Effect sizes and means leave outlying samples out, and take unusual cells as the fit "
            "did: pulled in, or as missing where they are far out."
        )
    return paragraphs([sentence], kind="note") + data_table("features", "features")


def _about_samples(result: Result) -> str:
    sentence = "Silhouette: how well a sample fits its cluster, from 1 down to below 0."
    if result.about["outliers"]:
        sentence += (
            " Outlying samples took part in nothing: they were attached to the tree at the end."
        )
    return paragraphs([sentence], kind="note") + data_table("samples", "samples")


def _how(result: Result) -> str:
    about = result.about
    parts = [paragraphs(["Read: " + " ".join(about["data"]["notes"])])]
    if about["preprocessing"]:
        rows = [
            [s["description"], f"{s['n_features_before']:,}", f"{s['n_features_after']:,}"]
            for s in about["preprocessing"]
        ]
        headings = ["step", "features before", "after"]
        parts.append("<h3>Preprocessing</h3>" + table(headings, rows, caption="Preprocessing"))
    rows = [[name, _said(value)] for name, value in about["parameters"].items()]
    parts.append("<h3>Parameters</h3>" + table(["parameter", "value"], rows, caption="Parameters"))
    if about["command"]:
        parts.append("<h3>Again on the command line</h3>" + code(about["command"]))
    parts.append("<h3>Again in Python</h3>" + code(words.snippet(result)))
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    parts.append(_provenance(about, versions))
    return "".join(parts)


def _precision(values: dict[str, Any]) -> str:
    """Say how precise the values of the page are, and relative to what they are held."""
    # Centres with more digits, since they may be equal but for the last ones.
    centres, scales = (
        f"{min(values[name]):.{digits}g} to {max(values[name]):.{digits}g}"
        for name, digits in (("centre", 12), ("scale", 4))
    )
    return "<h3>Precision of the values on this page</h3>" + paragraphs(
        [
            "The page holds each value to about seven digits relative to the spread of its "
            "feature: as the difference from a centre, which is one of the feature's values, in "
            "units of a scale, which is a power of two near its standard deviation. Centres are "
            f"{centres}, scales {scales}. The heat map, and what is shown for other numbers of "
            "clusters, rest on these values. All tables of the clusters as found are as in the "
            "files."
        ]
    )


def _provenance(about: dict[str, Any], versions: str) -> str:
    citation = words.CITATION.format(version=about["versions"]["mrshc"])
    return (
        "<h3>Where it comes from</h3>"
        + paragraphs([f"Fingerprint of the data (SHA-256): {about['data']['fingerprint']}"])
        + paragraphs([f"Versions: {versions}.", f"Cite: {citation}"])
    )


def comparison_report(about: dict[str, Any]) -> str:
    """Return the page of a comparison."""
    names = list(about["methods"])
    n = len(about["samples"])
    sections = [("scores", "Scores", _scores(about))]
    trees = "".join(
        f"<h3>{escape(_method_heading(name, about))}</h3>"
        + plot(f"tree-{i}", f"Tree of {n} samples by {name}")
        + _curves_of(about, name, i)
        for i, name in enumerate(names)
    )
    most, k = min(MOST_CUTS, n), about["n_clusters"] or 2
    slider = (
        '<div class="controls"><label>Number of clusters '
        f'<input type="range" id="cut" min="1" max="{most}" step="1" value="{k}"> '
        '<output id="cut-said" for="cut"></output></label></div>'
    )
    legend = '<div id="legend"></div>'
    hint = "All trees are cut into the same number of clusters; colours count within each tree."
    sections.append(("look", "Trees", paragraphs([hint], kind="note") + slider + legend + trees))
    sections.append(("how", "How it was made", _how_compared(about)))
    lead = paragraphs([about["data"]["source"]], kind="soft")
    title = f"{n:,} samples, {len(names)} methods side by side"
    return page(title, sections=sections, lead=lead, data=comparison_data(about))


def _curves_of(about: dict[str, Any], name: str, m: int) -> str:
    """Return the places of the curves that tell why a method chose as it did."""
    search = columns(about["methods"][name]["search"])
    curves = search_story(search).curves if search else ()
    places = "".join(
        "<div>" + plot(f"curve-{m}-{i}", _curve_words(curve)) + "</div>"
        for i, curve in enumerate(curves)
    )
    if not places:
        return ""
    inside = f'<div class="two">{places}</div>'
    return f"<details><summary>Why {escape(name)} chose these features</summary>{inside}</details>"


def _method_heading(name: str, about: dict[str, Any]) -> str:
    row = next(row for row in about["scores"] if row["method"] == name)
    rank = "" if row.get("rank") is None else f", rank {row['rank']}"
    return f"{name}: {row['n_features']:,} features{rank}"


def _scores(about: dict[str, Any]) -> str:
    headings = list(about["scores"][0])
    rows = [["" if row[n] is None else _score(row[n]) for n in headings] for row in about["scores"]]
    said = (
        f"Each tree is cut into {about['n_clusters']} clusters and compared with {about['truth']}. "
        "cer: share of pairs of samples on which clusters and classes disagree; purity: share of "
        "samples that belong to the majority class of their cluster."
        if about["truth"]
        else "Without known classes there are no scores; the trees can be looked at."
    )
    return (
        paragraphs([said])
        + table(headings, rows, caption="Scores")
        + paragraphs(about["notes"], kind="note")
    )


def _how_compared(about: dict[str, Any]) -> str:
    parts = [paragraphs(["Read: " + " ".join(about["data"]["notes"])])]
    parts += [paragraphs([f"{s['description']}." for s in about["preprocessing"]])]
    parts.append("<h3>Again on the command line</h3>" + code(about["command"]))
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return "".join([*parts, _provenance(about, versions)])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _said(value: Any) -> str:
    """Return a value for people."""
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _score(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
