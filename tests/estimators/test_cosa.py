"""COSA weights the features of each sample and builds a tree on its distances."""

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.metrics import rand_score

import reference
from mrshc import COSA, branch_significance, compare, stability
from mrshc.datasets import make_simulation_1

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 35:70])  # fifteen informative features, twenty others


def subsets():
    """Return three clusters, each of which is compact in four features of its own."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 30))
    for k in range(3):
        X[20 * k : 20 * k + 20, 4 * k : 4 * k + 4] = rng.normal(3, 0.05, size=(20, 4))
    return X, np.repeat(range(3), 20)


def test_defaults_are_those_of_rcosa():
    expected = reference.runs("cosa")["B"]
    model = COSA().fit(reference.matrix("input_B"))
    distances = squareform(model.dissimilarity_, checks=False)
    np.testing.assert_allclose(distances, expected["distances"], rtol=1e-6)
    np.testing.assert_allclose(model.mean_feature_weights_, expected["weights_mean"], rtol=1e-6)
    assert (model.n_iter_, model.converged_) == (77, True)


def test_clusters_that_differ_in_different_features_are_found():
    X, classes = subsets()
    model = COSA(n_clusters=3).fit(X)
    assert rand_score(model.labels_, classes) == 1
    for k in range(3):
        weights = model.feature_weights_[classes == k].mean(axis=0)
        assert set(np.argsort(weights)[-4:]) == set(range(4 * k, 4 * k + 4))


def test_fitted_attributes_agree_with_each_other():
    model = COSA(linkage="complete", n_clusters=4).fit(SMALL)
    n, p = SMALL.shape
    condensed = squareform(model.dissimilarity_)
    np.testing.assert_allclose(model.linkage_matrix_, scipy_linkage(condensed, "complete"))
    assert model.feature_weights_.shape == (n, p)
    np.testing.assert_allclose(model.feature_weights_.sum(axis=1), 1)
    np.testing.assert_array_equal(model.mean_feature_weights_, model.feature_weights_.mean(axis=0))
    np.testing.assert_array_equal(model.labels_, model.cut(4))
    np.testing.assert_array_equal(model.sample_distances(SMALL), model.dissimilarity_)
    assert not hasattr(model.set_params(n_clusters=None).fit(SMALL), "labels_")


def test_features_of_at_least_average_weight_are_the_support():
    model = COSA().fit(EASY.X)
    support = model.get_support()
    np.testing.assert_array_equal(support, model.mean_feature_weights_ >= 1 / EASY.X.shape[1])
    assert model.n_features_selected_ == support.sum()
    # The weights of informative features are larger, because they differ less within clusters.
    assert support[EASY.support].mean() > 2 * support[~EASY.support].mean()
    np.testing.assert_array_equal(model.transform(EASY.X), EASY.X[:, support])


def test_features_with_equal_weights_are_all_in_the_support():
    x = np.random.default_rng(0).normal(size=(12, 1))
    model = COSA().fit(np.tile(x, 7))
    np.testing.assert_allclose(model.mean_feature_weights_, 1 / 7)
    assert model.get_support().all()


def test_features_with_equal_quartiles_have_no_weight_and_no_effect():
    rare = np.zeros(60)
    rare[5] = 4.0
    X = np.column_stack([np.ones(60), SMALL, rare])
    expected, model = COSA().fit(SMALL), COSA().fit(X)
    np.testing.assert_array_equal(model.dissimilarity_, expected.dissimilarity_)
    np.testing.assert_array_equal(model.feature_weights_[:, 1:-1], expected.feature_weights_)
    assert not model.feature_weights_[:, [0, -1]].any()
    np.testing.assert_array_equal(model.get_support()[1:-1], expected.get_support())
    assert not model.get_support()[[0, -1]].any()


def test_the_unit_and_the_origin_of_a_feature_do_not_matter():
    # Powers of two and multiples of them change no digits of the differences.
    units = 2.0 ** np.arange(-17, 18)
    expected = COSA().fit(SMALL)
    model = COSA().fit(SMALL * units)
    np.testing.assert_allclose(model.dissimilarity_, expected.dissimilarity_, rtol=1e-12)
    moved = COSA().fit(SMALL + 8.0)
    np.testing.assert_allclose(moved.dissimilarity_, expected.dissimilarity_, rtol=1e-9)


def test_a_small_scale_concentrates_the_weights():
    def largest(scale):
        return COSA(scale=scale).fit(SMALL).feature_weights_.max(axis=1).mean()

    assert largest(0.05) > largest(0.2) > largest(10.0)
    np.testing.assert_allclose(COSA(scale=1000.0).fit(SMALL).feature_weights_, 1 / 35, rtol=0.01)


def test_the_number_of_neighbours_is_the_root_of_the_number_of_samples():
    automatic, given, other = (COSA(n_neighbors=k).fit(SMALL) for k in ("auto", 7, 20))
    np.testing.assert_array_equal(automatic.dissimilarity_, given.dissimilarity_)
    assert not np.array_equal(automatic.dissimilarity_, other.dissimilarity_)


@pytest.mark.parametrize("make", [np.asfortranarray, pd.DataFrame, csr_array])
def test_the_storage_of_the_data_does_not_change_the_result(make):
    X = SMALL[:20]
    expected = COSA().fit(X).dissimilarity_
    np.testing.assert_array_equal(COSA().fit(make(X)).dissimilarity_, expected)


def test_single_precision_is_enough():
    X = SMALL.astype(np.float32)
    expected = COSA().fit(X.astype(np.float64))
    np.testing.assert_allclose(COSA().fit(X).dissimilarity_, expected.dissimilarity_, rtol=1e-6)


def test_the_number_of_workers_does_not_change_the_result():
    one, two = (COSA(n_jobs=n_jobs).fit(SMALL) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.dissimilarity_, two.dissimilarity_)
    np.testing.assert_array_equal(one.feature_weights_, two.feature_weights_)


def test_missing_values_are_accepted():
    X, classes = subsets()
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = COSA(n_clusters=3).fit(X)
    assert rand_score(model.labels_, classes) > 0.9
    np.testing.assert_allclose(model.feature_weights_.sum(axis=1), 1)


def test_samples_without_a_common_feature_are_refused():
    X = SMALL[:, :4].copy()
    X[3, :2] = X[9, 2:] = np.nan
    with pytest.raises(ValueError, match="samples 3 and 9 have none in common"):
        COSA().fit(X)


def test_markers_treat_all_weighted_features_as_features_of_the_tree():
    """A feature of small weight is tested with a tree that was built without the feature."""
    X = np.random.default_rng(8).normal(size=(40, 30))
    table = COSA(n_clusters=3).fit(X).markers(X, alpha=1.0)
    assert table["p_value"].min() > 1e-4
    assert 0 < table["selected"].mean() < 1
    data, classes = subsets()
    model = COSA(n_clusters=3).fit(data)
    found = model.markers(data, alpha=0.01).query("contrast == 'cluster'")
    for k in range(3):
        (label,) = np.unique(model.labels_[classes == k])
        own = found.query(f"inside == '{label}'")["feature"]
        assert set(range(4 * k, 4 * k + 4)) <= set(own)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, r"scale must be a number in \[0.001, 1000\], got 0"),
        ({"scale": "auto"}, "scale must be a number"),
        ({"n_neighbors": 60}, r"n_neighbors must be a whole number in \[1, 59\], got 60"),
        ({"n_neighbors": None}, "n_neighbors must be a whole number"),
        ({"linkage": "ward"}, "linkage must be one of 'single', 'complete', 'average', 'weighted'"),
        ({"n_clusters": 61}, r"n_clusters must be a whole number in \[1, 60\]"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        clone(COSA()).set_params(**options).fit(SMALL)


def test_data_that_cannot_be_scaled_are_refused():
    with pytest.raises(ValueError, match="all 3 of its features are constant"):
        COSA().fit(np.ones((10, 3)))
    X = np.zeros((10, 3))
    X[0] = 1.0
    with pytest.raises(ValueError, match="a feature whose quartiles differ"):
        COSA().fit(X)


def test_stability_and_significance_refit_the_weights():
    X, _ = subsets()
    X = X[:40]  # two clusters
    model = COSA(n_clusters=2).fit(X)
    stable = stability(model, X, n_resamples=3, random_state=0)
    np.testing.assert_array_equal(stable.cluster_jaccard, 1.0)
    assert set(np.flatnonzero(stable.feature_frequency == 1.0)) >= set(range(8))
    result = branch_significance(model, X, n_simulations=10, random_state=0, alpha=0.1)
    assert result.significant[0]
    assert result.statistic_name == "separation"


def test_fits_to_few_samples_use_all_of_their_neighbours():
    model = COSA(n_clusters=2, n_neighbors=59).fit(SMALL)
    assert stability(model, SMALL, n_resamples=2, random_state=0).consensus.shape == (60, 60)


def test_cosa_can_be_compared_with_other_methods():
    X, classes = subsets()
    scores = compare(X, methods={"COSA": COSA()}, truth=classes).scores
    assert scores.loc["COSA", "cer"] == 0
