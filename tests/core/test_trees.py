"""Distances, trees, cuts and silhouettes agree with scipy, scikit-learn and R."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import cdist, squareform

import reference
from mrshc.core.kernels import CHAIN_METHODS, split_dispersions
from mrshc.core.linkages import EUCLIDEAN_LINKAGES, LINKAGES, METRICS
from mrshc.core.trees import (
    Tree,
    average_silhouettes,
    check_linkage,
    correlation_distances,
    cut_tree,
    linkage_matrix,
    pairwise_distances,
    silhouette_widths,
    standardise_rows,
)

HCLUST = reference.runs("hclust")
FOUR = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 3.0, 4]])


def samples(n, q=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, q))


def tree_of(X, linkage="average", metric="sqeuclidean"):
    return Tree(linkage_matrix(pairwise_distances(X, metric), linkage))


def in_scipy(distances, linkage):
    roots = np.sqrt(distances) if linkage in EUCLIDEAN_LINKAGES else distances
    return hierarchy.linkage(squareform(roots, checks=False), linkage)


# Distances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "q"), [(3, 3), (20, 5), (5, 400)])
def test_distances_are_those_of_scipy(metric, n, q):
    X = samples(n, q)
    found = pairwise_distances(X, metric)
    np.testing.assert_allclose(found, cdist(X, X, metric), atol=1e-14)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 0.0)


def test_a_sample_is_constant_up_to_four_units_in_the_last_place():
    eps = np.finfo(float).eps
    rows = [[1.0, 1.0, 1 + 4 * eps, 1.0], [1.0, 1.0, 1 + 8 * eps, 1.0], [1.0, 2.0, 3.0, 4.0]]
    values, units, is_constant = standardise_rows(np.array(rows))
    assert is_constant.tolist() == [True, False, False]
    np.testing.assert_array_equal(values[0], 0.0)
    assert (units[0], units[2]) == (1.0, 1.5)
    np.testing.assert_allclose(values[2], np.array([-1.5, -0.5, 0.5, 1.5]) / 1.5)
    assert standardise_rows(samples(5, 2))[2].all(), "two features have no correlations"
    assert not standardise_rows(samples(5, 3))[2].any()
    np.testing.assert_array_equal(correlation_distances(samples(5, 2)), 1 - np.eye(5))


# Trees --------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", HCLUST, ids=lambda r: r["input"] + r["method"])
def test_heights_and_cuts_are_those_of_hclust(run):
    tree, convert = reference.tree_as_in_r(run)
    heights = convert(tree.linkage_matrix[:, 2])
    np.testing.assert_allclose(heights, run["height"], rtol=1e-9)
    for k in range(2, 7):
        np.testing.assert_array_equal(tree.cut(k) + 1, run["cutree"][f"k{k}"])


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("metric", ["sqeuclidean", "correlation"])
@pytest.mark.parametrize("n", [2, 3, 30, 200])  # rows move together from 64 samples on
def test_linkage_matrix_is_that_of_scipy(linkage, metric, n):
    distances = pairwise_distances(samples(n, 5), metric)
    found = linkage_matrix(distances, linkage)
    np.testing.assert_allclose(found, in_scipy(distances, linkage), rtol=1e-9)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [40, 150])
def test_of_equal_distances_the_one_that_scipy_takes_is_merged(linkage, seed, n):
    X = np.random.default_rng(seed).integers(0, 4, size=(n, 3)).astype(float)
    for metric in ("sqeuclidean", "cityblock"):
        distances = pairwise_distances(X, metric)
        found = linkage_matrix(distances, linkage)
        np.testing.assert_array_equal(found, in_scipy(distances, linkage))


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_distances_that_are_not_finite_are_refused(linkage, value):
    distances = pairwise_distances(samples(5, 2), "sqeuclidean")
    distances[1, 3] = distances[3, 1] = value
    with pytest.raises(ValueError, match="finite"):
        linkage_matrix(distances, linkage)


@pytest.mark.parametrize("linkage", CHAIN_METHODS)
@pytest.mark.parametrize("n", [2, 3, 4, 17, 100])
def test_dispersions_of_the_first_split_are_those_of_its_tree(linkage, n):
    X = samples(n, 3, seed=n)
    for metric, roots in (("sqeuclidean", np.sqrt), ("cityblock", np.array)):
        if linkage == "ward" and metric == "cityblock":
            continue
        distances = pairwise_distances(X, metric)
        halves = tree_of(X, linkage, metric).cut(2)
        total = roots(distances).sum() / 2 / (2 * n)
        parts = [roots(distances)[np.ix_(halves == k, halves == k)] for k in (0, 1)]
        within = sum(part.sum() / 2 / (2 * len(part)) for part in parts)
        found = split_dispersions(distances, CHAIN_METHODS[linkage], metric == "sqeuclidean")
        np.testing.assert_allclose(found, (total, within), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_labels_are_those_of_scipy_numbered_by_their_first_samples(k):
    tree = tree_of(samples(30, 3, k))
    labels = tree.cut(k)
    in_scipy = hierarchy.fcluster(tree.linkage_matrix, k, "maxclust")
    assert len(set(zip(labels, in_scipy, strict=True))) == k == len(set(in_scipy))
    assert list(dict.fromkeys(labels.tolist())) == list(range(k))
    np.testing.assert_array_equal(tree.labels(tree.cluster_nodes(k)[::-1]), labels)
    np.testing.assert_array_equal(cut_tree(tree.linkage_matrix, [1, k])[1], labels)


def test_members_are_contiguous_in_the_order_of_the_drawn_leaves():
    tree = tree_of(samples(15, 3, 2))
    drawn = hierarchy.dendrogram(tree.linkage_matrix, no_plot=True)["leaves"]
    assert tree.leaf_order.tolist() == drawn
    order, starts, ends = tree.leaf_spans
    _, nodes = hierarchy.to_tree(tree.linkage_matrix, rd=True)
    for node, expected in enumerate(nodes):
        assert tree.members(node).tolist() == sorted(expected.pre_order())
        assert order[starts[node] : ends[node]].tolist() == expected.pre_order()


def test_labels_are_renumbered_in_the_order_of_the_leaves():
    """The leaves, from left to right, are 1, 0 and 2."""
    tree = Tree(np.array([[0, 2, 1.0, 2], [1, 3, 4.0, 3]]))
    assert tree.leaf_order.tolist() == [1, 0, 2]
    assert tree.number_by_leaves(np.array([7, 3, -1])).tolist() == [1, 0, 2]
    assert tree.number_by_leaves(np.array([5, 2, 5])).tolist() == [1, 0, 1]


def test_most_similar_branch_has_the_largest_jaccard_index():
    tree, rng = tree_of(samples(20, 3, 3)), np.random.default_rng(4)
    for _ in range(30):
        wanted = set(rng.choice(20, size=rng.integers(1, 20), replace=False).tolist())
        shares = [
            len(wanted & set(tree.members(node))) / len(wanted | set(tree.members(node)))
            for node in range(tree.root + 1)
        ]
        best, most = tree.members(int(np.argmax(shares))), max(shares)
        given = np.array(sorted(wanted))
        np.testing.assert_array_equal(tree.most_similar_branch(given, at_least=most), best)
        assert tree.most_similar_branch(given, at_least=np.nextafter(most, 2)).size == 0


# Silhouettes --------------------------------------------------------------------------------


def test_average_silhouettes_are_those_of_r():
    trees = {(run["input"], run["method"]): reference.tree_as_in_r(run)[0] for run in HCLUST}
    for row in reference.table("silhouette").itertuples():
        squared = pairwise_distances(reference.matrix(f"input_{row.input}"), "sqeuclidean")
        labels = [trees[row.input, row.method].cut(row.k)]
        assert average_silhouettes(squared, labels)[0] == pytest.approx(row.sil_sq, abs=1e-10)
        found = average_silhouettes(np.sqrt(squared), labels)[0]
        assert found == pytest.approx(row.sil_eu, abs=1e-10)


def test_widths_are_those_of_r_and_zero_for_singletons():
    points = reference.table("silhouette_points_A")
    squared = pairwise_distances(reference.matrix("input_A"), "sqeuclidean")
    for labels, widths, distances in (
        ("label_k6", "sil_sq", squared),
        ("label_k6", "sil_eu", np.sqrt(squared)),
        ("label_singleton", "sil_singleton", np.sqrt(squared)),
    ):
        found = silhouette_widths(distances, points[labels].to_numpy() - 1)
        np.testing.assert_allclose(found, points[widths], atol=1e-10)


def test_one_cluster_and_coinciding_clusters_have_width_zero():
    distances = np.zeros((4, 4))
    for labels in ([0, 0, 0, 0], [0, 0, 1, 1]):
        np.testing.assert_array_equal(silhouette_widths(distances, np.array(labels)), 0)
    far = pairwise_distances(samples(4), "sqeuclidean")
    np.testing.assert_array_equal(silhouette_widths(far, np.zeros(4, int)), 0)


# Given matrices -----------------------------------------------------------------------------


def edited(row, column, value):
    Z = FOUR.copy()
    Z[row, column] = value
    return Z


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (FOUR[:2], r"with 3 rows for 4 samples, got the shape \(2, 4\)"),
        (FOUR[:, :3], "a row of four numbers"),
        ([], r"with 3 rows for 4 samples, got the shape \(0,\)"),
        ([["a"] * 4] * 3, "a row of four numbers"),
        (None, "a row of four numbers"),
        (edited(1, 2, np.nan), "must be finite and have heights of at least 0"),
        (edited(2, 0, np.inf), "must be finite"),
        (edited(1, 2, -1e-9), "heights of at least 0"),
        (edited(0, 0, 0.5), "row 0 joins node 0.5, but must join two of the nodes 0 to 3"),
        (edited(0, 0, -1), "row 0 joins node -1, but must join two of the nodes 0 to 3"),
        (edited(0, 1, 4), "row 0 joins node 4, but must join two of the nodes 0 to 3"),
        (edited(1, 1, 6), "row 1 joins node 6, but must join two of the nodes 0 to 4"),
        (edited(1, 0, 0), "must join every node once, with the number of samples"),
        (edited(0, 1, 0), "must join every node once"),
        (edited(2, 3, 3), "with the number of samples in its last column"),
        (edited(0, 3, 3), "with the number of samples in its last column"),
    ],
)
def test_matrices_that_are_not_trees_are_refused(matrix, message):
    with pytest.raises(ValueError, match=f"^Z .*{message}|^Z: .*{message}"):
        check_linkage(matrix, n_samples=4, name="Z")
