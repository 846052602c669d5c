"""Null distributions, statistics of splits, sequential p-values and the order of the tests."""

import numpy as np
import pytest
from scipy import stats

import reference
from mrshc.core.significance import (
    NodeTest,
    as_compared,
    background_variance,
    cluster_index,
    estimate_null,
    estimate_null_of_sigclust,
    groups_around,
    label_by_splits,
    separation,
    sequential_p_value,
    soft_threshold,
    top_down_tests,
    upper_tail,
)
from mrshc.core.trees import Tree, linkage_matrix, pairwise_distances

SIGCLUST = reference.runs("sigclust2")


def noise(n=30, p=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def sigclust_input(name):
    return reference.matrix("input_B")[:, :40] if name == "B" else reference.matrix("simI_rep1")


# Null distributions -------------------------------------------------------------------------


def covariance(null):
    return null.factors.T @ null.factors + np.diag(null.noise**2)


@pytest.mark.parametrize(("n", "p"), [(20, 60), (20, 19), (20, 8)])
def test_factors_are_principal_components_reduced_by_the_median_eigenvalue(n, p):
    X = noise(n, p)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    values, vectors = values[::-1], vectors[:, ::-1].T
    known = np.append(values, np.zeros(max(n - 1 - p, 0)))[: n - 1]
    reduced = np.maximum(known - np.median(known), 0)
    used = np.flatnonzero(reduced > 1e-12)
    expected = (vectors[used].T * reduced[used]) @ vectors[used]
    factors = estimate_null(X).factors
    np.testing.assert_allclose(factors.T @ factors, expected, atol=1e-10)


def test_features_with_one_value_none_or_no_variance():
    X = noise(12, 9)
    X[:, 2] = np.nan
    X[1:, 5] = np.nan
    X[:, 3] = 5.0
    null = estimate_null(X)
    assert null.noise[2] == null.noise[5] == 0.0
    drawn = null.draw(np.random.default_rng(0))
    assert np.isnan(drawn[:, 2]).all()
    assert drawn[0, 5] == pytest.approx(X[0, 5])
    np.testing.assert_allclose(drawn[:, 3], 5.0)
    equal = estimate_null(np.ones((5, 3))).draw(np.random.default_rng(0))
    np.testing.assert_array_equal(equal, 1.0)


@pytest.mark.parametrize("name", ["B", "I"])
def test_background_and_eigenvalues_are_those_of_sigclust2(name):
    X, expected = sigclust_input(name), SIGCLUST[name]
    assert background_variance(X) == pytest.approx(expected["background_variance"], abs=1e-8)
    null = estimate_null_of_sigclust(X)
    np.testing.assert_allclose(null.noise, np.sqrt(background_variance(X)))
    # The distribution contains the reduced eigenvalues, in the directions of the samples.
    reduced = soft_threshold(np.array(expected["sample_eigenvalues"]), background_variance(X))
    found, strengths = np.zeros(X.shape[1]), np.linalg.svd(null.factors, compute_uv=False) ** 2
    found[: strengths.size] = strengths
    np.testing.assert_allclose(found + null.noise**2, reduced, atol=1e-8)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
    products = null.factors @ axes[: len(null.factors)].T
    np.testing.assert_allclose(np.abs(products), np.diag(np.sqrt(strengths)), atol=1e-6)


# Statistics ---------------------------------------------------------------------------------


def two_groups(n_first=7, n_second=12, q=30, *, distance=0.0, seed=0):
    rng = np.random.default_rng(seed)
    is_first = np.arange(n_first + n_second) < n_first
    return rng.normal(size=(is_first.size, q)) + distance * is_first[:, None], is_first


@pytest.mark.parametrize("distance", [0.0, 1.0])
def test_separation_projects_each_sample_on_the_line_through_the_means_without_it(distance):
    X, is_first = two_groups(distance=distance)
    centred, z = X - X.mean(axis=0), []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        means = [centred[group & others].mean(axis=0) for group in (is_first, ~is_first)]
        z.append(centred[i] @ (means[0] - means[1]))
    z = np.array(z)
    within = (z[is_first].std(ddof=1) + z[~is_first].std(ddof=1)) / 2
    sign = np.sign(z[is_first].mean() - z[~is_first].mean())
    found = separation(X, is_first)
    assert found == pytest.approx(sign * (1 - within / z.std(ddof=1)))
    assert separation(3.0 * X + 7.0, is_first) == pytest.approx(found)
    assert separation(X, ~is_first) == pytest.approx(found)
    assert separation(X[::-1, ::-1], is_first[::-1]) == pytest.approx(found)


@pytest.mark.parametrize("name", ["B", "I"])
def test_cluster_index_is_that_of_sigclust2(name):
    X = sigclust_input(name)
    tree = Tree(linkage_matrix(pairwise_distances(X, "sqeuclidean"), "ward"))
    expected = [node["ci"] for node in SIGCLUST[name]["nodes"]]
    found = []
    for node in range(tree.root, tree.root - len(expected), -1):
        rows = tree.members(node)
        found.append(cluster_index(X[rows], np.isin(rows, tree.members(tree.children(node)[0]))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert cluster_index(np.ones((4, 2)), np.arange(4) < 2) == 1.0


# P-values -----------------------------------------------------------------------------------


def test_p_value_is_that_of_a_new_observation():
    values = np.random.default_rng(0).normal(2.0, 3.0, size=15)
    # The t test of two samples of which one has a single value and no estimate of the variance.
    scale = values.std(ddof=1) * np.sqrt(1 + 1 / 15)
    expected = stats.t.sf((6.0 - values.mean()) / scale, df=14)
    assert upper_tail(6.0, values) == pytest.approx(expected)
    assert upper_tail(6.0, np.append(values, np.nan)) == upper_tail(6.0, values)
    assert upper_tail(1.5, np.array([np.nan, 1.0])) == 1.0
    assert 0 < upper_tail(1.5, np.array([0.0, 1.0])) < 1
    assert [upper_tail(observed, np.ones(10)) for observed in (0.9, 1.0, 1.1)] == [1.0, 1.0, 0.0]


def sequential(observed, values, threshold=0.05):
    asked = []

    def simulate(numbers):
        asked.append((numbers.start, numbers.stop))
        return values[numbers.start : numbers.stop]

    options = {"n_simulations": len(values), "threshold": threshold}
    return *sequential_p_value(observed, simulate, **options), asked


def observed_with(p_value, m):
    """Return the statistic that has a p-value among m simulated values -1, 1, -1, ..."""
    values = np.tile([-1.0, 1.0], m)[:m]
    scale = values.std(ddof=1) * np.sqrt(1 + 1 / m)
    return values.mean() + scale * stats.t.isf(p_value, m - 1)


@pytest.mark.parametrize(
    ("p_value", "at", "threshold", "n_simulated"),
    [
        (0.26, 10, 0.05, 10),  # clearly large: above a quarter
        (0.24, 10, 0.05, 90),
        (0.45, 10, 0.2, 10),  # or above twice the threshold
        (0.39, 10, 0.2, 90),
        (0.0049, 20, 0.05, 20),  # clearly small: below a tenth of the threshold
        (0.0051, 20, 0.05, 40),
        (0.00001, 10, 0.05, 20),  # but at least 20 simulations
        (0.02, 20, 0.05, 90),
    ],
)
def test_simulations_end_where_the_decision_is_clear(p_value, at, threshold, n_simulated):
    observed = observed_with(p_value, at)
    values = np.tile([-1.0, 1.0], 45)
    found, n_found, asked = sequential(observed, values, threshold)
    assert n_found == n_simulated
    assert found == pytest.approx(upper_tail(observed, values[:n_found]))
    looks = [(0, 10), (10, 20), (20, 40), (40, 60), (60, 80), (80, 90)]
    assert asked == [look for look in looks if look[1] <= n_simulated]


# Tests of a tree ----------------------------------------------------------------------------


def tree_of(*groups):
    """Return the tree of points on a line. Points within a group are close to each other."""
    points = np.concatenate([np.full(size, centre) for centre, size in groups])
    points = points + np.linspace(0.0, 0.5, points.size)
    return Tree(linkage_matrix(pairwise_distances(points[:, None], "sqeuclidean"), "average"))


FOUR = tree_of((0, 20), (10, 15), (100, 12), (105, 13))


def sizes(tree, p_values, alpha=0.05):
    """Return the sizes and thresholds of the tested nodes; `p_values` by size, else 1."""
    given = []

    def test(node, threshold):
        given.append(threshold)
        return NodeTest(1.0, p_values.get(tree.n_samples_below(node), 1.0), 1.0, 10)

    tests = list(top_down_tests(tree, alpha, test))
    assert given == [threshold for _, threshold, _ in tests]
    return [(tree.n_samples_below(node), threshold) for node, threshold, _ in tests]


def test_children_of_significant_nodes_are_tested_with_smaller_thresholds():
    assert sizes(FOUR, {}) == [(60, 0.05)]
    found = sizes(FOUR, {60: 0.01, 35: 0.01})
    # All children of a node come before its grandchildren.
    parts = (found[:1], found[1:3], found[3:])
    assert [sorted(size for size, _ in part) for part in parts] == [[60], [25, 35], [15, 20]]
    for size, threshold in found:
        assert threshold == pytest.approx(0.05 * (size - 1) / 59)
    assert len(sizes(FOUR, {60: 0.05})) == 3
    assert len(sizes(FOUR, {60: np.nextafter(0.05, 1.0)})) == 1


@pytest.mark.parametrize(
    ("groups", "tested"),
    [
        ([(0, 9), (10, 9)], [18]),  # branches of nine samples are not tested
        ([(0, 5), (10, 5)], [10]),
        ([(0, 5), (10, 4)], []),
        ([(0, 20), (10, 15), (500, 3), (3000, 1)], [35]),  # branches of three are left out
        ([(0, 20), (10, 15), (500, 4)], [39]),
        ([(0, 3), (10, 9)], []),
    ],
)
def test_small_nodes_and_branches_are_not_tested(groups, tested):
    tree = tree_of(*groups)
    assert [size for size, _ in sizes(tree, dict.fromkeys(tested, 0.0))][:1] == tested
    if tested == [18]:
        assert len(sizes(tree, {18: 0.0})) == 1


def node_of_size(tree, size):
    return next(n for n in range(tree.root, -1, -1) if tree.n_samples_below(n) == size)


def test_labels_are_the_branches_of_significant_nodes_in_the_order_of_the_leaves():
    np.testing.assert_array_equal(label_by_splits(FOUR, np.empty(0, int)), 0)
    labels = label_by_splits(FOUR, np.array([FOUR.root, node_of_size(FOUR, 25)]))
    assert [np.unique(labels[part]).size for part in np.split(np.arange(60), [35, 47])] == [1] * 3
    in_order = labels[FOUR.leaf_order]
    assert in_order[0] == 0
    assert (np.diff(in_order) >= 0).all()
    assert in_order[-1] == 2


def test_small_branches_above_a_significant_node_have_no_cluster():
    tree = tree_of((0, 20), (10, 15), (500, 3))
    labels = label_by_splits(tree, np.array([node_of_size(tree, 35)]))
    np.testing.assert_array_equal(labels[35:], -1)
    assert set(labels[:35]) == {0, 1}
    # Small branches of a child are left out only if it is divided.
    tree = tree_of((0, 20), (10, 15), (40, 2), (1000, 23))
    assert label_by_splits(tree, np.array([tree.root])).min() == 0
    divided = label_by_splits(tree, np.array([tree.root, node_of_size(tree, 35)]))
    np.testing.assert_array_equal(divided == -1, np.isin(np.arange(60), [35, 36]))
    assert set(divided) == {-1, 0, 1, 2}


def test_groups_around_a_node_are_the_branches_of_its_ancestors():
    groups = groups_around(FOUR, node_of_size(FOUR, 20))
    assert [set(groups[a:b]) for a, b in [(0, 20), (20, 35), (35, 60)]] == [{2}, {1}, {0}]
    np.testing.assert_array_equal(groups_around(FOUR, FOUR.root), 0)


def test_samples_are_standardised_for_correlations_and_constant_ones_are_zero():
    X = np.array([[1.0, 2.0, 4.0, 9.0], [5.0, 5.0, 5.0, 5.0]])
    found = as_compared(X, "correlation")
    assert np.linalg.norm(found[0]) == pytest.approx(1.0)
    assert found[0].mean() == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_array_equal(found[1], 0.0)
    assert as_compared(X, "cityblock") is X
