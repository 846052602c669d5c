"""Sentences for the report and for the summary on the terminal, and code that repeats a fit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mrshc.core.selection import SearchStory, SelectionRule
from mrshc.io.result import Result
from mrshc.methods import METHODS
from mrshc.metrics import CER_DEFINITION
from mrshc.report.page_data import ContrastMarkers

# Largest number of features that a sentence names. A longer list would be hard to read, and the
# table of features contains all names.
_MAX_NAMED_FEATURES = 10

CITATION = (
    "Zhang, H. and Zamar, R. H. Multi-rank sparse hierarchical clustering. "
    "Clustered with mrshc {version}."
)


def page_title(result: Result) -> str:
    """Return the title of the page: the number of samples and the number of clusters."""
    n, k = result.about["data"]["n_samples"], result.n_clusters_
    return f"{n:,} samples in {k} {'cluster' if k == 1 else 'clusters'}"


def answer_sentences(result: Result) -> list[str]:
    """Return sentences on the clusters, their separation, the selected features and known classes.

    Sentences that do not apply to the result are left out.
    """
    sentences = [separation_sentence(result), score_sentence(result), refinement_sentence(result)]
    if result.n_clusters_ > 1:
        sentences.insert(0, _cluster_sizes_sentence(result))
        # The table of features lists the selected features first, in decreasing order of effect
        # size.
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
    """Return a text on the agreement of the clusters with known classes.

    Return None if no classes were given.
    """
    scores = result.about["scores"]
    if not scores:
        return None
    return (
        f"Compared with the known classes ({scores['truth']}), the classification error rate is "
        f"{scores['cer']:.3f}: the {CER_DEFINITION}. A class that is divided into several clusters "
        f"therefore counts as an error. The adjusted Rand index is {scores['ari']:.3f}; it is 1 if "
        "clusters and classes are equal, and about 0 for random clusters. "
        f"{scores['purity']:.1%} of the samples belong to the most frequent class of their cluster "
        "(purity)."
    )


def curve_legend(story: SearchStory) -> str:
    """Return a text that explains the symbols in the curves of a search and the selection rule."""
    states = {state for curve in story.curves for state in curve.states}
    symbols = {
        "removed": "Hollow circle: removed from the comparison as a local minimum.",
        "screened out": f"Cross: excluded ({story.screened_out}).",
    }
    shown = [text for state, text in symbols.items() if state in states]
    return " ".join(["Star: the chosen candidate.", *shown, story.rule])


def contrast_name(contrast: ContrastMarkers) -> str:
    """Return the name of a cluster or a split, followed by its number of markers."""
    name = (
        f"cluster {contrast.inside}"
        if contrast.kind == "cluster"
        else f"split between clusters {contrast.inside} and {contrast.outside}"
    )
    return f"{name}: {_format_count(len(contrast.rows), 'marker')}"


def omitted_markers_sentence(n_shown: int, *, n_all: int) -> str:
    """Return a sentence on how many markers the page shows and which file contains all of them."""
    return (
        f"The table shows the {n_shown} strongest markers of each cluster or split; the file "
        f"markers.csv has all {n_all:,}."
    )


def separation_sentence(result: Result) -> str:
    """Return a text on the separation of the clusters and on the second-best candidate.

    If there is only one cluster, the text states why no groups were found, or that the user asked
    for one cluster.
    """
    if result.n_clusters_ == 1:
        if result.n_clusters_given == 1:
            return "All samples are in one cluster, as asked for."
        return f"No groups were found: {_no_clusters_reason(result)}."
    width = result.about["chosen"]["silhouette"]
    # Kaufman and Rousseeuw (1990) call a structure reasonable if the average silhouette width is
    # above 0.5, and weak if it is between 0.25 and 0.5.
    degree = "clearly" if width >= 0.5 else "moderately" if width >= 0.25 else "weakly"
    sentence = (
        f"The average silhouette width is {width:.2f}: the clusters are {degree} separated (1 is "
        "the largest possible value; at 0 or below, clusters are not separated)."
    )
    return f"{sentence} {_next_best_sentence(result)}".strip()


def _no_clusters_reason(result: Result) -> str:
    """Return the reason why there is only one cluster, as a clause that completes a sentence."""
    if result.about["supported"] is False:
        return "there is no structure that other features support"
    rule = result.selection_rule
    return SelectionRule.no_clusters_reason if rule is None else rule.no_clusters_reason


def _next_best_sentence(result: Result) -> str:
    """Return a sentence on the second-best candidate of the search.

    The sentence is empty if the method has no selection rule, or if the clusters were computed from
    refined features.
    """
    rule = result.selection_rule
    # After refinement, the clusters are not those of any candidate.
    if rule is None or result.about["supported"]:
        return ""
    # If the user gave a larger number of clusters than the data support, the result has more
    # clusters than the chosen candidate.
    return rule.runner_up_sentence(result.search_results_, result.chosen_candidate["n_leaves"])


def classes_in_clusters(result: Result) -> pd.DataFrame | None:
    """Return a table with the number of samples of each known class in each cluster.

    Return None if no classes were given.
    """
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
        Number of features that are associated with the clusters. If it is 0, the sentence states
        that the clusters are not supported.
    n_used : int
        Number of associated features on which the tree is built.
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
    """Return a sentence on the refinement of the features.

    Return None if the features were not refined, or if no features are associated with the
    clusters.
    """
    n_associated = result.about["n_associated"]
    if not n_associated:
        return None
    return association_sentence(n_associated, n_used=result.n_features_selected_)


def score_sentence(result: Result) -> str | None:
    """Return the sentence of the selection rule on the score of the chosen candidate.

    Return None if the method has no selection rule, or if the rule has no such sentence.
    """
    rule = result.selection_rule
    return None if rule is None else rule.score_sentence(result.chosen_candidate)


def python_code(result: Result) -> str:
    """Return Python code that reads and preprocesses the data and repeats the fit."""
    about = result.about
    method = METHODS[about["method"]]
    estimator = method.load().__name__
    parameters = about["parameters"]
    # If a method does not determine the number of clusters, this number may have been chosen after
    # the fit. The code must then pass the number to the estimator.
    if not method.finds_number_of_clusters:
        parameters = parameters | {"n_clusters": about["chosen"]["n_clusters"]}
    given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    reading = "".join(f", {name}={value!r}" for name, value in about["data"]["reading"].items())
    lines = [f"from mrshc import {estimator}", "from mrshc.io import read_table"]
    if about["preprocessing"]:
        steps = [step["step"] for step in about["preprocessing"]]
        # A step is stored as the expression that creates it, such as "Log2()".
        names = sorted({step.partition("(")[0] for step in steps})
        lines.append(f"from mrshc.preprocessing import {', '.join(names)}, prepare")
    lines += ["", f"table = read_table({about['data']['source']!r}{reading})"]
    data = "table.X"
    if about["preprocessing"]:
        lines += [f"prepared = prepare(table.X, [{', '.join(steps)}])"]
        data = "prepared.X"
    return "\n".join([*lines, f"model = {estimator}({given}).fit({data})"])


def facts(result: Result) -> list[tuple[str, Any]]:
    """Return the most important numbers of a result, each with its name.

    Numbers that do not apply to the result are left out.
    """
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
        # The classification error rate needs an explanation, so it is given in a sentence only.
        numbers.append((f"adjusted Rand index ({scores['truth']})", f"{scores['ari']:.3f}"))
    # The value None marks numbers that do not apply to this result.
    return [(name, value) for name, value in numbers if value is not None]


def _format_count(count: int, noun: str) -> str:
    """Return a number followed by the noun that it counts, such as 1 marker or 2,000 markers."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
