import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage

from mrshc.core.robust.outliers import attach_to_nearest_neighbours, detect_outliers, winsorise
from mrshc.core.trees.pruning import PrunedTree, cut_tree
from mrshc.core.trees.tree import (
    ADDITIVE_METRICS,
    EUCLIDEAN_LINKAGES,
    LINKAGES,
    METRICS,
    SQUARED_EUCLIDEAN_METRICS,
    agglomerate,
    pairwise_distances,
)
from mrshc.datasets import make_simulation_1

MONOTONE = [linkage for linkage in LINKAGES if linkage not in ("centroid", "median")]


# Cells --------------------------------------------------------------------------------------


def test_outlying_cells_are_winsorised_or_removed():
    X = np.random.default_rng(0).normal(size=(101, 3))
    X[0, 0], X[1, 1] = 50.0, -50.0  # spikes
    X[:10, 2] = 40.0  # ten samples are no spike
    before = X.copy()
    found = detect_outliers(X, "sqeuclidean")
    np.testing.assert_array_equal(X, before)
    medians = np.median(X, axis=0)
    unit = 1.4826 * np.median(np.abs(X - medians), axis=0)
    assert np.isnan(found.data.values[0, 0])
    assert np.isnan(found.data.values[1, 1])
    np.testing.assert_allclose(found.data.values[:10, 2], medians[2] + 2.5 * unit[2])
    usual = np.abs(X - medians) < 2.5 * unit
    np.testing.assert_array_equal(found.data.values[usual], X[usual])
    assert np.nanmax(np.abs(found.data.values - medians) / unit) <= 2.5 + 1e-12


@pytest.mark.parametrize("n", [9, 60])
def test_winsorising_some_features_equals_winsorising_all(n):
    X = np.random.default_rng(2).standard_t(2, size=(n, 40))
    X[3] *= 50.0
    found = detect_outliers(X, "sqeuclidean")
    assert found.outlying_samples.tolist() == (
        [3] if n == 60 else []
    )  # of nine samples, none is outlying
    some = [4, 17, 30]
    np.testing.assert_array_equal(
        winsorise(X[:, some], found.outlying_samples), found.data.values[:, some]
    )


def winsorised_in_sds(*values, n=31):
    """Return values of one feature after winsorising, in standard deviations from the median.

    A third of the n values are above zero, as many are below zero, and the others are zero. The
    median is then 0 and the median absolute deviation is 1, so a standard deviation is 1.4826.
    """
    n_above = sum(value > 0 for value in values)
    n_below = len(values) - n_above
    X = np.zeros((n, 1))
    X[: n // 3 - n_above] = 1.0
    X[n // 3 : 2 * (n // 3) - n_below] = -1.0
    X[-len(values) :, 0] = 1.4826 * np.array(values)
    assert np.median(X) == 0
    assert np.median(np.abs(X)) == 1
    return winsorise(X, np.empty(0, np.intp))[-len(values) :, 0] / 1.4826


def test_values_beyond_two_and_a_half_standard_deviations_are_winsorised():
    found = winsorised_in_sds(2.49, 2.51, -2.49, -2.51)
    np.testing.assert_allclose(found, [2.49, 2.5, -2.49, -2.5])


def test_values_beyond_three_and_a_half_standard_deviations_are_removed():
    found = winsorised_in_sds(3.49, 3.51, -3.49, -3.51)
    np.testing.assert_allclose(found, [2.5, np.nan, -2.5, np.nan])


@pytest.mark.parametrize("sign", [-1, 1])
def test_extreme_values_are_removed_in_at_most_three_samples(sign):
    assert np.isnan(winsorised_in_sds(*[4.0 * sign] * 3)).all()
    np.testing.assert_allclose(winsorised_in_sds(*[4.0 * sign] * 4), 2.5 * sign)


@pytest.mark.parametrize(("n", "is_removed"), [(9, False), (10, True)])
def test_extreme_values_are_removed_with_at_least_ten_samples(n, is_removed):
    np.testing.assert_allclose(winsorised_in_sds(9.0, n=n), np.nan if is_removed else 2.5)


def test_a_feature_with_one_value_in_most_samples_is_not_winsorised():
    X = np.random.default_rng(1).normal(size=(30, 3))
    X[:20, 1] = 0.0
    X[25, 1] = 1e6
    np.testing.assert_array_equal(detect_outliers(X, "sqeuclidean").data.values[:, 1], X[:, 1])


@pytest.mark.parametrize("n", [60, 200, 500])
def test_the_cells_of_a_small_cluster_are_not_removed(n):
    """Four samples are a cluster, however many others there are."""
    X = np.random.default_rng(2).normal(size=(n, 40))
    X[:8, :20] += 8.0
    found = detect_outliers(X, "sqeuclidean")
    assert found.outlying_samples.size == 0
    assert not np.isnan(found.data.values[:8, :20]).any()


def test_memory_order_type_and_unit_of_the_data_are_kept():
    X = np.random.default_rng(3).standard_t(2, size=(40, 12)).astype(np.float32)
    X[4] *= 30
    found = detect_outliers(np.asfortranarray(X), "sqeuclidean")
    assert found.data.values.dtype == np.float32
    assert found.data.values.flags.f_contiguous
    np.testing.assert_array_equal(found.data.values, detect_outliers(X, "sqeuclidean").data.values)
    scaled = detect_outliers(X.astype(float) * 2.0**400, "sqeuclidean")
    np.testing.assert_array_equal(scaled.outlying_samples, found.outlying_samples)
    np.testing.assert_allclose(scaled.data.values / 2.0**400, found.data.values, rtol=1e-6)


def test_missing_cells_stay_missing_and_change_no_bounds():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 6))
    X[::5, 0] = np.nan
    whole = np.delete(X, np.s_[::5], axis=0)
    found = detect_outliers(X, "sqeuclidean")
    assert np.isnan(found.data.values[::5, 0]).all()
    np.testing.assert_array_equal(
        np.delete(found.data.values, np.s_[::5], axis=0)[:, 0],
        detect_outliers(whole, "sqeuclidean").data.values[:, 0],
    )


# Samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "p"), [(60, 500), (30, 50), (200, 20)])
def test_samples_of_normal_data_are_hardly_ever_outlying(metric, n, p):
    """In 200 draws of each kind, 0.5 to 4 % have one: up to 15 samples in 10,000."""
    flagged = [
        detect_outliers(
            np.random.default_rng(seed).normal(size=(n, p)), metric
        ).outlying_samples.size
        for seed in range(10)
    ]
    assert np.sum(flagged) <= 0.002 * n * 10 + 1


@pytest.mark.parametrize("metric", ADDITIVE_METRICS)
def test_isolated_samples_are_outlying_and_four_together_are_not(metric):
    rng = np.random.default_rng(5)
    X = make_simulation_1(0).X.copy()
    X[7] = 6 * rng.normal(size=500)
    X[20] = 6 * rng.normal(size=500)
    np.testing.assert_array_equal(detect_outliers(X, metric).outlying_samples, [7, 20])
    X[30:34] = 6 * rng.normal(size=500) + 0.5 * rng.normal(size=(4, 500))
    np.testing.assert_array_equal(detect_outliers(X, metric).outlying_samples, [7, 20])


def test_an_outlying_sample_changes_nothing_for_the_others():
    rng = np.random.default_rng(6)
    X = make_simulation_1(0, noise="t3").X.copy()
    for _ in range(3):
        X[11] = 8 * rng.normal(size=500)
        with_it, without = (
            detect_outliers(X, "sqeuclidean"),
            detect_outliers(np.delete(X, 11, axis=0), "sqeuclidean"),
        )
        np.testing.assert_array_equal(with_it.outlying_samples, [11])
        assert without.outlying_samples.size == 0
        np.testing.assert_array_equal(
            np.delete(with_it.data.values, 11, axis=0), without.data.values
        )


def test_of_fewer_than_ten_samples_none_is_outlying():
    X = np.random.default_rng(7).normal(size=(10, 20))
    X[0] = 1000.0
    found = detect_outliers(X[:9], "sqeuclidean")
    assert found.outlying_samples.size == 0
    assert np.isfinite(found.data.values).all()
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == [0]


def separate_simplices(*groups):
    """Return groups of samples with known distances; each feature is zero in most samples.

    The median absolute deviation of each feature is zero, so no value is winsorised. A group is
    given by its size, the squared distance between its samples, and the squared distance between
    its centre and the origin.
    """
    n, blocks = sum(size for size, _, _ in groups), []
    for start, (size, within, to_origin) in zip(
        np.cumsum([0] + [size for size, _, _ in groups[:-1]]), groups, strict=True
    ):
        # The rows of the block are the vertices of a regular simplex with its centre at zero, and
        # a last feature moves the centre away from the origin.
        block = np.zeros((n, size + 1))
        block[start : start + size, :size] = np.sqrt(within / 2) * (np.eye(size) - 1 / size)
        block[start : start + size, size] = np.sqrt(to_origin)
        blocks.append(block)
    return np.hstack(blocks)


