"""Sentences of the report and of the summary, and code that repeats the fit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mrshc.core.selection import SearchStory, SelectionRule
from mrshc.io.result import Result
from mrshc.methods import METHODS
from mrshc.report.page_data import ContrastMarkers

# Features that a sentence names; a longer list would be hard to read, and the table has all.
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
    """Return sentences on the clusters, their separation and the features that separate them."""
    sentences = [separation_sentence(result), score_sentence(result), refinement_sentence(result)]
    if result.n_clusters_ > 1:
        sentences.insert(0, _cluster_sizes_sentence(result))
        # The table of features lists selected features first, the largest effect size on top.
        best = map(
            str, result.features.index[: min(_MAX_NAMED_FEATURES, result.n_features_selected_)]
        )
        sentences.append(f"The features that separate the clusters best are {', '.join(best)}.")
    return [text for text in [*sentences, _agreement_sentence(result)] if text is not None]


def _cluster_sizes_sentence(result: Result) -> str:
    """Return a sentence on the number of samples of each cluster."""
    sizes = enumerate(result.about["cluster_sizes"], start=1)
    clusters = ", ".join(f"cluster {k} with {_format_count(size, 'sample')}" for k, size in sizes)
    return f"The clusters: {clusters}."


def _agreement_sentence(result: Result) -> str | None:
    """Return a sentence on the agreement with known classes; None if none were given."""
    scores = result.about["scores"]
    if not scores:
        return None
    return (
        f"Compared with the known classes ({scores['truth']}), the classification error rate is "
        f"{scores['cer']:.3f}: the share of pairs of samples that are together in a cluster but "
        "not in a class, or the reverse. A class that is divided into several clusters therefore "
        f"counts as an error. {scores['purity']:.1%} of the samples belong to the most frequent "
        "class of their cluster (purity)."
    )


def curve_legend(story: SearchStory) -> str:
    """Return sentences that explain the symbols of search curves, and the rule of the choice."""
    states = {state for curve in story.curves for state in curve.states}
    symbols = {
        "removed": "Hollow circle: removed from the comparison as a local minimum.",
        "screened out": f"Cross: excluded ({story.screened_out}).",
    }
    shown = [text for state, text in symbols.items() if state in states]
    return " ".join(["Star: the chosen candidate.", *shown, story.rule])


def contrast_name(contrast: ContrastMarkers) -> str:
    """Return the name of a cluster or a split with its number of markers, for a list of choices."""
    name = (
        f"cluster {contrast.inside}"
        if contrast.kind == "cluster"
        else f"split between clusters {contrast.inside} and {contrast.outside}"
    )
    return f"{name}: {_format_count(len(contrast.rows), 'marker')}"


def omitted_markers_sentence(n_shown: int, *, n_all: int) -> str:
    """Return a sentence on the markers that the page omits, and where to find them."""
    return (
        f"The table shows the {n_shown} strongest markers of each cluster or split; the file "
        f"markers.csv has all {n_all:,}."
    )


def separation_sentence(result: Result) -> str:
    """Return sentences on the separation of the clusters and on the next best choice."""
    if result.n_clusters_ == 1:
        return f"No groups were found: {_no_clusters_reason(result)}."
    width = result.about["chosen"]["silhouette"]
    # 0.5 and 0.25 are the limits of a reasonable and of a weak structure that Kaufman and Rousseeuw
    # (1990) suggest.
    degree = "clearly" if width >= 0.5 else "moderately" if width >= 0.25 else "weakly"
    sentence = (
        f"The average silhouette width is {width:.2f}: the clusters are {degree} separated (1 is "
        "the largest possible value; at 0 or below, clusters are not separated)."
    )
    return f"{sentence} {_next_best_sentence(result)}".strip()


def _no_clusters_reason(result: Result) -> str:
    """Return why there is a single cluster; it completes a sentence."""
    if result.about["supported"] is False:
        return "there is no structure that other features support"
    rule = result.selection_rule
    return SelectionRule.no_clusters_reason if rule is None else rule.no_clusters_reason


def _next_best_sentence(result: Result) -> str:
    """Return a sentence on the second best candidate; empty if it has no meaning."""
    rule = result.selection_rule
    # After a refinement the clusters are no longer those of any candidate.
    if rule is None or result.about["supported"]:
        return ""
    return rule.runner_up_sentence(result.search_results_, result.n_clusters_)


def classes_in_clusters(result: Result) -> pd.DataFrame | None:
    """Return the number of samples of each known class in each cluster; None without classes."""
    scores = result.about["scores"]
    if scores is None:
        return None
    clusters = result.samples["cluster"].map("cluster {}".format)
    return pd.crosstab(result.samples[scores["truth"]], clusters)


def association_sentence(n_associated: int, *, n_used: int) -> str:
    """Return a sentence on the outcome of the refinement of the features.

    Parameters
    ----------
    n_associated : int
        Number of features associated with the clusters; 0 if other features do not support them.
    n_used : int
        Number of these features on which the tree is built.
    """
    if not n_associated:
        return (
            "No features are associated with the structure that other features show: it has no "
            "support."
        )
    used = "on them" if n_associated == n_used else f"on the {n_used:,} strongest"
    return (
        f"{n_associated:,} features are associated with the structure, at a false discovery rate "
        f"of 5 %; the tree is built {used}."
    )


def refinement_sentence(result: Result) -> str | None:
    """Return a sentence on the refinement; None if it was not requested or found no features."""
    n_associated = result.about["n_associated"]
    if not n_associated:
        return None
    return association_sentence(n_associated, n_used=result.n_features_selected_)


def score_sentence(result: Result) -> str | None:
    """Return the sentence of the selection rule on the chosen candidate; None if it has none."""
    rule = result.selection_rule
    return None if rule is None else rule.score_sentence(result.chosen_candidate)


def python_code(result: Result) -> str:
    """Return Python code that repeats reading, preprocessing and fit."""
    about = result.about
    method = METHODS[about["method"]]
    estimator = method.load().__name__
    parameters = about["parameters"]
    # The number of clusters of these methods was chosen after the fit.
    if not method.finds_number_of_clusters:
        parameters = parameters | {"n_clusters": about["chosen"]["n_clusters"]}
    given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    reading = "".join(f", {name}={value!r}" for name, value in about["data"]["reading"].items())
    lines = [f"from mrshc import {estimator}", "from mrshc.io import read_table"]
    if about["preprocessing"]:
        steps = [step["step"] for step in about["preprocessing"]]
        # A step is stored as the call of its class, such as "Log2()".
        names = sorted({step.partition("(")[0] for step in steps})
        lines.append(f"from mrshc.preprocessing import {', '.join(names)}, prepare")
    lines += ["", f"table = read_table({about['data']['source']!r}{reading})"]
    data = "table.X"
    if about["preprocessing"]:
        lines += [f"prepared = prepare(table.X, [{', '.join(steps)}])"]
        data = "prepared.X"
    return "\n".join([*lines, f"model = {estimator}({given}).fit({data})"])


def facts(result: Result) -> list[tuple[str, Any]]:
    """Return the most important numbers of a result, with their names."""
    about, chosen = result.about, result.about["chosen"]
    n_associated, missing = about["n_associated"], about["data"]["n_missing"]
    cells = about["data"]["n_samples"] * about["data"]["n_features"]
    rule = result.selection_rule
    numbers = [
        ("samples", f"{about['data']['n_samples']:,}"),
        ("features", f"{about['data']['n_features']:,}"),
        ("selected features (q)", f"{chosen['n_features']:,}"),
        ("rank (r)", chosen["rank"]),
        ("clusters (K)", chosen["n_clusters"]),
        ("average silhouette", f"{chosen['silhouette']:.2f}" if chosen["n_clusters"] > 1 else None),
        *([] if rule is None else rule.facts(result.chosen_candidate)),
        ("associated features", None if n_associated is None else f"{n_associated:,}"),
        ("outlying samples", len(about["outliers"]) or None),
        ("missing values", f"{missing / cells:.1%}" if missing else None),
    ]
    if scores := about["scores"]:
        name = f"classification error rate ({scores['truth']})"
        numbers.append((name, f"{scores['cer']:.3f}"))
    # Entries without a value do not apply to this result.
    return [(name, value) for name, value in numbers if value is not None]


def _format_count(count: int, noun: str) -> str:
    """Return a number with the noun that it counts: 1 marker, 2,000 markers."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
