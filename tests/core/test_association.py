"""Rank tests of cuts, their combination and correction, folds, rounds and numbers of clusters."""

import numpy as np
import pytest
from scipy import stats

from mrshc.core import association
from mrshc.core.association import (
    Refinement,
    analyse_variance,
    associated_features,
    cauchy_combination,
    drop_ratios,
    f_tail,
    split_into_folds,
)
from mrshc.core.data.matrix import ArrayMatrix
from mrshc.core.trees import Tree, linkage_matrix, pairwise_distances
from storage_backends import in_array_api, in_torch

RULE = {"linkage": "ward", "metric": "sqeuclidean", "kept_ranks": {}}


def cuts_of(X, linkage="ward", metric="sqeuclidean", ks=(2, 3, 4, 5, 6, 7)):
    tree = Tree(linkage_matrix(pairwise_distances(X, metric), linkage))
    return np.array([tree.cut(k) for k in ks])


def partitions_of(n, seed=0, counts=(2, 3, 5, 7)):
    """Return partitions, one in each row, that need not contain all of their clusters."""
    return np.stack([np.random.default_rng(seed).integers(k, size=n) for k in counts])


def table(kind, n=40, p=30):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, size=p)
    X[: n // 2, :5] += 1.5
    if "ties" in kind:
        X = rng.integers(0, 4, size=X.shape).astype(float)
        X[:, 7] = 3.0
    if "missing" in kind:
        X[rng.random(X.shape) < 0.3] = np.nan
        X[2:, 9] = np.nan
    return X


KINDS = ["continuous", "ties", "missing values", "ties, missing values"]


def plain_test(x, labels):
    """P-value of the analysis of variance of ranks without ties, and sum of squares."""
    used = ~np.isnan(x) & (labels >= 0)
    ranks, groups, m = stats.rankdata(x[used]), labels[used], used.sum()
    k = np.unique(groups).size
    clusters = [(ranks[groups == g], x[used][groups == g]) for g in np.unique(groups)]
    between = sum(r.size * (r.mean() - (m + 1) / 2) ** 2 for r, _ in clusters)
    squares = sum(v.size * (v.mean() - x[used].mean()) ** 2 for _, v in clusters)
    squares *= x.size / m
    if k < 2 or m <= k:
        return 1.0, squares
    share = between / (m * (m**2 - 1) / 12)
    with np.errstate(divide="ignore"):
        return stats.f.sf(share / (k - 1) / ((1 - share) / (m - k)), k - 1, m - k), squares


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [np.array, in_array_api, in_torch])
def test_tests_are_analyses_of_variance_of_ranks(kind, place):
    X, partitions = table(kind), partitions_of(40)
    shares, between, within, squares = analyse_variance(place(X), partitions)
    found = f_tail(shares, between, within)
    for m, labels in enumerate(partitions):
        for j, x in enumerate(X.T):
            p_value, expected_squares = plain_test(x, labels)
            assert found[m, j] == pytest.approx(p_value, rel=1e-8)
            assert squares[m, j] == pytest.approx(expected_squares, rel=1e-8, abs=1e-18)


# Combination and correction -----------------------------------------------------------------


def test_the_combination_of_equal_small_or_impossible_p_values():
    for p in (0.0, 1e-310, 1e-300, 1e-15, 1e-9, 0.3, 0.5, 1.0):
        assert cauchy_combination(np.full((1, 4), p))[0] == pytest.approx(p, rel=1e-7)
    for p in (1e-300, 1e-16, 1e-10):
        rows = np.array([[p, 0.3, 0.5, 0.7]])
        assert cauchy_combination(rows)[0] == pytest.approx(4 * p, rel=1e-2)
    rows = np.array([[0.3, 1.0], [1.0, 0.3], [0.3, 0.3], [1.0, 1.0]])
    np.testing.assert_allclose(cauchy_combination(rows), [0.3, 0.3, 0.3, 1.0], rtol=1e-12)