# Groups of six samples. The logarithms of the distances to the third nearest neighbour are -1, 0
# and 1, so their median is 0 and their median absolute deviation is 1. Samples of different groups
# have squared distances of at least 20.
SIMPLICES = [(6, np.exp(-1.0), 10.0), (6, 1.0, 10.0), (6, np.exp(1.0), 10.0)]


@pytest.mark.parametrize(("n_sds", "outlying"), [(3.95, []), (4.05, [18])])
def test_a_sample_is_isolated_beyond_four_standard_deviations(n_sds, outlying):
    # The nearest neighbours of the last sample belong to the first group.
    to_nearest_centre = np.exp(n_sds * 1.4826) - np.exp(-1.0) * 5 / 12
    X = separate_simplices(*SIMPLICES, (1, 0.0, to_nearest_centre - 10.0))
    third = np.sort(pairwise_distances(X, "sqeuclidean"), axis=1)[:, 3]
    expected = np.append(np.repeat([-1.0, 0.0, 1.0], 6), n_sds * 1.4826)
    np.testing.assert_allclose(np.log(third), expected, atol=1e-12)
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == outlying


@pytest.mark.parametrize(("size", "outlying"), [(3, [18, 19, 20]), (4, [])])
def test_three_samples_far_from_the_others_are_isolated_but_four_are_a_cluster(size, outlying):
    X = separate_simplices(*SIMPLICES, (size, 1.0, 1e6))
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == outlying


@pytest.mark.parametrize(("n_sds", "outlying"), [(3.95, []), (4.05, [22])])
def test_the_neighbours_of_an_isolated_sample_are_less_far_from_each_other(n_sds, outlying):
    """The logarithm of the distance is compared with 2, that of the nearest group, not with 0."""
    dispersed = (4, np.exp(2.0), 0.0)
    to_centre = np.exp(2 + n_sds * 1.4826) - np.exp(2.0) * 3 / 8
    X = separate_simplices(*SIMPLICES, dispersed, (1, 0.0, to_centre))
    third = np.sort(pairwise_distances(X, "sqeuclidean"), axis=1)[:, 3]
    expected = [*np.repeat([-1.0, 0.0, 1.0], 6), *[2.0] * 4, 2 + n_sds * 1.4826]
    np.testing.assert_allclose(np.log(third), expected, atol=1e-12)
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == outlying


@pytest.mark.parametrize(("n_sds", "outlying"), [(3.95, []), (4.05, [22])])
def test_distances_of_zero_count_as_the_smallest_positive_distance(n_sds, outlying):
    to_nearest_centre = np.exp(n_sds * 1.4826)
    X = separate_simplices((4, 0.0, 10.0), *SIMPLICES, (1, 0.0, to_nearest_centre - 10.0))
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == outlying


def test_no_sample_is_isolated_if_most_samples_have_the_same_distance():
    X = separate_simplices((18, 1.0, 10.0), (1, 0.0, 1e6))
    assert detect_outliers(X, "sqeuclidean").outlying_samples.size == 0


@pytest.mark.parametrize("n_without", [1, 9, 10])
def test_samples_without_common_features_are_infinitely_far_apart(n_without):
    """Samples that share no feature with any other are isolated, unless they are the majority."""
    X = separate_simplices(*SIMPLICES)
    X = np.vstack([X[: 18 if n_without == 1 else 9], np.zeros((n_without, X.shape[1]))])
    n, p = X.shape
    X = np.hstack([X, np.zeros((n, n_without))])
    X[n - n_without :, :p] = np.nan
    X[:, p:] = np.where(np.eye(n)[:, n - n_without :] > 0, 1.0, np.nan)
    expected = [18] if n_without == 1 else []
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == expected


def test_a_sample_with_many_extreme_values_is_isolated():
    """Less than half of its values are extreme, but their winsorised values are far away."""
    X = np.random.default_rng(11).normal(size=(60, 200))
    X[7, :90] = 50.0
    assert detect_outliers(X, "sqeuclidean").outlying_samples.tolist() == [7]


