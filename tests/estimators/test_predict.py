"""New samples are assigned to the nearest centre, whatever form they come in, or refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mrshc import COSA, SHC, HighVarianceHC, MrSHC, SparseKMeans
from mrshc.datasets import make_simulation_1
from storage_backends import mapped

DATA = make_simulation_1(0, mu=2.0)
IS_NEW = np.arange(60) % 4 == 0
# The middle cluster is a profile of its own, and the others differ from it in both directions:
# correlations would not see a shift of all features.
J = np.arange(80)
SHIFTED = DATA.X[:, :80] * np.where(J % 2, -1.0, 1.0) + np.where(J % 4 < 2, 2.0, -2.0)
X, NEW, TRUTH = SHIFTED[~IS_NEW], SHIFTED[IS_NEW], DATA.labels[IS_NEW]
MODELS = [
    MrSHC(selection="association", linkage="ward"),
    MrSHC(30, rank=1, n_references=5, random_state=0, metric="cityblock"),
    MrSHC(selection="association", linkage="average", metric="correlation", n_clusters=3),
    MrSHC(selection="association", linkage="ward", robust=True),
    SHC(30, n_clusters=3),
    SHC(30, n_clusters=3, metric="cityblock"),
    SHC(30, n_clusters=3, refine=True),
    HighVarianceHC(40, n_clusters=3, linkage="ward"),
    HighVarianceHC(40, n_clusters=3, metric="correlation"),
    COSA(n_clusters=3),
    SparseKMeans(3, n_features_to_select=30, random_state=0),
]
TREES = MODELS[:-1]


def names(model):
    return f"{type(model).__name__}-{getattr(model, 'metric', '')}"


def named(array):
    return pd.DataFrame(array, columns=[f"g{j}" for j in range(array.shape[1])])


def agreement(labels, others):
    """Share of equal labels after each cluster is renamed by its majority."""
    table = pd.crosstab(labels, others)
    return table.max().sum() / table.to_numpy().sum()


@pytest.mark.parametrize("model", TREES, ids=names)
def test_samples_of_the_fit_keep_their_clusters(model):
    assert np.mean(model.fit(X).predict(X) == model.labels_) >= 0.95


# COSA does not find these clusters.
@pytest.mark.parametrize("model", [m for m in MODELS if not isinstance(m, COSA)], ids=names)
def test_new_samples_of_clear_clusters_are_recognised(model):
    assert agreement(model.fit(X).predict(NEW), TRUTH) >= 0.9


def test_the_rule_is_the_nearest_centre_with_the_weights_of_the_tree():
    model = SHC(30, n_clusters=3).fit(X)
    centres = [X[model.labels_ == k].mean(axis=0) for k in range(3)]
    expected = cdist(NEW, centres, "sqeuclidean", w=model.feature_weights_)
    np.testing.assert_allclose(model.cluster_distances(NEW), expected)
    np.testing.assert_array_equal(model.predict(NEW), expected.argmin(axis=1))


def test_refined_trees_have_no_weights():
    model = SHC(30, n_clusters=3, refine=True).fit(X)
    assert model.supported_
    part = model.get_support()
    centres = [X[model.labels_ == k][:, part].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(
        model.cluster_distances(NEW), cdist(NEW[:, part], centres, "sqeuclidean")
    )


def test_cosa_uses_the_mean_weights_and_leaves_out_unscaled_features():
    data = X.copy()
    data[:, 5] = 0.0
    data[0, 5] = 1.0  # its quartiles are equal
    model = COSA(n_clusters=3).fit(data)
    other = NEW.copy()
    other[:, 5] = 1e6
    np.testing.assert_allclose(model.cluster_distances(other), model.cluster_distances(NEW))


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_features_are_matched_by_name(model):
    model.fit(named(X))
    expected = model.predict(named(NEW))
    mixed = named(NEW).assign(note="text", other=7.0).sample(frac=1, axis=1, random_state=0)
    np.testing.assert_array_equal(model.predict(mixed), expected)
    selected = model.get_feature_names_out() if not isinstance(model, COSA) else named(NEW).columns
    np.testing.assert_array_equal(model.predict(named(NEW)[selected[::-1]]), expected)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(NEW), expected)


@pytest.mark.parametrize("model", [TREES[0], MODELS[-1]], ids=names)
def test_tables_with_other_names_are_refused(model):
    model.fit(named(X))
    selected = model.get_feature_names_out()
    table = named(NEW)
    with pytest.raises(ValueError, match=f"1 of them is missing: '{selected[0]}'. Check the names"):
        model.predict(table.drop(columns=selected[0]))
    with pytest.raises(ValueError, match=r"and \d+ more\. Check the names, and whether samples"):
        model.predict(table.T)
    with pytest.raises(ValueError, match=f"'{selected[1]}' names more than one column"):
        model.predict(pd.concat([table, table[[selected[1]]]], axis=1))
    with pytest.raises(ValueError, match=f"text 'high' in sample 0, feature '{selected[0]}'"):
        model.predict(table.assign(**{selected[0]: "high"}))
    with pytest.raises(ValueError, match="sample 1 holds inf"):
        model.predict(table.assign(**{selected[0]: [0.0, np.inf, *NEW[2:, 0]]}))


def test_names_may_be_numbers():
    numbers = pd.DataFrame(X, columns=np.arange(80) + 1000)
    model = HighVarianceHC(40, n_clusters=3).fit(numbers)
    new = pd.DataFrame(NEW, columns=np.arange(80) + 1000)
    expected = HighVarianceHC(40, n_clusters=3).fit(X).predict(NEW)
    np.testing.assert_array_equal(model.predict(new.iloc[:, ::-1]), expected)
    np.testing.assert_array_equal(model.predict(new.rename(columns=str).iloc[:, ::-1]), expected)
    # Numbers from 0 are positions, not names.
    positions = HighVarianceHC(40, n_clusters=3).fit(pd.DataFrame(X))
    np.testing.assert_array_equal(positions.predict(pd.DataFrame(NEW)), expected)
    with pytest.raises(ValueError, match="numbered in another order"):
        positions.predict(pd.DataFrame(NEW).iloc[:, ::-1])
    with pytest.raises(ValueError, match="has 79 features, but HighVarianceHC is expecting 80"):
        positions.predict(NEW[:, 1:])


def test_polars_tables_are_matched_by_name():
    polars = pytest.importorskip("polars")
    model = HighVarianceHC(40, n_clusters=3).fit(named(X))
    table = polars.DataFrame(dict(named(NEW).iloc[:, ::-1]))
    np.testing.assert_array_equal(model.predict(table), model.predict(named(NEW)))


def test_features_of_annotated_data_are_matched_by_name():
    class Annotated:  # as anndata, which may not be installed
        isbacked = False

        def __init__(self, table):
            self.X, self.var_names, self.obs_names = table.to_numpy(), table.columns, table.index

    model = HighVarianceHC(40, n_clusters=3).fit(Annotated(named(X)))
    expected = model.predict(named(NEW))
    np.testing.assert_array_equal(model.predict(Annotated(named(NEW).iloc[:, ::-1])), expected)
    with pytest.raises(ValueError, match="of them are missing: 'g0'"):
        model.predict(Annotated(named(NEW).rename(columns="other {}".format)))


def test_new_samples_may_be_stored_elsewhere(tmp_path):
    model = HighVarianceHC(40, n_clusters=3).fit(mapped(X, tmp_path))
    expected = model.predict(NEW)
    np.testing.assert_array_equal(model.predict(mapped(NEW, tmp_path)), expected)
    np.testing.assert_array_equal(model.predict(NEW[:1]), expected[:1])
    with pytest.raises(ValueError, match="must have the 80 features of the fit, but has 70"):
        model.predict(mapped(NEW[:, :70], tmp_path))


@pytest.mark.parametrize("model", TREES, ids=names)
def test_missing_values_of_new_samples_change_little(model):
    model.fit(X)
    holes = np.where(np.random.default_rng(0).uniform(size=NEW.shape) < 0.1, np.nan, NEW)
    assert np.mean(model.predict(holes) == model.predict(NEW)) >= 0.8
    holes[3] = np.nan
    with pytest.raises(ValueError, match=r"Every new sample needs .* but sample 3 does not have"):
        model.predict(holes)


def test_fits_to_missing_values_predict():
    holes = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X)
    for model in (TREES[0], TREES[2], SHC(30, n_clusters=3), HighVarianceHC(40, n_clusters=3)):
        assert np.mean(model.fit(holes).predict(holes) == model.labels_) >= 0.9


def test_outlying_samples_are_assigned_and_do_not_move_the_centres():
    spoilt = np.vstack([X, X[:2] + 40.0])
    model = MrSHC(selection="association", linkage="ward", robust=True).fit(spoilt)
    assert list(model.outlier_samples_) == [45, 46]
    clean = MrSHC(selection="association", linkage="ward", robust=True).fit(X)
    assert agreement(model.predict(NEW), clean.predict(NEW)) == 1
    far = NEW + 1e3 * np.sign(NEW)
    assert model.cluster_distances(far).max() < 1e4, "values are winsorised"


def test_a_single_cluster_and_a_tree_without_a_cut():
    noise = np.random.default_rng(0).normal(size=(30, 60))
    with pytest.warns(UserWarning, match="not supported"):
        model = MrSHC(selection="association", linkage="ward").fit(noise)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.predict(noise[:5]), np.zeros(5))
    model = HighVarianceHC(10, n_clusters=2).fit(noise)
    model.set_params(n_clusters=None).fit(noise)
    with pytest.raises(ValueError, match="predict needs clusters, but n_clusters was None"):
        model.predict(noise)


def test_constant_samples_have_no_correlation():
    model = HighVarianceHC(40, n_clusters=3, metric="correlation").fit(X)
    new = NEW.copy()
    new[2] = 1.5
    with pytest.raises(ValueError, match="at least three observed values, not all equal, among"):
        model.predict(new)


def test_models_predict_after_pickling_and_in_pipelines():
    model = make_pipeline(StandardScaler(), HighVarianceHC(40, n_clusters=3)).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_centres_of_another_cut():
    model = HighVarianceHC(40).fit(X)
    centres = model.cluster_centres(X, k=2)
    expected = [X[model.cut(2) == k][:, model.get_support()].mean(axis=0) for k in range(2)]
    np.testing.assert_allclose(centres.values, expected)
