"""The association rule: use all features that are associated with clusters built without them.

Several small feature sets are selected by sparse components. Each of these start sets is replaced
by the features that are associated with its clusters. For the strongest sets, this is repeated
until the set hardly changes. The rule thereby adapts the number of features to the data: it finds
tens of features if only these differ between the clusters, and hundreds if thousands do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import RefinementResult
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.selection.candidates import (
    Candidate,
    CandidateTable,
    Evaluation,
    evaluate_drop_ratios,
)
from mrshc.core.selection.explanation import (
    Curve,
    SearchStory,
    chosen_row,
    format_count,
    make_curve,
)
from mrshc.core.selection.rule_interface import Decision, RuleSettings, SelectionRule
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.cut_choice import MAX_CLUSTERS, best_cut

# Numbers of features of the start sets. A set of 20 features is enough for a tree, and 60 features
# are about the number of informative features in the simulations of the paper. The third number
# depends on the data; with 500 features, trees on real data do not improve any more.
_FIXED_STARTS = (20, 60)
_SHARE_OF_START, _MIN_START, _MAX_START = 0.1, 20, 500
# Ranks of the start sets. A single component finds one contrast between clusters. Clusters that
# differ in features of their own need several components.
_RANKS = (1, 3, 5)

_RULE_TEXT = (
    "Each start set was replaced by the features that are associated with its clusters. The three "
    "strongest sets were replaced again until they hardly changed. Strength: sum of squares "
    "between clusters over the associated features."
)


class AssociationRule(SelectionRule):
    r"""Selection rule that uses all features associated with clusters built without them.

    Start sets of different sizes are selected by one, three and five sparse components. Each start
    set is refined: every feature is tested for association with the clusters of trees that were
    built without this feature, and the associated features replace the set. For three sets, this is
    repeated until the set hardly changes. The start set that leads to the largest sum of squares
    between clusters over the associated features is used. The tree is built on these features or,
    if there are more than 500, on the 500 features with the largest sum of squares between
    clusters. If the user does not give the number of clusters, the rule chooses the cut of the
    tree, into 2 to 10 clusters, whose last split exceeds the next split by the largest ratio.

    Notes
    -----
    The start sets have 20, 60 and 10 % of the features (at least 20 and at most 500). The gap
    statistic is not used. See :func:`mrshc.refine_features` for the tests.

    Let :math:`W_k` be the dispersion within k clusters: for squared Euclidean distances, the sum of
    squares within clusters, in the selected features. The number of clusters is the k with the
    largest ratio :math:`(W_{k-1} - W_k) / (W_k - W_{k+1})`.

    If fewer than five features are associated, whatever the start set, the result is a single
    cluster. The tests compare the features with independent noise. Features that are correlated
    with each other for any reason, such as a batch effect, are associated too.
    """

    name = "association"
    summary = (
        "recommended: all features that are associated with clusters of trees built without them; "
        "tells if there are none."
    )
    description = (
        "Starts from several small feature sets and repeatedly replaces each set by all features "
        "that are associated with clusters of trees built without them. The set with the largest "
        "sum of squares between clusters is used. It suits data in which few features differ "
        "between the clusters, and data in which thousands do. If fewer than five features are "
        "associated, it reports a single cluster. It needs no gap statistics and takes less time."
    )
    columns = ("n_associated", "strength")
    cut_scores = ("drop_ratio",)
    refines_candidates = True
    # The order of the start sets after the first round may differ from the final order, so more
    # than one set is refined further.
    n_continued = 3
    no_clusters_reason = (
        "fewer than five features are associated with clusters of trees built without them"
    )

    def default_targets(self, n_features: int) -> tuple[int, ...]:
        """Return the numbers of features of the start sets, in increasing order.

        `n_features` is the number of features that are not constant.
        """
        share = round(_SHARE_OF_START * n_features)
        wanted = {*_FIXED_STARTS, min(max(share, _MIN_START), _MAX_START)}
        return tuple(sorted({min(q, n_features) for q in wanted}))

    def default_ranks(self, max_rank: int) -> tuple[int, ...]:
        """Return those of the ranks 1, 3 and 5 that do not exceed `max_rank`."""
        return tuple(rank for rank in _RANKS if rank <= max_rank)

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int:
        """Return the largest number of clusters into which each tree is cut.

        The number is at most `n_samples`. `n_clusters` is the number of clusters that the user
        gave; it is None if the user did not give a number.
        """
        return min(max(MAX_CLUSTERS, n_clusters or 0), n_samples)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function that builds a tree on a feature set and scores the cuts of this tree.

        The score of a cut is its drop ratio in the features of the set.
        """
        return partial(
            evaluate_drop_ratios,
            matrix.columns(features.indices),
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
        """Return the candidate for a start set with `target` features.

        `features` is the refined feature set, and `evaluation` is the evaluation of the tree on
        this set. The candidate has `n_clusters` clusters. If `n_clusters` is None, the number of
        clusters is that of the cut with the largest score, or one if fewer than five features are
        associated.
        """
        assert refined is not None  # the rule asks for refinement
        # `supported` is None if there are too few features to decide, which is no evidence against
        # clusters.
        is_refuted = refined.supported is False
        n_leaves = n_clusters or (1 if is_refuted else best_cut(evaluation.scores["drop_ratio"]))
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=n_leaves,
            silhouette=float(evaluation.silhouettes[n_leaves - 1]),
            scores={"n_associated": refined.associated.size, "strength": refined.strength},
            refined=refined,
            n_supported=1 if is_refuted and n_leaves > 1 else None,
        )

    def choose(self, table: CandidateTable) -> Decision:
        """Return the decision: the start set with the largest strength.

        If several start sets have the same strength, the first of them is chosen, that is, the one
        with the smallest number of features and then the smallest rank. If no start set led to
        associated features, sets with fewer than five features are not chosen if there are others,
        since they cannot show whether there are clusters.
        """
        strengths, targets = table["strength"], table["n_features_target"]
        chosen = int(strengths.argmax())
        if strengths[chosen] == 0:
            chosen = int((table["n_features"] >= RefinementSettings().min_features).argmax())
        best_rank = np.zeros(strengths.size, dtype=bool)
        for q in np.unique(targets):
            rows = np.flatnonzero(targets == q)
            best_rank[rows[strengths[rows].argmax()]] = True
        return Decision(
            chosen=chosen,
            best_rank=best_rank,
            removed=np.zeros(strengths.size, dtype=bool),
        )

    def explain(self, table: CandidateTable) -> SearchStory:
        """Return an explanation of the choice, with a curve over all start sets.

        The curve shows the strength that was reached from each start set, as a share of the largest
        strength. It is omitted if there was a single start set or if no features are associated.
        """
        chosen = chosen_row(table)
        strengths = np.asarray(table["strength"], dtype=np.float64)
        curves, rule = tuple[Curve, ...](), ""
        if strengths.size > 1 and strengths[chosen] == 0:
            rule = "No start set led to five associated features, so start sets were not compared."
        elif strengths.size > 1:
            rule = _RULE_TEXT
            starts = zip(table["n_features_target"], table["rank"], strict=True)
            curves = (
                make_curve(
                    strengths / strengths[chosen],
                    heading="Which start set?",
                    x_name="start set: number of features, rank",
                    y_name="strength, share of the largest",
                    ticks=[f"{q}, {rank}" for q, rank in starts],
                    chosen=chosen,
                ),
            )
        features = format_count(int(table["n_features"][chosen]), "feature")
        clusters = format_count(int(table["n_leaves"][chosen]), "cluster")
        associated = f"{table['n_associated'][chosen]:,} features are associated"
        return SearchStory(
            verdict=f"Chosen: {features} ({associated}, {clusters})",
            rule=rule,
            curves=curves,
            screened_out="",
        )
