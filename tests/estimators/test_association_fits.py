"""MrSHC with the association rule: simulations, noise, checkpoints and passes over the data."""

import numpy as np
import pytest
from sklearn.base import clone

from mrshc import MrSHC, UnsupportedClustersWarning
from mrshc.datasets import make_noise, make_simulation_1
from storage_backends import in_hdf5

MODEL = MrSHC(selection="association", random_state=0)


@pytest.fixture(scope="module", name="simulated")
def simulation_1():
    data = make_simulation_1(0)
    return data, clone(MODEL).fit(data.X)


def assert_same_fit(one, other):
    for name in ("labels_", "linkage_matrix_", "components_", "associated_features_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.get_support(), other.get_support())
    assert one.search_results_.keys() == other.search_results_.keys()
    for key, column in one.search_results_.items():
        np.testing.assert_array_equal(column, other.search_results_[key])


@pytest.mark.slow
def test_the_features_and_clusters_of_the_first_simulation_are_found():
    n_clusters = []
    for seed in range(5):
        data = make_simulation_1(seed)
        model = clone(MODEL).fit(data.X)
        hits = np.sum(data.support & model.get_support())
        assert hits >= 0.95 * data.support.sum()
        assert hits >= 0.85 * model.get_support().sum()
        n_clusters.append(model.n_clusters_)
    assert n_clusters.count(3) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t3"])
def test_no_clusters_are_reported_in_noise(noise):
    for seed in range(20):
        X = make_noise(seed, n_samples=60, n_features=500, noise=noise).X
        with pytest.warns(UnsupportedClustersWarning):
            model = clone(MODEL).fit(X)
        assert model.n_clusters_ == 1
        assert model.supported_ is False
        assert model.associated_features_.size == 0
        assert not model.labels_.any()


def test_a_given_number_of_clusters_is_returned_with_a_warning_in_noise():
    X = make_noise(0, n_samples=40, n_features=200).X
    with pytest.warns(UnsupportedClustersWarning, match="labels_ has all 4 clusters asked for"):
        model = clone(MODEL).set_params(n_clusters=4).fit(X)
    assert model.n_clusters_ == np.unique(model.labels_).size == 4
    np.testing.assert_array_equal(model.labels_, model.cut(4))


@pytest.mark.filterwarnings("error")
def test_a_given_number_of_clusters_is_a_cut_of_the_same_tree(simulated):
    data, model = simulated
    given = clone(MODEL).set_params(n_clusters=5).fit(data.X)
    assert given.n_clusters_ == np.unique(given.labels_).size == 5
    np.testing.assert_array_equal(given.linkage_matrix_, model.linkage_matrix_)
    np.testing.assert_array_equal(given.labels_, model.cut(5))


def test_start_sets_depend_on_the_number_of_features_that_are_not_constant(simulated):
    data, model = simulated
    results = model.search_results_
    pairs = list(zip(results["n_features_target"], results["rank"], strict=True))
    assert pairs == [(q, rank) for q in (20, 50, 60) for rank in (1, 3, 5)]
    constant = data.X.copy()
    constant[:, 55:] = 1.0
    results = clone(MODEL).set_params(max_rank=4).fit(constant).search_results_
    assert set(results["n_features_target"]) == {20, 55}
    assert set(results["rank"]) == {1, 3}
    given = clone(MODEL).set_params(n_features_to_select=30, rank=2).fit(data.X)
    assert given.search_results_["n_features_target"].tolist() == [30]
    assert given.search_results_["rank"].tolist() == [2]


def test_a_table_of_candidates_has_finite_scores(simulated):
    results = simulated[1].search_results_
    for name in ("n_associated", "strength", "silhouette"):
        assert np.isfinite(results[name]).all()
    chosen = results["chosen"]
    assert results["strength"][chosen] == results["strength"].max()
    assert results["n_associated"][chosen] == simulated[1].associated_features_.size


def test_a_fit_is_continued_from_a_checkpoint(simulated, tmp_path, monkeypatch):
    data, undisturbed = simulated
    path = tmp_path / "steps"
    model = clone(MODEL).set_params(checkpoint=path)
    assert_same_fit(clone(model).fit(data.X), undisturbed)
    content = path.read_bytes()
    header = content.index(b"\n") + 1
    for cut in (header, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        assert_same_fit(clone(model).fit(data.X), undisturbed)
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())
    rule = "mrshc.core.selection.association_rule.AssociationRule"
    monkeypatch.setattr(f"{rule}.task", lambda *_: pytest.fail("done before"))
    assert_same_fit(clone(model).fit(data.X), undisturbed)


def test_the_number_of_workers_does_not_matter(simulated):
    data, alone = simulated
    assert_same_fit(clone(MODEL).set_params(n_jobs=2).fit(data.X), alone)


def test_a_fit_to_a_file_makes_few_passes_over_the_data(simulated, tmp_path):
    """Each round of all start sets is one pass; other passes select the start sets."""
    data, in_memory = simulated
    model = clone(MODEL).fit(in_hdf5(data.X, tmp_path, chunks=(60, 50)))
    np.testing.assert_array_equal(model.labels_, in_memory.labels_)
    np.testing.assert_array_equal(model.get_support(), in_memory.get_support())
    assert 3 < model.n_passes_ <= 15
