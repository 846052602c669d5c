"""The procedure of the paper: attributes, parameters, warnings, and its claims."""

import warnings

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist

from mrshc.core.linkages import LINKAGES
from mrshc.core.trees import average_silhouettes, pairwise_distances
from mrshc.datasets import make_section2_example, make_simulation_1, make_simulation_2
from mrshc.estimators import HighVarianceHC, MrSHC, UnsupportedClustersWarning, sparse_components
from mrshc.metrics import classification_error_rate, feature_recall

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others
unsupported = pytest.mark.filterwarnings("ignore::mrshc.estimators.UnsupportedClustersWarning")


def quick(n_features_to_select=10, **options):
    """A search small enough for a test."""
    return MrSHC(
        n_features_to_select, **{"max_rank": 2, "n_references": 10, "random_state": 0} | options
    )


def test_fitted_attributes_agree_with_each_other():
    model = quick([5, 10, 15]).fit(SMALL)
    n, results, tests = len(SMALL), model.search_results_, model.split_tests_
    assert model.linkage_matrix_.shape == (n - 1, 4)
    np.testing.assert_array_equal(model.children_, model.linkage_matrix_[:, :2])
    np.testing.assert_array_equal(model.distances_, model.linkage_matrix_[:, 2])
    assert (model.n_leaves_, model.n_features_in_) == (n, 30)
    assert model.components_.shape == (model.rank_, 30)
    np.testing.assert_array_equal(model.get_support(), np.any(model.components_ != 0, axis=0))
    assert len(np.unique(model.labels_)) == model.n_clusters_
    assert list(results) == [
        *("n_features_target", "n_features", "reached", "rank", "l1_bound", "n_leaves"),
        *("silhouette", "screened_out", "best_rank", "removed", "chosen"),
    ]
    assert results["n_features_target"].tolist() == [5, 5, 10, 10, 15, 15]
    assert results["rank"].tolist() == [1, 2] * 3
    np.testing.assert_array_equal(
        results["reached"], results["n_features"] == results["n_features_target"]
    )
    (chosen,) = np.flatnonzero(results["chosen"])
    assert results["rank"][chosen] == model.rank_
    assert results["n_features"][chosen] == model.n_features_selected_
    components = sparse_components(
        SMALL, l1_bound=results["l1_bound"][chosen], n_components=model.rank_, center=True
    )
    np.testing.assert_allclose(model.components_, components.loadings, atol=1e-9)
    distances = pairwise_distances(SMALL[:, model.get_support()], "sqeuclidean")
    expected = average_silhouettes(distances, [model.labels_])[0]
    assert results["silhouette"][chosen] == pytest.approx(expected)
    assert (tests["node"][0], tests["n_samples"][0]) == (2 * n - 2, n)
    assert tests["height"][0] == model.distances_[-1]
    assert tests["split"].sum() == model.n_clusters_ - 1
    excess = tests["drop"] - tests["expected_drop"]
    np.testing.assert_array_equal(tests["supported"], excess > tests["standard_error"])
    assert not np.any(tests["split"] & ~tests["supported"])
    for mean, drops in zip(tests["expected_drop"], tests["reference_drops"], strict=True):
        assert mean == pytest.approx(np.mean(drops))
        assert drops.size == 10


@unsupported
@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("estimator", [quick, HighVarianceHC])
def test_no_sparsity_gives_classical_hierarchical_clustering(linkage, estimator):
    euclidean = linkage in ("ward", "centroid", "median")
    expected = scipy_linkage(pdist(SMALL, "euclidean" if euclidean else "sqeuclidean"), linkage)
    model = estimator(30, linkage=linkage).fit(SMALL)
    assert model.get_support().all()
    np.testing.assert_allclose(model.linkage_matrix_, expected)
    if not euclidean:
        expected = scipy_linkage(pdist(SMALL, "cityblock"), linkage)
        model = estimator(30, linkage=linkage, metric="cityblock").fit(SMALL)
        np.testing.assert_allclose(model.linkage_matrix_, expected)


@unsupported
@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (2, [2]),
        (5, [2, 3]),
        (6, [2, 3]),
        (15, [2, 3, 4, 5, 6, 7, 8]),
        (99, [2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 40]),
        (100, [10, 20, 40, 60, 80]),
        (150, [10, 20, 40, 60, 80, 100, 120, 140]),
        (500, [10, 20, *range(40, 201, 20), *range(250, 451, 50)]),
    ],
)
def test_default_candidates_follow_the_number_of_varying_features(p, expected):
    X = np.hstack([EASY.X[:20, :p], np.ones((20, 3))])
    model = MrSHC(rank=1, n_references=2, n_clusters=2, random_state=0).fit(X)
    assert model.search_results_["n_features_target"].tolist() == expected
    if p > 2:
        model.set_params(metric="correlation").fit(X)
        candidates = [q for q in expected if q >= 3] or [3]
        assert model.search_results_["n_features_target"].tolist() == candidates


# Warnings -----------------------------------------------------------------------------------


def warning_of(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    found = [w for w in caught if w.category is UnsupportedClustersWarning]
    assert len(found) <= 1
    if found:
        assert found[0].filename == __file__
    return found[0].message if found else None


def test_a_given_number_of_clusters_is_obtained_and_the_supported_number_is_told():
    X = np.random.default_rng(0).random((20, 10))
    model = quick(3, n_clusters=8)
    warning = warning_of(model, X)
    assert warning.finding in (
        "The gap statistic finds a single cluster, not the 8 clusters asked for.",
        f"The gap statistic finds only {model.split_tests_['supported'].sum() + 1} clusters, not "
        "the 8 clusters asked for.",
    )
    assert warning.advice == "labels_ has all 8."
    assert model.n_clusters_ == len(np.unique(model.labels_)) == 8
    assert model.search_results_["screened_out"].all()
    assert model.search_results_["n_leaves"].max() < 8
    warning = warning_of(quick(10, n_clusters=5), SMALL)
    assert (
        warning.finding == "The gap statistic finds only 3 clusters, not the 5 clusters asked for."
    )


# The claims of the paper --------------------------------------------------------------------


@unsupported
def test_only_rank_two_finds_the_four_features_of_section_2():
    data = make_section2_example(1)
    found = [
        np.array_equal(MrSHC(4, rank=rank, random_state=0).fit(data.X).get_support(), data.support)
        for rank in (1, 2, 3)
    ]
    assert found == [False, True, False]


@unsupported
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "k", "largest_error", "smallest_recall"),
    [(make_simulation_1, 3, 0.012, 0.99), (make_simulation_2, 4, 0.06, 0.965)],
)
def test_clusters_and_features_of_the_simulations_are_found(
    make, k, largest_error, smallest_recall
):
    errors, recalls = [], []
    for seed in range(20):
        data = make(seed)
        model = MrSHC(50, random_state=seed, n_clusters=k, n_references=15).fit(data.X)
        errors.append(classification_error_rate(data.labels, model.cut(k)))
        recalls.append(feature_recall(data.support, model.get_support()))
    assert np.mean(errors) <= largest_error
    assert np.mean(recalls) >= smallest_recall
