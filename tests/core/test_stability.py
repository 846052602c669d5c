"""Jaccard indices, support of branches and summaries of refits, compared with plain sets."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage, to_tree

from mrshc.core import stability
from mrshc.core.stability import best_jaccard, transfer_support
from mrshc.core.trees import Tree


def random_tree(n, seed):
    return Tree(linkage(np.random.default_rng(seed).normal(size=(n, 3)), "average"))


def branches(tree):
    """Return the set of samples below each node, by scipy."""
    return [set(node.pre_order()) for node in to_tree(tree.linkage_matrix, rd=True)[1]]


def test_jaccard_indices_are_those_of_sets():
    rng = np.random.default_rng(0)
    labels, others = rng.integers(4, size=30), rng.integers(5, size=30)
    sets, other_sets = (
        [set(np.flatnonzero(each == c)) for c in range(each.max() + 1)] for each in (labels, others)
    )
    expected = [max(len(a & b) / len(a | b) for b in other_sets) for a in sets]
    np.testing.assert_allclose(best_jaccard(labels, others, 4), expected)
    labels = np.array([0, 0, 1, 2, 2, 2])
    np.testing.assert_array_equal(best_jaccard(labels, np.array([2, 2, 0, 1, 1, 1]), 3), 1.0)
    found = best_jaccard(np.array([0, 2, 2]), np.array([0, 1, 1]), 3)
    np.testing.assert_array_equal(found, [1.0, np.nan, 1.0])  # a cluster without samples


@pytest.mark.parametrize(("n", "m"), [(9, 9), (12, 7), (40, 25), (60, 50)])
def test_support_is_that_of_sets(n, m, monkeypatch):
    monkeypatch.setattr(stability, "_BRANCHES_AT_ONCE", 20)
    tree, other = random_tree(n, 1), random_tree(m, 2)
    rows = np.sort(np.random.default_rng(n).permutation(n)[:m])
    other_sets = [set(rows[list(below)]) for below in branches(other)]
    expected = []
    for below in branches(tree)[n:]:
        drawn = below & set(rows)
        distance = min(len(drawn ^ one) for one in other_sets)
        is_tested = 2 <= len(drawn) < m
        expected.append(max(1 - distance / (len(drawn) - 1), 0) if is_tested else np.nan)
    np.testing.assert_allclose(transfer_support(tree, rows, other), expected)
    own = transfer_support(tree, np.arange(n), tree)
    np.testing.assert_array_equal(own, [*np.ones(n - 2), np.nan])  # all samples: not a branch
