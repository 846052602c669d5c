"""Choose by held-out features: the variation that a tree explains in features not selected.

Clusters that reflect only the selected features explain no variation in others, while clusters of
the samples themselves also differ in other features. The sum of squares that a cut of the tree
explains in the features that were not selected is compared with its distribution over permutations
of the samples, whose mean and variance have a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.selection.candidates import Candidate, CandidateTable, Evaluation, evaluate_cuts
from mrshc.core.selection.explanation import (
    N_FEATURES_AXIS,
    RANK_AXIS,
    Curve,
    SearchStory,
    chosen_row,
    describe_choice,
    format_count,
    make_curve,
)
from mrshc.core.selection.rule_interface import Decision, RuleSettings, SelectionRule
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.errors import Parameter, Sentence

# A tree is scored by the mean over its cuts into 2 to 7 clusters, since the right number of
# clusters is unknown. On real data, the mean chose much better trees than the evidence of the
# clusters found by pruning.
_MAX_CLUSTERS_SCORED = 7
# Largest number of clusters that the rule chooses by itself: more are hard to interpret.
_MAX_CLUSTERS = 10
# Evidence below which no clusters are reported. A standard normal variable exceeds 4 with a
# probability of 1 in 30,000: small even after the largest of many cuts and trees is taken.
_MIN_EVIDENCE = 4.0

_EVIDENCE_AXIS = "evidence, in standard deviations"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankMeans:
    """The mean evidence of each rank, by which the rank is chosen.

    Attributes
    ----------
    ranks : ndarray of shape (n_ranks,)
        Ranks, increasing.
    means : ndarray of shape (n_ranks,)
        Mean evidence of each rank.
    targets : ndarray
        Numbers of features over which the means are taken, increasing.
    has_all_targets : bool
        Whether these are all numbers of features that were tried.
    """

    ranks: Index
    means: Float
    targets: Index
    has_all_targets: bool


def rank_means(table: CandidateTable) -> RankMeans:
    """Return the mean evidence of each rank over the numbers of features common to all ranks.

    Ranks above q are not tried with q features. Means over all q would therefore compare high
    ranks, tried with many features only, with low ranks, tried with few features too.

    Parameters
    ----------
    table : mapping of str to ndarray
        Table of candidates, of a search or of a saved result.
    """
    ranks, targets = np.unique(table["rank"]), table["n_features_target"]
    evidence = np.asarray(table["evidence"], dtype=np.float64)
    # The largest rank is tried with the fewest numbers of features.
    shared: Mask = targets >= ranks[-1]
    # A single rank that the user gave is tried with every q, even with smaller ones.
    if ranks.size == 1:
        shared = np.ones(targets.size, dtype=bool)
    return RankMeans(
        ranks=ranks,
        means=np.array([evidence[shared & (table["rank"] == r)].mean() for r in ranks]),
        targets=np.unique(targets[shared]),
        has_all_targets=bool(shared.all()),
    )


class EvidenceRule(SelectionRule):
    r"""Choose the tree that explains most variation in the features that were not selected.

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
        "by the variation that the tree explains in the features that were not selected; for data "
        "such as gene expression, where clusters differ in many features. Where the useful "
        "features are few, add {refine}. Takes less time.",
        refine=Parameter("refine"),
    )
    description = (
        "Chooses the tree that explains most variation in the features that were not selected, "
        "compared with shuffled samples, and the cut with most evidence. For data such as gene "
        "expression, where the clusters differ in many features: there it finds known classes much "
        "better. Where the useful features are few, it needs `refine`; without, it is worse. It "
        "needs no gap statistics and takes less time."
    )
    columns = ("evidence",)
    cut_scores = ("evidence",)
    no_clusters_reason = "the features that were not selected do not support any"

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int:
        """Return the number of clusters that each tree is cut into."""
        # A larger K of the user must be among the cuts.
        return min(max(_MAX_CLUSTERS, n_clusters or 0), n_samples)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function that scores all cuts on the features that were not selected."""
        return partial(
            score_cuts,
            matrix.columns(features.indices),
            held_out_gram=matrix.gram_without(features.indices),
            settings=settings.gap,
            k=self.n_cuts(n_clusters=settings.n_clusters, n_samples=matrix.shape[0]),
        )

    def candidate(
        self, target: int, features: FeatureSet, evaluation: Evaluation, n_clusters: int | None
    ) -> Candidate:
        """Return a candidate with the cut of largest evidence, or with K clusters if K is given."""
        # Scores begin with the cut into two clusters.
        scores = evaluation.scores["evidence"]
        # A larger K of the user adds cuts, among which the rule does not choose by itself.
        best = int(scores[: _MAX_CLUSTERS - 1].argmax())
        n_leaves = n_clusters or (best + 2 if scores[best] >= _MIN_EVIDENCE else 1)
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=n_leaves,
            silhouette=float(evaluation.silhouettes[n_leaves - 1]),
            scores={"evidence": float(scores[: _MAX_CLUSTERS_SCORED - 1].mean())},
        )

    def choose(self, table: CandidateTable) -> Decision:
        """Choose the rank with the largest mean evidence, then q with the largest evidence."""
        means_by_rank = rank_means(table)
        is_best = table["rank"] == means_by_rank.ranks[means_by_rank.means.argmax()]
        # Only rows of this rank can be chosen; the evidence itself may be negative.
        chosen = int(np.where(is_best, table["evidence"], -np.inf).argmax())
        return Decision(
            chosen=chosen, best_rank=is_best, removed=np.zeros(is_best.size, dtype=bool)
        )

    def explain(self, table: CandidateTable) -> SearchStory:
        """Return the mean evidence of each rank, and the evidence over q of the chosen rank."""
        means_by_rank, chosen = rank_means(table), chosen_row(table)
        evidence = np.asarray(table["evidence"], dtype=np.float64)
        rows_of_rank = np.flatnonzero(table["rank"] == table["rank"][chosen])
        curves = list[Curve]()
        # A curve with a single point would show nothing to choose from.
        if means_by_rank.ranks.size > 1:
            curves.append(
                _rank_curve(means_by_rank, int(table["rank"][chosen]), n_tried=rows_of_rank.size)
            )
        if rows_of_rank.size > 1:
            rank = ""
            if means_by_rank.ranks.size > 1:
                rank = f", with rank {int(table['rank'][chosen])}"
            curves.append(
                make_curve(
                    evidence[rows_of_rank],
                    heading=f"Which number of features{rank}?",
                    x_name=N_FEATURES_AXIS,
                    y_name=_EVIDENCE_AXIS,
                    ticks=table["n_features_target"][rows_of_rank],
                    chosen=int(np.flatnonzero(rows_of_rank == chosen)[0]),
                )
            )
        return SearchStory(
            verdict=describe_choice(table, f"evidence {evidence[chosen]:.1f}"),
            rule=_describe_rule(means_by_rank) if curves else "",
            curves=tuple(curves),
            screened_out="",
        )

    def shortfall_message(self, found: int, asked_for: int | None) -> tuple[str, str]:
        """Return the two parts of the warning of a fit with fewer clusters than K."""
        if found > 1:
            return super().shortfall_message(found, asked_for)
        finding = "The features that were not selected support no clusters."
        return finding, "labels_ holds a single cluster"

    def score_sentence(self, row: Mapping[str, Any]) -> str:
        """Return a sentence on the evidence of the chosen candidate."""
        return (
            f"Evidence of the features that were not selected: {row['evidence']:.1f} standard "
            "deviations of shuffled samples."
        )

    def facts(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the name and the value of the evidence of the chosen candidate."""
        return [("evidence (sd)", f"{row['evidence']:.1f}")]

    def runner_up_sentence(self, table: CandidateTable, n_clusters: int) -> str:
        """Return a sentence on the candidate with most evidence among those not chosen."""
        others = np.flatnonzero(~table["chosen"])
        if not others.size:
            return ""
        best = others[table["evidence"][others].argmax()]
        return (
            f"Of the other candidates, {table['n_features'][best]:,} features with rank "
            f"{table['rank'][best]} have most evidence: {table['evidence'][best]:.1f} standard "
            "deviations."
        )