@pytest.mark.parametrize(("large", "used"), [(0.9985, 0.9985), (0.9992, 0.999), (0.99999, 0.999)])
def test_large_p_values_are_replaced_before_they_are_combined(large, used):
    expected = stats.cauchy.sf(np.mean(stats.cauchy.isf([0.001, used])))
    found = cauchy_combination(np.array([[0.001, large]]))[0]
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.001, 0.05, 0.3, 1.0])
def test_associated_features_have_q_values_of_at_most_alpha(alpha):
    rng = np.random.default_rng(7)
    for size in (1, 2, 50, 1000):
        p_values = np.round(rng.random(size) ** 3, 3)  # with ties, zeros and ones
        p_values[rng.random(size) < 0.2] = 1.0
        tested, q_values = p_values < 1.0, np.ones(size)
        if tested.any():
            q_values[tested] = stats.false_discovery_control(p_values[tested])
        expected = np.flatnonzero(tested & (q_values <= alpha))
        np.testing.assert_array_equal(associated_features(p_values, alpha), expected)
        hidden = np.where(tested & (p_values > alpha), np.nan, p_values)  # not computed
        np.testing.assert_array_equal(associated_features(hidden, alpha), expected)


# Tests of feature sets ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
def test_p_values_above_alpha_may_be_left_out(kind, alpha):
    X = np.hstack([table(kind)] * 3)
    X[:, 30:] = np.random.default_rng(5).permuted(X[:, 30:], axis=0)
    partitions = np.stack([cuts_of(np.nan_to_num(X[:, :10])), cuts_of(np.nan_to_num(X[:, 20:]))])
    full, strengths = association.block_tests(X, 0, partitions=partitions)
    part, same = association.block_tests(X, 0, partitions=partitions, alpha=alpha)
    known = ~np.isnan(part)
    np.testing.assert_array_equal(part[known], full[known])
    np.testing.assert_array_equal(same, strengths)
    assert (full[~known] > alpha).all()
    assert known[full == 1.0].all(), "that no test is possible is known"
    assert (~known).sum() > 0.3 * (full > alpha).sum()


def test_folds_are_dealt_out_by_variance():
    X = np.random.default_rng(0).normal(size=(50, 23)) * np.arange(23)
    folds = split_into_folds(X)
    assert sorted(fold.size for fold in folds) == [2] * 7 + [3] * 3
    order = np.concatenate([[fold[i] for fold in folds if i < fold.size] for i in range(3)])
    np.testing.assert_array_equal(order, np.argsort(-X.var(axis=0), kind="stable"))
    assert len(split_into_folds(X[:, :4])) == 4


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock", "correlation"])
def test_features_of_a_set_are_tested_with_trees_of_the_other_folds(metric):
    linkage = "average"
    X = np.random.default_rng(1).normal(size=(30, 40))
    X[:12, :15] += 1.5
    features = np.arange(3, 26)
    [(p_values, strengths)] = association.association_tests(
        ArrayMatrix(X), [features], linkage=linkage, metric=metric, alpha=1.0, kept_ranks={}
    )
    folds = split_into_folds(X[:, features])
    assert len(folds) == 10
    for fold in folds:
        others = np.delete(features, fold)
        cuts = cuts_of(X[:, others], linkage, metric)
        found, squares = association.block_tests(X[:, features[fold]], 0, partitions=cuts[None])
        np.testing.assert_allclose(p_values[features[fold]], found[0], rtol=1e-9)
        np.testing.assert_allclose(strengths[features[fold]], squares[0], rtol=1e-9)
    rest = np.setdiff1d(np.arange(40), features)
    cuts = cuts_of(X[:, features], linkage, metric)
    found, squares = association.block_tests(X[:, rest], 0, partitions=cuts[None])
    np.testing.assert_allclose(p_values[rest], found[0], rtol=1e-9)
    np.testing.assert_allclose(strengths[rest], squares[0], rtol=1e-9)


def test_sets_without_other_features_or_cuts_have_p_values_of_one():
    X = np.random.default_rng(0).normal(size=(12, 9))
    [(p_values, strengths)] = association.association_tests(
        ArrayMatrix(X), [np.array([4])], alpha=1.0, **RULE
    )
    assert (p_values[4], strengths[4]) == (1.0, 0.0)
    assert (np.delete(p_values, 4) < 1).all()
    two = association.association_tests(ArrayMatrix(X[:2]), [np.arange(3)], alpha=1.0, **RULE)
    np.testing.assert_array_equal(two[0], [np.ones(9), np.zeros(9)])
    [(p_values, _)] = association.association_tests(
        ArrayMatrix(X),
        [np.arange(3)],
        alpha=1.0,
        linkage="ward",
        metric="correlation",
        kept_ranks={},
    )
    np.testing.assert_array_equal(p_values[:3], 1.0)
    [(three, _)] = association.association_tests(
        ArrayMatrix(X[:3]), [np.arange(3)], alpha=1.0, **RULE
    )
    cuts = cuts_of(X[:3, :3], ks=(2,))
    expected, _ = association.block_tests(X[:3, 3:], 0, partitions=cuts[None])
    np.testing.assert_allclose(three[3:], expected[0])


