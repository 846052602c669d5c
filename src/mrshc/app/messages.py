"""Sentences that tell the user what a run did and found."""

from __future__ import annotations

import numpy as np

from mrshc.app.plan import Plan
from mrshc.comparison import Comparison
from mrshc.io.result import Result, outlier_message
from mrshc.io.table import missing_values_message
from mrshc.preprocessing import ObservedFilter
from mrshc.report.sentences import association_sentence, refinement_sentence, score_sentence

# Most features named in one sentence: a longer list is hard to read on a terminal, and all names
# are in features.csv. Not tuned: results do not depend on it.
_MAX_NAMED_FEATURES = 10


def preprocessing_summary(plan: Plan) -> list[str]:
    """Return one sentence for each preprocessing step, and one for the execution backend."""
    sentences = out_of_core_notes(plan)
    for step in plan.log:
        n_removed = step.n_features_before - step.n_features_after
        noun = "feature" if n_removed == 1 else "features"
        effect = ""
        if n_removed:
            effect = f", {n_removed:,} {noun} removed, {step.n_features_after:,} left"
        # The user did not ask for this step, so the sentence names the features it removes.
        if n_removed and step.step == repr(ObservedFilter()):
            effect += f": {_features_without_values(plan, n_removed)}"
        sentences.append(f"{step.description[:1].upper()}{step.description[1:]}{effect}.")
    # This process is the usual backend and is not worth a sentence.
    return [*sentences, *([f"Fitting on {plan.backend.name}."] if plan.backend.name else [])]


def _features_without_values(plan: Plan, n_removed: int) -> str:
    """Return the names of features without any value, at most `_MAX_NAMED_FEATURES` of them."""
    empty = plan.table.feature_names[np.isnan(plan.table.data.values).all(axis=0)]
    n_more = n_removed - _MAX_NAMED_FEATURES
    more = f" and {n_more:,} more" if n_more > 0 else ""
    return f"{', '.join(map(str, empty[:_MAX_NAMED_FEATURES]))}{more}"


def out_of_core_notes(plan: Plan) -> list[str]:
    """Return notes on out-of-core data that were not known when the table was opened."""
    # Missing values of out-of-core data can be counted only in a pass, which the plan makes.
    if plan.table.data.in_memory or not plan.n_missing:
        return []
    return [missing_values_message(plan.n_missing, plan.table.X.shape)]


def comparison_notes(comparison: Comparison, plan: Plan) -> list[str]:
    """Return sentences on associated features and outlying samples of each compared method."""
    sentences = []
    for name, model in comparison.models.items():
        if (features := getattr(model, "associated_features_", None)) is not None:
            sentence = association_sentence(len(features), n_used=model.n_features_selected_)
            sentences.append(f"{name}: {sentence}")
        if len(outliers := getattr(model, "outlier_samples_", ())):
            sentence = outlier_message([str(plan.table.sample_names[i]) for i in outliers])
            sentences.append(f"{name}: {sentence}")
    return sentences


def result_summary(result: Result) -> list[str]:
    """Return sentences on the chosen features, the clusters, their scores and any concerns."""
    about, chosen, k = result.about, result.about["chosen"], result.n_clusters_
    searched = result.n_features_before_refinement
    rank = "" if chosen["rank"] is None else f", rank r = {chosen['rank']}"
    clusters = "one cluster: no groups were found." if k == 1 else f"K = {k} clusters; "
    if k > 1:
        clusters += f"average silhouette {chosen['silhouette']:.2f}."
    choice = f"Chose q = {searched:,} of {len(result.features):,} features{rank}"
    details = [
        text for text in (score_sentence(result), refinement_sentence(result)) if text is not None
    ]
    # After a refinement the clusters belong to the refined features, so they are named last.
    if about["supported"]:
        sentences = [f"{choice}.", *details, f"Found {clusters}"]
    else:
        sentences = [f"{choice}, {clusters}", *details]
    if k > 1:
        sentences += _cluster_sentences(result)
    if scores := about["scores"]:
        sentences.append(
            f"Against {scores['truth']!r}: classification error rate {scores['cer']:.3f}, purity "
            f"{scores['purity']:.3f}; cut into {scores['n_classes']} clusters, as many as there "
            f"are classes, {scores['cer_at_n_classes']:.3f}."
        )
    return sentences + [f"Note: {concern}" for concern in result.caveats]


def _cluster_sentences(result: Result) -> list[str]:
    """Return the sizes of the clusters, and the features that separate them most."""
    n_named = min(_MAX_NAMED_FEATURES, result.about["chosen"]["n_features"])
    # The table of features is sorted by effect size, selected features first.
    best = [str(name) for name in result.features.index[:n_named]]
    numbered = enumerate(result.about["cluster_sizes"], start=1)
    sizes = ", ".join(f"{cluster} ({size})" for cluster, size in numbered)
    return [
        f"Clusters (samples): {sizes}.",
        f"Features that separate them most: {', '.join(best)}.",
    ]
