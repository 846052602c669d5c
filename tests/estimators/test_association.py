"""MrSHC with selection="association"."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mrshc import MrSHC, UnsupportedClustersWarning, refine_features
from mrshc.core.trees.tree import LINKAGES
from mrshc.datasets import make_noise, make_simulation_1, make_simulation_2

DATA = make_simulation_1(1, mu=1.5)
SMALL = np.ascontiguousarray(make_simulation_1(0, mu=2.0).X[:, 30:90])  # 20 useful features of 60
NOISE = make_noise(0, n_samples=40, n_features=100).X
COLUMNS = ("n_associated", "strength")


def association(**options):
    return MrSHC(**{"selection": "association", "linkage": "ward", **options})


def with_missing(X, share=0.1, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def assert_same(a, b):
    for name in ("labels_", "linkage_matrix_", "components_", "feature_qvalues_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(a.get_support(), b.get_support())
    assert (a.supported_, a.rank_) == (b.supported_, b.rank_)
    assert a.search_results_.keys() == b.search_results_.keys()
    for name, column in a.search_results_.items():
        np.testing.assert_array_equal(column, b.search_results_[name])


@pytest.mark.parametrize("make", [make_simulation_1, make_simulation_2])
def test_features_and_clusters_of_the_simulations_are_found(make):
    data = make(1, mu=1.5)
    model = association().fit(data.X)
    assert model.supported_
    assert data.support[model.associated_features_].sum() >= 0.9 * data.support.sum()
    assert data.support[model.associated_features_].mean() > 0.85
    assert adjusted_rand_score(model.labels_, data.labels) > 0.9
    np.testing.assert_array_equal(model.get_support(indices=True), model.associated_features_)
    np.testing.assert_array_equal(
        np.flatnonzero(model.feature_qvalues_ <= 0.05), model.associated_features_
    )


def test_the_table_of_candidates_has_one_row_for_each_start_set():
    model = association().fit(DATA.X)
    table = model.search_results_
    assert set(COLUMNS) <= set(table)
    # With 500 features, a tenth is 50.
    assert sorted(set(table["n_features_target"].tolist())) == [20, 50, 60]
    assert sorted(set(table["rank"].tolist())) == [1, 3, 5]
    assert len(table["chosen"]) == 9
    (chosen,) = np.flatnonzero(table["chosen"])
    assert table["strength"][chosen] == table["strength"].max() > 0
    assert table["n_associated"][chosen] == model.associated_features_.size
    assert table["n_features"][chosen] == model.n_features_selected_
    assert table["rank"][chosen] == model.rank_ == len(model.components_)
    assert table["n_leaves"][chosen] == model.n_clusters_
    assert all(len(column) == 0 for column in model.split_tests_.values())


def test_components_are_those_of_the_start_set():
    model = association(n_features_to_select=20, rank=1).fit(DATA.X)
    start = np.flatnonzero(np.any(model.components_ != 0, axis=0))
    assert 18 <= start.size <= 22  # a difference of 10 % is accepted
    assert model.n_features_selected_ > 22
    refined = refine_features(DATA.X, start, linkage="ward")
    np.testing.assert_array_equal(refined.associated, model.associated_features_)
    np.testing.assert_array_equal(refined.q_values, model.feature_qvalues_)
    assert model.search_results_["strength"].tolist() == [refined.strength]


def test_the_start_sets_can_be_given():
    model = association(n_features_to_select=[10, 30], max_rank=3).fit(DATA.X)
    table = model.search_results_
    cells = list(zip(table["n_features_target"].tolist(), table["rank"].tolist(), strict=True))
    assert cells == [(10, 1), (10, 3), (30, 1), (30, 3)]
    assert model.n_features_selected_ > 30  # the tests determine the number of features


def test_noise_has_a_single_cluster_and_no_support():
    model = association()
    message = r"not supported by held-out features.*labels_ holds one cluster\. Use cut\(2\)"
    with pytest.warns(UnsupportedClustersWarning, match=message) as caught:
        model.fit(NOISE)
    assert caught[0].filename == __file__
    assert model.supported_ is False
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.labels_, 0)
    assert model.associated_features_.size == 0
    assert not model.search_results_["strength"].any()
    start = np.any(model.components_ != 0, axis=0)
    np.testing.assert_array_equal(model.get_support(), start)


def test_correlated_noise_is_claimed_as_structure():
    # The limit that the documentation states: the tests compare features with independent noise.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    X[:, :60] += np.repeat(rng.normal(size=(60, 3)), 20, axis=1)  # three factors, no clusters
    model = association().fit(X)
    assert model.supported_
    assert (model.associated_features_ < 60).mean() > 0.8


def test_four_features_are_too_few_to_test():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = association().fit(DATA.X[:, :4])
    assert model.supported_ is None
    assert model.n_features_selected_ == 4
    assert model.n_clusters_ > 1


@pytest.mark.parametrize("k", [2, 3, 5, 12])
def test_a_given_number_of_clusters_does_not_change_the_features(k):
    model, free = association(n_clusters=k).fit(DATA.X), association().fit(DATA.X)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == k
    np.testing.assert_array_equal(model.labels_, model.cut(k))
    np.testing.assert_array_equal(model.get_support(), free.get_support())
    np.testing.assert_array_equal(model.linkage_matrix_, free.linkage_matrix_)


def test_refine_has_no_effect():
    assert_same(association(refine=True).fit(DATA.X), association().fit(DATA.X))


def test_the_seed_and_the_number_of_workers_do_not_matter():
    expected = association(random_state=0).fit(SMALL)
    assert_same(association(random_state=1).fit(SMALL), expected)
    assert_same(association(random_state=None, n_references=2).fit(SMALL), expected)
    assert_same(association(n_jobs=2).fit(SMALL), expected)


def test_clones_and_pickles_are_equal():
    model = association().fit(SMALL)
    assert_same(clone(model).fit(SMALL), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)


def test_a_fit_forgets_the_tests_of_an_earlier_one():
    model = association(n_features_to_select=20, rank=1, n_references=10, random_state=0)
    assert model.fit(DATA.X).supported_
    model.set_params(selection="silhouette").fit(DATA.X)
    for name in ("supported_", "associated_features_", "feature_qvalues_"):
        assert not hasattr(model, name)
    assert not set(COLUMNS) & set(model.search_results_)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("missing", [False, True])
def test_every_linkage_can_be_used(linkage, missing):
    X = with_missing(SMALL) if missing else SMALL
    model = association(linkage=linkage).fit(X)
    assert is_valid_linkage(model.linkage_matrix_)
    assert model.supported_
    assert (model.associated_features_ < 20).mean() > 0.8


@pytest.mark.parametrize("metric", ["cityblock", "correlation"])
def test_other_metrics_can_be_used(metric):
    data = make_simulation_1(1, mu=2.0)
    model = association(linkage="average", metric=metric).fit(data.X)
    assert model.supported_
    assert data.support[model.associated_features_].mean() > 0.85
    distances = model.sample_distances(data.X)
    assert model.distances_[0] == pytest.approx(distances[np.triu_indices(60, 1)].min())


def test_a_tenth_of_the_cells_missing_costs_little():
    model = association().fit(with_missing(DATA.X))
    assert DATA.support[model.associated_features_].sum() >= 45
    assert adjusted_rand_score(model.labels_, DATA.labels) > 0.9


@pytest.mark.parametrize("missing", [False, True])
def test_an_outlying_sample_changes_nothing_for_the_others(missing):
    X = with_missing(DATA.X) if missing else DATA.X.copy()
    X[5] = 8 * np.random.default_rng(5).normal(size=500)
    model = association(robust=True).fit(X)
    alone = association(robust=True).fit(np.delete(X, 5, axis=0))
    assert model.outlier_samples_.tolist() == [5]
    assert alone.outlier_samples_.size == 0
    np.testing.assert_array_equal(model.get_support(), alone.get_support())
    np.testing.assert_array_equal(model.feature_qvalues_, alone.feature_qvalues_)
    assert adjusted_rand_score(np.delete(model.labels_, 5), alone.labels_) == 1
    assert is_monotonic(model.linkage_matrix_)


@pytest.mark.parametrize(("n", "p"), [(3, 4), (4, 3), (6, 5), (12, 3), (5, 200)])
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_small_tables_are_accepted(n, p, robust):
    X = np.random.default_rng(n).normal(size=(n, p))
    model = association(robust=robust).fit(X)
    assert is_valid_linkage(model.linkage_matrix_)
    assert 1 <= model.n_clusters_ <= n


def test_constant_features_are_not_associated_and_do_not_change_the_start_sets():
    X = np.hstack([SMALL, np.ones((60, 440))])
    model, plain = association().fit(X), association().fit(SMALL)
    assert set(model.associated_features_) <= set(plain.associated_features_)
    np.testing.assert_array_equal(
        model.search_results_["n_features_target"], plain.search_results_["n_features_target"]
    )
    assert np.all(model.feature_qvalues_[60:] == 1)


def test_names_of_samples_and_features_are_kept():
    frame = pd.DataFrame(SMALL, columns=[f"g{j}" for j in range(60)]).add_prefix("x")
    model = association().fit(frame)
    assert model.get_feature_names_out().tolist() == [
        f"xg{j}" for j in model.get_support(indices=True)
    ]
    assert set(model.markers(frame).feature) <= set(frame.columns)


def test_an_interrupted_search_is_continued(tmp_path):
    path = tmp_path / "steps"
    options = {"random_state": 0, "robust": True}
    expected = association(**options).fit(SMALL)
    assert_same(association(checkpoint=path, **options).fit(SMALL), expected)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for kept in (1, len(lines) // 2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]))
        assert_same(association(checkpoint=path, **options).fit(SMALL), expected)
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())