def _rank_curve(means_by_rank: RankMeans, rank: int, *, n_tried: int) -> Curve:
    """Return the curve of the mean evidence over ranks.

    Parameters
    ----------
    means_by_rank : RankMeans
        Mean evidence of each rank.
    rank : int
        The chosen rank.
    n_tried : int
        Number of numbers of features that were tried with this rank.
    """
    heading = "Which rank?"
    if not means_by_rank.has_all_targets:
        heading += f"\n(mean over {_describe_targets(means_by_rank)})"
    elif n_tried > 1:
        heading += "\n(mean over all numbers of features)"
    return make_curve(
        means_by_rank.means,
        heading=heading,
        x_name=RANK_AXIS,
        y_name=_EVIDENCE_AXIS,
        ticks=means_by_rank.ranks,
        chosen=int(np.flatnonzero(means_by_rank.ranks == rank)[0]),
    )


def _describe_targets(means_by_rank: RankMeans) -> str:
    """Return the numbers of features over which the means are taken, as text."""
    lowest, *others = means_by_rank.targets.tolist()
    return f"q from {lowest} up" if others else f"q = {format_count(lowest, 'feature')} only"


def _describe_rule(means_by_rank: RankMeans) -> str:
    """Return the text that explains how the rank and the number of features are chosen."""
    targets = "all numbers of features"
    if not means_by_rank.has_all_targets:
        targets = (
            "the numbers of features that every rank was tried with "
            f"({_describe_targets(means_by_rank)})"
        )
    return (
        f"How it is chosen: first the rank with the highest mean evidence over {targets}, then the "
        "number of features with most evidence. Evidence: how much more variation the tree "
        "explains in the features that were not selected than it would if samples were shuffled, "
        "in standard deviations of shuffled samples."
    )


