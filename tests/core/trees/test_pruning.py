import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from mrshc.core.parallel import run_in_parallel, start_if_idle, threads_for_parts
from mrshc.core.trees import pruning
from mrshc.core.trees.gap_statistic import GapSettings, gap_curve
from mrshc.core.trees.pruning import cut_tree, prune, split_further
from mrshc.core.trees.tree import agglomerate, pairwise_distances


def prune_samples(X, max_leaves=None, linkage="complete", entropy=0, **settings):
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


FOUR_CLUSTERS = clusters([[0, 0], [0, 5], [9, 0], [9, 5]], 8)


def test_four_plain_clusters_are_found():
    result = prune_samples(FOUR_CLUSTERS)
    assert result.n_leaves == 4
    np.testing.assert_array_equal(result.labels(10), np.repeat(np.arange(4), 8))


def test_fewer_leaves_are_a_prefix_of_all_leaves():
    everything = prune_samples(FOUR_CLUSTERS)
    for k in range(1, 5):
        limited = prune_samples(FOUR_CLUSTERS, max_leaves=k)
        assert limited.n_leaves == k
        assert limited.splits == everything.splits[: k - 1]
        np.testing.assert_array_equal(limited.labels(k), everything.labels(k))


def test_nodes_tested_in_idle_threads_have_the_same_results(monkeypatch):
    X = clusters([[0, 0], [0, 5], [9, 0], [9, 5]], 12, spread=0.8)
    alone, started = prune_samples(X), []

    def start_and_note(*arguments):
        started.append(start_if_idle(*arguments))
        return started[-1]

    monkeypatch.setattr(pruning, "start_if_idle", start_and_note)
    (in_threads,) = run_in_parallel(prune_samples, [{"X": X}], n_jobs=3)
    assert sum(result is not None for result in started) >= 2
    assert in_threads.splits == alone.splits
    assert list(in_threads.tests) == list(alone.tests)
    for node, expected in alone.tests.items():
        np.testing.assert_array_equal(in_threads.tests[node].reference, expected.reference)


def test_an_error_in_a_node_waits_for_the_nodes_in_other_threads(monkeypatch):
    running, finished, owners = threading.Event(), [], set()

    def fail_in_the_thread_of_the_root(X, *arguments, **options):
        if len(X) == len(FOUR_CLUSTERS):  # the root
            owners.add(threading.current_thread())
        elif threading.current_thread() in owners:
            running.wait(timeout=5)
            raise ValueError("stop")
        else:
            running.set()
            time.sleep(0.05)
            finished.append(True)
        return gap_curve(X, *arguments, **options)

    monkeypatch.setattr(pruning, "gap_curve", fail_in_the_thread_of_the_root)
    with threads_for_parts(2):
        with pytest.raises(ValueError, match="stop"):
            list(run_in_parallel(prune_samples, [{"X": FOUR_CLUSTERS}], n_jobs=2))
        # The threads of the context go on, but not the test of the other node.
        assert finished == [True]


@pytest.mark.parametrize(("left", "right"), [(3, 8), (8, 3)])
def test_nodes_are_split_in_decreasing_order_of_height(left, right):
    """Below the root, the half whose two clusters are farther apart is split first."""
    X = clusters([[0, 0], [0, left], [30, 0], [30, right]], 8)
    result = prune_samples(X)
    assert result.n_leaves == 4
    heights = [result.tree.height(node) for node in result.splits]
    assert heights == sorted(heights, reverse=True)
    is_left_first = left > right
    sizes = [8, 8, 16] if is_left_first else [16, 8, 8]
    expected = np.repeat(np.arange(3), sizes)
    np.testing.assert_array_equal(result.labels(3), expected)
    np.testing.assert_array_equal(prune_samples(X, max_leaves=3).labels(3), expected)


def test_of_nodes_with_equal_height_the_last_merge_is_split_first():
    """As in a cut of the tree."""
    square = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    X = np.concatenate([square + shift for shift in ([0, 0], [0, 16], [64, 0], [64, 16])])
    result = prune_samples(X, rule="globalmax")
    first, second = result.splits[1:3]
    assert result.tree.height(first) == result.tree.height(second)
    assert first > second
    for k in range(1, 5):
        np.testing.assert_array_equal(result.labels(k), result.tree.cut(k))


@pytest.mark.parametrize("k", [1, 2, 3, 7, 32])
def test_a_cut_undoes_the_last_merges(k):
    tree = prune_samples(FOUR_CLUSTERS).tree
    cut = cut_tree(tree, k)
    assert cut.tree is tree
    assert cut.splits == tuple(62 - i for i in range(k - 1))
    assert cut.n_leaves == k
    assert cut.tests == {}
    for fewer in range(1, k + 1):
        np.testing.assert_array_equal(cut.labels(fewer), tree.cut(fewer))
        assert len(cut.leaf_nodes(fewer)) == fewer


