"""The evidence rule: choose a tree by the variation it explains in the features not selected.

True clusters of the samples usually differ in many features, including features that were not
selected. Clusters that are merely an artefact of feature selection explain no more variation in the
other features than expected by chance, provided that these are independent of the selected
features. The rule therefore computes the sum of squares between clusters in the features that were
not selected. This sum is compared with its distribution over random permutations of the samples.
The mean and the variance of this distribution have closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import RefinementResult
from mrshc.core.selection.candidates import (
    Candidate,
    CandidateTable,
    Evaluation,
    evaluate_evidence,
)
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
from mrshc.core.trees.cut_choice import MAX_CLUSTERS, best_cut
from mrshc.errors import Parameter, Sentence

# The evidence of a tree is the mean evidence of its cuts into 2 to 7 clusters, since the right
# number of clusters is unknown. On real data, choosing trees by this mean gave much better trees
# than choosing them by the evidence of the clusters that pruning finds.
_MAX_CLUSTERS_SCORED = 7
# If no cut has at least this evidence, the result is a single cluster. A standard normal variable
# exceeds 4 with a probability of about 1 in 30,000. The limit is strict because it is compared with
# the largest evidence among many cuts and trees.
_MIN_EVIDENCE = 4.0

_EVIDENCE_AXIS = "evidence, in standard deviations"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankMeans:
    """The mean evidence of each rank; the rank with the largest mean is chosen.

    Attributes
    ----------
    ranks : ndarray of shape (n_ranks,)
        Ranks, in increasing order.
    means : ndarray of shape (n_ranks,)
        Mean evidence of each rank.
    targets : ndarray of shape (n_targets,)
        Numbers of features q over which the means are taken, in increasing order.
    has_all_targets : bool
        Whether `targets` contains all numbers of features that were tried.
    """

    ranks: Index
    means: Float
    targets: Index
    has_all_targets: bool


def rank_means(table: CandidateTable) -> RankMeans:
    """Return the mean evidence of each rank over the numbers of features tried with every rank.

    A search does not try ranks above the number of features q, so high ranks are tried only with
    large q. Means over all q that were tried with a rank would therefore not be comparable between
    ranks.

    Parameters
    ----------
    table : mapping of str to ndarray
        Table of candidates that was produced by the evidence rule.
    """
    ranks, targets = np.unique(table["rank"]), table["n_features_target"]
    evidence = np.asarray(table["evidence"], dtype=np.float64)
    # Every rank has been tried with every q that is not smaller than the largest rank.
    shared: Mask = targets >= ranks[-1]
    # If there is only one rank, this rank has been tried with every q, even with a q that is
    # smaller than the rank.
    if ranks.size == 1:
        shared = np.ones(targets.size, dtype=bool)
    return RankMeans(
        ranks=ranks,
        means=np.array([evidence[shared & (table["rank"] == r)].mean() for r in ranks]),
        targets=np.unique(targets[shared]),
        has_all_targets=bool(shared.all()),
    )


class EvidenceRule(SelectionRule):
    r"""Selection rule that uses the variation explained in the features that were not selected.

    Every tree is cut into 2, 3, ..., 10 clusters, and into more clusters if the user gives a larger
    number. The gap statistic is not used. The evidence of a cut is a standardised sum of squares
    between its clusters in the features that were not selected. The rule first chooses the rank
    with the largest mean evidence, and then, for this rank, the number of features whose tree has
    the largest evidence. If the user does not give the number of clusters, the rule finally chooses
    the cut of this tree with the largest evidence.

    Notes
    -----
    Let :math:`G` be the centred Gram matrix of the samples in the features that were not selected.
    Let :math:`P` be the orthogonal projection onto the space spanned by the centred indicator
    vectors of the clusters. The sum of squares between clusters is :math:`T = \mathrm{tr}(PG)`. The
    evidence of the cut is :math:`(T - \mathrm{E}\,T) / \mathrm{sd}(T)`. The mean
    :math:`\mathrm{E}\,T` and the standard deviation :math:`\mathrm{sd}(T)` are taken over all
    permutations of the samples and have closed forms [1]_. The evidence of a tree is the mean
    evidence of its cuts into 2 to 7 clusters.

    The mean evidence of a rank is taken over the numbers of features that were tried with every
    rank. If the user does not give the number of clusters, only cuts into at most 10 clusters are
    considered. The result is then a single cluster if no cut of the chosen tree has an evidence of
    at least 4.

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
    uses_gram = True
    no_clusters_reason = "the features that were not selected do not support any"

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int:
        """Return the largest number of clusters into which each tree is cut.

        The number is at most `n_samples`. `n_clusters` is the number of clusters that the user
        gave; it is None if the user did not give a number.
        """
        # If the user gave a number of clusters above 10, the cuts must include this number.
        return min(max(MAX_CLUSTERS, n_clusters or 0), n_samples)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function that builds a tree on a feature set and scores the cuts of this tree.

        The score of a cut is its evidence in the features that were not selected.
        """
        return partial(
            evaluate_evidence,
            matrix.columns(features.indices),
            gram=matrix.gram_without(features.indices),
            settings=settings.gap,
            k=self.n_cuts(n_clusters=settings.n_clusters, n_samples=matrix.shape[0]),
        )

    def candidate(
        self,
        target: int,
        features: FeatureSet,
        evaluation: Evaluation,
        *,
        n_clusters: int | None,
        refined: RefinementResult | None,
    ) -> Candidate:
        """Return the candidate for a target number of features.

        `features` is the feature set of the candidate, and `evaluation` is the evaluation of the
        tree on this set. The candidate has `n_clusters` clusters. If `n_clusters` is None, the
        number of clusters is that of the cut with the largest evidence, among cuts into at most 10
        clusters. It is one if no such cut has an evidence of at least 4.

        If the user gave `n_clusters`, the number of supported clusters is the largest number, up to
        `n_clusters`, for which the cut has an evidence of at least 4.
        """
        # The first score is that of the cut into two clusters.
        scores = evaluation.scores["evidence"]
        best = best_cut(scores)
        is_supported = best > 1 and scores[best - 2] >= _MIN_EVIDENCE
        n_leaves = n_clusters or (best if is_supported else 1)
        supported = np.flatnonzero(scores[: n_leaves - 1] >= _MIN_EVIDENCE)
        n_supported = int(supported[-1]) + 2 if supported.size else 1
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=n_leaves,
            silhouette=float(evaluation.silhouettes[n_leaves - 1]),
            scores={"evidence": float(scores[: _MAX_CLUSTERS_SCORED - 1].mean())},
            n_supported=n_supported if n_supported < n_leaves else None,
        )

    def choose(self, table: CandidateTable) -> Decision:
        """Return the decision: the rank with the largest mean evidence, and the best q.

        The best number of features q is the one whose tree, with this rank, has the largest
        evidence.
        """
        means_by_rank = rank_means(table)
        is_best = table["rank"] == means_by_rank.ranks[means_by_rank.means.argmax()]
        # Rows with other ranks are set to minus infinity, which excludes them even if the evidence
        # is negative in all rows.
        chosen = int(np.where(is_best, table["evidence"], -np.inf).argmax())
        return Decision(
            chosen=chosen, best_rank=is_best, removed=np.zeros(is_best.size, dtype=bool)
        )

    def explain(self, table: CandidateTable) -> SearchStory:
        """Return an explanation of the choice, with up to two curves.

        The first curve shows the mean evidence of each rank. The second curve shows, for the chosen
        rank, the evidence of the tree for each number of features q. A curve that would have a
        single point is omitted.
        """
        means_by_rank, chosen = rank_means(table), chosen_row(table)
        evidence = np.asarray(table["evidence"], dtype=np.float64)
        rows_of_rank = np.flatnonzero(table["rank"] == table["rank"][chosen])
        curves = list[Curve]()
        # A curve is omitted if it would have a single point, since there was nothing to choose.
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
                    chosen=rows_of_rank.tolist().index(chosen),
                )
            )
        return SearchStory(
            verdict=describe_choice(table, f"evidence {evidence[chosen]:.1f}"),
            rule=_describe_rule(means_by_rank) if curves else "",
            curves=tuple(curves),
            screened_out="",
        )

    def shortfall_message(self, found: int, asked_for: int | None) -> tuple[str, str]:
        """Return the two parts of the warning that the data support fewer clusters than expected.

        `found` is the number of clusters that the data support. `asked_for` is the number of
        clusters that the user gave; it is None if the user did not give a number. The first part is
        a sentence about the clusters that the data support. The second part is a clause about the
        attribute `labels_`.
        """
        features = "The features that were not selected support"
        # Without a given number, the rule finds a single cluster, or as many as are supported.
        if asked_for is None:
            return f"{features} no clusters.", "labels_ holds a single cluster"
        supported = "none" if found == 1 else f"only {found}"
        finding = f"{features} {supported} of the {asked_for} clusters asked for."
        return finding, f"labels_ has all {asked_for}"

    def score_sentence(self, row: Mapping[str, Any]) -> str:
        """Return a sentence that gives the evidence of the chosen candidate.

        `row` is the row of the candidate in the table of candidates.
        """
        # The threshold applies to single cuts, but the table of candidates contains their mean.
        return (
            f"Evidence of the features that were not selected: {row['evidence']:.1f} standard "
            "deviations of the permutation distribution (mean over cuts into 2 to "
            f"{_MAX_CLUSTERS_SCORED} clusters). Unless the number of clusters is given, the rule "
            f"requires at least {_MIN_EVIDENCE:g} for a cut."
        )

    def facts(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return a list with one pair: the label and the value of the evidence, for the report.

        `row` is the row of the chosen candidate in the table of candidates.
        """
        return [("evidence (sd)", f"{row['evidence']:.1f}")]

    def runner_up_sentence(self, table: CandidateTable, n_clusters: int) -> str:
        """Return a sentence about the best of the candidates that were not chosen.

        The best candidate is the one whose tree has the largest evidence. If the table has only one
        row, return an empty string. `n_clusters` is not used.
        """
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
    """Return a curve that shows the mean evidence of each rank.

    Parameters
    ----------
    means_by_rank : RankMeans
        Mean evidence of each rank.
    rank : int
        The chosen rank.
    n_tried : int
        Number of values of q (numbers of features) that were tried with the chosen rank.
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
        chosen=means_by_rank.ranks.tolist().index(rank),
    )


def _describe_targets(means_by_rank: RankMeans) -> str:
    """Return a phrase that describes the numbers of features over which the means are taken."""
    lowest, *others = means_by_rank.targets.tolist()
    return f"q from {lowest} up" if others else f"q = {format_count(lowest, 'feature')} only"


def _describe_rule(means_by_rank: RankMeans) -> str:
    """Return sentences that explain how the rank and the number of features are chosen."""
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
