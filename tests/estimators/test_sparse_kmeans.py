import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import rand_score

import reference
from mrshc import SparseKMeans, compare
from mrshc.datasets import make_simulation_1
from mrshc.errors import ParameterError
from storage_backends import in_dask, in_hdf5, mapped

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others


def quick(n_clusters=3, **options):
    return SparseKMeans(n_clusters, **{"n_permutations": 3, "random_state": 0, **options})


def test_clusters_and_features_of_an_easy_problem_are_found():
    model = quick(n_features_to_select=50).fit(EASY.X)
    assert rand_score(model.labels_, EASY.labels) == 1
    np.testing.assert_array_equal(model.get_support(), EASY.support)
    assert model.n_features_selected_ == 50
    results = model.search_results_
    assert list(results) == [
        *("l1_bound", "n_features", "criterion", "chosen", "n_features_target", "reached")
    ]
    assert (results["n_features_target"], results["reached"]) == ([50], [True])


def test_fitted_attributes_agree_with_each_other():
    model = quick(l1_bound=3.0).fit(SMALL)
    centers = [SMALL[model.labels_ == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, centers)
    weights = model.feature_weights_
    np.testing.assert_array_equal(model.get_support(), weights > 0)
    assert model.n_features_selected_ == np.count_nonzero(weights) < 30
    assert np.linalg.norm(weights) == pytest.approx(1)
    assert weights.sum() == pytest.approx(3.0)
    assert model.l1_bound_ == 3.0
    counts = np.bincount(model.labels_)
    between = counts @ np.square(model.cluster_centers_ - SMALL.mean(axis=0))
    assert model.criterion_ == pytest.approx(between @ weights)
    assert model.converged_
    assert 2 <= model.n_iter_ <= 15
    np.testing.assert_array_equal(model.transform(SMALL), SMALL[:, weights > 0])
    np.testing.assert_array_equal(model.fit_predict(SMALL), model.labels_)
    assert list(model.search_results_) == ["l1_bound", "n_features", "criterion", "chosen"]


def test_the_bound_with_the_largest_gap_is_chosen():
    model = quick().fit(SMALL)
    results = model.search_results_
    np.testing.assert_allclose(results["l1_bound"], np.linspace(1.1, 0.7 * np.sqrt(30), 10))
    (chosen,) = np.flatnonzero(results["chosen"])
    assert chosen == np.argmax(results["gap"])
    assert model.l1_bound_ == results["l1_bound"][chosen]
    assert model.n_features_selected_ == results["n_features"][chosen]
    assert model.criterion_ == results["criterion"][chosen]
    assert np.all(results["gap_sd"] > 0)
    assert rand_score(model.labels_, EASY.labels) == 1


def test_candidate_bounds_can_be_given():
    model = quick(l1_bound=[1.5, 4.0]).fit(SMALL)
    np.testing.assert_array_equal(model.search_results_["l1_bound"], [1.5, 4.0])
    alone = quick(l1_bound=model.l1_bound_).fit(SMALL)
    np.testing.assert_array_equal(alone.feature_weights_, model.feature_weights_)


def test_without_sparsity_equal_features_give_k_means():
    """With two copies of one feature, the weights are equal, whatever the clusters are."""
    X = np.repeat(SMALL[:, :1], 2, axis=1)
    model = quick(l1_bound=np.sqrt(2)).fit(X)
    expected = KMeans(3, n_init=20, random_state=0).fit(X)
    assert rand_score(model.labels_, expected.labels_) == 1
    np.testing.assert_allclose(model.feature_weights_, np.sqrt(0.5))


def test_new_samples_are_assigned_to_the_nearest_weighted_centre():
    model = quick(l1_bound=2.0).fit(SMALL)
    np.testing.assert_array_equal(model.predict(SMALL), model.labels_)
    new = np.random.default_rng(3).normal(size=(40, 30))
    differences = new[:, None] - model.cluster_centers_
    expected = np.argmin(np.square(differences) @ model.feature_weights_, axis=1)
    np.testing.assert_array_equal(model.predict(new), expected)
    # Features without weight do not matter.
    new[:, ~model.get_support()] += 1e6
    np.testing.assert_array_equal(model.predict(new), expected)
    np.testing.assert_array_equal(model.predict(new[:1]), expected[:1])


@pytest.mark.parametrize(
    "store",
    [
        mapped,
        in_hdf5,
        lambda A, _: in_dask(A, (30, 10)),
        lambda A, _: sparse.csr_array(A),
        lambda A, _: sparse.csc_matrix(A),
        lambda A, _: np.asfortranarray(A),
    ],
    ids=["memory map", "HDF5", "Dask", "CSR", "CSC", "Fortran"],
)
def test_the_storage_of_the_data_does_not_matter(store, tmp_path):
    A = np.ascontiguousarray(SMALL[::3])  # more features than samples: not loaded as a whole
    X = store(A, tmp_path)
    found, expected = quick().fit(X), quick().fit(A)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.feature_weights_, expected.feature_weights_, atol=1e-12)
    np.testing.assert_allclose(found.search_results_["gap"], expected.search_results_["gap"])
    np.testing.assert_array_equal(found.predict(X), expected.labels_)
    np.testing.assert_array_equal(found.transform(X), expected.transform(A))