@pytest.mark.parametrize(
    ("n_missing", "n_extreme", "is_outlying"),
    [(0, 3, False), (0, 4, True), (2, 2, False), (2, 3, True), (3, 1, False), (3, 2, True)],
)
def test_a_sample_is_outlying_if_more_than_half_of_its_values_are_removed(
    n_missing, n_extreme, is_outlying
):
    """The distances between the other samples vary so much that the sample is not isolated."""
    X = np.random.default_rng(12).uniform(-1, 1, size=(60, 6))
    X *= np.abs(X)
    X[7, :n_extreme] = 50.0
    X[7, 6 - n_missing :] = np.nan
    found = detect_outliers(X, "cityblock")
    assert found.outlying_samples.tolist() == ([7] if is_outlying else [])
    # Values of an outlying sample are winsorised and not removed.
    n_removed = 0 if is_outlying else n_extreme
    assert np.isnan(found.data.values[7]).sum() == n_missing + n_removed


def test_removal_is_repeated_without_the_outlying_samples():
    """Four samples are extreme in the last features, of which one is outlying for others."""
    X = np.random.default_rng(13).uniform(-1, 1, size=(60, 5))
    X[10] = 50.0
    X[[20, 30, 40], 3:] = 50.0
    X[[20, 30, 40], :2] = np.nan
    found = detect_outliers(X, "sqeuclidean")
    assert found.outlying_samples.tolist() == [10, 20, 30, 40]
    assert found.usual_samples().shape == (56, 5)
    np.testing.assert_array_equal(
        found.usual_samples().values, np.delete(found.data.values, [10, 20, 30, 40], axis=0)
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("times", [2, 4])
def test_copies_of_samples_are_not_outlying(times, metric):
    X = np.repeat(np.random.default_rng(8).normal(size=(8, 5)), times, axis=0)
    assert detect_outliers(X, metric).outlying_samples.size == 0


def test_a_feature_observed_only_in_an_outlying_sample():
    X = np.random.default_rng(9).normal(size=(30, 12))
    X[3] = 50.0
    X[np.arange(30) != 3, 5] = np.nan
    np.testing.assert_array_equal(detect_outliers(X, "sqeuclidean").outlying_samples, [3])


@pytest.mark.parametrize("metric", METRICS)
def test_samples_with_few_common_features(metric):
    rng = np.random.default_rng(10)
    for share in (0.6, 0.8, 0.9):
        X = np.where(rng.random((30, 6)) < share, np.nan, rng.normal(size=(30, 6)))
        X[np.arange(30), np.arange(30) % 6] = 0.1
        detect_outliers(X, metric)


def test_samples_with_other_profiles_are_isolated_by_their_correlations_only():
    """Samples differ in scale, so that distances to samples of small scale are not large."""
    rng = np.random.default_rng(11)
    profile = rng.normal(size=40)
    X = np.exp(rng.uniform(-1, 1, size=(50, 1))) * (profile + 0.2 * rng.normal(size=(50, 40)))
    X[7] = 0.4 * rng.permutation(profile)
    X[20:24] = 0.4 * (rng.permutation(profile) + 0.2 * rng.normal(size=(4, 40)))  # a cluster
    assert detect_outliers(X, "sqeuclidean").outlying_samples.size == 0
    for table in (X, np.where(rng.random(X.shape) < 0.1, np.nan, X)):
        assert detect_outliers(table, "correlation").outlying_samples.tolist() == [7]


# The tree -----------------------------------------------------------------------------------


def with_outliers(rng, linkage, metric, *, n=18, n_outlying=1):
    """Samples, some far away, and the tree of the others."""
    X = rng.normal(size=(n, 3)) + 2 * rng.integers(0, 3, size=(n, 1))
    outlying = np.sort(rng.choice(n, n_outlying, replace=False))
    X[outlying] += 10 * rng.normal(size=(n_outlying, 3))
    distances = pairwise_distances(X, metric)
    kept = np.setdiff1d(np.arange(n), outlying)
    return distances, outlying, kept, agglomerate(distances[np.ix_(kept, kept)], linkage)


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


COMBINATIONS = [
    (linkage, metric)
    for linkage in LINKAGES
    for metric in METRICS
    if linkage not in EUCLIDEAN_LINKAGES or metric in SQUARED_EUCLIDEAN_METRICS
]


@pytest.mark.parametrize(("linkage", "metric"), COMBINATIONS)
@pytest.mark.parametrize("n_outlying", [1, 2, 5])
def test_attached_trees_are_valid_and_cut_the_others_as_before(linkage, metric, n_outlying):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        distances, outlying, kept, tree = with_outliers(rng, linkage, metric, n_outlying=n_outlying)
        for k in (1, 2, 4):
            whole = attach_to_nearest_neighbours(
                cut_tree(tree, k), distances, outlying, n_clusters=k, linkage=linkage
            )
            assert is_valid_linkage(whole.tree.linkage_matrix)
            assert whole.tree.n_samples == 18
            if linkage in MONOTONE:
                assert is_monotonic(whole.tree.linkage_matrix)
            for fewer in range(1, k + 1):
                assert same_partition(whole.tree.cut(fewer)[kept], tree.cut(fewer))
                assert same_partition(whole.labels(fewer)[kept], tree.cut(fewer))


def test_an_outlying_sample_is_attached_to_a_tree_of_many_samples():
    rng = np.random.default_rng(0)
    distances, outlying, kept, tree = with_outliers(rng, "complete", "sqeuclidean", n=101)
    whole = attach_to_nearest_neighbours(
        cut_tree(tree, 2), distances, outlying, n_clusters=2, linkage="complete"
    )
    assert whole.tree.n_samples == 101
    assert same_partition(whole.tree.cut(2)[kept], tree.cut(2))


@pytest.mark.parametrize("linkage", LINKAGES)
def test_clusters_of_a_pruned_tree_are_not_changed_by_outliers(linkage):
    """Pruning may split a low branch and leave a higher one whole."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        distances, outlying, kept, tree = with_outliers(rng, linkage, "sqeuclidean")
        left, right = tree.children(tree.root)
        lower = min(left, right)
        if lower < tree.n_samples:
            continue
        pruned = PrunedTree(tree=tree, splits=(tree.root, lower), tests={})
        whole = attach_to_nearest_neighbours(
            pruned, distances, outlying, n_clusters=3, linkage=linkage
        )
        assert same_partition(whole.labels(3)[kept], pruned.labels(3))
        for k in (2, 3):
            assert same_partition(whole.tree.cut(k)[kept], tree.cut(k))


@pytest.mark.parametrize("linkage", LINKAGES)
def test_the_tree_of_the_others_is_inside_the_new_one(linkage):
    """Without the outlying samples, it is the old tree, heights included."""
    rng = np.random.default_rng(1)
    distances, outlying, kept, tree = with_outliers(rng, linkage, "sqeuclidean", n_outlying=3)
    whole = attach_to_nearest_neighbours(
        cut_tree(tree, 3), distances, outlying, n_clusters=3, linkage=linkage
    ).tree
    inside = {}
    for node in range(whole.n_samples, whole.root + 1):
        members = np.setdiff1d(whole.members(node), outlying)
        if members.size > 1:
            inside.setdefault(frozenset(members.tolist()), whole.height(node))
    expected = {
        frozenset(kept[tree.members(node)].tolist()): tree.height(node)
        for node in range(tree.n_samples, tree.root + 1)
    }
    assert inside == expected


def test_an_outlying_sample_goes_to_the_branch_of_its_nearest_neighbour():
    X = np.array([[0.0], [0.1], [0.3], [10.0], [10.1], [10.4], [14.0]])
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances[:6, :6], "complete")
    whole = attach_to_nearest_neighbours(
        cut_tree(tree, 2), distances, np.array([6]), n_clusters=2, linkage="complete"
    ).tree
    np.testing.assert_array_equal(whole.cut(2), [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(whole.cut(3), [0, 0, 0, 1, 1, 1, 2])
    assert whole.linkage_matrix[-2, 2] == pytest.approx(16.0)  # to the farthest of its branch


@pytest.mark.parametrize("linkage", MONOTONE)
def test_a_sample_that_is_not_far_joins_where_it_would_have_joined(linkage):
    """All but the root, whose height stays that of the others."""
    X = np.array([[0.0, 0], [0.2, 0], [10, 0], [10.2, 0], [1.0, 0.5]])
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances[:4, :4], linkage)
    found = attach_to_nearest_neighbours(
        cut_tree(tree, 2), distances, np.array([4]), n_clusters=2, linkage=linkage
    ).tree
    expected = agglomerate(distances, linkage)
    np.testing.assert_allclose(found.linkage_matrix[:-1], expected.linkage_matrix[:-1])


@pytest.mark.parametrize("linkage", MONOTONE)
def test_a_sample_that_is_closest_to_another_joins_before_all_others(linkage):
    X = np.array([[0.0], [3.0], [50.0], [51.0], [0.1]])
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances[:4, :4], linkage)
    found = attach_to_nearest_neighbours(
        cut_tree(tree, 2), distances, np.array([4]), n_clusters=2, linkage=linkage
    ).tree
    expected = agglomerate(distances, linkage).linkage_matrix
    # The heights of later merges stay those of the other samples.
    np.testing.assert_allclose(found.linkage_matrix[0], expected[0])
    np.testing.assert_array_equal(found.linkage_matrix[:, [0, 1, 3]], expected[:, [0, 1, 3]])
    np.testing.assert_allclose(found.linkage_matrix[1:, 2], tree.linkage_matrix[:, 2])


def test_with_one_cluster_a_sample_joins_at_its_linkage_distance():
    X = np.array([[0.0], [1.0], [10.0], [100.0]])
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances[:3, :3], "complete")
    found = attach_to_nearest_neighbours(
        cut_tree(tree, 1), distances, np.array([3]), n_clusters=1, linkage="complete"
    ).tree
    np.testing.assert_array_equal(found.linkage_matrix[-1], [3, 5, 100.0**2, 4])


def test_a_sample_joins_no_higher_than_the_lowest_split_of_the_clusters():
    """Only the splits that make the clusters count: the lower third split does not."""
    X = np.array([[0.0], [1.0], [1.5], [10.0], [14.0], [30.0]])
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances[:5, :5], "complete")
    pruned = PrunedTree(tree=tree, splits=(8, 6, 5), tests={})
    assert [tree.height(node) for node in pruned.splits] == [14.0**2, 1.5**2, 0.5**2]
    found = attach_to_nearest_neighbours(
        pruned, distances, np.array([5]), n_clusters=3, linkage="complete"
    ).tree
    row = np.flatnonzero((found.linkage_matrix[:, :2] == 5).any(axis=1))[0]
    np.testing.assert_array_equal(found.linkage_matrix[row], [4, 5, 1.5**2, 2])


def test_outlying_samples_at_the_same_place_stay_together_with_their_branch():
    X = np.random.default_rng(2).normal(size=(12, 2))
    X[:6] += 8.0
    X[[0, 1, 2]] = [30.0, 30.0]
    distances = pairwise_distances(X, "sqeuclidean")
    tree = agglomerate(distances[3:, 3:], "complete")
    whole = attach_to_nearest_neighbours(
        cut_tree(tree, 2), distances, np.array([0, 1, 2]), n_clusters=2, linkage="complete"
    )
    assert is_monotonic(whole.tree.linkage_matrix)
    np.testing.assert_array_equal(whole.labels(2), [0] * 6 + [1] * 6)
    np.testing.assert_array_equal(whole.tree.cut(2), [0] * 6 + [1] * 6)


def test_the_gap_tests_are_kept_for_their_nodes():
    rng = np.random.default_rng(3)
    distances, outlying, kept, tree = with_outliers(rng, "complete", "sqeuclidean", n_outlying=2)
    curves = {tree.root: "of the root", tree.root - 1: "of the next"}
    pruned = PrunedTree(tree=tree, splits=(tree.root, tree.root - 1), tests=curves)
    whole = attach_to_nearest_neighbours(
        pruned, distances, outlying, n_clusters=3, linkage="complete"
    )
    assert set(whole.tests.values()) == set(curves.values())
    for (old, curve), (new, same) in zip(curves.items(), whole.tests.items(), strict=True):
        assert curve == same
        members = np.setdiff1d(whole.tree.members(new), outlying)
        np.testing.assert_array_equal(members, kept[tree.members(old)])
        assert whole.tree.height(new) == tree.height(old)


def test_samples_of_a_dispersed_cluster_are_not_outlying():
    """Its samples are far from each other, but no farther than their neighbours are."""
    X = np.random.default_rng(0).normal(size=(60, 500))
    X[45:] *= 1.3
    X[45:, :50] += 3
    X[20:45, 50:100] += 2
    assert detect_outliers(X, "sqeuclidean").outlying_samples.size <= 1  # of 15


def test_a_sample_with_mostly_removed_cells_is_outlying():
    rng = np.random.default_rng(1)
    for _ in range(20):
        X = rng.normal(size=(60, 3))
        X[7] = 40.0
        found = detect_outliers(X, "sqeuclidean")
        assert found.outlying_samples.tolist() == [7]
        assert not np.isnan(found.data.values[7]).any()
