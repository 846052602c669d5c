import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist
from sklearn.metrics import rand_score

import reference
from mrshc.core.parallel import threads_for_parts
from mrshc.core.trees.tree import (
    LINKAGES,
    METRICS,
    Tree,
    agglomerate,
    check_linkage,
    condensed_distances,
    min_features,
    pairwise_distances,
)


@pytest.mark.parametrize("run", reference.runs("hclust"), ids=lambda r: r["input"] + r["method"])
def test_heights_and_cuts_are_those_of_hclust(run):
    tree, convert = reference.tree_as_in_r(run)
    heights = convert(tree.linkage_matrix[:, 2])
    np.testing.assert_allclose(heights, run["height"], rtol=1e-9)
    for k in range(2, 7):
        np.testing.assert_array_equal(tree.cut(k) + 1, run["cutree"][f"k{k}"])


@pytest.mark.parametrize("linkage", LINKAGES)
def test_linkage_matrix_is_that_of_scipy(linkage):
    X = np.random.default_rng(0).normal(size=(30, 5))
    euclidean = linkage in ("ward", "centroid", "median")
    expected = scipy_linkage(pdist(X, "euclidean" if euclidean else "sqeuclidean"), linkage)
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), linkage)
    np.testing.assert_allclose(tree.linkage_matrix, expected)


@pytest.mark.parametrize("linkage", LINKAGES)
def test_linkage_matrix_of_correlations_is_that_of_scipy(linkage):
    X = np.random.default_rng(0).normal(size=(30, 5))
    distances = 1 - np.corrcoef(X)[np.triu_indices(30, 1)]
    euclidean = linkage in ("ward", "centroid", "median")
    expected = scipy_linkage(np.sqrt(distances) if euclidean else distances, linkage)
    tree = agglomerate(pairwise_distances(X, "correlation"), linkage)
    np.testing.assert_allclose(tree.linkage_matrix, expected, rtol=1e-9)


@pytest.mark.parametrize("linkage", ["ward", "centroid"])
def test_linkages_of_correlations_are_those_of_standardised_samples(linkage):
    """The squared Euclidean distance of samples with norm sqrt(1/2) is 1 - correlation."""
    X = np.random.default_rng(1).normal(size=(25, 6))
    X[[3, 8]] = 2.0  # a constant sample is a coordinate on an axis of its own
    centred = X - X.mean(axis=1, keepdims=True)
    points = np.hstack([centred, np.zeros((25, 2))])
    points[3, 6] = points[8, 7] = 1.0
    points /= np.sqrt(2) * np.linalg.norm(points, axis=1, keepdims=True)
    tree = agglomerate(pairwise_distances(X, "correlation"), linkage)
    np.testing.assert_allclose(
        tree.linkage_matrix[:, 2], scipy_linkage(points, linkage)[:, 2], rtol=1e-9
    )


def test_the_fewest_features_are_three_for_correlations_and_one_otherwise():
    fewest = {metric: min_features(metric) for metric in METRICS}
    assert fewest == {"sqeuclidean": 1, "cityblock": 1, "correlation": 3}


def test_distances_may_be_asymmetric_by_rounding_errors():
    distances = pairwise_distances(np.random.default_rng(0).normal(size=(12, 3)), "sqeuclidean")
    rounded = distances.copy()
    rounded[0, 1] = np.nextafter(rounded[0, 1], np.inf)
    assert rounded[0, 1] != rounded[1, 0]
    expected = agglomerate(distances, "complete").linkage_matrix
    np.testing.assert_allclose(agglomerate(rounded, "complete").linkage_matrix, expected)


def test_cuts_are_nested_and_undo_one_merge_at_a_time():
    X = np.random.default_rng(1).normal(size=(25, 2))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "centroid")
    assert np.any(np.diff(tree.linkage_matrix[:, 2]) < 0), "the case needs an inversion"
    for k in range(1, 25):
        coarse, fine = tree.cut(k), tree.cut(k + 1)
        assert set(coarse) == set(range(k))
        assert len(set(zip(coarse, fine, strict=True))) == k + 1


def test_members_and_leaf_order_agree():
    X = np.random.default_rng(2).normal(size=(15, 3))
    tree = agglomerate(pairwise_distances(X, "cityblock"), "average")
    np.testing.assert_array_equal(np.sort(tree.leaf_order), np.arange(15))
    position = np.argsort(tree.leaf_order)
    for node in range(15, tree.root + 1):
        left, right = tree.children(node)
        together = np.concatenate([tree.members(left), tree.members(right)])
        np.testing.assert_array_equal(tree.members(node), np.sort(together))
        assert np.ptp(position[tree.members(node)]) == tree.members(node).size - 1


