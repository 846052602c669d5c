"""Sentences on the significance of the branches and the stability of a result."""

from __future__ import annotations

from mrshc.core.significance import MIN_BRANCH_SAMPLES, MIN_NODE_SAMPLES
from mrshc.io.result import Result

# Jaccard indices from which clusters are called stable, and below which they should not be
# interpreted, by Hennig (2007), Computational Statistics and Data Analysis 52(1), 258-271.
STABLE, UNSTABLE = 0.75, 0.6
# P-values are computed with a fitted distribution, whose far tail is uncertain. Smaller p-values
# are therefore given as a bound.
_SMALLEST_P_VALUE = 1e-4
# Adjusted Rand index below which the tested split and that of the tree have little in common. The
# value is a convention: halfway between equal and unrelated splits.
_SMALL_AGREEMENT = 0.5


def confidence_sentences(result: Result) -> list[str]:
    """Return sentences on significance and stability; empty if neither was computed."""
    sentences = [
        significance_sentence(result),
        _other_clusters_sentence(result),
        _other_splits_sentence(result),
        _left_out_sentence(result),
        jaccard_sentence(result),
        _unstable_sentence(result),
        _frequency_sentence(result),
    ]
    return [text for text in sentences if text is not None]


def significance_sentence(result: Result) -> str | None:
    """Return a text on the significant clusters and the first split, and what to conclude.

    Return None if the significance of the branches was not computed.
    """
    if result.significance is None or result.branches is None:
        return None
    tested = result.branches[result.branches["p_value"].notna()]
    if tested.empty:
        return (
            "Significance: no split could be tested. A test needs at least "
            f"{MIN_NODE_SAMPLES} samples, with at least {MIN_BRANCH_SAMPLES} in both branches."
        )
    level, k = result.significance["alpha"], result.significance["n_clusters"]
    p_value = f"the p-value of the first split is {format_p_value(tested['p_value'].iloc[0])}"
    if k > 1:
        return (
            f"Significance: there are {k} significant clusters at the level {level:g}; {p_value}. "
            "The samples are not one Gaussian group. Clusters are the usual reason, and a gradient "
            "is another."
        )
    finding = f"Significance: no split is significant at the level {level:g}; {p_value}."
    caution = "This is no proof that there are no clusters: small or weak ones need more samples."
    if result.n_clusters_ == 1:
        return f"{finding} {caution}"
    return (
        f"{finding} Data without clusters can give splits as clear as these. Do not regard the "
        "clusters as real groups unless other evidence, such as new samples, supports them. "
        f"{caution}"
    )


def format_p_value(p_value: float) -> str:
    """Return a p-value with two significant digits, or the bound below which it is."""
    if p_value < _SMALLEST_P_VALUE:
        return f"below {_SMALLEST_P_VALUE:.4f}"
    return f"{p_value:.2g}"


def _other_clusters_sentence(result: Result) -> str | None:
    """Return a sentence if the number of significant clusters is not that of the clusters.

    Return None if the numbers are equal, or if there is only one significant cluster.
    """
    if result.significance is None:
        return None
    k, n_significant = result.n_clusters_, result.significance["n_clusters"]
    if n_significant in (1, k):
        return None
    return (
        f"The tree was cut into {k} {'cluster' if k == 1 else 'clusters'}, and its significant "
        f"splits divide it into {n_significant}: see the column significant_cluster of "
        "clusters.csv."
    )


def _other_splits_sentence(result: Result) -> str | None:
    """Return a sentence on significant splits that differ from those of the tree.

    Return None if there are none.
    """
    if result.significance is None or result.branches is None:
        return None
    differs = result.branches["significant"] & (result.branches["agreement"] < _SMALL_AGREEMENT)
    n_other = int(differs.fillna(False).sum())
    if n_other == 0:
        return None
    subject = (
        "1 significant split differs from that"
        if n_other == 1
        else f"{n_other} significant splits differ from those"
    )
    return (
        f"{subject} of the tree (column agreement of branches.csv, below "
        f"{_SMALL_AGREEMENT:g}): the samples are more than one group, but the two branches of the "
        "tree need not be these groups."
    )


def _left_out_sentence(result: Result) -> str | None:
    """Return a sentence on samples in no significant cluster; None if there are none."""
    if result.significance is None:
        return None
    n_left_out = int(result.samples["significant_cluster"].isna().sum())
    if n_left_out == 0:
        return None
    subject = "1 sample is" if n_left_out == 1 else f"{n_left_out:,} samples are"
    return (
        f"{subject} in no significant cluster, because a branch of fewer than {MIN_BRANCH_SAMPLES} "
        "samples is regarded as outlying."
    )


def jaccard_sentence(result: Result) -> str | None:
    """Return a sentence with the Jaccard index of each cluster; None if it was not computed."""
    if result.stability is None:
        return None
    if result.n_clusters_ == 1:
        return "Stability: the Jaccard index is not defined, since there is only one cluster."
    indices = ", ".join(
        f"{cluster} ({'unknown' if index is None else f'{index:.2f}'})"
        for cluster, index in enumerate(result.stability["cluster_jaccard"], start=1)
    )
    return (
        f"Stability: Jaccard index of each cluster in {result.stability['n_resamples']} subsamples "
        f"of {result.stability['fraction']:.0%} of the samples: {indices}."
    )


def _unstable_sentence(result: Result) -> str | None:
    """Return a sentence that interprets the Jaccard indices; None if there are none."""
    if result.stability is None or result.n_clusters_ == 1:
        return None
    indices = result.stability["cluster_jaccard"]
    unstable = [k for k, index in enumerate(indices, 1) if index is not None and index < UNSTABLE]
    if unstable:
        noun = "cluster" if len(unstable) == 1 else "clusters"
        return (
            f"Below {UNSTABLE:g}, a cluster depends on single samples and should not be "
            f"interpreted: {noun} {', '.join(map(str, unstable))}."
        )
    if all(index is not None and index >= STABLE for index in indices):
        stable = f"All clusters are stable (at least {STABLE:g})."
    else:
        stable = f"Clusters of at least {STABLE:g} are stable; the others are uncertain."
    return f"{stable} Stable clusters need not be significant."


def _frequency_sentence(result: Result) -> str | None:
    """Return a sentence on how often the selected features are selected again.

    Return None if the stability was not computed, or if all features are selected.
    """
    is_selected = result.features["selected"]
    if result.stability is None or is_selected.all():
        return None
    mean = result.features["selection_frequency"][is_selected].mean()
    return f"On average, a selected feature is selected in {mean:.0%} of the subsamples."