def test_nodes_of_three_samples_are_tested_and_nodes_of_two_are_not():
    X = clusters([[0, 0], [50, 0]], 3)
    result = prune_samples(np.vstack([X, [[0.0, 90.0], [0.1, 90.0]]]))
    assert min(result.tree.members(node).size for node in result.tests) == 3
    children = {child for node in result.splits for child in result.tree.children(node)}
    assert 2 in {result.tree.members(child).size for child in children}


def test_gap_statistic_of_a_node_is_that_of_its_samples_and_partitions():
    """The random numbers depend on the seed, the number of features and the node."""
    X = clusters([[0, 0], [0, 5], [9, 0]], 3)
    settings = {"rule": "globalmax", "max_clusters": 5, "n_references": 20}
    result = prune_samples(X, entropy=7, **settings)
    tree, n_partitions = result.tree, []
    for node, found in result.tests.items():
        members = tree.members(node)
        distances = pairwise_distances(X[members], "sqeuclidean")
        below = agglomerate(distances, "complete")
        partitions = [below.cut(k) for k in range(1, min(5, members.size) + 1)]
        expected = gap_curve(
            X[members],
            distances,
            partitions=partitions,
            rng=np.random.default_rng(np.random.SeedSequence(7, spawn_key=(2, node))),
            settings=GapSettings(**settings),
        )
        n_partitions.append(len(partitions))
        np.testing.assert_allclose(found.log_dispersion, expected.log_dispersion, rtol=1e-9)
        np.testing.assert_allclose(found.reference, expected.reference, rtol=1e-9)
    assert {3, 5} <= set(n_partitions)


@pytest.mark.parametrize(("distance", "is_tested"), [(1.0, False), (2.0, True)])
@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_samples_within_rounding_errors_of_the_coordinates_are_not_tested(
    metric, distance, is_tested
):
    """The largest distance is 1, so a distance of at most one rounding error is negligible."""
    X = np.array([[0.0], [0.0], [distance * np.finfo(float).eps], [1.0]])
    distances = pairwise_distances(X, metric)
    result = prune(
        agglomerate(distances, "single"),
        X,
        distances=distances,
        settings=GapSettings(linkage="single", metric=metric, rule="globalmax"),
        entropy=0,
    )
    assert 6 in result.splits
    assert (5 in result.tests) == is_tested


def prune_by_correlation(X, linkage="complete", **settings):
    distances = pairwise_distances(X, "correlation")
    return prune(
        agglomerate(distances, linkage),
        X,
        distances=distances,
        settings=GapSettings(linkage=linkage, metric="correlation", **settings),
        entropy=0,
    )


def profiles(rng, n, *, noise=0.1):
    """Return n samples of each of three profiles over 12 features, with any offset and scale."""
    centres = np.repeat(np.eye(3), 4, axis=1)
    X = np.repeat(centres, n, axis=0) + noise * rng.normal(size=(3 * n, 12))
    return X * rng.uniform(0.1, 100, size=(3 * n, 1)) + rng.normal(scale=50, size=(3 * n, 1))


def test_samples_with_the_same_profile_are_a_cluster_whatever_their_scale():
    result = prune_by_correlation(profiles(np.random.default_rng(0), 10))
    assert result.n_leaves == 3
    np.testing.assert_array_equal(result.labels(3), np.repeat(np.arange(3), 10))


def test_rarely_any_clusters_are_found_in_correlations_of_a_uniform_box():
    rng = np.random.default_rng(1)
    counts = [prune_by_correlation(rng.random((30, 8)) + 0.5).n_leaves for _ in range(40)]
    assert np.mean(np.array(counts) > 1) < 0.3


@pytest.mark.parametrize(
    "X",
    [
        np.repeat(np.arange(1.0, 9.0), 5).reshape(8, 5),
        np.vstack([np.full((7, 5), 0.1), np.arange(5.0)]),
        np.outer(np.arange(1.0, 9.0), np.arange(5.0)) + 0.1,
        np.random.default_rng(0).normal(size=(8, 2)),
    ],
    ids=["constant", "all but one constant", "proportional", "two features"],
)
def test_samples_without_different_correlations_are_not_tested(X):
    result = prune_by_correlation(X)
    assert result.n_leaves == 1
    assert not result.tests


def test_clusters_are_found_among_constant_samples():
    """Constant samples stay constant in reference data sets, as they would without clusters."""
    X = profiles(np.random.default_rng(2), 10)
    X = np.vstack([X[:20], np.zeros((5, 12))])
    result = prune_by_correlation(X, linkage="average")
    assert result.n_leaves > 1
    labels = result.labels(25)
    assert not set(labels[:10]) & set(labels[10:20])
    for curve in result.tests.values():
        assert np.isfinite(curve.gap).all()
        assert np.isfinite(curve.standard_error).all()


