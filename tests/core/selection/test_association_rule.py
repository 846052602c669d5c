import numpy as np
import pytest

from candidate_tables import make_table
from mrshc.core.inference.refinement import RefinementResult
from mrshc.core.selection.association_rule import AssociationRule
from mrshc.core.selection.candidates import Evaluation, candidate_table, evaluate_drop_ratios
from mrshc.core.selection.rule_interface import RuleSettings
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.cut_choice import drop_ratios
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import cut_tree
from mrshc.core.trees.tree import agglomerate, pairwise_distances
from storage_backends import matrix_at

# Start sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_features", "targets"),
    [
        (1, (1,)),
        (12, (12,)),
        (20, (20,)),
        (45, (20, 45)),
        (60, (20, 60)),
        (190, (20, 60)),  # 10 % are fewer than 20 features
        (210, (20, 21, 60)),
        (500, (20, 50, 60)),
        (600, (20, 60)),
        (2000, (20, 60, 200)),
        (5000, (20, 60, 500)),
        (50_000, (20, 60, 500)),
    ],
)
def test_start_sets_have_20_and_60_features_and_a_tenth_of_all(n_features, targets):
    assert AssociationRule().default_targets(n_features) == targets


@pytest.mark.parametrize(
    ("max_rank", "ranks"),
    [(1, (1,)), (2, (1,)), (3, (1, 3)), (4, (1, 3)), (5, (1, 3, 5)), (9, (1, 3, 5))],
)
def test_start_sets_are_selected_by_one_three_and_five_components(max_rank, ranks):
    assert AssociationRule().default_ranks(max_rank) == ranks


def test_trees_are_cut_into_up_to_ten_clusters_or_the_given_number():
    rule = AssociationRule()
    assert rule.n_cuts(n_clusters=None, n_samples=50) == 10
    assert rule.n_cuts(n_clusters=3, n_samples=50) == 10
    assert rule.n_cuts(n_clusters=12, n_samples=50) == 12
    assert rule.n_cuts(n_clusters=None, n_samples=8) == 8


def test_all_candidates_are_refined_and_three_of_them_for_several_rounds():
    rule = AssociationRule()
    assert rule.refines_candidates
    assert rule.n_continued == 3
    assert rule.reference_cells([(20, 1), (60, 1)], [1]) == []


# Evaluation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "n_clusters", "k"), [(8, None, 8), (14, None, 10), (14, 12, 12)])
def test_a_task_scores_the_cuts_by_their_drop_ratios(n, n_clusters, k):
    X = np.random.default_rng(11).normal(size=(n, 13))
    indices = np.array([2, 5, 7])
    features = FeatureSet(indices=indices, l1_bound=1.5, rank=1, reached=True)
    settings = RuleSettings(
        gap=GapSettings(linkage="average", metric="cityblock"), entropy=0, n_clusters=n_clusters
    )
    found = AssociationRule().task(matrix_at(X), features, settings)()
    distances = pairwise_distances(X[:, indices], "cityblock")
    tree = agglomerate(distances, "average")
    np.testing.assert_allclose(found.pruned.tree.linkage_matrix, tree.linkage_matrix)
    assert found.pruned.n_leaves == found.silhouettes.size == k
    expected = np.zeros(k - 1)
    ratios = drop_ratios(distances, [tree.cut(j) for j in range(1, min(k + 1, n) + 1)])
    # A cut with one sample in each cluster is not followed by another split.
    expected[: ratios.size] = ratios
    assert ratios.size == (k - 2 if n == k else k - 1)
    np.testing.assert_allclose(found.scores["drop_ratio"], expected, rtol=1e-8)
    assert set(found.scores) == set(AssociationRule.cut_scores)


