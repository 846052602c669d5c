"""Order of the tests in a tree, thresholds, small branches and clusters of significant splits."""

import numpy as np
import pytest

from mrshc.core.inference.branch_significance import (
    NodeTest,
    combine_tests,
    groups_around,
    label_by_nodes,
    skip_small_branches,
    top_down_tests,
)
from mrshc.core.trees.tree import agglomerate, pairwise_distances


def tree_of(*groups):
    """Return the tree of points on a line. Points within a group are close to each other."""
    points = np.concatenate([np.full(size, centre) for centre, size in groups])
    points = points + np.linspace(0.0, 0.5, points.size)
    return agglomerate(pairwise_distances(points[:, None], "sqeuclidean"), "average")


def outcome(p_value):
    return NodeTest(statistic=1.0, p_value=p_value, agreement=1.0, n_simulations=10)


def sizes(tree, p_values, *, alpha=0.05):
    """Return the sizes and thresholds of the tested nodes; `p_values` by size, else 1."""
    tests = top_down_tests(
        tree,
        alpha=alpha,
        test_node=lambda node, _: outcome(p_values.get(tree.n_samples_below(node), 1.0)),
    )
    return [(tree.n_samples_below(node), threshold) for node, threshold, _ in tests]


FOUR = tree_of((0, 20), (10, 15), (100, 12), (105, 13))


def test_only_the_root_is_tested_if_it_is_not_significant():
    assert sizes(FOUR, {}) == [(60, 0.05)]


def test_children_of_significant_nodes_are_tested_with_smaller_thresholds():
    found = sizes(FOUR, {60: 0.01, 35: 0.01})
    # All children of a node come before its grandchildren.
    assert [sorted(size for size, _ in part) for part in (found[:1], found[1:3], found[3:])] == [
        [60],
        [25, 35],
        [15, 20],
    ]
    for size, threshold in found:
        assert threshold == pytest.approx(0.05 * (size - 1) / 59)


def test_a_p_value_at_the_threshold_is_significant():
    assert len(sizes(FOUR, {60: 0.05})) == 3
    assert len(sizes(FOUR, {60: np.nextafter(0.05, 1.0)})) == 1


def test_small_nodes_are_not_tested():
    tree = tree_of((0, 9), (10, 9))
    assert [size for size, _ in sizes(tree, {18: 0.0})] == [18]


def test_small_branches_are_left_out():
    tree = tree_of((0, 20), (10, 15), (500, 3), (3000, 1))
    node = skip_small_branches(tree, tree.root)
    assert tree.n_samples_below(node) == 35
    assert sizes(tree, {}) == [(35, pytest.approx(0.05 * 34 / 38))]


def test_a_tree_of_few_samples_has_no_tests():
    assert sizes(tree_of((0, 5), (10, 4)), {}) == []


# Clusters ----------------------------------------------------------------------------------------


def node_of_size(tree, size):
    return next(n for n in range(tree.root, -1, -1) if tree.n_samples_below(n) == size)


def test_labels_without_significant_nodes_are_one_cluster():
    np.testing.assert_array_equal(label_by_nodes(FOUR, []), 0)


def test_labels_are_the_branches_of_significant_nodes_in_the_order_of_the_leaves():
    labels = label_by_nodes(FOUR, [FOUR.root, node_of_size(FOUR, 25)])
    groups = [labels[:35], labels[35:47], labels[47:]]
    assert [np.unique(group).size for group in groups] == [1, 1, 1]
    in_order = labels[FOUR.leaf_order]
    assert (np.diff(in_order) >= 0).all()
    assert in_order[0] == 0
    assert in_order[-1] == 2


def test_samples_of_small_branches_above_a_significant_node_have_no_cluster():
    tree = tree_of((0, 20), (10, 15), (500, 3))
    labels = label_by_nodes(tree, [node_of_size(tree, 35)])
    np.testing.assert_array_equal(labels[35:], -1)
    assert set(labels[:35]) == {0, 1}
    # Below a node that is not divided, they belong to its cluster.
    np.testing.assert_array_equal(label_by_nodes(tree, []), 0)


def test_small_branches_of_a_child_are_left_out_only_if_it_is_divided():
    tree = tree_of((0, 20), (10, 15), (40, 2), (1000, 23))
    whole = label_by_nodes(tree, [tree.root])
    assert whole.min() == 0
    divided = label_by_nodes(tree, [tree.root, node_of_size(tree, 35)])
    np.testing.assert_array_equal(divided == -1, np.isin(np.arange(60), [35, 36]))
    assert set(divided) == {-1, 0, 1, 2}


def test_groups_around_a_node_are_the_branches_of_its_ancestors():
    groups = groups_around(FOUR, node_of_size(FOUR, 20))
    assert [set(groups[a:b]) for a, b in [(0, 20), (20, 35), (35, 60)]] == [{2}, {1}, {0}]
    np.testing.assert_array_equal(groups_around(FOUR, FOUR.root), 0)


def test_combined_tests_are_corrected_for_their_number():
    found = combine_tests([outcome(0.4), outcome(0.01)])
    assert found.p_value == 0.02
    assert found.n_simulations == 20
    assert combine_tests([outcome(0.7), outcome(0.9)]).p_value == 1.0
