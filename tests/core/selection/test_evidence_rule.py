import numpy as np
import pytest

from candidate_tables import make_table
from mrshc.core.data.centred_array import centre_array
from mrshc.core.inference.permutation_scores import permutation_z_scores
from mrshc.core.selection.candidates import Evaluation
from mrshc.core.selection.evidence_rule import EvidenceRule, rank_means
from mrshc.core.selection.explanation import N_FEATURES_AXIS, RANK_AXIS
from mrshc.core.selection.rule_interface import RuleSettings
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import cut_tree
from mrshc.core.trees.tree import agglomerate, pairwise_distances
from storage_backends import matrix_at


@pytest.mark.parametrize("center", ["columns", "grand", "none"])
def test_gram_without_columns_is_that_of_the_others(implementation, center):
    rng = np.random.default_rng(7)
    A = rng.normal(loc=3, size=(6, 50))
    A[rng.random(A.shape) < 0.1] = np.nan
    in_memory = centre_array(implementation.in_memory(A), center=center, drop_constant=False)
    matrix = matrix_at(implementation(A), center=center, drop_constant=False)
    indices = np.array([3, 10, 40])
    others = np.delete(in_memory.values - in_memory.offsets, indices, axis=1)
    np.testing.assert_allclose(matrix.gram_without(indices), others @ others.T, atol=1e-10)


def test_gram_without_columns_of_huge_variance_is_accurate(implementation):
    A = np.random.default_rng(9).normal(size=(20, 30))
    A[:, :5] *= 1e9
    matrix, X = matrix_at(implementation(A)), implementation.in_memory(A)
    others = (X - X.mean(axis=0))[:, 5:]
    np.testing.assert_allclose(
        matrix.gram_without(np.arange(5)), others @ others.T, rtol=1e-9, atol=1e-9
    )


# The choice of a candidate ---------------------------------------------------------------------


