"""Jaccard indices, support of branches and summaries of refits, compared with plain sets."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage, to_tree

from mrshc.core import stability
from mrshc.core.stability import Refit, best_jaccard, summarise_refits, transfer_support
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


def test_summaries_are_means_over_the_refits_that_contain_the_samples():
    tree, labels = random_tree(5, 3), np.array([0, 0, 1, 1, 2])
    refits = [
        Refit(np.array(rows), random_tree(4, 0), np.array(found), np.array(support))
        for rows, found, support in (
            ([0, 1, 2, 3], [0, 0, 1, 1], [True, False, True]),
            ([0, 1, 3, 4], [0, 1, 1, 1], [True, False, False]),
        )
    ]
    found = summarise_refits(tree, labels, 3, iter(refits))
    assert found.n_resamples == 2
    np.testing.assert_array_equal(found.feature_frequency, [1.0, 0.0, 0.5])
    # In the second refit, cluster 0 is divided, and 3 and 4 are with sample 1.
    np.testing.assert_allclose(found.cluster_jaccard, [(1 + 1 / 2) / 2, (1 + 1 / 3) / 2, 1 / 3])
    nan = np.nan
    consensus = [
        [1.0, 0.5, 0.0, 0.0, 0.0],
        [0.5, 1.0, 0.0, 0.5, 1.0],
        [0.0, 0.0, 1.0, 1.0, nan],
        [0.0, 0.5, 1.0, 1.0, 1.0],
        [0.0, 1.0, nan, 1.0, 1.0],
    ]
    np.testing.assert_array_equal(found.consensus, consensus)
    both = np.array([transfer_support(tree, r.rows, r.tree) for r in refits])
    defined = ~np.isnan(both).all(axis=0)
    expected = np.nanmean(both[:, defined], axis=0)
    np.testing.assert_allclose(found.branch_support[defined], expected)
    assert np.isnan(found.branch_support[~defined]).all()
    single = summarise_refits(tree, np.zeros(5, int), 3, iter(refits))
    np.testing.assert_array_equal(single.cluster_jaccard, [np.nan])
