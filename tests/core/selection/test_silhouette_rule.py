import numpy as np
import pytest

import plain_twin
from candidate_tables import make_table
from mrshc.core.selection.candidates import Evaluation, evaluate_pruned
from mrshc.core.selection.explanation import N_FEATURES_AXIS, RANK_AXIS
from mrshc.core.selection.rule_interface import RuleSettings
from mrshc.core.selection.silhouette_rule import (
    SilhouetteRule,
    iterative_choice,
    reference_number_of_clusters,
)
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import cut_tree
from mrshc.core.trees.tree import agglomerate, pairwise_distances
from storage_backends import matrix_at


@pytest.mark.parametrize(
    ("silhouettes", "chosen"),
    [
        ([0.3], 0),
        ([0.5, 0.4, 0.3], 0),  # falling: the smallest
        ([0.1, 0.2, 0.5, 0.6], 2),  # rising: just after the largest rise
        ([0.5, 0.2, 0.4], 0),  # the local minimum is removed, the rest falls
        ([0.3, 0.5, 0.2], 1),  # a peak: the last end point is removed, the rest rises
        ([0.2, 0.5, 0.3, 0.6], 1),  # 0.2 0.5 0.6 remain: the first rise is the largest
        ([0.4, 0.4, 0.4], 0),  # no difference: the smallest
        ([0.4, 0.4, 0.6], 2),
    ],
)
def test_choice_agrees_with_hand_computed_cases(silhouettes, chosen):
    assert iterative_choice(silhouettes).position == chosen


def test_choice_always_ends_and_agrees_with_the_twin():
    rng = np.random.default_rng(0)
    for _ in range(500):
        # Few distinct values: ties and plateaus are frequent.
        values = rng.integers(6, size=rng.integers(1, 12)) / 10
        assert iterative_choice(list(values)).position == plain_twin.choose(list(values))


@pytest.mark.parametrize(
    ("leaf_counts", "k"),
    [([1], 2), ([4], 4), ([1, 1, 1], 2), ([3, 5, 3], 3), ([3, 5, 5, 2], 5), ([2, 7], 2)],
)
def test_reference_number_is_the_largest_that_two_candidates_reach(leaf_counts, k):
    assert reference_number_of_clusters(leaf_counts) == k


def test_the_reference_number_is_derived_from_the_three_lowest_ranks():
    ranks = [1, 2, 4, 5, 7]
    grid = [(q, rank) for q in (6, 20) for rank in ranks]
    expected = [(6, 1), (6, 2), (6, 4), (20, 1), (20, 2), (20, 4)]
    assert SilhouetteRule().reference_cells(grid, ranks) == expected


