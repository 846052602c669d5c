"""Section "How sure are these clusters?": significance and stability, as sentences and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.io.result import Result
from mrshc.plotting.branch_marks import (
    count_significant_splits,
    format_p_value,
    format_support,
    result_support,
    result_tests,
)
from mrshc.report.branch_names import branch_name, clusters_below
from mrshc.report.confidence_sentences import STABLE, UNSTABLE, confidence_sentences
from mrshc.report.page_data import MAX_CONSENSUS_SAMPLES
from mrshc.report.section_parts import Figure, Table

_P_VALUE_MEANING = (
    "The p-value of a split is that of the hypothesis that the samples below the node come from "
    "one Gaussian group. The whole procedure, with the selection of the features, is repeated on "
    "data that are simulated from such a group. A small p-value means that one Gaussian group is "
    "not a good description of the samples. It does not mean that the clusters are biological "
    "classes: samples along a uniform gradient, for example, are not Gaussian, so their split is "
    "significant, too."
)
_AGREEMENT_MEANING = (
    "Below the root, features are selected again for the samples of the node, so the tested split "
    "may differ from that of the tree. The agreement is their adjusted Rand index: 1 if they are "
    "equal, about 0 if they have nothing in common. If it is small, the p-value says little about "
    "the two branches of the tree."
)
_STABILITY_MEANING = (
    "The Jaccard index compares a cluster with the most similar cluster of each subsample: 1 if "
    "both are equal, 0 if they have no common sample. Clusters of at least "
    f"{STABLE:g} are considered stable; clusters below {UNSTABLE:g} are doubtful and should not be "
    "interpreted. The support of a branch is 100 % if the trees of all subsamples have it. Stable "
    "clusters are not necessarily real: an elongated group may be divided in the same way in every "
    "subsample."
)


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """Section "How sure are these clusters?"."""

    sentences: list[str]  # those of the command line
    significance: list[str]  # meaning of the p-values; empty if they were not computed
    splits: Table | None  # the tested nodes
    stability: list[str]  # meaning of the stability; empty if it was not computed
    clusters: Table | None  # Jaccard index of each cluster; None for a single cluster
    consensus: Figure | None
    omission: str  # sentence on a consensus that is too large for the page; empty if it is not


def confidence_section(result: Result) -> Confidence | None:
    """Return the section; None if neither significance nor stability was computed."""
    if result.branches is None:
        return None
    tests = result_tests(result)
    has_stability = result.consensus is not None
    is_small = len(result.samples) <= MAX_CONSENSUS_SAMPLES
    return Confidence(
        sentences=confidence_sentences(result),
        significance=[] if tests is None else _significance_notes(result, tests),
        splits=_split_table(result, tests) if tests is not None and tests["node"].size else None,
        stability=[_STABILITY_MEANING] if has_stability else [],
        clusters=_cluster_table(result) if has_stability and result.n_clusters_ > 1 else None,
        consensus=_consensus_figure() if has_stability and is_small else None,
        omission=_omission_sentence(result) if has_stability and not is_small else "",
    )


def _significance_notes(result: Result, tests: dict[str, Any]) -> list[str]:
    """Return notes on the splits between clusters, the thresholds and the p-values."""
    thresholds = (
        "The probability that any split of a single group is significant is at most "
        f"{result.about['significance']['alpha']:g}; therefore the threshold is smaller for nodes "
        "with fewer samples."
    )
    notes = [_clusters_note(result, tests), thresholds, _P_VALUE_MEANING, _AGREEMENT_MEANING]
    return [note for note in notes if note]


def _clusters_note(result: Result, tests: dict[str, Any]) -> str:
    """Return a sentence on the splits between clusters; empty if there are none or no tests."""
    n_significant, n_splits = count_significant_splits(
        result.linkage_matrix_, result.labels_, significance=tests
    )
    if not n_splits or not tests["node"].size:
        return ""
    clusters = f"{result.n_clusters_} clusters of the result"
    if n_significant == n_splits:
        return f"The {clusters} are separated by significant splits."
    if n_significant == 0:
        return f"The {clusters} are not significant."
    verb = "is" if n_significant == 1 else "are"
    return f"Of the {n_splits} splits between the {clusters}, {n_significant} {verb} significant."


def jaccard_reading(jaccard: float | None) -> str:
    """Return what a mean Jaccard index says about a cluster: stable, uncertain or doubtful.

    The index is None if no subsample contains a sample of the cluster.
    """
    if jaccard is None:
        return "not known"
    if jaccard >= STABLE:
        return "stable"
    return "doubtful" if jaccard < UNSTABLE else "uncertain"


def _cluster_table(result: Result) -> Table:
    about = result.about
    rows = [
        [k, f"{size:,}", "" if jaccard is None else f"{jaccard:.2f}", jaccard_reading(jaccard)]
        for k, (size, jaccard) in enumerate(
            zip(about["cluster_sizes"], about["stability"]["cluster_jaccard"], strict=True), start=1
        )
    ]
    return Table(
        headings=["cluster", "samples", "Jaccard index", "reading"],
        rows=rows,
        caption="Stability of the clusters",
    )


def _split_table(result: Result, tests: dict[str, Any]) -> Table:
    """Return a table of the tested nodes, from the root downwards."""
    support = result_support(result)
    rows = []
    for i, node in enumerate(tests["node"].tolist()):
        clusters = clusters_below(result, len(result.samples) + node)
        # A node inside a cluster is named by the cluster; its samples are a part of it.
        size = int(result.linkage_matrix_[node, 3])
        n_below = sum(result.about["cluster_sizes"][k - 1] for k in clusters)
        part = "" if size == n_below else "part of "
        row = [
            part + branch_name(clusters, n_clusters=result.n_clusters_),
            f"{size:,}",
            " and ".join(f"{size:,}" for size in _branch_sizes(result.linkage_matrix_, node)),
            format_p_value(tests["p_value"][i]).removeprefix("p = ").removeprefix("p "),
            f"{tests['threshold'][i]:.3g}",
            "yes" if tests["significant"][i] else "no",
            "" if np.isnan(tests["agreement"][i]) else f"{tests['agreement'][i]:.2f}",
        ]
        if support is not None:
            row.append("" if np.isnan(support[node]) else format_support(support[node]))
        rows.append(row)
    headings = [
        "branch",
        "samples",
        "split into",
        "p-value",
        "threshold",
        "significant",
        "agreement",
    ]
    if support is not None:
        headings.append("support of the branch")
    return Table(headings=headings, rows=rows, caption="Tested splits of the tree")


def _branch_sizes(linkage_matrix: Any, node: int) -> list[int]:
    """Return the numbers of samples of the two branches of a node, given by its row."""
    n = len(linkage_matrix) + 1
    children = linkage_matrix[node, :2].astype(np.intp).tolist()
    return [1 if child < n else int(linkage_matrix[child - n, 3]) for child in children]


def _consensus_figure() -> Figure:
    return Figure(
        id="consensus",
        heading="Consensus of the subsamples",
        label="For each pair of samples, how often both are in the same cluster",
    )


def _omission_sentence(result: Result) -> str:
    return (
        f"The picture of the consensus is left out, since there are more than "
        f"{MAX_CONSENSUS_SAMPLES} samples ({len(result.samples):,}); see consensus.png in the "
        "folder of the result."
    )
