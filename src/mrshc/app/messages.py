"""Sentences that summarise a run and its result for the user."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mrshc.app.plan import Plan
from mrshc.comparison import Comparison
from mrshc.io.result import Result, outlier_message
from mrshc.io.table import missing_values_message
from mrshc.metrics import CER_DEFINITION
from mrshc.preprocessing.steps import ObservedFilter
from mrshc.report.confidence_sentences import confidence_sentences, significance_sentence
from mrshc.report.gene_sets_section import result_sentence as gene_sets_sentence
from mrshc.report.sentences import (
    advice_sentence,
    associated_tree_sentence,
    caveats,
    silhouette_sentence,
    start_set_text,
    support_verdict,
    tree_features_sentence,
    unclassified_samples,
    verdict_sentence,
)
from mrshc.report.top_features import top_features_sentence
from mrshc.shell.wording import Sentence

# Maximum number of features named in one sentence. A longer list is hard to read on a terminal, and
# features.csv contains all names. The value is not tuned: it does not affect results.
_MAX_NAMED_FEATURES = 10


def preprocessing_summary(plan: Plan) -> list[str]:
    """Return sentences on the missing values, the preprocessing steps and the execution backend.

    There is one sentence for each preprocessing step. Missing values are mentioned only for
    out-of-core data, and the backend only if it is not the current process.
    """
    sentences = out_of_core_notes(plan)
    for step in plan.log:
        n_removed = step.n_features_before - step.n_features_after
        noun = "feature" if n_removed == 1 else "features"
        effect = ""
        if n_removed:
            effect = f", {n_removed:,} {noun} removed, {step.n_features_after:,} left"
        # The user did not request the step `ObservedFilter`, which is added automatically.
        # Therefore, the sentence names the features that this step removes.
        if n_removed and step.step == repr(ObservedFilter()):
            effect += f": {_features_without_values(plan, n_removed)}"
        sentences.append(f"{step.description[:1].upper()}{step.description[1:]}{effect}.")
    # The current process is the default backend. It has an empty name and needs no sentence.
    return [*sentences, *([f"Fitting on {plan.backend.name}."] if plan.backend.name else [])]


def _features_without_values(plan: Plan, n_removed: int) -> str:
    """Return the names of the features without any value, as one text.

    `n_removed` is the number of these features. At most `_MAX_NAMED_FEATURES` of them are named. If
    there are more, the text ends with the number of features that are not named.
    """
    empty = plan.table.feature_names[np.isnan(plan.table.data.values).all(axis=0)]
    n_more = n_removed - _MAX_NAMED_FEATURES
    more = f" and {n_more:,} more" if n_more > 0 else ""
    return f"{', '.join(map(str, empty[:_MAX_NAMED_FEATURES]))}{more}"


def out_of_core_notes(plan: Plan) -> list[str]:
    """Return a list with one note, on the number of missing values of out-of-core data.

    The list is empty for data in memory and for data without missing values.
    """
    # The missing values of out-of-core data can be counted only in a pass over the data. This pass
    # is made when the plan is created, after the table has been opened.
    if plan.table.data.in_memory or not plan.n_missing:
        return []
    return [missing_values_message(plan.n_missing, plan.table.X.shape)]


def comparison_notes(comparison: Comparison, plan: Plan) -> list[str]:
    """Return sentences on the support of the clusters and the outlying samples of each method.

    There is a verdict on the support only for methods whose features were tested for association.
    """
    sentences = []
    for name, model in comparison.models.items():
        if (features := getattr(model, "associated_features_", None)) is not None:
            n_associated, n_used = len(features), model.n_features_selected_
            texts = [support_verdict(model.supported_, n_associated=n_associated)]
            if n_associated:
                texts.append(associated_tree_sentence(n_associated, n_used=n_used))
            sentences.append(f"{name}: {' '.join(texts)}")
        if len(outliers := getattr(model, "outlier_samples_", ())):
            sentence = outlier_message([str(plan.table.sample_names[i]) for i in outliers])
            sentences.append(f"{name}: {sentence}")
    return sentences


def result_summary(result: Result, *, known_caveats: Collection[str] = ()) -> list[str]:
    """Return sentences on the selected features, the clusters, their support and any caveats.

    Significance and stability are included if they were computed. Caveats in `known_caveats`, which
    the user has seen already, are left out.
    """
    about, k = result.about, result.n_clusters_
    choice, clusters = _choice_clause(result), _clusters_clause(result)
    # The verdict is that of the report, so that both state the same about the clusters.
    details = [
        verdict_sentence(result),
        advice_sentence(result),
        tree_features_sentence(result),
    ]
    # If the clusters are supported, the final tree is built on the associated features. The
    # sentence on the clusters then follows the sentence on these features.
    verb = "Found" if result.n_clusters_given is None else "Cut the tree into"
    if about["supported"]:
        sentences = [f"{choice}.", *details, f"{verb} {clusters}."]
    elif result.n_clusters_given is None:
        sentences = [f"{choice}, {clusters}.", *details]
    else:
        sentences = [f"{choice}. {verb} {clusters}.", *details]
    sentences.append(silhouette_sentence(result))
    if k > 1:
        numbered = enumerate(about["cluster_sizes"], start=1)
        sizes = ", ".join(f"{cluster} ({size})" for cluster, size in numbered)
        sentences.append(f"Clusters (samples): {sizes}.")
    sentences += confidence_sentences(result)
    sentences += [top_features_sentence(result), gene_sets_sentence(result) or None]
    if scores := about["scores"]:
        sentences.append(
            f"Against {scores['truth']!r}: classification error rate {scores['cer']:.3f} "
            f"({CER_DEFINITION}), adjusted Rand index {scores['ari']:.3f}, purity "
            f"{scores['purity']:.3f}; cut into {scores['n_classes']} clusters, as many as there "
            f"are classes: classification error rate {scores['cer_at_n_classes']:.3f}, adjusted "
            f"Rand index {scores['ari_at_n_classes']:.3f}.{unclassified_samples(result)}"
        )
    notes = [caveat for caveat in caveats(result) if caveat not in known_caveats]
    # A sentence that mentions a parameter stays one, so that the command line can name its option.
    sentences += [Sentence("Note: {concern}", concern=caveat) for caveat in notes]
    return [text for text in sentences if text is not None]


def confidence_warnings(result: Result) -> list[str]:
    """Return a list with one warning if there are several clusters but no significant split.

    The list is empty otherwise, or if the significance was not computed.
    """
    tests = result.significance
    if tests is None or tests["n_clusters"] > 1 or result.n_clusters_ == 1:
        return []
    sentence = significance_sentence(result)
    return [] if sentence is None else [sentence]


def _clusters_clause(result: Result) -> str:
    """Return the number of clusters as part of a sentence, and whether the user gave it."""
    k, is_given = result.n_clusters_, result.n_clusters_given is not None
    if k == 1:
        return "one cluster, as asked for" if is_given else "one cluster: no groups were found"
    return f"K = {k} clusters, the number given" if is_given else f"K = {k} clusters"


def _choice_clause(result: Result) -> str:
    """Return a clause on the features that were chosen, without a full stop."""
    n_features, rank = f"{len(result.features):,} features", result.about["chosen"]["rank"]
    if result.starts_from_several_sets:
        # The rank belongs to the start set. The tests determine the number of features.
        number = f"{result.n_features_selected_:,} of {n_features}"
        if not result.about["supported"]:
            return f"Kept a start set, {number} (rank {rank})"
        return f"Chose {number} (start set: {start_set_text(result)})"
    r = "" if rank is None else f", rank r = {rank}"
    return f"Chose q = {result.n_features_before_refinement:,} of {n_features}{r}"