def score_cuts(X: Float, *, held_out_gram: Float, settings: GapSettings, k: int) -> Evaluation:
    """Return the tree on the columns of X, with the evidence of its cuts in held-out features.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Selected columns of the data; NaN marks a missing cell.
    held_out_gram : ndarray of shape (n_samples, n_samples)
        Inner products of the samples in the features that were not selected.
    settings : GapSettings
        Linkage and metric of the tree.
    k : int
        Largest number of clusters that the tree is cut into.
    """
    evaluation = evaluate_cuts(X, settings=settings, k=k)
    cuts = evaluation.pruned
    partitions = [cuts.labels(k) for k in range(2, cuts.n_leaves + 1)]
    return replace(evaluation, scores={"evidence": permutation_scores(partitions, held_out_gram)})


def permutation_scores(partitions: Sequence[Labels], gram: Float) -> Float:
    """Return the standardised sum of squares between clusters for each partition.

    Parameters
    ----------
    partitions : sequence of ndarray of shape (n_samples,)
        Labels of each partition.
    gram : ndarray of shape (n_samples, n_samples)
        Inner products of the samples in the features to be explained.

    Returns
    -------
    scores : ndarray of shape (n_partitions,)
        Sum of squares between clusters minus its mean over all permutations of the samples, in
        standard deviations over these permutations; zero if the features do not vary or every
        permutation gives the same sum.

    Notes
    -----
    See :class:`EvidenceRule` for the formula and its reference.
    """
    n = gram.shape[0]
    # Centring the Gram matrix in both directions centres the features.
    centred = gram - gram.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    trace = float(np.trace(centred))
    scores = np.zeros(len(partitions))
    rounding = np.finfo(np.float64).eps
    # The variance has a factor n - 3 in a denominator. Features that are constant up to rounding
    # have nothing to explain.
    if n < 4 or trace <= rounding * n * float(np.trace(gram)):
        return scores
    # Scores do not depend on the unit, but products of four values must not overflow.
    centred /= trace
    squares, squared_diagonal = float(np.sum(centred**2)), float(np.sum(np.diag(centred) ** 2))
    for i, labels in enumerate(partitions):
        sizes = np.bincount(labels)
        k = sizes.size
        membership = np.zeros((n, k))
        membership[np.arange(n), labels] = 1.0
        # tr(PG): the sum of G within each cluster, divided by its size, over all clusters.
        between = float(np.sum((membership * (centred @ membership)).sum(axis=0) / sizes))
        mean, variance = _permutation_moments(
            n,
            freedom=k - 1,
            projection_diagonal=float(np.sum((1.0 / sizes[labels] - 1.0 / n) ** 2)),
            squares=squares,
            squared_diagonal=squared_diagonal,
        )
        # The terms may cancel: a variance of the size of rounding errors counts as zero.
        if variance > rounding:
            scores[i] = (between - mean) / np.sqrt(variance)
    return scores


def _permutation_moments(
    n: int, *, freedom: int, projection_diagonal: float, squares: float, squared_diagonal: float
) -> tuple[float, float]:
    r"""Return mean and variance of the sum of squares between clusters over all permutations.

    Parameters
    ----------
    n : int
        Number of samples, at least four.
    freedom : int
        Degrees of freedom between clusters, :math:`\mathrm{tr}(P) = \mathrm{tr}(P^2) = k - 1`.
    projection_diagonal : float
        :math:`\sum_i P_{ii}^2`.
    squares : float
        :math:`\mathrm{tr}(G^2)`, where :math:`\mathrm{tr}(G) = 1`.
    squared_diagonal : float
        :math:`\sum_i G_{ii}^2`.

    Notes
    -----
    Moments of :math:`\mathrm{tr}(PG)` of Kazi-Aoual et al. (1995); P and G as in
    :class:`EvidenceRule`.
    """
    total = 1.0  # tr(G)
    mean = freedom * total / (n - 1)
    variance = (
        2.0
        * ((n - 1) * freedom - freedom**2)
        * ((n - 1) * squares - total**2)
        / ((n - 1) ** 2 * (n + 1) * (n - 2))
    ) + (
        (n * (n + 1) * projection_diagonal - (n - 1) * (freedom**2 + 2 * freedom))
        * (n * (n + 1) * squared_diagonal - (n - 1) * (total**2 + 2 * squares))
        / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    )
    return mean, variance