# Rounds -------------------------------------------------------------------------------------


def p_values_with(associated, p=300):
    values = np.full(p, 0.9)
    values[associated] = 1e-6
    return values


def test_a_round_takes_the_strongest_associated_features():
    r = Refinement(np.arange(10), np.arange(10))
    strengths = np.arange(300.0)
    r.advance(p_values_with(np.arange(50, 90)), strengths, 0.05, 30)
    assert (r.n_rounds, r.is_finished, r.has_enough) == (1, False, True)
    np.testing.assert_array_equal(r.associated, np.arange(50, 90))
    np.testing.assert_array_equal(r.tested, np.arange(10))
    np.testing.assert_array_equal(r.present, np.arange(60, 90))
    np.testing.assert_array_equal(r.features, np.arange(60, 90))
    assert r.strength == strengths[50:90].sum()
    assert (r.n_associated, r.is_supported(7)) == (40, True)


@pytest.mark.parametrize(("n_associated", "has_enough"), [(4, False), (5, True)])
def test_with_fewer_than_five_associated_features_the_start_set_is_kept(n_associated, has_enough):
    r = Refinement(np.arange(10), np.arange(10))
    r.advance(p_values_with(np.arange(100, 110)), np.ones(300), 0.05, 500)
    r.advance(p_values_with(np.arange(200, 200 + n_associated)), np.ones(300), 0.05, 500)
    assert (r.has_enough, r.is_finished) == (has_enough, not has_enough)
    assert (r.strength, r.n_associated) == ((5.0, 5) if has_enough else (0.0, 0))
    np.testing.assert_array_equal(r.features, np.arange(200, 205) if has_enough else r.start)


@pytest.mark.parametrize(
    ("start", "n_samples", "expected"),
    [(5, 7, False), (4, 7, None), (5, 6, None), (4, 6, None)],
)
def test_support_cannot_be_decided_with_few_features_or_samples(start, n_samples, expected):
    r = Refinement(np.arange(start), np.arange(start))
    r.advance(np.ones(300), np.ones(300), 0.05, 500)
    assert r.is_supported(n_samples) is expected


@pytest.mark.parametrize(("n_common", "is_settled"), [(94, False), (95, True)])
@pytest.mark.parametrize("larger", ["old", "new"])
def test_rounds_end_when_95_percent_of_the_larger_set_are_in_both(n_common, is_settled, larger):
    old, new = (100, n_common) if larger == "old" else (n_common, 100)
    r = Refinement(np.arange(old), np.arange(old))
    r.advance(p_values_with(np.arange(new)), np.ones(300), 0.05, 500)
    assert r.is_finished == is_settled


# Numbers of clusters ------------------------------------------------------------------------


def test_drop_ratios_are_those_of_the_dispersions():
    X = np.random.default_rng(0).normal(size=(20, 3))
    distances = pairwise_distances(X, "sqeuclidean")
    partitions = cuts_of(X, ks=range(1, 9))
    w = [
        2 * sum(((X[p == k] - X[p == k].mean(axis=0)) ** 2).sum() for k in range(p.max() + 1))
        for p in partitions
    ]
    expected = [(w[k - 1] - w[k]) / (w[k] - w[k + 1]) for k in range(1, 7)]
    np.testing.assert_allclose(drop_ratios(distances, partitions), expected)


def test_drops_of_identical_samples_are_negligible_and_ratios_finite():
    X = np.repeat([[0.0, 0.0], [5.0, 1.0], [0.0, 9.0]], 4, axis=0)
    partitions = cuts_of(X, ks=range(1, 7))
    distances = pairwise_distances(X, "sqeuclidean")
    ratios = drop_ratios(distances, partitions)
    assert ratios.argmax() == 1
    np.testing.assert_allclose(ratios[2:], 1.0)
    w3 = 2 * ((X[:8] - X[:8].mean(axis=0)) ** 2).sum()
    assert ratios[1] == pytest.approx(w3 / (distances.sum() * 2**-52), rel=1e-6)
    assert drop_ratios(np.zeros((4, 4)), cuts_of(X[:4], ks=(1, 2, 3)))[0] == 1.0
