"""The metric 1 - correlation: distances, trees and clusters of the estimators that have it."""

import joblib
import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform
from sklearn.base import clone

from mrshc import SHC, HighVarianceHC, MrSHC, refine_features
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.robust.outliers import winsorise
from mrshc.core.trees.tree import EUCLIDEAN_LINKAGES, LINKAGES
from mrshc.errors import ParameterError

# Much of what is fitted here has no clusters, or only ten reference samples to see them by.
pytestmark = pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")


def profile_data(seed=0, *, n=10, n_noise=60):
    """Return three clusters of n samples with the same profile over 24 features, and noise.

    The features have different means. The scale of the profile varies between samples.
    """
    rng = np.random.default_rng(seed)
    profiles = np.repeat(3 * np.eye(3), 8, axis=1)
    signal = np.repeat(profiles, n, axis=0) * rng.uniform(0.7, 2.0, size=(3 * n, 1))
    X = np.hstack([signal, np.zeros((3 * n, n_noise))])
    X += rng.normal(size=X.shape) + rng.normal(scale=0.5, size=X.shape[1])
    return X, np.repeat(np.arange(3), n)


X, LABELS = profile_data()


def quick(n_features_to_select=20, **options):
    """A search small enough for a test."""
    options = {"max_rank": 2, "n_references": 10, "random_state": 0, **options}
    return MrSHC(n_features_to_select, metric="correlation", **options)


def high_variance(n_features_to_select=20, **options):
    return HighVarianceHC(n_features_to_select, metric="correlation", **options)


def tree_of(distances, linkage):
    """Return scipy's tree; the linkages that need Euclidean distances get square roots."""
    condensed = np.maximum(squareform(distances, checks=False), 0.0)
    return scipy_linkage(
        np.sqrt(condensed) if linkage in EUCLIDEAN_LINKAGES else condensed, linkage
    )


# Distances and trees ------------------------------------------------------------------------


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("make", [quick, high_variance])
def test_distances_and_trees_are_those_of_the_correlations_of_numpy(make, linkage):
    model = make(linkage=linkage).fit(X)
    expected = 1 - np.corrcoef(X[:, model.get_support()])
    np.testing.assert_allclose(model.sample_distances(X), expected, atol=1e-14)
    np.testing.assert_allclose(model.linkage_matrix_, tree_of(expected, linkage), atol=1e-7)


@pytest.mark.parametrize("center", [True, "grand", False])
def test_correlations_are_those_of_the_data_as_given_whatever_the_centring(center):
    shifted = X + np.linspace(-5, 5, X.shape[1])
    model = quick(center=center).fit(shifted)
    selected = shifted[:, model.get_support()]
    np.testing.assert_allclose(
        model.sample_distances(shifted), 1 - np.corrcoef(selected), atol=1e-13
    )
    centred = 1 - np.corrcoef(selected - selected.mean(axis=0))
    assert np.abs(model.sample_distances(shifted) - centred).max() > 0.1


def test_distances_and_trees_do_not_depend_on_the_storage(backend):
    model = quick([10, 20]).fit(backend(X))
    near = backend.in_memory(X)
    expected = 1 - np.corrcoef(near[:, model.get_support()])
    np.testing.assert_allclose(model.sample_distances(backend(X)), expected, atol=1e-13)
    alone = quick([10, 20]).fit(near)
    np.testing.assert_array_equal(model.get_support(), alone.get_support())
    np.testing.assert_array_equal(model.linkage_matrix_, alone.linkage_matrix_)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    for name, column in alone.split_tests_.items():
        if name != "reference_drops":
            np.testing.assert_array_equal(model.split_tests_[name], column, err_msg=name)


@pytest.mark.parametrize("workers", ["two", "loky"])
def test_workers_do_not_matter(workers):
    model = quick([5, 10, 20], max_rank=3, refine=True)
    alone = clone(model).set_params(n_jobs=1).fit(X)
    if workers == "two":
        other = clone(model).set_params(n_jobs=2).fit(X)
    else:
        with joblib.parallel_config(backend="loky", n_jobs=2):
            other = clone(model).fit(X)
    np.testing.assert_array_equal(alone.linkage_matrix_, other.linkage_matrix_)
    np.testing.assert_array_equal(alone.feature_qvalues_, other.feature_qvalues_)
    for name, column in alone.search_results_.items():
        np.testing.assert_array_equal(column, other.search_results_[name], err_msg=name)


