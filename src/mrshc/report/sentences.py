"""What the report says in sentences, and how the run can be repeated."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mrshc.core.selection import SearchStory, SelectionRule
from mrshc.io.result import Result
from mrshc.methods import METHODS
from mrshc.report.page_data import ContrastMarkers

# Features that a sentence names; all are in the table.
_MAX_NAMED_FEATURES = 10

CITATION = (
    "Zhang, H. and Zamar, R. H. Multi-rank sparse hierarchical clustering. "
    "Clustered with mrshc {version}."
)


def page_title(result: Result) -> str:
    """Return the number of samples and clusters as the title of the page."""
    n, k = result.about["data"]["n_samples"], result.n_clusters_
    return f"{n:,} samples in {k} {'cluster' if k == 1 else 'clusters'}"


def answer_sentences(result: Result) -> list[str]:
    """Say which clusters were found, how well they separate, and by which features."""
    sentences = [separation_sentence(result), score_sentence(result), refined(result)]
    if result.n_clusters_ > 1:
        sentences.insert(0, _cluster_sizes_sentence(result))
        best = map(str, result.features.index[: min(_MAX_NAMED_FEATURES, result.n_features_selected_)])
        sentences.append(f"The features that separate them most: {', '.join(best)}.")
    return [text for text in [*sentences, _agreement_sentence(result)] if text is not None]


def _cluster_sizes_sentence(result: Result) -> str:
    sizes = enumerate(result.about["cluster_sizes"], start=1)
    clusters = ", ".join(f"cluster {k} with {_counted(size, 'sample')}" for k, size in sizes)
    return f"Found: {clusters}."


def _agreement_sentence(result: Result) -> str | None:
    """Say how well clusters agree with known classes; None without them."""
    scores = result.about["scores"]
    if not scores:
        return None
    return (
        f"Against the known {scores['truth']}, the classification error rate (share of pairs "
        f"of samples on which clusters and classes disagree, also where one class is found in "
        f"several clusters) is {scores['cer']:.3f}; {scores['purity']:.1%} of the samples lie "
        "with the majority of their cluster."
    )


def curve_legend(story: SearchStory) -> str:
    """Say what the symbols in the curves of a search mean, and the rule that chose."""
    states = {state for curve in story.curves for state in curve.states}
    symbols = {
        "removed": "Hollow: removed, since both neighbours separate better.",
        "screened out": f"Cross: set aside, {story.screened_out}.",
    }
    shown = [text for state, text in symbols.items() if state in states]
    return " ".join(["Star: chosen.", *shown, story.rule])


def contrast_name(contrast: ContrastMarkers) -> str:
    """Return the name of a cluster or a split, and its number of markers."""
    name = (
        f"cluster {contrast.inside}"
        if contrast.kind == "cluster"
        else f"split {contrast.inside} | {contrast.outside}"
    )
    return f"{name}: {_counted(len(contrast.rows), 'marker')}"


def omitted_markers_sentence(n_shown: int, *, n_all: int) -> str:
    """Say that the page has the strongest markers only, and where the others are."""
    return f"Here are the {n_shown} strongest of each; the file markers.csv has all {n_all:,}."


def separation_sentence(result: Result) -> str:
    """Say how well the clusters separate, and how close the next best choice came."""
    if result.n_clusters_ == 1:
        return f"No groups were found: {_no_clusters_reason(result)}."
    width = result.about["chosen"]["silhouette"]
    words = "clearly apart" if width >= 0.5 else "apart" if width >= 0.25 else "hardly apart"
    sentence = (
        f"The average silhouette is {width:.2f}: the clusters are {words} (1 would be far apart, "
        "0 or less not separate)."
    )
    return f"{sentence} {_next_best_sentence(result)}".strip()


def _no_clusters_reason(result: Result) -> str:
    if result.about["supported"] is False:
        return "there is no structure that other features support"
    rule = result.selection_rule
    return SelectionRule.no_clusters if rule is None else rule.no_clusters


def _next_best_sentence(result: Result) -> str:
    """Say which other candidate came closest."""
    rule = result.selection_rule
    if rule is None or result.about["supported"]:
        return ""
    return rule.next_best(result.search_results_, result.n_clusters_)


def classes_in_clusters(result: Result) -> pd.DataFrame | None:
    """Count the samples of each true class in each cluster; None without known classes."""
    scores = result.about["scores"]
    if scores is None:
        return None
    clusters = result.samples["cluster"].map("cluster {}".format)
    return pd.crosstab(result.samples[scores["truth"]], clusters)


def associated(n_associated: int, *, n_used: int) -> str:
    """Say what refining the features found; none are associated if nothing supports them."""
    if not n_associated:
        return "No features are associated with what others show: the structure has no support."
    used = "on them" if n_associated == n_used else f"on the {n_used:,} strongest"
    return (
        f"{n_associated:,} features are associated with the structure, at a false discovery rate "
        f"of 5 %; the tree is built {used}."
    )


def refined(result: Result) -> str | None:
    """Say what refining the features found; None if it was not asked for, or found nothing."""
    found = result.about["n_associated"]
    return associated(found, n_used=result.n_features_selected_) if found else None


def score_sentence(result: Result) -> str | None:
    """Say how the selection rule scored the chosen candidate; None if it has no such sentence."""
    rule = result.selection_rule
    return None if rule is None else rule.score_sentence(result.chosen_row)


def python_code(result: Result) -> str:
    """Return Python code that repeats the fit."""
    about = result.about
    method = METHODS[about["method"]]
    kind = method.load().__name__
    parameters = about["parameters"]
    if not method.finds_number_of_clusters:
        parameters = parameters | {"n_clusters": about["chosen"]["n_clusters"]}
    given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    reading = "".join(f", {name}={value!r}" for name, value in about["data"]["reading"].items())
    lines = [f"from mrshc import {kind}", "from mrshc.io import read_table"]
    if about["preprocessing"]:
        steps = [step["step"] for step in about["preprocessing"]]
        names = sorted({step.partition("(")[0] for step in steps})
        lines.append(f"from mrshc.preprocessing import {', '.join(names)}, prepare")
    lines += ["", f"table = read_table({about['data']['source']!r}{reading})"]
    data = "table.X"
    if about["preprocessing"]:
        lines += [f"prepared = prepare(table.X, [{', '.join(steps)}])"]
        data = "prepared.X"
    return "\n".join([*lines, f"model = {kind}({given}).fit({data})"])


def facts(result: Result) -> list[tuple[str, Any]]:
    """Return the numbers that matter most."""
    about, chosen = result.about, result.about["chosen"]
    associated, missing = about["n_associated"], about["data"]["n_missing"]
    cells = about["data"]["n_samples"] * about["data"]["n_features"]
    rule = result.selection_rule
    found = [
        ("samples", f"{about['data']['n_samples']:,}"),
        ("features", f"{about['data']['n_features']:,}"),
        ("selected features (q)", f"{chosen['n_features']:,}"),
        ("rank (r)", chosen["rank"]),
        ("clusters (K)", chosen["n_clusters"]),
        ("average silhouette", f"{chosen['silhouette']:.2f}" if chosen["n_clusters"] > 1 else None),
        *([] if rule is None else rule.facts(result.chosen_row)),
        ("associated features", None if associated is None else f"{associated:,}"),
        ("outlying samples", len(about["outliers"]) or None),
        ("missing values", f"{missing / cells:.1%}" if missing else None),
    ]
    if scores := about["scores"]:
        found.append((f"error rate against {scores['truth']}", f"{scores['cer']:.3f}"))
    return [(name, value) for name, value in found if value is not None]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
