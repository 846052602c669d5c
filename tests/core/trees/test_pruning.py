import numpy as np
import pytest

from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import prune
from mrshc.core.trees.tree import agglomerate, pairwise_distances


def pruned(X, max_leaves=None, linkage="complete", entropy=0, **settings):
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances, linkage)
    return prune(
        tree,
        X,
        distances=distances,
        settings=GapSettings(linkage=linkage, **settings),
        entropy=entropy,
        max_leaves=max_leaves,
    )


def clusters(centres, size, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(centres, size, axis=0) + spread * rng.normal(size=(len(centres) * size, 2))


FOUR = clusters([[0, 0], [0, 5], [9, 0], [9, 5]], 8)


def test_four_plain_clusters_are_found():
    found = pruned(FOUR)
    assert found.n_leaves == 4
    np.testing.assert_array_equal(found.labels(10), np.repeat(np.arange(4), 8))


def test_fewer_leaves_are_a_prefix_of_all_leaves():
    everything = pruned(FOUR)
    for k in range(1, 5):
        limited = pruned(FOUR, max_leaves=k)
        assert limited.n_leaves == k
        assert limited.splits == everything.splits[: k - 1]
        np.testing.assert_array_equal(limited.labels(k), everything.labels(k))


def test_the_highest_node_is_split_first():
    assert pruned(FOUR).labels(2).tolist() == [0] * 16 + [1] * 16


def test_rarely_any_clusters_are_found_in_a_uniform_box():
    """The null hypothesis itself; the rule of one standard error is no test of small size."""
    rng = np.random.default_rng(1)
    counts = [pruned(rng.random((30, 3)), entropy=i).n_leaves for i in range(40)]
    assert np.mean(np.array(counts) > 1) < 0.3


def test_verdicts_are_kept_for_every_tested_node_and_no_other():
    found = pruned(FOUR)
    assert set(found.splits) <= set(found.tests)
    for node, curve in found.tests.items():
        assert (curve.n_clusters > 1) == (node in found.splits)
        assert np.isfinite(curve.gap).all()


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((6, 2)),
        np.array([[0.0, 0.0], [1.0, 1.0]]),
        np.ones((3, 4)),
    ],
    ids=["duplicates", "two samples", "three duplicates"],
)
def test_nothing_to_split_is_one_leaf(X):
    found = pruned(X)
    assert found.n_leaves == 1
    assert not found.tests


def test_points_that_rounding_cannot_tell_apart_count_as_duplicates():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=(5, 4))
    X = np.vstack([np.zeros((5, 4)), cloud * 1e-162, np.ones((5, 4))])
    found = pruned(X)
    assert found.n_leaves == 2
    assert set(found.tests) == {found.tree.root}


def test_duplicated_points_are_told_apart_but_never_split():
    found = pruned(np.repeat([[0.0, 0.0], [5.0, 1.0]], 5, axis=0))
    assert found.n_leaves == 2


@pytest.mark.parametrize("rule", ["firstSEmax", "Tibs2001SEmax"])
def test_other_rules_and_more_clusters_find_them_too(rule):
    assert pruned(FOUR, rule=rule, max_clusters=5).n_leaves == 4


def test_same_seed_same_verdicts_other_seed_other_references():
    one, same, other = (pruned(FOUR, entropy=e) for e in (1, 1, 2))
    root = one.tree.root
    np.testing.assert_array_equal(one.tests[root].reference, same.tests[root].reference)
    assert np.any(one.tests[root].reference != other.tests[root].reference)


def test_early_stopping_decides_as_all_samples_do():
    rng = np.random.default_rng(5)
    drawn = []
    for entropy in range(30):
        X = rng.normal(size=(30, 4)) + np.repeat([[0.0], [1.5]], 15, axis=0) * (entropy % 2)
        early = pruned(X, entropy=entropy)
        full = pruned(X, entropy=entropy, stop_early=False)
        assert early.splits == full.splits
        assert {len(curve.reference) for curve in full.tests.values()} == {50}
        for node, curve in early.tests.items():
            drawn.append(len(curve.reference))
            np.testing.assert_array_equal(curve.reference, full.tests[node].reference[: drawn[-1]])
    assert 15 <= min(drawn) < 50
