"""Trees of clusters, and their layout."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, fcluster, linkage

from mrshc.anndata_tools.scanpy_dendrogram import cluster_linkage, scanpy_dendrogram


def test_the_tree_of_clusters_is_the_upper_part_of_the_tree():
    X = np.random.default_rng(0).normal(size=(30, 4))
    tree = linkage(X, "average")
    for k in range(2, 8):
        labels = fcluster(tree, k, "maxclust") - 1
        upper = cluster_linkage(tree, labels)
        assert upper.shape == (k - 1, 4)
        np.testing.assert_array_equal(upper[:, 2], tree[-(k - 1) :, 2])
        assert upper[-1, 3] == k
        # The clusters below the first merge of the new tree are those of the old node.
        first = set(upper[0, :2].astype(int))
        merged = fcluster(tree, k - 1, "maxclust")
        (together,) = [
            set(labels[merged == c]) for c in set(merged) if len(set(labels[merged == c])) > 1
        ]
        assert first == together
        assert len(dendrogram(upper, no_plot=True)["leaves"]) == k


def test_samples_that_are_joined_later_do_not_change_the_tree_of_clusters():
    # Samples 0 and 1 are one cluster, 2 and 3 another; sample 4 of the first is joined at the end.
    tree = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [5, 6, 5.0, 4], [4, 7, 9.0, 5]])
    upper = cluster_linkage(tree, np.array([0, 0, 1, 1, 0]))
    np.testing.assert_array_equal(upper, [[0, 1, 5.0, 2]])


def test_clusters_that_are_not_branches_are_refused():
    tree = linkage(np.arange(6.0)[:, None] ** 2, "average")
    with pytest.raises(ValueError, match="3 clusters of 6 samples are not branches"):
        cluster_linkage(tree, np.array([0, 1, 2, 0, 1, 2]))


def test_correlations_are_those_of_the_profiles():
    profiles = np.random.default_rng(1).normal(size=(4, 6))
    profiles[3] = 2.0
    tree = linkage(profiles, "average")
    stored = scanpy_dendrogram(
        tree, profiles, groupby="cell", names=["a", "b", "c", "d"], linkage="average"
    )
    expected = np.corrcoef(profiles[:3])
    np.testing.assert_allclose(stored["correlation_matrix"][:3, :3], expected)
    np.testing.assert_array_equal(stored["correlation_matrix"][3], [0, 0, 0, 1])
    leaves = stored["categories_idx_ordered"]
    assert stored["categories_ordered"] == ["abcd"[i] for i in leaves]
    assert stored["groupby"] == ["cell"]
