"""Choose by held-out features: how much more a tree explains in them than shuffled samples would.

Clusters that only describe the features that made them explain nothing else; clusters of the
samples themselves show in other features too. The sum of squares that a cut of the tree explains in
the features that were not selected is compared with its distribution over shuffled samples, whose
mean and variance are known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.selection.candidates import Candidate, Evaluation, Table, evaluate_cuts
from mrshc.core.selection.explanation import (
    NUMBER_AXIS,
    RANK_AXIS,
    Curve,
    SearchStory,
    chosen_row,
    counted,
    describe_choice,
    plain_curve,
)
from mrshc.core.selection.rule_interface import Decision, RuleSettings, SelectionRule
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.errors import Parameter, Sentence

# A tree is scored by the mean over its cuts into 2 to 7 clusters: no single cut is known to be
# right. Measured on real data, the mean chooses much better trees than the evidence of the pruned
# clusters.
_MOST_SCORED = 7
# The most clusters that are looked for: more are hard to interpret.
_MOST_CLUSTERS = 10
# Standard deviations of shuffled samples below which no clusters are reported. A normal deviate
# exceeds it once in 30,000 times; several cuts of several trees are tried.
_SUPPORTED = 4.0

_AXIS = "evidence, in standard deviations"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankMeans:
    """The mean evidence of each rank, by which the rank is chosen."""

    ranks: Index  # (ranks,), increasing
    means: Float  # (ranks,)
    targets: Index  # numbers of features that the means are taken over
    are_all: bool  # whether these are all numbers of features


def rank_means(table: Table) -> RankMeans:
    """Return the mean evidence of each rank over the numbers of features that all ranks share.

    Ranks above q are not tried with q features: means over all q would compare high ranks, tried
    with many features only, with low ranks tried with few features too.

    Parameters
    ----------
    table : mapping of str to ndarray
        The table of candidates, of a search or of a saved result.
    """
    ranks, targets = np.unique(table["rank"]), table["n_features_target"]
    evidence = np.asarray(table["evidence"], dtype=np.float64)
    shared: Mask = targets >= ranks[-1]
    if ranks.size == 1:  # a rank that was asked for is tried with every q
        shared = np.ones(targets.size, dtype=bool)
    return RankMeans(
        ranks=ranks,
        means=np.array([evidence[shared & (table["rank"] == r)].mean() for r in ranks]),
        targets=np.unique(targets[shared]),
        are_all=bool(shared.all()),
    )


class EvidenceRule(SelectionRule):
    r"""Choose the tree that explains most in the features that were not selected.

    Every tree is cut into 2, 3, ..., 10 clusters, without gap statistics. First the rank with the
    largest mean evidence is chosen, then the number of features with the largest evidence, then
    the cut with the largest evidence.

    Notes
    -----
    Let :math:`G` be the centred Gram matrix of the samples in the features that were not selected,
    and :math:`P` the centred projection onto the indicators of k clusters. The sum of squares
    between clusters is :math:`T = \mathrm{tr}(PG)`. The evidence of the cut is
    :math:`(T - \mathrm{E}\,T) / \mathrm{sd}(T)`, with mean and standard deviation over all
    permutations of the samples, which have a closed form [1]_. The evidence of a tree is the mean
    over its cuts into 2 to 7 clusters.

    Ranks are compared by their mean evidence over the numbers of features with which all of them
    were tried. If the user gives no K and no cut reaches an evidence of 4, the result is a single
    cluster.

    References
    ----------
    .. [1] Kazi-Aoual, F., Hitier, S., Sabatier, R. and Lebreton, J.-D. (1995). Refined
       approximations to permutation tests for multivariate inference. Computational Statistics &
       Data Analysis 20, 643-656. https://doi.org/10.1016/0167-9473(94)00064-2
    """

    name = "evidence"
    summary = Sentence(
        "by what the tree says of all other features; for gene expression and the like, where "
        "clusters show in many features. Where the useful features are few, add {refine}. Takes "
        "less time.",
        refine=Parameter("refine"),
    )
    description = (
        "Takes the tree that says most about the features that were not selected, compared with "
        "shuffled samples, and cuts it where it says most. For data such as gene expression, where "
        "the clusters show in many features: there it finds known classes much better. Where all "
        "the useful features are few it needs `refine`, or is worse. It does without gap "
        "statistics, and takes less time."
    )
    columns = ("evidence",)
    cut_scores = ("evidence",)
    no_clusters = "the features that were not selected know nothing of any"

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int:
        """Return the number of clusters that each tree is cut into."""
        return min(max(_MOST_CLUSTERS, n_clusters or 0), n_samples)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return the evaluation of all cuts on the features that were not selected."""
        return partial(
            score_cuts,
            matrix.columns(features.indices),
            others=matrix.gram_without(features.indices),
            settings=settings.gap,
            k=self.n_cuts(n_clusters=settings.n_clusters, n_samples=matrix.shape[0]),
        )

    def candidate(
        self, target: int, features: FeatureSet, evaluation: Evaluation, n_clusters: int | None
    ) -> Candidate:
        """Return a candidate, cut where its evidence is largest unless K is given."""
        scores = evaluation.scores["evidence"]
        best = int(scores[: _MOST_CLUSTERS - 1].argmax())
        n_leaves = n_clusters or (best + 2 if scores[best] >= _SUPPORTED else 1)
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=n_leaves,
            silhouette=float(evaluation.silhouettes[n_leaves - 1]),
            scores={"evidence": float(scores[: _MOST_SCORED - 1].mean())},
        )

    def choose(self, table: Table) -> Decision:
        """Choose the rank with the largest mean evidence, then q with the largest evidence."""
        of_ranks = rank_means(table)
        is_best = table["rank"] == of_ranks.ranks[of_ranks.means.argmax()]
        chosen = int(np.where(is_best, table["evidence"], -np.inf).argmax())
        return Decision(
            chosen=chosen, best_rank=is_best, removed=np.zeros(is_best.size, dtype=bool)
        )

    def explain(self, table: Table) -> SearchStory:
        """Return the mean evidence of each rank, and the evidence over q of the chosen rank."""
        of_ranks, chosen = rank_means(table), chosen_row(table)
        evidence = np.asarray(table["evidence"], dtype=np.float64)
        of_rank = np.flatnonzero(table["rank"] == table["rank"][chosen])
        curves = list[Curve]()
        if of_ranks.ranks.size > 1:
            curves.append(_rank_curve(of_ranks, int(table["rank"][chosen]), n_tried=of_rank.size))
        if of_rank.size > 1:
            rank = f", with rank {int(table['rank'][chosen])}" * (of_ranks.ranks.size > 1)
            curves.append(
                plain_curve(
                    evidence[of_rank],
                    heading=f"Which number of features{rank}?",
                    x_name=NUMBER_AXIS,
                    y_name=_AXIS,
                    ticks=table["n_features_target"][of_rank],
                    chosen=int(np.flatnonzero(of_rank == chosen)[0]),
                )
            )
        return SearchStory(
            verdict=describe_choice(table, f"evidence {evidence[chosen]:.1f}"),
            rule=_rule_in_words(of_ranks) if curves else "",
            curves=tuple(curves),
            screened_out="",
        )

    def shortfall(self, found: int, asked_for: int | None) -> tuple[str, str]:
        """Return the warning of a fit with fewer clusters than K, in two parts."""
        if found > 1:
            return super().shortfall(found, asked_for)
        finding = "The features that were not selected support no clusters."
        return finding, "labels_ holds a single one"

    def score_sentence(self, row: Mapping[str, Any]) -> str:
        """Return a sentence on the evidence of the chosen candidate."""
        return (
            f"Evidence of the features that were not selected: {row['evidence']:.1f} standard "
            "deviations of shuffled samples."
        )

    def facts(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the evidence of the chosen candidate."""
        return [("evidence (sd)", f"{row['evidence']:.1f}")]

    def next_best(self, table: Table, n_clusters: int) -> str:
        """Return a sentence on the other candidate with most evidence."""
        others = np.flatnonzero(~table["chosen"])
        if not others.size:
            return ""
        best = others[table["evidence"][others].argmax()]
        return (
            f"Of the other candidates, {table['n_features'][best]:,} features with rank "
            f"{table['rank'][best]} have most evidence: {table['evidence'][best]:.1f} standard "
            "deviations."
        )


def _rank_curve(of_ranks: RankMeans, rank: int, *, n_tried: int) -> Curve:
    """Return the means that ranks are compared by; `n_tried`: numbers of features of the rank."""
    heading = "Which rank?"
    if not of_ranks.are_all:
        heading += f"\n(mean over {_shared_targets(of_ranks)})"
    elif n_tried > 1:
        heading += "\n(mean over all numbers of features)"
    return plain_curve(
        of_ranks.means,
        heading=heading,
        x_name=RANK_AXIS,
        y_name=_AXIS,
        ticks=of_ranks.ranks,
        chosen=int(np.flatnonzero(of_ranks.ranks == rank)[0]),
    )


def _shared_targets(of_ranks: RankMeans) -> str:
    lowest, *others = of_ranks.targets.tolist()
    return f"q from {lowest} up" if others else f"q = {counted(lowest, 'feature')} only"


def _rule_in_words(of_ranks: RankMeans) -> str:
    over = "all numbers of features"
    if not of_ranks.are_all:
        over = (
            f"the numbers of features that every rank was tried with ({_shared_targets(of_ranks)})"
        )
    return (
        f"How it is chosen: first the rank with the highest mean evidence over {over}, then the "
        "number of features with most evidence. Evidence: how much more the tree says of the "
        "features that were not selected than it would if samples were shuffled, in standard "
        "deviations of shuffled samples."
    )


def score_cuts(X: Float, *, others: Float, settings: GapSettings, k: int) -> Evaluation:
    """Build the tree on the columns of X and score its cuts on held-out features.

    `others` are the inner products of the samples in these; up to k clusters are cut.
    """
    evaluation = evaluate_cuts(X, settings=settings, k=k)
    cuts = evaluation.pruned
    partitions = [cuts.labels(k) for k in range(2, cuts.n_leaves + 1)]
    return replace(evaluation, scores={"evidence": shuffle_scores(partitions, others)})


def shuffle_scores(partitions: Sequence[Labels], gram: Float) -> Float:
    """Return for each partition by how much it explains more than if samples were shuffled.

    `gram` holds the inner products of the samples in the features to be explained. The sum of
    squares between clusters is given in standard deviations from its mean over all shuffles; zero
    where there is nothing to explain.
    """
    n = gram.shape[0]
    centred = gram - gram.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    whole = float(np.trace(centred))
    scores = np.zeros(len(partitions))
    rounding = np.finfo(np.float64).eps
    if n < 4 or whole <= rounding * n * float(np.trace(gram)):
        return scores
    centred /= whole  # the unit does not matter, but squares of squares must exist
    total = 1.0
    squares, fourths = float(np.sum(centred**2)), float(np.sum(np.diag(centred) ** 2))
    for i, labels in enumerate(partitions):
        sizes = np.bincount(labels)
        k = sizes.size
        membership = np.zeros((n, k))
        membership[np.arange(n), labels] = 1.0
        between = float(np.sum((membership * (centred @ membership)).sum(axis=0) / sizes))
        freedom = k - 1
        own = float(np.sum((1.0 / sizes[labels] - 1.0 / n) ** 2))
        mean = freedom * total / (n - 1)
        variance = (
            2.0
            * ((n - 1) * freedom - freedom**2)
            * ((n - 1) * squares - total**2)
            / ((n - 1) ** 2 * (n + 1) * (n - 2))
        ) + (
            (n * (n + 1) * own - (n - 1) * (freedom**2 + 2 * freedom))
            * (n * (n + 1) * fourths - (n - 1) * (total**2 + 2 * squares))
            / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
        )
        if variance > rounding:  # of terms that may cancel
            scores[i] = (between - mean) / np.sqrt(variance)
    return scores