def test_single_precision_is_converted_to_double_precision():
    single = SMALL.astype(np.float32)
    found, expected = quick(l1_bound=2.0).fit(single), quick(l1_bound=2.0).fit(single.astype(float))
    np.testing.assert_array_equal(found.feature_weights_, expected.feature_weights_)
    np.testing.assert_array_equal(found.predict(single), expected.labels_)


def test_results_depend_on_the_seed_alone():
    X = np.random.default_rng(0).normal(size=(30, 40))  # no clusters: many local maxima
    fits = [quick(4, random_state=1, n_init=2, n_jobs=n_jobs).fit(X) for n_jobs in (None, 2)]
    with parallel_config(backend="loky", n_jobs=2):
        fits.append(quick(4, random_state=1, n_init=2).fit(X))
    for other in fits[1:]:
        np.testing.assert_array_equal(other.labels_, fits[0].labels_)
        for name, values in fits[0].search_results_.items():
            np.testing.assert_array_equal(other.search_results_[name], values)
    another = quick(4, random_state=2, n_init=2).fit(X)
    assert np.any(another.search_results_["gap"] != fits[0].search_results_["gap"])


def test_names_of_features_and_samples_are_kept():
    table = pd.DataFrame(SMALL).rename(columns="g{}".format, index="s{}".format)
    model = quick(l1_bound=2.0).fit(table)
    names = model.get_feature_names_out()
    np.testing.assert_array_equal(names, table.columns[model.get_support()])
    np.testing.assert_array_equal(model.sample_names_in_, table.index)
    assert list(model.set_output(transform="pandas").transform(table)) == list(names)
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    np.testing.assert_array_equal(model.predict(table[names[::-1]]), model.labels_)
    with pytest.raises(ValueError, match=f"1 of them is missing: '{names[0]}'"):
        model.predict(table.rename(columns={names[0]: "other"}))


def test_constant_features_are_not_selected():
    X = np.column_stack([np.full(60, 0.1), SMALL, np.full(60, 7.0)])
    model = quick(l1_bound=np.sqrt(32)).fit(X)
    np.testing.assert_array_equal(model.get_support(indices=True), np.arange(1, 31))


def test_more_clusters_than_distinct_samples_are_possible():
    X = np.repeat([[0.0, 1.0, 0.0], [5.0, 2.0, 0.5]], 3, axis=0)
    model = quick(4, l1_bound=1.2).fit(X)
    np.testing.assert_array_equal(np.unique(model.labels_), range(4))


def test_it_can_be_compared_with_other_methods():
    methods = {"sparse": quick(n_features_to_select=10), "all": KMeans(3, random_state=0)}
    scores = compare(SMALL, methods=methods, truth=EASY.labels).scores
    assert scores.loc["sparse", ["n_features", "ari"]].to_list() == [10, 1.0]


def test_default_candidates_are_searched_on_real_inputs():
    model = SparseKMeans(3, random_state=0).fit(reference.matrix("simI_rep1"))
    assert model.search_results_["gap"].size == 10
    assert rand_score(model.labels_, np.repeat([0, 1, 2], 20)) == 1


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 1}, r"n_clusters must be a whole number in \[2, 60\].*With one cluster"),
        ({"n_clusters": 61}, r"n_clusters must be a whole number in \[2, 60\], got 61"),
        ({"n_clusters": None}, "n_clusters must be a whole number"),
        ({"l1_bound": 0.5}, r"l1_bound must be a number in \[1, 5.47723\], got 0.5"),
        ({"l1_bound": 6.0}, "Larger bounds have no effect"),
        ({"l1_bound": None}, "l1_bound must be a number"),
        ({"l1_bound": []}, "l1_bound must hold at least one number"),
        ({"l1_bound": "best"}, "l1_bound must be a number"),
        ({"n_features_to_select": 31}, r"n_features_to_select must .* in \[1, 30\], got 31"),
        ({"n_features_to_select": 5, "l1_bound": 2.0}, "not both, got 5 and 2.0"),
        ({"n_init": 0}, "n_init must be a whole number"),
        ({"n_permutations": 1}, "A standard deviation needs two"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of workers"),
        ({"random_state": "seed"}, "random_state must be None"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        quick(**options).fit(SMALL)


def test_missing_values_are_refused_with_advice(tmp_path):
    holes = SMALL[::3].copy()
    holes[2, 3] = np.nan
    for X in (holes, mapped(holes, tmp_path)):
        with pytest.raises(ValueError, match=r"does not accept missing values.*NeighborImputer"):
            quick().fit(X)
    model = quick(l1_bound=2.0).fit(SMALL)
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match="NaN"):
            method(holes)
    holes[:] = np.nan
    with pytest.raises(ValueError, match="does not accept missing values"):
        model.predict(mapped(holes, tmp_path))


def test_unsuitable_data_are_refused():
    with pytest.raises(ValueError, match="all 4 of its features are constant"):
        quick().fit(np.ones((6, 4)))
    model = quick(l1_bound=2.0).fit(SMALL)
    with pytest.raises(ValueError, match="30 features"):
        model.predict(SMALL[:, :20])
    with pytest.raises(ValueError, match="30 features"):
        model.predict(sparse.csr_array(SMALL[:, :20]))