def test_order_of_the_features_does_not_matter():
    order = np.random.default_rng(1).permutation(X.shape[1])
    model, other = quick([10, 20]).fit(X), quick([10, 20]).fit(X[:, order])
    np.testing.assert_array_equal(model.get_support()[order], other.get_support())
    np.testing.assert_allclose(model.linkage_matrix_, other.linkage_matrix_, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_array_equal(model.split_tests_["split"], other.split_tests_["split"])


# Clusters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("linkage", ["complete", "average", "ward"])
def test_samples_with_the_same_profile_are_clusters(linkage):
    model = quick(24, linkage=linkage, n_references=50).fit(X)
    np.testing.assert_array_equal(model.labels_, LABELS)
    assert model.split_tests_["split"].sum() == 2
    assert np.isfinite(model.split_tests_["drop"]).all()


def test_silhouettes_of_the_search_are_those_of_the_distances():
    from sklearn.metrics import silhouette_score

    model = quick(n_clusters=3, n_references=50).fit(X)
    assert model.n_clusters_ == 3
    chosen = np.flatnonzero(model.search_results_["chosen"])
    expected = silhouette_score(model.sample_distances(X), model.labels_, metric="precomputed")
    assert model.search_results_["silhouette"][chosen] == pytest.approx(expected)


def test_evidence_and_refinement_find_the_clusters():
    model = quick([5, 10, 20], selection="evidence", refine=True).fit(X)
    assert model.supported_
    np.testing.assert_array_equal(model.cut(3), LABELS)
    expected = 1 - np.corrcoef(X[:, model.get_support()])
    np.testing.assert_allclose(model.sample_distances(X), expected, atol=1e-14)


def test_refined_features_are_those_of_the_profiles():
    start = [0, 1, 8, 9, 16, 17]  # features of one profile alone do not differ within a sample
    found = refine_features(X, start, metric="correlation", linkage="ward")
    assert found.supported
    assert set(range(24)) <= set(found.associated.tolist())
    assert found.associated.size < 30


def test_markers_are_the_features_of_the_profiles():
    model = quick(24, n_clusters=3).fit(X)
    markers = model.markers(X, k=3)
    clusters = markers[markers["contrast"] == "cluster"]
    for label, rows in clusters.groupby("inside"):
        own = rows["feature"][rows["effect_size"] > 0]
        assert set(own) & set(range(24)) <= set(range(8 * int(label), 8 * int(label) + 8))
        assert len(own) >= 6


def test_a_checkpoint_of_another_metric_is_refused(tmp_path):
    path = tmp_path / "steps"
    model = quick(10, checkpoint=path).fit(X)
    again = quick(10, checkpoint=path).fit(X)
    np.testing.assert_array_equal(model.linkage_matrix_, again.linkage_matrix_)
    with pytest.raises(ValueError, match="holds the steps of a search with other data"):
        quick(10, checkpoint=path).set_params(metric="sqeuclidean").fit(X)


# Outliers, missing values and constant samples ----------------------------------------------


@pytest.mark.parametrize("linkage", LINKAGES)
def test_outlying_samples_are_found_and_attached(linkage):
    spoilt = X.copy()
    spoilt[4] = 10 * np.random.default_rng(2).normal(size=X.shape[1])
    model = quick(24, robust=True, linkage=linkage, n_clusters=3).fit(spoilt)
    assert model.outlier_samples_.tolist() == [4]
    assert is_valid_linkage(model.linkage_matrix_)
    if linkage not in ("centroid", "median"):
        assert is_monotonic(model.linkage_matrix_)
    assert np.bincount(model.cut(model.n_clusters_)).min() > 1 or model.n_clusters_ == 1


def test_distances_of_a_robust_fit_are_those_of_winsorised_values():
    heavy = X + np.random.default_rng(3).standard_t(2, size=X.shape)
    model = quick(24, robust=True).fit(heavy)
    selected = winsorise(heavy, model.outlier_samples_)[:, model.get_support()]
    assert np.isnan(selected).any(), "the case needs extreme values that are removed"
    whole = np.setdiff1d(np.flatnonzero(~np.isnan(selected).any(axis=1)), model.outlier_samples_)
    found = model.sample_distances(heavy)[np.ix_(whole, whole)]
    np.testing.assert_allclose(found, 1 - np.corrcoef(selected[whole]), atol=1e-13)


@pytest.mark.parametrize("make", [quick, high_variance])
def test_missing_values_are_estimated_and_their_variances_count(make):
    gaps = np.where(np.random.default_rng(4).random(X.shape) < 0.15, np.nan, X)
    model = make(24, n_clusters=3).fit(gaps)
    samples = complete_missing_cells(gaps[:, model.get_support()])
    centred = samples.values - samples.values.mean(axis=1, keepdims=True)
    q = centred.shape[1]
    squares = np.square(centred).sum(axis=1) + (1 - 1 / q) * samples.variances.sum(axis=1)
    expected = 1 - centred @ centred.T / np.sqrt(np.outer(squares, squares))
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(model.sample_distances(gaps), expected, atol=1e-13)
    np.testing.assert_allclose(model.linkage_matrix_, tree_of(expected, "complete"), atol=1e-12)
    assert np.mean(model.cut(3) == LABELS) > 0.9


@pytest.mark.parametrize("make", [quick, high_variance])
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_a_constant_sample_is_at_the_distance_one_from_every_other_sample(make, value):
    """As a cell in which none of the selected genes is expressed."""
    silent = X.copy()
    silent[[5, 25]] = value
    model = make(24).fit(silent)
    distances = model.sample_distances(silent)
    others = np.delete(np.arange(30), [5, 25])
    for i in (5, 25):
        np.testing.assert_array_equal(np.delete(distances[i], i), 1.0)
        assert distances[i, i] == 0.0
    expected = 1 - np.corrcoef(silent[others][:, model.get_support()])
    np.testing.assert_allclose(distances[np.ix_(others, others)], expected, atol=1e-14)
    np.testing.assert_allclose(
        model.linkage_matrix_[:, 2], tree_of(distances, "complete")[:, 2], atol=1e-12
    )


@pytest.mark.parametrize("linkage", LINKAGES)
def test_many_constant_samples_do_no_harm(linkage):
    silent = np.vstack([X, np.zeros((20, X.shape[1]))])
    model = quick([10, 24], linkage=linkage, refine=True).fit(silent)
    assert is_valid_linkage(model.linkage_matrix_)
    for values in model.split_tests_["reference_drops"]:
        assert np.isfinite(values).all()
    assert np.isfinite(model.feature_qvalues_).all()


# Numbers of features and refusals -----------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "expected"),
    [(3, [3]), (4, [3]), (5, [3]), (9, [3, 4, 5]), (15, [3, 4, 5, 6, 7, 8])],
)
def test_default_candidates_have_at_least_three_features(p, expected):
    model = quick("auto", max_rank=1, n_clusters=2).fit(X[:, :p])
    assert model.search_results_["n_features_target"].tolist() == expected