def evaluation_with(n_leaves):
    """Return an evaluation whose partition into k clusters has the silhouette k / 10."""
    X = np.random.default_rng(10).normal(size=(20, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "complete")
    return Evaluation(pruned=cut_tree(tree, n_leaves), silhouettes=np.arange(1, n_leaves + 1) / 10)


FEATURES = FeatureSet(indices=np.arange(3), l1_bound=1.5, rank=2, reached=True)


def test_the_reference_number_is_derived_from_the_largest_trees_of_each_number_of_features():
    rule = SilhouetteRule()
    leaves = {(2, 1): 3, (2, 2): 6, (4, 1): 4, (4, 2): 2, (8, 1): 5, (8, 2): 3}
    evaluations = {cell: evaluation_with(n) for cell, n in leaves.items()}
    # The largest numbers are 6, 4 and 5.
    assert rule.reference_number_of_clusters(evaluations) == 5


@pytest.mark.parametrize(
    ("n_leaves", "n_clusters", "expected", "screened_out"),
    [(2, 3, 2, True), (3, 3, 3, False), (5, 3, 3, False), (1, 2, 1, True)],
)
def test_candidates_with_fewer_clusters_than_wanted_are_screened_out(
    n_leaves, n_clusters, expected, screened_out
):
    candidate = SilhouetteRule().candidate(
        4, FEATURES, evaluation_with(n_leaves), n_clusters=n_clusters, refined=None
    )
    assert candidate.target == 4
    assert candidate.n_leaves == expected
    assert candidate.silhouette == expected / 10
    assert candidate.screened_out == screened_out


@pytest.mark.parametrize("n_clusters", [None, 2, 3])
def test_a_task_evaluates_the_selected_columns_up_to_the_reference_number(n_clusters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    X[:, :3] += 30.0 * np.repeat([0, 1, 3, 7, 8], 6)[:, None]
    matrix = matrix_at(X)
    settings = RuleSettings(gap=GapSettings(n_references=10), entropy=4, n_clusters=n_clusters)
    found = SilhouetteRule().task(matrix, FEATURES, settings)()
    expected = evaluate_pruned(
        matrix.columns(np.arange(3)), settings=settings.gap, entropy=4, max_leaves=n_clusters
    )
    assert found.pruned.n_leaves == (n_clusters or expected.pruned.n_leaves)
    assert found.pruned.splits == expected.pruned.splits
    np.testing.assert_array_equal(found.silhouettes, expected.silhouettes)


# The choice of a candidate ---------------------------------------------------------------------


def test_removed_candidates_are_the_last_local_minima_in_order_of_removal():
    assert iterative_choice([0.5, 0.2, 0.4]).removed == (1,)
    assert iterative_choice([0.3, 0.5, 0.2]).removed == (2,)
    # 0.5 0.2 0.4 0.6 remain, then 0.5 0.4 0.6, and at last 0.5 0.6, which rise.
    choice = iterative_choice([0.5, 0.2, 0.4, 0.1, 0.6])
    assert choice.removed == (3, 1, 2)
    assert choice.position == 4
    assert iterative_choice([0.1, 0.2]).removed == iterative_choice([0.2, 0.1]).removed == ()


def plain_choice(table):
    """Return the chosen row and the row with the best rank of each q, from the twin."""
    rows = [i for i in range(len(table["rank"])) if not table["screened_out"][i]]
    if not rows:
        everything = range(len(table["rank"]))
        return max(everything, key=lambda i: (table["n_leaves"][i], table["silhouette"][i], -i)), []
    best = []
    for q in sorted({table["n_features_target"][i] for i in rows}):
        of_q = [i for i in rows if table["n_features_target"][i] == q]
        best.append(of_q[plain_twin.choose([table["silhouette"][i] for i in of_q])])
    return best[plain_twin.choose([table["silhouette"][i] for i in best])], best


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0], ids="{:.0%} screened out".format)
def test_the_rank_is_chosen_for_each_number_of_features_and_then_that_number(share):
    rng = np.random.default_rng(0)
    targets, ranks = np.repeat([2, 4, 8, 16], 3), np.tile([1, 2, 3], 4)
    for _ in range(60):
        table = make_table(
            targets,
            ranks,
            silhouette=rng.integers(-3, 6, size=12) / 10,  # few distinct values: many ties
            n_leaves=rng.integers(1, 4, size=12),
            screened_out=rng.random(12) < share,
        )
        chosen, best = plain_choice(table)
        decision = SilhouetteRule().choose(table)
        assert decision.chosen == chosen
        np.testing.assert_array_equal(np.flatnonzero(decision.best_rank), best)
        assert not decision.removed[table["screened_out"]].any()


def test_rows_removed_by_either_algorithm_are_marked():
    table = make_table(
        [2, 2, 2, 4, 4, 4, 8, 8, 8],
        [1, 2, 3] * 3,
        # Rank 1 of q = 2 (0.6), rank 2 of q = 4 (0.5), and rank 2 of q = 8 (0.9) are best.
        silhouette=[0.6, 0.2, 0.4, 0.3, 0.5, 0.1, 0.7, 0.9, 0.8],
    )
    decision = SilhouetteRule().choose(table)
    np.testing.assert_array_equal(np.flatnonzero(decision.best_rank), [0, 4, 7])
    # Rows 1, 5 and 8 are local minima among the ranks of their q, and row 4 among the best rows.
    np.testing.assert_array_equal(np.flatnonzero(decision.removed), [1, 4, 5, 8])
    assert decision.chosen == 7


# Explanation of the choice ---------------------------------------------------------------------