def candidate_of(scores, n_clusters=None):
    """Return the candidate of a tree whose cuts into 2, 3, ... clusters have the given evidence."""
    n_leaves = len(scores) + 1
    X = np.random.default_rng(10).normal(size=(20, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "complete")
    evaluation = Evaluation(
        pruned=cut_tree(tree, n_leaves),
        silhouettes=np.arange(1, n_leaves + 1) / 10,
        scores={"evidence": np.array(scores, dtype=float)},
    )
    features = FeatureSet(indices=np.arange(3), l1_bound=1.5, rank=1, reached=True)
    return EvidenceRule().candidate(3, features, evaluation, n_clusters=n_clusters, refined=None)


@pytest.mark.parametrize("n_clusters", range(2, 9))
def test_the_cut_with_the_largest_evidence_is_chosen(n_clusters):
    scores = np.full(8, 4.5)
    scores[n_clusters - 2] = 5.0
    candidate = candidate_of(scores)
    assert candidate.n_leaves == n_clusters
    assert candidate.silhouette == n_clusters / 10
    assert (candidate.target, candidate.screened_out) == (3, False)


@pytest.mark.parametrize(
    ("largest", "n_clusters"), [(np.nextafter(4.0, 0.0), 1), (4.0, 3), (4.1, 3)]
)
def test_an_evidence_below_four_gives_a_single_cluster(largest, n_clusters):
    scores = [1.0, largest, 2.0, -1.0]
    assert candidate_of(scores).n_leaves == n_clusters
    assert candidate_of(scores).n_supported is None
    assert candidate_of(scores, n_clusters=4).n_leaves == 4


@pytest.mark.parametrize(
    ("scores", "n_supported"),
    [
        ([1.0, 2.0, 3.0, 9.0], 1),
        ([5.0, 2.0, 3.0, 9.0], 2),
        ([5.0, 4.0, 3.0, 9.0], 3),
        ([1.0, 1.0, 4.0, 1.0], None),
    ],
)
def test_the_largest_cut_with_an_evidence_of_four_is_supported(scores, n_supported):
    """Cuts into 2, 3, 4 and 5 clusters; the user asks for four."""
    assert candidate_of(scores, n_clusters=4).n_supported == n_supported


def test_the_evidence_of_a_tree_is_the_mean_over_cuts_into_two_to_seven_clusters():
    scores = 2.0 ** np.arange(9)  # the cut into k clusters has the evidence 2 ** (k - 2)
    assert candidate_of(scores).scores["evidence"] == pytest.approx((2**6 - 1) / 6)


def test_at_most_ten_clusters_are_chosen_unless_the_user_gives_more():
    rule = EvidenceRule()
    assert rule.n_cuts(n_clusters=None, n_samples=50) == 10
    assert rule.n_cuts(n_clusters=3, n_samples=50) == 10
    assert rule.n_cuts(n_clusters=12, n_samples=50) == 12
    assert rule.n_cuts(n_clusters=None, n_samples=8) == 8
    increasing = np.arange(5.0, 16.0)  # cuts into 2, ..., 12 clusters
    assert candidate_of(increasing).n_leaves == 10
    assert candidate_of(increasing, n_clusters=12).n_leaves == 12


def test_ranks_are_compared_over_the_numbers_of_features_tried_with_every_rank():
    """Rank 3 is not tried with q = 2; with this q included, rank 1 would have the largest mean."""
    table = {
        "n_features_target": np.array([2, 2, 4, 4, 4, 8, 8, 8]),
        "rank": np.array([1, 2, 1, 2, 3, 1, 2, 3]),
        "evidence": np.array([90.0, 10.0, 3.0, 6.0, 7.0, 5.0, 12.0, 9.0]),
    }
    found = rank_means(table)
    np.testing.assert_array_equal(found.ranks, [1, 2, 3])
    np.testing.assert_allclose(found.means, [4.0, 9.0, 8.0])
    np.testing.assert_array_equal(found.targets, [4, 8])
    assert not found.has_all_targets
    decision = EvidenceRule().choose(table)
    assert decision.chosen == 6  # rank 2 with q = 8
    np.testing.assert_array_equal(decision.best_rank, table["rank"] == 2)


def test_a_single_rank_is_compared_over_all_numbers_of_features():
    found = rank_means(
        {
            "n_features_target": np.array([2, 4]),
            "rank": np.array([3, 3]),
            "evidence": np.array([1.0, 5.0]),
        }
    )
    np.testing.assert_allclose(found.means, [3.0])
    assert found.has_all_targets


def test_only_the_chosen_rank_is_considered_if_all_evidence_is_negative():
    table = make_table([2, 2, 4, 4], [1, 2] * 2, evidence=[-9.0, -3.0, -1.0, -2.0])
    decision = EvidenceRule().choose(table)  # the means are -5.0 and -2.5
    assert decision.chosen == 3
    np.testing.assert_array_equal(decision.best_rank, [False, True, False, True])
    np.testing.assert_array_equal(decision.removed, [False] * 4)


@pytest.mark.parametrize(("n", "n_clusters", "k"), [(8, None, 8), (14, None, 10), (14, 12, 12)])
def test_a_task_scores_the_cuts_in_the_features_that_were_not_selected(n, n_clusters, k):
    X = np.random.default_rng(11).normal(size=(n, 13))
    indices = np.array([2, 5, 7])
    features = FeatureSet(indices=indices, l1_bound=1.5, rank=1, reached=True)
    settings = RuleSettings(
        gap=GapSettings(linkage="average", metric="cityblock"), entropy=0, n_clusters=n_clusters
    )
    found = EvidenceRule().task(matrix_at(X), features, settings)()
    tree = agglomerate(pairwise_distances(X[:, indices], "cityblock"), "average")
    np.testing.assert_allclose(found.pruned.tree.linkage_matrix, tree.linkage_matrix)
    assert found.pruned.n_leaves == found.silhouettes.size == k
    others = np.delete(X, indices, axis=1)
    expected = permutation_z_scores([tree.cut(j) for j in range(2, k + 1)], others @ others.T)
    np.testing.assert_allclose(found.scores["evidence"], expected, rtol=1e-8, atol=1e-12)


# Explanation of the choice ---------------------------------------------------------------------


def test_curves_show_the_mean_of_each_rank_and_the_evidence_with_the_chosen_rank():
    table = make_table(
        [2, 2, 4, 4, 4, 8, 8, 8],
        [1, 2, 1, 2, 3, 1, 2, 3],
        chosen=6,
        evidence=[90.0, 10.0, 3.0, 6.0, 7.0, 5.0, 12.04, 9.0],
        n_leaves=[3] * 8,
    )
    story = EvidenceRule().explain(table)
    assert story.verdict == "Chosen: q = 8 features, rank 2 (evidence 12.0, 3 clusters)"
    assert "the numbers of features that every rank was tried with (q from 4 up)" in story.rule
    assert story.screened_out == ""
    over_ranks, over_features = story.curves
    assert over_ranks.heading == "Which rank?\n(mean over q from 4 up)"
    assert over_ranks.x_name == RANK_AXIS
    assert over_ranks.ticks == ("1", "2", "3")
    np.testing.assert_allclose(over_ranks.values, [4.0, 9.02, 8.0])
    assert over_ranks.chosen == 1
    assert over_features.heading == "Which number of features, with rank 2?"
    assert over_features.x_name == N_FEATURES_AXIS
    assert over_features.ticks == ("2", "4", "8")
    np.testing.assert_allclose(over_features.values, [10.0, 6.0, 12.04])
    assert over_features.chosen == 2
    assert over_ranks.y_name == over_features.y_name == "evidence, in standard deviations"


@pytest.mark.parametrize(
    ("targets", "ranks", "headings", "means"),
    [
        ([4], [1], [], None),
        ([4, 8], [3, 3], ["Which number of features?"], "all numbers of features"),
        ([2, 4, 8], [3] * 3, ["Which number of features?"], "all numbers of features"),
        ([4, 4], [1, 2], ["Which rank?"], "all numbers of features"),
        (
            [4, 4, 8, 8],
            [1, 2] * 2,
            [
                "Which rank?\n(mean over all numbers of features)",
                "Which number of features, with rank 1?",
            ],
            "all numbers of features",
        ),
        (
            [1, 2, 2],
            [1, 1, 2],
            [
                "Which rank?\n(mean over q = 2 features only)",
                "Which number of features, with rank 1?",
            ],
            "the numbers of features that every rank was tried with (q = 2 features only)",
        ),
    ],
)
def test_the_explanation_names_the_choices_that_were_made(targets, ranks, headings, means):
    table = make_table(targets, ranks, evidence=[5.0, *[3.0] * (len(ranks) - 1)])
    story = EvidenceRule().explain(table)
    assert [curve.heading for curve in story.curves] == headings
    assert [curve.chosen for curve in story.curves] == [0] * len(headings)
    if headings:
        assert f"the highest mean evidence over {means}, then" in story.rule
    else:
        assert story.rule == ""


def test_sentences_give_the_evidence_with_one_digit():
    rule = EvidenceRule()
    assert rule.score_sentence({"evidence": 12.34}) == (
        "Evidence of the features that were not selected: 12.3 standard deviations of the "
        "permutation distribution (mean over cuts into 2 to 7 clusters). Unless the number of "
        "clusters is given, the rule requires at least 4 for a cut."
    )
    assert rule.facts({"evidence": 12.34}) == [("evidence (sd)", "12.3")]


def test_the_runner_up_has_the_most_evidence_of_the_other_candidates():
    rule = EvidenceRule()
    table = make_table(
        [2, 4, 2000, 8], [1, 2, 3, 4], chosen=1, evidence=[1.0, 9.0, 7.26, 5.0],
        n_features=[2, 4, 1999, 8],
    )  # fmt: skip
    assert rule.runner_up_sentence(table, 2) == (
        "Of the other candidates, 1,999 features with rank 3 have most evidence: 7.3 standard "
        "deviations."
    )
    assert rule.runner_up_sentence(make_table([4], [1], evidence=[2.0]), 2) == ""


@pytest.mark.parametrize(
    ("found", "asked_for", "supported", "labels"),
    [
        (1, None, "no clusters", "labels_ holds a single cluster"),
        (1, 4, "none of the 4 clusters asked for", "labels_ has all 4"),
        (2, 4, "only 2 of the 4 clusters asked for", "labels_ has all 4"),
    ],
)
def test_a_shortfall_is_explained_by_the_features_that_were_not_selected(
    found, asked_for, supported, labels
):
    finding = f"The features that were not selected support {supported}."
    assert EvidenceRule().shortfall_message(found, asked_for) == (finding, labels)
