"""Sentences for the report and for the summary on the terminal, and code that repeats a fit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mrshc.core.association import MAX_CLUSTERS, MIN_FEATURES, MIN_SAMPLES
from mrshc.estimators.association import NO_SUPPORT
from mrshc.io.result import Result
from mrshc.methods import METHODS
from mrshc.metrics import CER_DEFINITION
from mrshc.plotting.result_pictures import clusters_note
from mrshc.plotting.search_explanation import SearchStory, runner_up_sentence
from mrshc.report.page_data import ContrastMarkers
from mrshc.report.top_features import top_features_sentence

# The false discovery rate of the method association on the command line.
_ALPHA = 0.05

CITATION = (
    "Zhang, H. and Zamar, R. H. Multi-rank sparse hierarchical clustering. "
    "Clustered with mrshc {version}."
)


def page_title(result: Result) -> str:
    """Return the title of the page: the numbers of samples and clusters.

    The title ends with a note if the clusters are not supported or not significant.
    """
    n, k = result.about["data"]["n_samples"], result.n_clusters_
    title = f"{n:,} samples in {k} {'cluster' if k == 1 else 'clusters'}"
    return "; ".join(filter(None, [title, clusters_note(result)]))


def answer_sentences(result: Result) -> list[str]:
    """Return sentences on the support of the clusters, their sizes and features, and known classes.

    Sentences that do not apply to the result are left out.
    """
    sentences = [
        verdict_sentence(result),
        advice_sentence(result),
        tree_features_sentence(result),
        no_clusters_sentence(result),
        silhouette_sentence(result),
        _next_best_sentence(result),
        _cluster_sizes_sentence(result),
        top_features_sentence(result),
        _agreement_sentence(result),
    ]
    return [text for text in sentences if text]


def _cluster_sizes_sentence(result: Result) -> str | None:
    """Return a sentence on the number of samples of each cluster; None if there is only one."""
    if result.n_clusters_ == 1:
        return None
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
        f"(purity).{unclassified_samples(result)}"
    )


def unclassified_samples(result: Result) -> str:
    """Return a sentence on samples without a known class, after a space; empty if all have one."""
    n_unknown = len(result.samples) - result.about["scores"]["n_samples"]
    if not n_unknown:
        return ""
    verb = "is" if n_unknown == 1 else "are"
    samples = _format_count(n_unknown, "sample")
    return f" {samples} without a known class {verb} left out of these scores."


def _format_share(share: float) -> str:
    """Return a positive share as a percentage with one decimal; small shares do not become 0."""
    return f"{share:.1%}" if share >= 0.0005 else "below 0.1%"


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
    """Return the name of a cluster or a split, followed by its number of markers.

    The numbers of markers that are higher (up) and lower (down) in the first group follow.
    """
    name = (
        f"cluster {contrast.inside}"
        if contrast.kind == "cluster"
        else f"split between clusters {contrast.inside} and {contrast.outside}"
    )
    count = _format_count(len(contrast.rows), "marker")
    directions = contrast.rows["direction"]
    parts = [f"{(directions == way).sum():,} {way}" for way in ("up", "down")]
    return f"{name}: {count}" + (f" ({', '.join(parts)})" if len(directions) else "")


def omitted_markers_sentence(n_shown: int, *, n_all: int) -> str:
    """Return a sentence on how many markers the page shows and which file contains all of them."""
    return (
        f"The table shows the {n_shown} markers with the largest effect sizes for each cluster or "
        f"split and each direction; the file markers.csv has all {n_all:,}."
    )


def support_verdict(
    supported: bool | None,
    *,
    n_associated: int | None,
    untested: str = "",
    splits_are_tested: bool = False,
) -> str:
    """Return the verdict on whether held-out features support the clusters.

    The command line and the report both use this function, so they state the same verdict. The
    verdict depends only on tests of features with trees that were built without them. Silhouettes,
    markers and gap statistics are computed in the features that were selected to separate the
    clusters, so they are not evidence for the clusters.
    """
    if supported:
        limit = "" if splits_are_tested else " The number of clusters is not tested."
        return (
            f"The clusters are supported by held-out features: {n_associated:,} features are "
            "associated with clusters of trees that were built without them, at a false discovery "
            f"rate of {100 * _ALPHA:g} %. This separates structure from independent noise only: "
            "features that are correlated for another reason, such as a batch or a pathway, also "
            f"count as structure.{limit}"
        )
    if supported is False:
        return NO_SUPPORT
    # Features were tested, but there are too few samples or selected features for a decision.
    if n_associated is not None:
        return (
            f"The test of the clusters is undecided: fewer than {MIN_FEATURES} features are "
            "associated with clusters of trees that were built without them, but there are too few "
            f"samples (fewer than {MIN_SAMPLES}) or selected features (fewer than "
            f"{MIN_FEATURES}) to expect more."
        )
    return untested


def verdict_sentence(result: Result) -> str:
    """Return the verdict on whether held-out features support the clusters of a result."""
    about = result.about
    return support_verdict(
        about["supported"],
        n_associated=about["n_associated"],
        untested=_untested_verdict(result),
        splits_are_tested=result.significance is not None,
    )


def advice_sentence(result: Result) -> str | None:
    """Return advice if held-out features do not support the clusters; None otherwise."""
    if result.about["supported"] is not False:
        return None
    cut = ""
    if result.n_clusters_ == 1:
        cut = " To cut the tree all the same, give the number of clusters."
    return (
        "There may be no clusters. Before you conclude this, try a logarithm for counts or "
        "intensities, a filter for features that hardly vary, the option robust against outliers, "
        f"and the procedure of the paper.{cut}"
    )


def _untested_verdict(result: Result) -> str:
    """Return the verdict on clusters that were not tested, and how to test them."""
    if result.n_clusters_ == 1:
        return "The clusters were not tested: there is only one."
    tests = "nothing in this result tests them against chance"
    if result.significance is not None:
        tests = "only the tests of the splits compare them with chance"
    return (
        f"The clusters were not tested with held-out features: {tests}. To test them, use the "
        "method association."
    )


def _support_fact(result: Result) -> str:
    """Return the verdict of `verdict_sentence` in one or two words."""
    about = result.about
    if about["supported"] is None:
        return "not tested" if about["n_associated"] is None else "undecided"
    return "yes" if about["supported"] else "no"


def caveats(result: Result) -> list[str]:
    """Return the caveats of a result, without those that the verdict already states."""
    verdict = verdict_sentence(result)
    return [text for text in result.caveats if text != verdict]


def start_set_text(result: Result) -> str:
    """Return the number of features and the rank of the start set that led to the result."""
    n_features = _format_count(result.n_features_before_refinement, "feature")
    return f"{n_features}, rank {result.about['chosen']['rank']}"


def cut_sentence(result: Result) -> str | None:
    """Return a sentence on how the number of clusters was chosen.

    Return None unless it was chosen by the drop ratios of the final tree. This is the case if the
    features were tested for association and the user did not give a number.
    """
    has_chosen_number = result.n_clusters_given is None and result.n_clusters_ > 1
    if not result.starts_from_several_sets or not has_chosen_number:
        return None
    return (
        f"The tree is cut into {result.n_clusters_} clusters: of the cuts into at most "
        f"{MAX_CLUSTERS} clusters, this is the one whose last split exceeds the next split by the "
        "largest ratio. This is a heuristic, not a test."
    )


def silhouette_sentence(result: Result) -> str | None:
    """Return a text on the average silhouette; None if there is only one cluster.

    The text describes the clusters and does not grade them, because the silhouette is computed in
    the features that were selected to separate the clusters.
    """
    if result.n_clusters_ == 1:
        return None
    width = result.about["chosen"]["silhouette"]
    method = METHODS[result.about["method"]]
    return (
        f"Average silhouette {width:.2f}: how compact the clusters are in "
        f"{method.distance_features}. {method.silhouette_caveat}"
    )


def no_clusters_sentence(result: Result) -> str | None:
    """Return a sentence on why no groups were found; None if there are several clusters."""
    if result.n_clusters_ > 1:
        return None
    if result.n_clusters_given == 1:
        return "All samples are in one cluster, as asked for."
    # The verdict states the reason if the clusters of the search are not supported.
    if result.about["supported"] is False:
        return "No groups were found."
    return "No groups were found: no split of the tree passed the gap test."


def _next_best_sentence(result: Result) -> str:
    """Return a sentence on the second-best candidate of the search.

    The sentence is empty if there is only one cluster, or for other methods than MrSHC.
    """
    if result.n_clusters_ == 1 or "removed" not in result.chosen_candidate:
        return ""
    # If the user gave a larger number of clusters than the data support, the result has more
    # clusters than the chosen candidate.
    return runner_up_sentence(result.search_results_, result.chosen_candidate["n_leaves"])


def classes_in_clusters(result: Result) -> pd.DataFrame | None:
    """Return a table with the number of samples of each known class in each cluster.

    Return None if no classes were given.
    """
    scores = result.about["scores"]
    if scores is None:
        return None
    clusters = result.samples["cluster"].map("cluster {}".format)
    return pd.crosstab(result.samples[scores["truth"]], clusters)


def tree_features_sentence(result: Result) -> str | None:
    """Return a sentence on which of the associated features the tree is built on.

    Return None if the features were not tested for association, or if too few features are
    associated with the clusters.
    """
    n_associated = result.about["n_associated"]
    if not n_associated:
        return None
    return associated_tree_sentence(n_associated, n_used=result.n_features_selected_)


def associated_tree_sentence(n_associated: int, *, n_used: int) -> str:
    """Return a sentence on how many of the associated features the tree is built on."""
    if n_associated == n_used:
        return "The tree is built on the associated features."
    return (
        f"The tree is built on the {n_used:,} associated features with the largest differences "
        "between clusters (sums of squares)."
    )


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
    choice = [("selected features (q)", f"{chosen['n_features']:,}"), ("rank (r)", chosen["rank"])]
    if result.starts_from_several_sets:
        # Here q and r are properties of the start set, not of the selected features.
        choice = [
            ("selected features", f"{chosen['n_features']:,}"),
            ("start set", start_set_text(result)),
        ]
    numbers = [
        ("samples", f"{about['data']['n_samples']:,}"),
        ("features", f"{about['data']['n_features']:,}"),
        *choice,
        ("clusters (K)", chosen["n_clusters"]),
        ("significant clusters", about.get("significance", {}).get("n_clusters")),
        ("supported by held-out features", _support_fact(result)),
        ("average silhouette", f"{chosen['silhouette']:.2f}" if chosen["n_clusters"] > 1 else None),
        ("associated features", None if n_associated is None else f"{n_associated:,}"),
        ("outlying samples", len(about["outliers"]) or None),
        ("missing values", _format_share(missing / cells) if missing else None),
    ]
    if scores := about["scores"]:
        # The classification error rate needs an explanation, so it is given in a sentence only.
        numbers.append((f"adjusted Rand index ({scores['truth']})", f"{scores['ari']:.3f}"))
    # The value None marks numbers that do not apply to this result.
    return [(name, value) for name, value in numbers if value is not None]


def _format_count(count: int, noun: str) -> str:
    """Return a number followed by the noun that it counts, such as 1 marker or 2,000 markers."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