def test_curves_show_the_best_rank_of_each_number_of_features_and_the_ranks_of_the_chosen_one():
    table = make_table(
        [2, 2, 4, 4, 8, 8, 16, 16],
        [1, 3] * 4,
        chosen=3,
        silhouette=[0.3, 0.2, 0.5, 0.8, 0.9, 0.6, 0.1, 0.1],
        n_leaves=[3, 3, 3, 3, 2, 2, 1, 2],
        best_rank=[True, False, False, True, False, False, False, False],
        removed=[True, False, True, False, False, False, False, False],
        screened_out=[False, False, False, False, True, True, True, True],
    )
    story = SilhouetteRule().explain(table)
    assert story.verdict == "Chosen: q = 4 features, rank 3 (average silhouette 0.80, 3 clusters)"
    assert story.rule.startswith("How it is chosen: local minima are removed")
    assert story.screened_out == "fewer than 3 clusters"
    over_features, over_ranks = story.curves
    assert over_features.heading == "Which number of features?\n(each with its best rank)"
    assert over_features.x_name == N_FEATURES_AXIS
    assert over_features.ticks == ("2", "4", "8", "16")
    # Of the screened-out rows, those with most clusters are shown, then the largest silhouette.
    assert over_features.values.tolist() == [0.3, 0.8, 0.9, 0.1]
    assert over_features.states == ("removed", "kept", "screened out", "screened out")
    assert over_features.notes == ("rank 1", "rank 3", "", "")
    assert over_features.chosen == 1
    assert over_ranks.heading == "Which rank, with q = 4 features?"
    assert over_ranks.x_name == RANK_AXIS
    assert over_ranks.ticks == ("1", "3")
    assert over_ranks.values.tolist() == [0.5, 0.8]
    assert over_ranks.states == ("removed", "kept")
    assert over_ranks.notes == ("", "")
    assert over_ranks.chosen == 1
    assert {curve.y_name for curve in story.curves} == {"average silhouette"}
    assert over_features.errors is over_ranks.errors is None


def test_the_row_shown_for_a_number_of_features_is_the_best_one():
    """In each q, a different column decides; the columns after it would decide otherwise."""
    table = make_table(
        [2, 2, 4, 4, 8, 8, 16, 16, 32, 32],
        [1, 2] * 5,
        chosen=0,
        best_rank=[False, True, True, False, False, False, False, False, False, False],
        screened_out=[False, False, False, False, False, True, True, True, True, True],
        n_leaves=[2, 2, 2, 2, 2, 3, 3, 2, 2, 2],
        silhouette=[0.10, 0.21, 0.30, 0.41, 0.50, 0.61, 0.70, 0.81, 0.91, 0.90],
    )
    curve = SilhouetteRule().explain(table).curves[0]
    assert curve.values.tolist() == [0.10, 0.30, 0.50, 0.70, 0.91]
    assert curve.chosen == 0


def test_a_curve_of_a_single_point_is_omitted():
    rule = SilhouetteRule()
    (over_features,) = rule.explain(make_table([2, 4], [3, 3], chosen=1)).curves
    assert over_features.heading == "Which number of features?"
    assert over_features.ticks == ("2", "4")
    assert over_features.notes == ("", "")
    assert over_features.chosen == 1
    (over_ranks,) = rule.explain(make_table([1, 1], [1, 2], chosen=1)).curves
    assert over_ranks.heading == "Which rank, with q = 1 feature?"
    assert over_ranks.chosen == 1
    single = rule.explain(make_table([4], [1]))
    assert single.curves == ()
    assert single.rule == ""


def test_the_explanation_says_that_no_candidate_has_the_wanted_clusters():
    table = make_table([2, 4], [1, 1], chosen=1, screened_out=[True, True], n_leaves=[1, 2])
    story = SilhouetteRule().explain(table)
    assert story.rule.startswith("No candidate has the wanted number of clusters")
    assert story.screened_out == "fewer clusters than wanted"
    assert story.curves[0].states == ("screened out", "screened out")
    partly = SilhouetteRule().explain(table | {"screened_out": np.array([True, False])})
    assert partly.rule.startswith("How it is chosen")
    assert partly.screened_out == "fewer than 2 clusters"


def test_the_runner_up_has_the_largest_silhouette_among_candidates_with_as_many_clusters():
    rule = SilhouetteRule()
    table = make_table(
        [2, 4, 8, 2000, 16],
        [1, 2, 3, 4, 5],
        chosen=1,
        n_leaves=[3, 3, 3, 3, 2],
        silhouette=[0.10, 0.90, 0.25, 0.75, 0.95],
        n_features=[2, 4, 8, 1999, 16],
    )
    assert rule.runner_up_sentence(table, 3) == (
        "Of the other candidates with 3 clusters, 1,999 features with rank 4 have the highest "
        "average silhouette: 0.75."
    )
    assert rule.runner_up_sentence(table, 4) == "No other candidate has 4 clusters."
    assert rule.runner_up_sentence(make_table([4, 8], [1, 1], n_leaves=[2, 3]), 2) == (
        "No other candidate has 2 clusters."
    )
    assert rule.runner_up_sentence(make_table([4], [1]), 2) == ""
    assert rule.runner_up_sentence(make_table([4, 8], [1, 1], n_leaves=[1, 1]), 1) == ""