def test_long_chains_do_not_exceed_the_recursion_limit():
    n = 5000
    merges = np.arange(n - 1)
    first = np.where(merges == 0, 0, n + merges - 1)
    linkage_matrix = np.column_stack([first, merges + 1, merges + 1, merges + 2]).astype(float)
    tree = Tree(linkage_matrix=linkage_matrix)
    assert tree.members(tree.root).size == n
    assert np.bincount(tree.cut(2)).tolist() == [n - 1, 1]


def test_most_similar_branch_has_the_largest_jaccard_index():
    X = np.random.default_rng(3).normal(size=(20, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "average")
    rng = np.random.default_rng(4)
    for _ in range(30):
        wanted = set(rng.choice(20, size=rng.integers(1, 20), replace=False).tolist())
        shares = [
            len(wanted & set(tree.members(node))) / len(wanted | set(tree.members(node)))
            for node in range(tree.root + 1)
        ]
        found = tree.most_similar_branch(np.array(sorted(wanted)), at_least=0.5)
        if max(shares) < 0.5:
            assert found.size == 0
        else:
            np.testing.assert_array_equal(found, tree.members(int(np.argmax(shares))))
    assert tree.most_similar_branch(np.empty(0, np.intp), at_least=0.5).size == 0
    np.testing.assert_array_equal(
        tree.most_similar_branch(np.arange(20), at_least=1.0), np.arange(20)
    )


def test_label_ranges_are_those_of_the_members():
    X = np.random.default_rng(5).normal(size=(15, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "average")
    labels = np.random.default_rng(6).integers(0, 4, size=15)
    low, high = tree.label_ranges(labels)
    for node in range(tree.root + 1):
        below = labels[tree.members(node)]
        assert (low[node], high[node]) == (below.min(), below.max())


FOUR_SAMPLES = [[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 3.0, 4]]


def edited_matrix(row, column, value):
    matrix = np.array(FOUR_SAMPLES)
    matrix[row, column] = value
    return matrix


def test_linkage_matrices_of_scipy_are_accepted():
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 200):
        for method in LINKAGES:
            X = np.round(rng.normal(size=(n, 2)))  # rounding makes some samples equal
            Z = hierarchy.linkage(X, method)
            np.testing.assert_array_equal(check_linkage(Z.tolist(), n_samples=n), Z)
    assert check_linkage(np.empty((0, 4)), n_samples=1).shape == (0, 4)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (FOUR_SAMPLES[:2], r"must have the shape \(3, 4\) for 4 samples, got \(2, 4\)"),
        ([], r"must have the shape \(3, 4\) for 4 samples, got \(0,\)"),
        ([[0, 1], [2]], "must be an array of numbers"),
        ([["a"] * 4] * 3, "must be an array of numbers"),
        (np.array(FOUR_SAMPLES) + 1j, "must be an array of numbers"),
        ([[10**400] * 4] * 3, "must be an array of numbers"),
        (edited_matrix(1, 2, np.nan), "must be finite, but row 1 has NaN or infinity"),
        (edited_matrix(2, 0, np.inf), "must be finite, but row 2 has NaN or infinity"),
        (edited_matrix(0, 0, 0.5), "row 0 joins node 0.5, but nodes must be whole numbers"),
        (
            [[0, 1, 1, 2], [2.5, 3.5, 2, 2], [4, 5.5, 3, 4]],
            "row 1 joins node 2.5, but nodes must be whole numbers",
        ),
        (
            [[0, 1, 1, 2], [6, -2, 2, 2], [9, 5, 3, 4]],
            "row 1 joins node 6, but must join two of the nodes 0 to 4",
        ),
        ([[{}] * 4] * 3, "must be an array of numbers, as .* returns it, got list"),
        (edited_matrix(0, 0, -1), r"row 0 joins node -1, but must join two of the nodes 0 to 3"),
        (edited_matrix(0, 0, 4), "row 0 joins node 4, but must join two of the nodes 0 to 3"),
        (edited_matrix(1, 1, 6), "row 1 joins node 6, but must join two of the nodes 0 to 4"),
        (
            edited_matrix(2, 1, 1e300),
            r"row 2 joins node 1e\+300, but must join two of the nodes 0 to 5",
        ),
        (edited_matrix(1, 0, 0), "joins node 0 twice"),
        (edited_matrix(0, 1, 0), "joins node 0 twice"),
        (
            edited_matrix(1, 2, -1e-9),
            "row 1 has the height -1e-09, but heights must not be negative",
        ),
        (edited_matrix(2, 3, 3), "row 2 has the size 3, but joins nodes of 4 samples"),
        (edited_matrix(0, 3, 1e18), r"row 0 has the size 1e\+18, but joins nodes of 2 samples"),
    ],
)
def test_matrices_that_are_not_trees_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_linkage(matrix, n_samples=4)