def test_default_candidates_of_the_paper_are_the_same():
    wide = profile_data(n_noise=130)[0]
    targets = {
        metric: quick("auto", max_rank=1, n_clusters=2)
        .set_params(metric=metric)
        .fit(wide)
        .search_results_["n_features_target"]
        .tolist()
        for metric in ("sqeuclidean", "correlation")
    }
    assert targets["correlation"] == targets["sqeuclidean"]


@pytest.mark.parametrize("wanted", [1, 2, [2, 10], [1, 2, 3]])
def test_fewer_than_three_features_are_refused(wanted):
    smallest = np.min(wanted)
    message = (
        f"^n_features_to_select must be at least 3 for metric='correlation', got {smallest}: with "
        "fewer, every correlation is 1 or -1, or does not exist. Raise it, or choose another "
        r"metric\.$"
    )
    with pytest.raises(ParameterError, match=message) as caught:
        quick(wanted).fit(X)
    assert caught.value.parameters == ("n_features_to_select", "metric")
    if not np.iterable(wanted):
        with pytest.raises(ParameterError, match=message):
            high_variance(wanted).fit(X)


def test_wrong_numbers_of_features_are_refused_as_for_other_metrics():
    for wanted in (0, 85, 2.5, "all"):
        with pytest.raises(ParameterError, match="n_features_to_select must be a whole number"):
            quick(wanted).fit(X)


def test_fewer_than_three_features_that_vary_are_refused():
    few = X[:, :4].copy()
    few[:, 1:3] = 1.0
    message = "^X must have at least 3 features that vary for metric='correlation', got 2"
    for wanted in ("auto", 3):
        with pytest.raises(ParameterError, match=message):
            quick(wanted).fit(few)


def test_refinement_of_fewer_than_three_features_is_refused():
    with pytest.raises(ParameterError, match=r"^start must hold at least 3 columns of X for met"):
        refine_features(X, [4, 7], metric="correlation")
    with pytest.raises(ParameterError, match=r"^max_features must be at least 3 for metric='cor"):
        refine_features(X, range(9), metric="correlation", max_features=2)


def test_shc_refuses_correlations_in_one_sentence_with_advice():
    message = (
        "^SHC adds up dissimilarities over features, so metric must be one of 'sqeuclidean', "
        r"'cityblock', got 'correlation'\. Choose one of these, or another method\.$"
    )
    for options in ({}, {"linkage": "ward"}, {"refine": True}):
        with pytest.raises(ParameterError, match=message):
            SHC(10, metric="correlation", **options).fit(X)
    with pytest.raises(ParameterError, match="metric='sqeuclidean' only, got 'cityblock'"):
        SHC(10, metric="cityblock", linkage="ward").fit(X)
