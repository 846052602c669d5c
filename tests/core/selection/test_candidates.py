import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_score

from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.selection.candidates import (
    Candidate,
    Evaluation,
    candidate_table,
    evaluate_cuts,
    evaluate_pruned,
)
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import cut_tree, prune
from mrshc.core.trees.tree import agglomerate, pairwise_distances


def three_clusters():
    rng = np.random.default_rng(0)
    return rng.normal(size=(24, 4)) + 20.0 * np.repeat([0, 1, 3], 8)[:, None]


def plain_silhouettes(X, n_leaves, *, linkage, metric):
    """Average silhouettes of the cuts of scipy's tree into 1, ..., n_leaves clusters."""
    distances = pdist(X, metric)
    tree = scipy_linkage(distances, linkage)
    cuts = (fcluster(tree, k, "maxclust") for k in range(2, n_leaves + 1))
    square = squareform(distances)
    return [0.0, *(silhouette_score(square, cut, metric="precomputed") for cut in cuts)]


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("linkage", ["complete", "single"])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_cuts_have_the_silhouettes_of_scipy_and_sklearn(k, linkage, metric):
    X = three_clusters()
    evaluation = evaluate_cuts(X, settings=GapSettings(linkage=linkage, metric=metric), k=k)
    assert evaluation.pruned.n_leaves == k
    assert evaluation.pruned.tests == {}
    assert evaluation.scores == {}
    expected = plain_silhouettes(X, k, linkage=linkage, metric=metric)
    np.testing.assert_allclose(evaluation.silhouettes, expected)


@pytest.mark.parametrize(("max_leaves", "n_leaves"), [(None, 3), (7, 3), (3, 3), (2, 2), (1, 1)])
def test_a_pruned_tree_has_the_supported_clusters_up_to_the_limit(max_leaves, n_leaves):
    X = three_clusters()
    evaluation = evaluate_pruned(X, settings=GapSettings(), entropy=3, max_leaves=max_leaves)
    assert evaluation.pruned.n_leaves == n_leaves
    expected = plain_silhouettes(X, n_leaves, linkage="complete", metric="sqeuclidean")
    np.testing.assert_allclose(evaluation.silhouettes, expected)


def test_trees_of_incomplete_data_are_built_from_the_distances_of_the_completed_samples():
    X = three_clusters()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    settings = GapSettings(linkage="average")
    completed = complete_missing_cells(X)
    distances = completed.distances("sqeuclidean")
    tree = agglomerate(distances, "average")
    expected = prune(tree, completed.values, distances=distances, settings=settings, entropy=5)
    pruned = evaluate_pruned(X, settings=settings, entropy=5, max_leaves=None).pruned
    assert pruned.splits == expected.splits
    assert pruned.tests.keys() == expected.tests.keys()
    for node, curve in pruned.tests.items():
        np.testing.assert_array_equal(curve.gap, expected.tests[node].gap)
    for found in (pruned, evaluate_cuts(X, settings=settings, k=4).pruned):
        np.testing.assert_array_equal(found.tree.linkage_matrix, tree.linkage_matrix)


def test_the_table_has_one_row_for_each_candidate_and_one_column_for_each_score():
    X = three_clusters()
    pruned = cut_tree(agglomerate(pairwise_distances(X, "sqeuclidean"), "complete"), 3)
    first = Candidate(
        target=2,
        features=FeatureSet(indices=np.array([0, 3]), l1_bound=1.25, rank=1, reached=True),
        pruned=pruned,
        n_leaves=3,
        silhouette=0.5,
        scores={"one": 1.0, "two": 2.0},
        best_rank=True,
        chosen=True,
    )
    second = Candidate(
        target=4,
        features=FeatureSet(indices=np.array([0, 1, 2]), l1_bound=1.5, rank=2, reached=False),
        pruned=pruned,
        n_leaves=2,
        silhouette=0.25,
        scores={"one": 3.0, "two": 4.0},
        screened_out=True,
        removed=True,
    )
    table = candidate_table([first, second])
    assert {name: values.tolist() for name, values in table.items()} == {
        "n_features_target": [2, 4],
        "n_features": [2, 3],
        "reached": [True, False],
        "rank": [1, 2],
        "l1_bound": [1.25, 1.5],
        "n_leaves": [3, 2],
        "silhouette": [0.5, 0.25],
        "one": [1.0, 3.0],
        "two": [2.0, 4.0],
        "screened_out": [False, True],
        "best_rank": [True, False],
        "removed": [False, True],
        "chosen": [True, False],
    }
    assert list(table)[6:10] == ["silhouette", "one", "two", "screened_out"]


def test_a_candidate_has_no_marks_and_no_further_scores_by_default():
    X = three_clusters()
    pruned = cut_tree(agglomerate(pairwise_distances(X, "sqeuclidean"), "complete"), 2)
    features = FeatureSet(indices=np.arange(4), l1_bound=1.5, rank=1, reached=True)
    candidate = Candidate(target=4, features=features, pruned=pruned, n_leaves=2, silhouette=0.5)
    table = candidate_table([candidate])
    marks = ("screened_out", "best_rank", "removed", "chosen")
    assert [table[mark].tolist() for mark in marks] == [[False]] * 4
    assert candidate.scores == {}
    assert Evaluation(pruned=pruned, silhouettes=np.zeros(2)).scores == {}
