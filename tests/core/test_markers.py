"""Statistics of marker features, with trees that were built without them."""

import numpy as np
import pytest
from scipy import stats

from mrshc.core.data.matrix import ArrayMatrix
from mrshc.core.markers import Contrast, contrasts_of_clusters, marker_statistics
from mrshc.core.trees import Tree, linkage_matrix, pairwise_distances
from mrshc.datasets import make_simulation_1


def contrast(inside, outside):
    return Contrast("cluster", 0, np.asarray(inside), np.asarray(outside))


def contrasts_of(labels):
    """Each cluster against all others."""
    return [contrast(np.flatnonzero(labels == k), np.flatnonzero(labels != k)) for k in set(labels)]


def markers(X, features, contrasts, *, linkage="complete", metric="sqeuclidean", weights=None):
    options = {"linkage": linkage, "metric": metric, "weights": weights}
    return marker_statistics(ArrayMatrix(X), np.asarray(features), contrasts, **options)


def tree_of(X, features, linkage="complete"):
    return Tree(linkage_matrix(pairwise_distances(X[:, features], "sqeuclidean"), linkage))


def naive_p_values(X, inside, outside):
    """Without cross-fitting: ranks of every feature against the cluster itself."""
    ranks = stats.rankdata(X[np.concatenate([inside, outside])], axis=0)
    return stats.f_oneway(ranks[: len(inside)], ranks[len(inside) :]).pvalue


def test_contrasts_are_clusters_against_others_and_the_splits_above_them():
    tree = Tree(np.array([[0, 1, 1, 2], [3, 4, 2, 2], [2, 6, 3, 3], [5, 7, 4, 5.0]]))
    labels = np.array([0, 0, 1, 2, 2])
    found = contrasts_of_clusters(tree, labels, np.empty(0, int))
    assert [(c.kind, c.node) for c in found] == [
        ("cluster", 5), ("cluster", 2), ("cluster", 6), ("split", 8), ("split", 7)
    ]  # fmt: skip
    assert [c.inside.tolist() for c in found] == [[0, 1], [2], [3, 4], [0, 1], [2]]
    assert [c.outside.tolist() for c in found] == [
        [2, 3, 4], [0, 1, 3, 4], [0, 1, 2], [2, 3, 4], [3, 4]
    ]  # fmt: skip
    assert contrasts_of_clusters(tree, np.zeros(5, int), np.empty(0, int)) == []


def test_a_feature_of_the_tree_is_tested_against_the_branch_that_trees_without_it_have():
    X = make_simulation_1(1, mu=1.5).X[:, 40:60]
    features = np.arange(8)  # one in each fold
    contrasts = contrasts_of(tree_of(X, features).cut(3))
    found = markers(X, features, contrasts)
    for j in features:
        tree = tree_of(X, np.delete(features, j))
        branches = [tree.members(node) for node in range(tree.root + 1)]
        for c, mark in zip(contrasts, found, strict=True):
            inside = set(c.inside.tolist())
            shares = [len(inside & set(b)) / len(inside | set(b)) for b in branches]
            best = branches[int(np.argmax(shares))]
            rest = np.setdiff1d(np.arange(60), best)
            expected = naive_p_values(X[:, [j]], best, rest)[0] if rest.size else 1.0
            expected = expected if max(shares) >= 0.5 else 1.0
            assert mark.p_values[j] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("partial_group", ["inside", "outside"])
@pytest.mark.parametrize(
    ("n_common", "n_others", "is_replaced"),
    [(5, 3, False), (5, 2, True), (6, 3, True)],
    ids=["5/11", "5/10", "6/11"],
)
def test_a_group_is_replaced_by_a_branch_with_a_jaccard_index_of_at_least_one_half(
    n_common, n_others, is_replaced, partial_group
):
    """Feature 0 is tested with the tree of feature 1, which has three distant branches."""
    branch = np.array([0.0, 10, 1, 12, 3, 14, 4, 15])
    feature_1 = np.concatenate([branch, branch + 3000, branch + 4000])
    X = np.column_stack([np.random.default_rng(4).normal(size=24), feature_1])
    partial = np.concatenate([np.arange(n_common), np.arange(8, 8 + n_others)])
    if partial_group == "inside":  # compared with all other samples
        given = contrast(partial, np.setdiff1d(np.arange(24), partial))
        expected = naive_p_values(X[:, :1], np.arange(8), np.arange(8, 24))[0]
    else:  # compared with a branch
        given = contrast(np.arange(16, 24), partial)
        expected = naive_p_values(X[:, :1], np.arange(16, 24), np.arange(8))[0]
    found = markers(X, [0, 1], [given])[0]
    assert found.p_values[0] == pytest.approx(expected if is_replaced else 1.0, rel=1e-8)


def test_means_and_effect_sizes_are_those_of_the_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6)) + 100.0
    X[rng.random(X.shape) < 0.2] = np.nan
    labels = np.repeat([0, 1], [8, 12])
    found = markers(X, [0, 1], contrasts_of(labels))
    for j, x in enumerate(X.T):
        inside, outside = (x[(labels == k) & ~np.isnan(x)] for k in (0, 1))
        squares = inside.var() * inside.size + outside.var() * outside.size
        pooled = np.sqrt(squares / (inside.size + outside.size - 2))
        effect = (inside.mean() - outside.mean()) / pooled
        assert found[0].mean_inside[j] == pytest.approx(inside.mean())
        assert found[0].mean_outside[j] == pytest.approx(outside.mean())
        assert found[0].effect_size[j] == pytest.approx(effect)
        assert found[1].effect_size[j] == pytest.approx(-effect)


def test_constant_and_unobserved_features_are_no_markers():
    X = np.random.default_rng(1).normal(size=(12, 6))
    labels = np.repeat([0, 1], 6)
    X[:, 0] = 3.0
    X[:6, 1] = np.nan  # nothing inside
    X[:, 2] = labels  # constant within
    X[:, 5] = [1.0, 2, *[np.nan] * 4, 7, *[np.nan] * 5]  # two inside, one outside
    found = markers(X, [3, 4], contrasts_of(labels))[0]
    assert found.p_values[0] == found.p_values[1] == 1.0
    assert np.isnan(found.effect_size[:3]).all()
    assert (found.mean_inside[0], np.isnan(found.mean_inside[1])) == (3.0, True)
    assert np.isfinite(found.mean_outside[1])
    assert (found.mean_inside[2], found.mean_outside[2]) == (0.0, 1.0)
    assert found.effect_size[5] == pytest.approx(-5.5 / np.sqrt(0.5))


@pytest.mark.parametrize(("size", "is_tested"), [(3, False), (4, True)])
def test_trees_of_correlations_have_at_least_three_features(size, is_tested):
    data = make_simulation_1(1, mu=3.0)
    tree = Tree(linkage_matrix(pairwise_distances(data.X[:, :50], "correlation"), "average"))
    contrasts = contrasts_of(tree.cut(2))
    found = markers(
        data.X[:, :80], np.arange(size), contrasts, linkage="average", metric="correlation"
    )
    p_values = np.array([mark.p_values for mark in found])
    assert np.any(p_values[:, :size] < 1) == is_tested
    assert np.any(p_values[:, size:] < 1)
