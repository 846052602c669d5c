"""What to tell people about a run, in sentences."""

from __future__ import annotations

import numpy as np

from mrshc.app.plan import Plan
from mrshc.comparison import Comparison
from mrshc.io.result import Result, outlying
from mrshc.io.table import missing
from mrshc.preprocessing import ObservedFilter
from mrshc.report.sentences import associated, refined, weighed

_NAMED = 10  # features, in a sentence


def preparation(plan: Plan) -> list[str]:
    """Say what preprocessing did."""
    sentences = late_notes(plan)
    for step in plan.log:
        removed = step.n_features_before - step.n_features_after
        many = "feature" if removed == 1 else "features"
        left = f", {removed:,} {many} removed, {step.n_features_after:,} left" if removed else ""
        if removed and step.step == repr(ObservedFilter()):
            rest = f" and {removed - _NAMED:,} more" if removed > _NAMED else ""
            empty = plan.table.feature_names[np.isnan(plan.table.data.values).all(axis=0)]
            left += f": {', '.join(map(str, empty[:_NAMED]))}{rest}"
        sentences.append(f"{step.description[:1].upper()}{step.description[1:]}{left}.")
    return [*sentences, *([f"Fitting on {plan.place.name}."] if plan.place.name else [])]


def late_notes(plan: Plan) -> list[str]:
    """Say what was not known when a table was read that stays in its file."""
    if plan.table.data.in_memory or not plan.n_missing:
        return []
    return [missing(plan.n_missing, plan.table.X.shape)]


def notes_on(comparison: Comparison, plan: Plan) -> list[str]:
    """Say what the scores of a comparison do not: what refining found, who was set apart."""
    sentences = []
    for name, model in comparison.models.items():
        if (found := getattr(model, "associated_features_", None)) is not None:
            words = associated(len(found), n_used=model.n_features_selected_)
            sentences.append(f"{name}: {words}")
        if len(outliers := getattr(model, "outlier_samples_", ())):
            words = outlying([str(plan.table.sample_names[i]) for i in outliers])
            sentences.append(f"{name}: {words}")
    return sentences


def summary(result: Result) -> list[str]:
    """Say what was found."""
    about, chosen, k = result.about, result.about["chosen"], result.n_clusters_
    searched = result.n_features_searched
    rank = "" if chosen["rank"] is None else f", rank r = {chosen['rank']}"
    clusters = "one cluster: no groups were found." if k == 1 else f"K = {k} clusters; "
    if k > 1:
        clusters += f"average silhouette {chosen['silhouette']:.2f}."
    sentences = [f"Chose q = {searched:,} of {len(result.features):,} features{rank}"]
    more = [text for text in (weighed(result), refined(result)) if text is not None]
    if about["supported"]:  # the clusters are those of the features that were found last
        sentences = [f"{sentences[0]}.", *more, f"Found {clusters}"]
    else:
        sentences = [f"{sentences[0]}, {clusters}", *more]
    if k > 1:
        best = [str(name) for name in result.features.index[: min(_NAMED, chosen["n_features"])]]
        sizes = ", ".join(f"{k} ({size})" for k, size in enumerate(about["cluster_sizes"], start=1))
        sentences.append(f"Clusters (samples): {sizes}.")
        sentences.append(f"Features that separate them most: {', '.join(best)}.")
    if scores := about["scores"]:
        sentences.append(
            f"Against {scores['truth']!r}: classification error rate {scores['cer']:.3f}, purity "
            f"{scores['purity']:.3f}; cut into {scores['n_classes']} clusters, as many as there "
            f"are classes, {scores['cer_at_n_classes']:.3f}."
        )
    return sentences + [f"Note: {concern}" for concern in result.concerns]
