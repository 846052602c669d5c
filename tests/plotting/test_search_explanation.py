import numpy as np

from mrshc.plotting import search_story


def candidates(*rows):
    """Make a table of (q, rank, silhouette, marks), marks out of b(est), c(hosen), r, s."""
    q, rank, silhouette, marks = zip(*rows, strict=True)
    has = {letter: np.array([letter in m for m in marks]) for letter in "bcrs"}
    return {
        "n_features_target": np.array(q),
        "n_features": np.array(q),
        "reached": np.ones(len(q), dtype=bool),
        "rank": np.array(rank),
        "l1_bound": np.ones(len(q)),
        "n_leaves": np.where(has["s"], 2, 3),
        "silhouette": np.array(silhouette),
        "screened_out": has["s"],
        "chosen": has["c"],
        "best_rank": has["b"],
        "removed": has["r"],
    }


SEARCH = candidates(
    (10, 1, 0.30, "b"),
    (10, 2, 0.50, "r"),
    (20, 1, 0.20, "s"),
    (20, 2, 0.25, "s"),
    (40, 1, 0.20, "r"),
    (40, 2, 0.60, "bc"),
    (80, 1, 0.10, "br"),
    (80, 2, 0.05, ""),
)


def test_each_number_of_features_is_shown_with_its_best_rank():
    over_q, _ = search_story(SEARCH).curves
    assert over_q.ticks == ("10", "20", "40", "80")
    # At 20 nothing survived: the least bad one stands for it, without a rank of its own.
    np.testing.assert_array_equal(over_q.values, [0.30, 0.25, 0.60, 0.10])
    assert over_q.notes == ("rank 1", "", "rank 2", "rank 1")
    assert over_q.states == ("kept", "screened out", "kept", "removed")
    assert over_q.chosen == 2


def test_ranks_are_shown_for_the_chosen_number_of_features():
    _, over_rank = search_story(SEARCH).curves
    assert over_rank.heading == "Which rank, with q = 40 features?"
    assert over_rank.ticks == ("1", "2")
    np.testing.assert_array_equal(over_rank.values, [0.20, 0.60])
    assert over_rank.states == ("removed", "kept")
    assert over_rank.chosen == 1


def test_verdict_and_screening_are_sentences():
    story = search_story(SEARCH)
    assert story.verdict == "Chosen: q = 40 features, rank 2 (average silhouette 0.60, 3 clusters)"
    assert story.screened_out == "fewer than 3 clusters"


def test_verdict_names_the_target_if_it_was_not_reached():
    table = SEARCH | {"n_features": SEARCH["n_features"] - 1}
    assert "q = 39 features (40 were wanted)" in search_story(table).verdict


def test_one_number_of_features_leaves_the_ranks_only():
    story = search_story({name: column[4:6] for name, column in SEARCH.items()})
    assert [curve.x_name for curve in story.curves] == ["rank (number of sparse components)"]


def test_one_rank_leaves_the_numbers_of_features_only_and_is_not_repeated():
    (curve,) = search_story(candidates((10, 2, 0.1, "b"), (20, 2, 0.3, "bc"))).curves
    assert curve.x_name == "number of features q"
    assert curve.notes == ("", "")


def test_a_single_candidate_leaves_nothing_to_choose_from():
    story = search_story(candidates((10, 1, 0.3, "bc")))
    assert story.curves == ()
    assert "q = 10 features" in story.verdict


def test_chosen_candidate_is_shown_if_all_are_screened_out():
    table = candidates((10, 1, 0.1, "s"), (10, 2, 0.4, "sc"), (20, 1, 0.2, "s"), (20, 2, 0.3, "s"))
    story = search_story(table)
    assert story.rule.startswith("No candidate has the wanted number of clusters")
    over_q, over_rank = story.curves
    np.testing.assert_array_equal(over_q.values, [0.4, 0.3])
    assert over_q.chosen == 0
    assert over_rank.chosen == 1
    assert set(over_q.states) == {"screened out"}


STARTS = {
    "n_features_target": np.array([10, 10, 30]),
    "n_features": np.array([40, 52, 47]),
    "rank": np.array([1, 3, 1]),
    "n_leaves": np.array([3, 3, 2]),
    "n_associated": np.array([40, 52, 47]),
    "strength": np.array([40.0, 80.0, 60.0]),
    "silhouette": np.array([0.1, 0.2, 0.3]),
    "chosen": np.array([False, True, False]),
}


def test_start_sets_are_compared_by_their_strength():
    story = search_story(STARTS)
    (curve,) = story.curves
    assert curve.heading == "Which start set?"
    assert curve.ticks == ("10, 1", "10, 3", "30, 1")
    np.testing.assert_array_equal(curve.values, [0.5, 1.0, 0.75])
    assert curve.chosen == 1
    assert story.verdict == "Chosen: 52 features (52 features are associated, 3 clusters)"
    assert "Strength: sum of squares" in story.rule


def test_start_sets_without_associated_features_are_not_compared():
    story = search_story(STARTS | {"strength": np.zeros(3)})
    assert story.curves == ()
    assert story.rule.startswith("No start set led to five associated features")
    single = search_story({name: column[1:2] for name, column in STARTS.items()})
    assert (single.curves, single.rule) == ((), "")


def test_gaps_are_ordered_by_the_number_of_features():
    table = {
        "l1_bound": [3.0, 1.5, 2.0],
        "n_features": [30, 5, 9],
        "criterion": [1.0, 1.0, 1.0],
        "chosen": [True, False, False],
        "gap": [0.9, 0.2, 0.4],
        "gap_sd": [0.1, 0.2, 0.3],
    }
    (curve,) = search_story(table).curves
    assert curve.ticks == ("5", "9", "30")
    np.testing.assert_array_equal(curve.values, [0.2, 0.4, 0.9])
    np.testing.assert_array_equal(curve.errors, [0.2, 0.3, 0.1])
    assert curve.chosen == 2
    single = {name: table[name][:1] for name in ("l1_bound", "n_features", "criterion", "chosen")}
    assert search_story(single).curves == ()


def test_gaps_of_spike_penalties_are_ordered_by_the_penalty():
    table = {
        "spike_penalty": [300.0, 1.5, 20.25],
        "n_features": [5, 30, 30],
        "criterion": [1.0, 1.0, 1.0],
        "chosen": [True, False, False],
        "gap": [0.9, 0.2, 0.4],
        "gap_sd": [0.1, 0.2, 0.3],
    }
    story = search_story(table)
    (curve,) = story.curves
    assert curve.ticks == ("1.5 (30)", "20.2 (30)", "300 (5)")
    np.testing.assert_array_equal(curve.values, [0.2, 0.4, 0.9])
    assert curve.chosen == 2
    assert story.verdict == "Chosen: 5 features (spike penalty of the weights 300)"
    assert story.rule.startswith("The spike penalty with the largest gap is chosen.")


def test_chosen_candidate_represents_its_number_of_features_despite_ties():
    table = {
        "n_features_target": np.array([5, 5, 10, 10]),
        "n_features": np.array([5, 5, 10, 10]),
        "rank": np.array([1, 2, 1, 2]),
        "n_leaves": np.array([1, 1, 1, 1]),
        "silhouette": np.zeros(4),
        "screened_out": np.ones(4, dtype=bool),
        "best_rank": np.zeros(4, dtype=bool),
        "removed": np.zeros(4, dtype=bool),
        "chosen": np.array([True, False, False, False]),
    }
    over_q, over_rank = search_story(table).curves
    assert (over_q.chosen, over_rank.chosen) == (0, 0)
