"""What to tell people about a run, in sentences."""

from __future__ import annotations

import pandas as pd

from mrshc.analysis.plan import Plan
from mrshc.io.result import Result

_NAMED = 10  # features, in a sentence


def preparation(plan: Plan) -> list[str]:
    """Say what preprocessing did."""
    sentences = []
    for step in plan.prepared.log:
        removed = step.n_features_before - step.n_features_after
        left = f", {removed:,} features removed, {step.n_features_after:,} left" if removed else ""
        sentences.append(f"{step.description[:1].upper()}{step.description[1:]}{left}.")
    return sentences


def classes_in_clusters(result: Result) -> pd.DataFrame | None:
    """Count the samples of each true class in each cluster; None without known classes."""
    scores = result.about["scores"]
    if scores is None:
        return None
    clusters = result.samples["cluster"].map("cluster {}".format)
    return pd.crosstab(result.samples[scores["truth"]], clusters)


def summary(result: Result) -> list[str]:
    """Say what was found."""
    about, chosen, k = result.about, result.about["chosen"], result.n_clusters_
    rank = "" if chosen["rank"] is None else f", rank r = {chosen['rank']}"
    clusters = "one cluster: no groups were found" if k == 1 else f"K = {k} clusters"
    sentences = [
        f"Chose q = {chosen['n_features']:,} of {len(result.features):,} features{rank}, {clusters}"
        + ("." if k == 1 else f"; average silhouette {chosen['silhouette']:.2f}.")
    ]
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