@pytest.mark.parametrize("n", [2, 3])
def test_two_or_three_samples_can_be_evaluated(n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    found = evaluate_drop_ratios(X, settings=GapSettings(), k=n)
    assert found.scores["drop_ratio"].shape == (n - 1,)
    assert np.isfinite(found.scores["drop_ratio"]).all()
    assert found.scores["drop_ratio"][-1] == 0


def test_trees_of_incomplete_data_have_finite_ratios():
    X = np.random.default_rng(0).normal(size=(20, 6))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    scores = evaluate_drop_ratios(X, settings=GapSettings(), k=10).scores["drop_ratio"]
    assert np.isfinite(scores).all()


# Candidates --------------------------------------------------------------------------------------


def refinement(*, supported=True, n_associated=7, strength=12.5):
    has_features = supported is True
    return RefinementResult(
        supported=supported,
        features=np.arange(3),
        associated=np.arange(n_associated if has_features else 0),
        strength=strength if has_features else 0.0,
        p_values=np.ones(20),
        n_rounds=2,
        tested=np.arange(3),
    )


def candidate_of(ratios, n_clusters=None, **refined):
    """Return the candidate of a tree whose cuts into 2, 3, ... clusters have the given ratios."""
    n_leaves = len(ratios) + 1
    X = np.random.default_rng(10).normal(size=(20, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "complete")
    evaluation = Evaluation(
        pruned=cut_tree(tree, n_leaves),
        silhouettes=np.arange(1, n_leaves + 1) / 10,
        scores={"drop_ratio": np.array(ratios, dtype=float)},
    )
    features = FeatureSet(indices=np.arange(3), l1_bound=1.5, rank=1, reached=True)
    return AssociationRule().candidate(
        20, features, evaluation, n_clusters=n_clusters, refined=refinement(**refined)
    )


@pytest.mark.parametrize("n_clusters", range(2, 10))
def test_the_cut_with_the_largest_ratio_is_chosen(n_clusters):
    ratios = np.full(8, 1.5)
    ratios[n_clusters - 2] = 2.0
    candidate = candidate_of(ratios)
    assert candidate.n_leaves == n_clusters
    assert candidate.silhouette == n_clusters / 10
    assert (candidate.target, candidate.screened_out) == (20, False)
    assert candidate.n_supported is None
    assert candidate.scores == {"n_associated": 7, "strength": 12.5}


def test_at_most_ten_clusters_are_chosen_unless_the_user_gives_more():
    increasing = np.arange(1.0, 12.0)  # cuts into 2, ..., 12 clusters
    assert candidate_of(increasing).n_leaves == 10
    assert candidate_of(increasing, n_clusters=12).n_leaves == 12


@pytest.mark.parametrize(
    ("n_clusters", "n_leaves", "n_supported"), [(None, 1, None), (2, 2, 1), (4, 4, 1)]
)
def test_unsupported_clusters_are_one_cluster_unless_their_number_is_given(
    n_clusters, n_leaves, n_supported
):
    candidate = candidate_of([1.0, 3.0, 2.0, 1.0], n_clusters, supported=False)
    assert (candidate.n_leaves, candidate.n_supported) == (n_leaves, n_supported)
    assert candidate.silhouette == n_leaves / 10
    assert candidate.scores == {"n_associated": 0, "strength": 0.0}


@pytest.mark.parametrize(("n_clusters", "n_leaves"), [(None, 3), (2, 2), (4, 4)])
def test_a_start_set_that_is_too_small_is_not_evidence_against_clusters(n_clusters, n_leaves):
    candidate = candidate_of([1.0, 3.0, 2.0, 1.0], n_clusters, supported=None)
    assert (candidate.n_leaves, candidate.n_supported) == (n_leaves, None)
    assert candidate.refined.supported is None


def test_the_table_has_finite_columns_of_the_rule():
    candidates = [
        candidate_of([1.0, 3.0], supported=supported) for supported in (True, False, None)
    ]
    table = candidate_table(candidates)
    for name in AssociationRule.columns:
        assert np.isfinite(table[name]).all()
    assert table["n_associated"].tolist() == [7, 0, 0]
    assert table["strength"].tolist() == [12.5, 0.0, 0.0]
    assert table["n_leaves"].tolist() == [3, 1, 3]


# The choice of a candidate -----------------------------------------------------------------------


def test_the_start_set_with_the_largest_strength_is_chosen():
    table = make_table(
        [20, 20, 20, 60, 60, 60],
        [1, 3, 5] * 2,
        strength=[1.0, 8.0, 3.0, 2.0, 5.0, 9.0],
        n_associated=[90, 80, 70, 60, 50, 6],
    )
    decision = AssociationRule().choose(table)
    assert decision.chosen == 5
    np.testing.assert_array_equal(np.flatnonzero(decision.best_rank), [1, 5])
    assert not decision.removed.any()


def test_of_equal_strengths_the_smallest_set_and_the_smallest_rank_are_chosen():
    table = make_table([20, 20, 60, 60], [1, 3] * 2, strength=[4.0, 9.0, 9.0, 9.0])
    decision = AssociationRule().choose(table)
    assert decision.chosen == 1
    np.testing.assert_array_equal(np.flatnonzero(decision.best_rank), [1, 2])
    nothing = AssociationRule().choose(table | {"strength": np.zeros(4)})
    assert nothing.chosen == 0


# Explanation of the choice -----------------------------------------------------------------------


def test_the_curve_shows_the_strengths_as_shares_of_the_largest_one():
    table = make_table(
        [20, 20, 60, 60],
        [1, 3] * 2,
        chosen=2,
        strength=[2.0, 4.0, 8.0, 0.0],
        n_associated=[30, 40, 1234, 0],
        n_features=[30, 40, 500, 60],
        n_leaves=[2, 2, 3, 1],
    )
    story = AssociationRule().explain(table)
    assert story.verdict == "Chosen: 500 features (1,234 features are associated, 3 clusters)"
    assert story.rule.startswith("Each start set was replaced by the features that are associated")
    assert story.screened_out == ""
    (curve,) = story.curves
    assert curve.heading == "Which start set?"
    assert curve.x_name == "start set: number of features, rank"
    assert curve.y_name == "strength, share of the largest"
    assert curve.ticks == ("20, 1", "20, 3", "60, 1", "60, 3")
    np.testing.assert_allclose(curve.values, [0.25, 0.5, 1.0, 0.0])
    assert curve.chosen == 2


def test_small_start_sets_are_not_chosen_if_larger_ones_have_no_associated_features():
    table = make_table([3, 60], [1, 1], strength=[0.0, 0.0], n_associated=[0, 0])
    assert AssociationRule().choose(table).chosen == 1
    table = make_table([3, 4], [1, 1], strength=[0.0, 0.0], n_associated=[0, 0])
    assert AssociationRule().choose(table).chosen == 0


@pytest.mark.parametrize(
    ("strength", "rule"),
    [([3.0], ""), ([0.0], ""), ([0.0, 0.0], "No start set led to five associated features")],
)
def test_there_is_no_curve_without_a_choice(strength, rule):
    n = len(strength)
    table = make_table([20, 60][:n], [1] * n, strength=strength, n_associated=[0] * n)
    story = AssociationRule().explain(table)
    assert story.curves == ()
    assert story.rule.startswith(rule)
    assert bool(story.rule) == bool(rule)


def test_the_rule_repeats_nothing_that_the_verdict_states():
    rule, row = AssociationRule(), {"n_associated": 1234.0}
    assert rule.score_sentence(row) is None
    assert rule.facts(row) == []
    assert rule.runner_up_sentence(make_table([20, 60], [1, 1]), 2) == ""
