import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage

from mrshc import MrSHC
from mrshc.core.selection import rule_of
from mrshc.plotting import (
    feature_tree,
    largest_loadings,
    marker_panels,
    search_story,
    silhouette_rows,
    split_marks,
    standardised,
)
from mrshc.plotting.heatmap_data import correlation_distances


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


def test_the_verdict_is_said_in_words():
    story = search_story(SEARCH)
    assert story.verdict == "Chosen: q = 40 features, rank 2 (average silhouette 0.60, 3 clusters)"
    assert story.screened_out == "fewer than 3 clusters"


def test_a_number_of_features_that_was_missed_is_said():
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


def test_if_nothing_survives_the_story_says_so_and_still_shows_the_chosen_one():
    table = candidates((10, 1, 0.1, "s"), (10, 2, 0.4, "sc"), (20, 1, 0.2, "s"), (20, 2, 0.3, "s"))
    story = search_story(table)
    assert story.rule.startswith("No candidate shows as many clusters")
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
    rule = rule_of(table)
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


MARKERS = pd.DataFrame(
    {
        "contrast": ["cluster", "cluster", "cluster", "split", "cluster"],
        "inside": ["1", "1", "1", "1", "3"],
        "feature": ["a", "b", "c", "d", "e"],
        "effect_size": [1.0, -3.0, 2.0, 9.0, np.nan],
    }
)


def test_the_strongest_markers_come_first_whatever_their_sign():
    first, second, third = marker_panels(MARKERS, 3, top=2)
    assert (first.features, first.effects.tolist(), first.n_all) == (("b", "c"), [-3.0, 2.0], 3)
    assert (second.heading, second.features) == ("cluster 2", ())
    assert third.features == (), "an effect without spread within the groups has no size"


def test_markers_of_an_estimator_are_counted_from_one():
    own = MARKERS.rename(columns={"feature": "name"}).assign(inside=["0", "0", "0", "0", "2"])
    assert [p.features for p in marker_panels(own, 3, top=2)] == [("b", "c"), (), ()]


def test_two_clusters_have_the_same_markers():
    (panel,) = marker_panels(MARKERS, 2, top=5)
    assert panel.heading == "cluster 1 against cluster 2"


def test_outlying_samples_have_no_say_in_the_scale():
    X = np.array([[1.0, 4.0], [3.0, np.nan], [2.0, 8.0], [500.0, -60.0]])
    np.testing.assert_allclose(
        standardised(X, outlying=np.array([3]))[:3], standardised(X[:3]), atol=1e-12
    )
    scaled = standardised(X, outlying=np.array([3]))[3]
    np.testing.assert_allclose(scaled, [(500 - 2) / np.sqrt(2 / 3), (-60 - 6) / 2])


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


def test_splits_are_marked_from_the_root_down():
    tests = {
        "node": [10, 12, 11, 9],
        "height": [2.0, 9.0, 5.0, 1.0],
        "drop": [0.30, 0.90, 0.60, 0.20],
        "expected_drop": [0.25, 0.50, 0.20, 0.20],
        "standard_error": [0.10, 0.10, 0.0, 0.0],
        "supported": [False, True, True, False],
        "split": [False, True, False, False],
    }
    marks = split_marks(tests)
    assert [mark.node for mark in marks] == [12, 11, 10, 9]
    assert [mark.verdict for mark in marks] == [
        "made",
        "supported, not made",
        "not supported",
        "not supported",
    ]
    # Without spread among the reference samples errors cannot be counted.
    assert [mark.label for mark in marks] == ["+4.0", "+∞", "+0.5", "+0.0"]


def test_silhouettes_fall_within_each_cluster():
    widths = np.array([0.1, 0.9, 0.5, -0.2, 0.7])
    rows = silhouette_rows(widths, [0, 1, 0, 1, 0])
    assert rows.order.tolist() == [4, 2, 0, 1, 3]
    assert rows.clusters.tolist() == [0, 0, 0, 1, 1]
    assert rows.names == ("cluster 1", "cluster 2")
    np.testing.assert_allclose(rows.averages, [1.3 / 3, 0.35])
    gaps = np.diff(rows.places)
    assert gaps[2] > gaps[0] == gaps[1] == gaps[3]


def test_named_clusters_keep_their_names():
    assert silhouette_rows([0.1, 0.2], ["b", "a"]).names == ("a", "b")


def test_widths_and_labels_must_match():
    with pytest.raises(ValueError, match=r"got the shapes \(2,\) and \(3,\)"):
        silhouette_rows([0.1, 0.2], [0, 0, 1])


def test_the_largest_loadings_come_first_whatever_their_sign_and_never_zero():
    assert largest_loadings([0.0, -0.7, 0.1, 0.2], top=2).tolist() == [1, 3]
    assert largest_loadings([0.0, -0.7, 0.0], top=30).tolist() == [1]


def test_an_outlying_sample_does_not_hide_the_spread_of_the_others():
    X = np.array([[1e15], [1.0], [2.0], [3.0]])
    usual = standardised(X, outlying=np.array([0]))[1:]
    np.testing.assert_allclose(usual, standardised(X[1:]), atol=1e-12)
    assert usual.any()


def test_standardised_features_have_mean_zero_and_deviation_one():
    X = np.random.default_rng(0).normal(3.0, 7.0, size=(40, 5)) * [1, 1e-200, 1e150, 1, 1]
    X[3, 0], X[4, 0], X[:, 3], X[:, 4] = np.nan, np.inf, 0.1, np.nan
    Y = standardised(X)
    np.testing.assert_allclose(np.nanmean(Y[:, :3], axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(Y[:, :3], axis=0), 1.0)
    assert np.isnan(Y[[3, 4], 0]).all()
    assert (Y[:, 3] == 0).all()
    assert np.isnan(Y[:, 4]).all()


def test_without_gaps_distances_of_features_come_from_correlations():
    X = np.random.default_rng(0).normal(size=(50, 6))
    np.testing.assert_allclose(
        correlation_distances(X), 1 - np.corrcoef(X, rowvar=False), atol=1e-12
    )
    np.testing.assert_allclose(
        feature_tree(X)[:, 2], linkage(X.T, "average", metric="correlation")[:, 2], atol=1e-11
    )


def test_with_gaps_features_are_compared_where_both_were_seen():
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[:5, 0], X[3:9, 1] = np.nan, np.nan
    expected = 1 - np.corrcoef(X[9:], rowvar=False)[0, 1]
    assert correlation_distances(X)[0, 1] == pytest.approx(expected)


def test_a_feature_tree_survives_constant_empty_and_copied_features():
    X = np.random.default_rng(0).normal(size=(20, 6))
    X[:, 1], X[:, 2], X[:, 4] = 4.2, np.nan, X[:, 3]
    tree = feature_tree(X)
    assert is_valid_linkage(tree)
    assert sorted(tree[0, :2]) == [3, 4]
    assert tree[0, 2] == 0
    assert (correlation_distances(X)[1, [0, 2, 3]] == 1).all()


def test_the_chosen_candidate_speaks_for_its_q_even_where_others_tie():
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
