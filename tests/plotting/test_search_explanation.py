import numpy as np

from mrshc import MrSHC
from mrshc.core.selection import find_rule
from mrshc.plotting import (
    search_story,
)


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


def weighed(table, evidence):
    """Return a search by evidence: nothing is set aside or removed."""
    none = np.zeros(len(evidence), dtype=bool)
    return table | {"evidence": np.array(evidence), "screened_out": none, "removed": none}


def test_a_choice_by_evidence_shows_the_rank_first_then_the_number_of_features():
    table = weighed(SEARCH, [9.0, 3.0, 1.0, 5.0, 2.0, 6.0, 0.0, 4.0])
    story = search_story(table)
    over_rank, over_q = story.curves
    assert over_rank.ticks == ("1", "2")
    np.testing.assert_array_equal(over_rank.values, [3.0, 4.5])  # means over all q
    assert over_rank.chosen == 1
    assert over_q.heading == "Which number of features, with rank 2?"
    np.testing.assert_array_equal(over_q.values, [3.0, 5.0, 6.0, 4.0])
    assert (over_q.ticks[over_q.chosen], set(over_q.states)) == ("40", {"kept"})
    assert story.verdict == "Chosen: q = 40 features, rank 2 (evidence 6.0, 3 clusters)"
    assert "the rank with the highest mean evidence over all numbers of features" in story.rule
    assert "in standard deviations of shuffled samples" in story.rule


def test_ranks_are_compared_by_the_means_that_the_rule_takes():
    """Rank 2 is not tried with one feature: the mean of rank 1 leaves that number out too."""
    table = weighed(
        candidates(
            (1, 1, 0.1, ""),
            (10, 1, 0.1, ""),
            (10, 2, 0.3, "b"),
            (20, 1, 0.2, ""),
            (20, 2, 0.3, "bc"),
        ),
        [30.0, 2.0, 4.0, 3.0, 6.0],
    )
    rule = find_rule(table)
    assert rule.choose(table).chosen == 4
    over_rank, over_q = search_story(table).curves
    np.testing.assert_array_equal(over_rank.values, [2.5, 5.0])
    assert over_rank.values.argmax() == over_rank.chosen == 1
    assert over_q.values.argmax() == over_q.chosen == 1
    assert over_rank.heading == "Which rank?\n(mean over q from 10 up)"
    assert "numbers of features that every rank was tried with (q from 10 up)" in (
        search_story(table).rule
    )


def test_the_star_is_on_the_largest_value_of_every_search_by_evidence():
    """Small numbers of features, with which high ranks are not tried, would move the means."""
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(24, 30))
        X[:12, :6] += 2.0
        model = MrSHC([1, 2, 4, 8], selection="evidence", max_rank=4, random_state=0).fit(X)
        for curve in search_story(model.search_results_).curves:
            assert curve.values.argmax() == curve.chosen


def test_evidence_of_one_rank_or_one_number_of_features():
    one_rank = weighed(candidates((10, 2, 0.1, "b"), (20, 2, 0.3, "bc")), [1.0, 2.0])
    (curve,) = search_story(one_rank).curves
    assert curve.heading == "Which number of features?"
    one_q = weighed(candidates((10, 1, 0.1, ""), (10, 2, 0.3, "bc")), [1.0, 2.0])
    (curve,) = search_story(one_q).curves
    assert curve.heading == "Which rank?"
    story = search_story(weighed(candidates((10, 1, 0.1, "bc")), [1.0]))
    assert (story.curves, story.rule) == ((), "")


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
