"""Jaccard indices, support of branches and summaries of refits, compared with plain sets."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage, to_tree

from mrshc.core.inference.stability import (
    Refit,
    best_jaccard_indices,
    draw_subsample,
    summarise_refits,
    transfer_support,
)
from mrshc.core.trees.tree import Tree


def random_tree(n, seed):
    return Tree(linkage_matrix=linkage(np.random.default_rng(seed).normal(size=(n, 3)), "average"))


def branches(tree):
    """Return the set of samples below each node, by scipy."""
    _, nodes = to_tree(tree.linkage_matrix, rd=True)
    return [set(node.pre_order()) for node in nodes]


def jaccard(a, b):
    return len(a & b) / len(a | b)


# Jaccard indices ---------------------------------------------------------------------------------


def test_jaccard_indices_are_those_of_sets():
    rng = np.random.default_rng(0)
    labels, others = rng.integers(4, size=30), rng.integers(5, size=30)
    sets = [set(np.flatnonzero(labels == c)) for c in range(4)]
    other_sets = [set(np.flatnonzero(others == c)) for c in range(5)]
    expected = [max(jaccard(a, b) for b in other_sets) for a in sets]
    np.testing.assert_allclose(best_jaccard_indices(labels, others, n_clusters=4), expected)


def test_equal_partitions_have_index_one_whatever_the_numbers():
    labels = np.array([0, 0, 1, 2, 2, 2])
    found = best_jaccard_indices(labels, np.array([2, 2, 0, 1, 1, 1]), n_clusters=3)
    np.testing.assert_array_equal(found, 1.0)


def test_a_cluster_without_samples_has_no_index():
    found = best_jaccard_indices(np.array([0, 2, 2]), np.array([0, 1, 1]), n_clusters=3)
    np.testing.assert_array_equal(found, [1.0, np.nan, 1.0])


# Support of branches -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(9, 9), (12, 7), (40, 25), (300, 290)])
def test_support_is_that_of_sets(n, m):
    rng = np.random.default_rng(n)
    tree, other = random_tree(n, 1), random_tree(m, 2)
    rows = np.sort(rng.permutation(n)[:m])
    other_sets = [set(rows[list(below)]) for below in branches(other)]
    expected = []
    for below in branches(tree)[n:]:
        drawn = below & set(rows)
        distance = min(len(drawn ^ one) for one in other_sets)
        is_tested = 2 <= len(drawn) < m
        expected.append(max(1 - distance / (len(drawn) - 1), 0) if is_tested else np.nan)
    np.testing.assert_allclose(transfer_support(tree, rows, other), expected)


def test_a_tree_supports_its_own_branches():
    tree = random_tree(20, 0)
    found = transfer_support(tree, np.arange(20), tree)
    np.testing.assert_array_equal(found, [*np.ones(18), np.nan])  # all samples: not a branch


def test_one_sample_that_moves_reduces_the_support_of_a_large_branch_a_little():
    """The sample 5 joins the other branch: 1 of 6 samples is removed, of 5 that could be."""
    height = np.arange(1.0, 12.0)
    first = [[0, 1], [12, 2], [13, 3], [14, 4], [15, 5], [6, 7], [17, 8], [18, 9], [19, 10]]
    tree = Tree(linkage_matrix=join([*first, [20, 11], [16, 21]], height))
    second = [[0, 1], [12, 2], [13, 3], [14, 4], [6, 7], [16, 8], [17, 9], [18, 10], [19, 11]]
    other = Tree(linkage_matrix=join([*second, [20, 5], [15, 21]], height))
    found = transfer_support(tree, np.arange(12), other)
    assert found[4] == pytest.approx(1 - 1 / 5)
    np.testing.assert_array_equal(found[:4], 1.0)


def join(pairs, heights):
    """Return a linkage matrix, with the numbers of samples below each node."""
    n = len(pairs) + 1
    sizes = [1] * n
    for a, b in pairs:
        sizes.append(sizes[a] + sizes[b])
    return np.column_stack([np.array(pairs, dtype=float), heights, sizes[n:]])


# Summaries ---------------------------------------------------------------------------------------


def make_refit(rows, labels, support, seed=0):
    rows = np.array(rows)
    return Refit(
        rows=rows,
        tree=random_tree(rows.size, seed),
        labels=np.array(labels),
        support=np.array(support),
    )


def test_summaries_are_means_over_the_refits_that_contain_the_samples():
    tree, labels = random_tree(5, 3), np.array([0, 0, 1, 1, 2])
    refits = [
        make_refit([0, 1, 2, 3], [0, 0, 1, 1], [True, False, True]),
        make_refit([0, 1, 3, 4], [0, 1, 1, 1], [True, False, False]),
    ]
    found = summarise_refits(tree, labels, 3, iter(refits))
    assert found.n_resamples == 2
    np.testing.assert_array_equal(found.feature_frequency, [1.0, 0.0, 0.5])
    # In the second refit, cluster 0 is divided, and 3 and 4 are with sample 1.
    np.testing.assert_allclose(found.cluster_jaccard, [(1 + 1 / 2) / 2, (1 + 1 / 3) / 2, 1 / 3])
    consensus = np.full((5, 5), np.nan)
    for pair, share in {(0, 1): 0.5, (0, 3): 0.0, (1, 3): 0.5, (2, 3): 1.0, (3, 4): 1.0}.items():
        consensus[pair] = share
    for pair, share in {(0, 2): 0.0, (1, 2): 0.0, (0, 4): 0.0, (1, 4): 1.0}.items():
        consensus[pair] = share
    consensus[np.tril_indices(5, -1)] = consensus.T[np.tril_indices(5, -1)]
    np.fill_diagonal(consensus, 1.0)
    np.testing.assert_array_equal(found.consensus, consensus)
    both = [transfer_support(tree, r.rows, r.tree) for r in refits]
    defined = ~np.isnan(both).all(axis=0)
    expected = np.nanmean(np.array(both)[:, defined], axis=0)
    np.testing.assert_allclose(found.branch_support[defined], expected)
    assert np.isnan(found.branch_support[~defined]).all()


def test_subsamples_are_sorted_without_repetition_and_depend_on_the_seed():
    one, other = (draw_subsample(50, fraction=0.8, seed=seed) for seed in (1, 2))
    assert one.size == 40
    assert np.all(np.diff(one) > 0)
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(one, draw_subsample(50, fraction=0.8, seed=1))