def test_gap_statistic_of_correlations_is_that_of_the_samples_that_are_not_constant():
    X = profiles(np.random.default_rng(3), 5)
    X[[2, 7]] = 4.0
    result = prune_by_correlation(X, n_references=20)
    root = result.tree.root
    distances = pairwise_distances(X, "correlation")
    expected = gap_curve(
        np.delete(X, [2, 7], axis=0),
        distances,
        partitions=[result.tree.cut(1), result.tree.cut(2)],
        rng=np.random.default_rng(np.random.SeedSequence(0, spawn_key=(12, root))),
        settings=GapSettings(metric="correlation", n_references=20),
    )
    np.testing.assert_array_equal(result.tests[root].reference, expected.reference)
    np.testing.assert_allclose(result.tests[root].log_dispersion, expected.log_dispersion)


def test_rarely_any_clusters_are_found_in_a_uniform_box():
    """The null hypothesis; the rule of one standard error is not a test of small level."""
    rng = np.random.default_rng(1)
    counts = [prune_samples(rng.random((30, 3)), entropy=i).n_leaves for i in range(40)]
    assert np.mean(np.array(counts) > 1) < 0.3


def test_splits_are_the_tested_nodes_with_more_than_one_cluster():
    result = prune_samples(FOUR_CLUSTERS)
    assert set(result.splits) <= set(result.tests)
    for node, curve in result.tests.items():
        assert (curve.n_clusters > 1) == (node in result.splits)
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
def test_duplicates_and_pairs_are_not_split(X):
    result = prune_samples(X)
    assert result.n_leaves == 1
    assert not result.tests


def test_distances_within_rounding_errors_count_as_duplicates():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=(5, 4))
    X = np.vstack([np.zeros((5, 4)), cloud * 1e-162, np.ones((5, 4))])
    result = prune_samples(X)
    assert result.n_leaves == 2
    assert set(result.tests) == {result.tree.root}


def test_two_groups_of_duplicates_are_two_clusters():
    result = prune_samples(np.repeat([[0.0, 0.0], [5.0, 1.0]], 5, axis=0))
    assert result.n_leaves == 2


@pytest.mark.parametrize("rule", ["firstSEmax", "Tibs2001SEmax"])
def test_other_rules_find_the_same_clusters(rule):
    assert prune_samples(FOUR_CLUSTERS, rule=rule, max_clusters=5).n_leaves == 4


def test_reference_samples_depend_on_the_seed_only():
    one, same, other = (prune_samples(FOUR_CLUSTERS, entropy=e) for e in (1, 1, 2))
    root = one.tree.root
    np.testing.assert_array_equal(one.tests[root].reference, same.tests[root].reference)
    assert np.any(one.tests[root].reference != other.tests[root].reference)


def test_early_stopping_decides_as_all_samples_do():
    rng = np.random.default_rng(5)
    drawn = []
    for entropy in range(30):
        X = rng.normal(size=(30, 4)) + np.repeat([[0.0], [1.5]], 15, axis=0) * (entropy % 2)
        early = prune_samples(X, entropy=entropy)
        full = prune_samples(X, entropy=entropy, stop_early=False)
        assert early.splits == full.splits
        assert {len(curve.reference) for curve in full.tests.values()} == {50}
        for node, curve in early.tests.items():
            drawn.append(len(curve.reference))
            np.testing.assert_array_equal(curve.reference, full.tests[node].reference[: drawn[-1]])
    assert 15 <= min(drawn) < 50


# Further splits ----------------------------------------------------------------------------------


def test_further_splits_keep_the_supported_ones_and_follow_the_order_of_the_cut():
    """The highest node is not split by pruning, but it is the first of the further splits."""
    tree = prune_samples(FOUR_CLUSTERS).tree
    root = tree.root
    low, high = sorted(tree.children(root))
    pruned = replace(cut_tree(tree, 2), splits=(root, low))
    for k in range(1, 4):
        assert split_further(pruned, k).splits == (root, low)
    assert split_further(pruned, 4).splits == (root, low, high)
    for k in range(4, tree.n_samples + 1):
        # From four clusters on, all nodes above the cut are split, so the clusters are those of it.
        further = split_further(pruned, k)
        assert further.n_leaves == k
        np.testing.assert_array_equal(further.labels(k), tree.cut(k))


@pytest.mark.parametrize("k", [1, 2, 5, 32])
def test_an_unsplit_tree_is_split_like_a_cut(k):
    pruned = cut_tree(prune_samples(FOUR_CLUSTERS).tree, 1)
    assert split_further(pruned, k).splits == cut_tree(pruned.tree, k).splits