def test_number_of_samples_is_derived_from_the_matrix():
    assert check_linkage(FOUR_SAMPLES).shape == (3, 4)
    for empty in ([], np.empty((0, 4)), [[0, 1, 1.0]], 5.0, None):
        with pytest.raises(ValueError, match="linkage_matrix must"):
            check_linkage(empty)


def test_heights_children_and_root_are_those_of_the_linkage_matrix():
    tree = Tree(linkage_matrix=np.array(FOUR_SAMPLES))
    assert tree.n_samples == 4
    assert tree.root == 6
    assert [tree.height(node) for node in range(7)] == [0, 0, 0, 0, 1, 2, 3]
    assert [tree.children(node) for node in (4, 5, 6)] == [(0, 1), (2, 3), (4, 5)]


def test_clusters_below_a_node_undo_its_last_merges():
    tree = Tree(linkage_matrix=np.array(FOUR_SAMPLES))
    assert [sorted(tree.cluster_nodes(k)) for k in (1, 2, 3, 4)] == [
        [6], [4, 5], [2, 3, 4], [0, 1, 2, 3]
    ]  # fmt: skip
    assert tree.cluster_nodes(1, below=4) == [4]
    assert sorted(tree.cluster_nodes(2, below=4)) == [0, 1]
    assert tree.labels([5, 1, 0]).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_labels_are_numbered_by_the_first_sample_of_each_cluster(k):
    X = np.random.default_rng(k).normal(size=(30, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "average")
    nodes = tree.cluster_nodes(k)
    labels = tree.labels(nodes[::-1])
    assert {tuple(np.flatnonzero(labels == label)) for label in range(k)} == {
        tuple(tree.members(node)) for node in nodes
    }
    first_samples = [np.flatnonzero(labels == label)[0] for label in range(k)]
    assert first_samples == sorted(first_samples)


def test_a_height_of_zero_is_accepted():
    np.testing.assert_array_equal(check_linkage(edited_matrix(0, 2, 0.0)), edited_matrix(0, 2, 0.0))


def test_messages_contain_the_name_of_the_matrix_and_its_shape():
    with pytest.raises(ValueError, match=r"^Z must have a row of four .* the shape \(0,\)\.$"):
        check_linkage([], name="Z")
    with pytest.raises(
        ValueError, match=r"^Z must have the shape \(1, 4\) for 2 samples, got \(1, 3\)"
    ):
        check_linkage([[0, 1, 1.0]], name="Z")


@pytest.mark.parametrize("k", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_numbered_from_the_left_of_the_dendrogram(k, seed):
    X = np.random.default_rng(seed).normal(size=(20, 3))
    tree = agglomerate(pairwise_distances(X, "sqeuclidean"), "average")
    labels = tree.cut(k)
    numbered = tree.number_by_leaves(labels)
    assert rand_score(labels, numbered) == 1
    drawn = numbered[hierarchy.dendrogram(tree.linkage_matrix, no_plot=True)["leaves"]]
    assert drawn[0] == 0
    assert set(np.diff(drawn)) <= {0, 1}
    assert drawn[-1] == k - 1
    np.testing.assert_array_equal(tree.number_by_leaves(numbered), numbered)


def test_any_labels_are_numbered_in_the_order_of_the_leaves():
    """The leaves, from left to right, are 1, 0 and 2."""
    tree = Tree(linkage_matrix=np.array([[0, 2, 1.0, 2], [1, 3, 4.0, 3]]))
    assert tree.leaf_order.tolist() == [1, 0, 2]
    assert tree.number_by_leaves(np.array([7, 3, -1])).tolist() == [1, 0, 2]
    assert tree.number_by_leaves(np.array([5, 2, 5])).tolist() == [1, 0, 1]


def test_several_cuts_are_those_of_each_number_of_clusters():
    X = np.random.default_rng(0).normal(size=(15, 3))
    for linkage in LINKAGES:
        tree = agglomerate(pairwise_distances(X, "sqeuclidean"), linkage)
        found = tree.cuts([1, 15, 4])
        np.testing.assert_array_equal(found, [tree.cut(1), tree.cut(15), tree.cut(4)])


@pytest.mark.parametrize("linkage", LINKAGES)
def test_distances_that_are_not_finite_are_refused(linkage):
    distances = pairwise_distances(np.random.default_rng(0).normal(size=(5, 2)), "sqeuclidean")
    distances[1, 3] = distances[3, 1] = np.inf
    with pytest.raises(ValueError, match="finite"):
        agglomerate(distances, linkage)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_condensed_distances_are_those_of_scipy(metric, n_jobs):
    X = np.random.default_rng(0).normal(size=(131, 3))
    with threads_for_parts(n_jobs):
        np.testing.assert_array_equal(condensed_distances(X, metric), pdist(X, metric))
