"""Cuts, prediction, markers, summaries and other methods of fitted trees."""

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import dendrogram

from mrshc.core.trees import pairwise_distances
from mrshc.datasets import make_simulation_1
from mrshc.estimators import COSA, SHC, AssociationHC, HighVarianceHC, MrSHC, SparseKMeans

DATA = make_simulation_1(0, mu=2.0)
IS_NEW = np.arange(60) % 4 == 0
# The middle cluster is a profile of its own, and the others differ from it in both directions:
# correlations would not see a shift of all features.
J = np.arange(80)
SHIFTED = DATA.X[:, :80] * np.where(J % 2, -1.0, 1.0) + np.where(J % 4 < 2, 2.0, -2.0)
X, NEW, TRUTH = SHIFTED[~IS_NEW], SHIFTED[IS_NEW], DATA.labels[IS_NEW]
MODELS = {
    "MrSHC": MrSHC(30, rank=1, n_references=5, random_state=0, metric="cityblock"),
    "AssociationHC": AssociationHC(),
    "correlation": AssociationHC(linkage="average", metric="correlation", n_clusters=3),
    "robust": AssociationHC(robust=True),
    "SHC": SHC(30, n_clusters=3),
    "SHC, cityblock": SHC(30, n_clusters=3, metric="cityblock"),
    "HighVarianceHC": HighVarianceHC(40, n_clusters=3, linkage="ward"),
    "COSA": COSA(n_clusters=3),
    "SparseKMeans": SparseKMeans(3, n_features_to_select=30, random_state=0),
}
TREES = [name for name in MODELS if name != "SparseKMeans"]


def named(array):
    return pd.DataFrame(array, columns=[f"g{j}" for j in range(array.shape[1])])


def agreement(labels, others):
    """Share of equal labels after each cluster is renamed by its majority."""
    table = pd.crosstab(labels, others)
    return table.max().sum() / table.to_numpy().sum()


def test_high_variance_features_are_kept():
    data = np.random.default_rng(0).normal(size=(20, 6)) * [1, 5, 3, 4, 2, 1]
    data[:, 5] = data[:, 1]
    model = HighVarianceHC(2, n_clusters=3).fit(data)
    np.testing.assert_array_equal(model.get_support(indices=True), [1, 5])
    assert HighVarianceHC(1).fit(data).get_support(indices=True).tolist() == [1], "the first"
    np.testing.assert_array_equal(model.labels_, model.cut(3))
    expected = pairwise_distances(data[:, [1, 5]], "sqeuclidean")
    np.testing.assert_allclose(model.sample_distances(data), expected)
    with pytest.raises(ValueError, match="fit_predict needs n_clusters, got None"):
        HighVarianceHC(2).fit_predict(data)
    assert not hasattr(model.set_params(n_clusters=None).fit(data), "labels_")


# Cuts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
def test_clusters_are_numbered_from_the_left_of_the_drawn_tree(name):
    data = X.copy()
    data[7] *= 20.0  # an outlying sample, which a robust fit attaches to the tree
    model = MODELS[name].fit(data)
    leaves = dendrogram(model.linkage_matrix_, no_plot=True)["leaves"]
    for labels in (model.labels_, model.cut(2), model.cut(9)):
        drawn = labels[leaves]
        assert (drawn[0], drawn[-1]) == (0, labels.max())
        assert set(np.diff(drawn)) <= {0, 1}
    assert labels.max() == 8
    assert (model.cut(1) == 0).all()
    markers = model.markers(data, k=9, alpha=1.0).query("contrast == 'split'")
    for inside, outside in zip(markers["inside"], markers["outside"], strict=True):
        assert int(inside.split(", ")[-1]) < int(outside.split(", ")[0])
    for k in (0, 46, 2.5):
        with pytest.raises(ValueError, match=r"k must be a whole number in \[1, 45\]"):
            model.cut(k)


# Prediction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_samples_keep_their_clusters_and_new_ones_are_recognised(name):
    model = MODELS[name].fit(X)
    assert np.mean(model.predict(X) == model.labels_) >= 0.95
    if name != "COSA":  # which does not find these clusters
        assert agreement(model.predict(NEW), TRUTH) >= 0.9
    np.testing.assert_array_equal(model.predict(NEW[:1]), model.predict(NEW)[:1])
    if name == "SparseKMeans":
        return
    distances = model.cluster_distances(NEW)
    np.testing.assert_array_equal(model.predict(NEW), distances.argmin(axis=1))
    centres = model.cluster_centres(X)
    values = NEW[:, centres.features]
    np.testing.assert_array_equal(centres.distances(values), distances)
    k = model.labels_.max() + 1
    again = model.cluster_centres(X, k=k)
    np.testing.assert_allclose(again.distances(values), distances)
    holes = np.where(np.random.default_rng(0).uniform(size=NEW.shape) < 0.1, np.nan, NEW)
    assert np.mean(model.predict(holes) == model.predict(NEW)) >= 0.8
    holes[3] = np.nan
    with pytest.raises(ValueError, match=r"Every new sample needs .* but sample 3 does not have"):
        model.predict(holes)


def test_centres_of_another_cut():
    model = HighVarianceHC(40).fit(X)
    centres = model.cluster_centres(X, k=2)
    expected = [X[model.cut(2) == k][:, model.get_support()].mean(axis=0) for k in range(2)]
    np.testing.assert_allclose(centres.values, expected)
    with pytest.raises(ValueError, match="predict needs clusters, but n_clusters was None"):
        model.predict(NEW)
    with pytest.raises(ValueError, match="markers needs clusters, but n_clusters was None"):
        model.markers(X)


@pytest.mark.parametrize("name", MODELS)
def test_features_are_matched_by_name(name):
    model = MODELS[name].fit(named(X))
    expected = model.predict(named(NEW))
    mixed = named(NEW).assign(note="text", other=7.0).sample(frac=1, axis=1, random_state=0)
    np.testing.assert_array_equal(model.predict(mixed), expected)
    selected = named(NEW).columns if name == "COSA" else model.get_feature_names_out()
    np.testing.assert_array_equal(model.predict(named(NEW)[selected[::-1]]), expected)
    np.testing.assert_array_equal(
        model.transform(named(NEW).iloc[:, ::-1]), NEW[:, model.get_support()]
    )
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(NEW), expected)
    with pytest.raises(ValueError, match=f"1 of them is missing: '{selected[0]}'. Check the names"):
        model.predict(named(NEW).drop(columns=selected[0]))
    with pytest.raises(ValueError, match=r"and \d+ more\. Check the names, and whether samples"):
        model.predict(named(NEW).T.rename(columns="s{}".format))
    twice = pd.concat([named(NEW), named(NEW)[[selected[1]]]], axis=1)
    with pytest.raises(ValueError, match=f"'{selected[1]}' names more than one column"):
        model.predict(twice)
    with pytest.raises(ValueError, match=f"sample 0, feature '{selected[0]}' holds the text"):
        model.predict(named(NEW).assign(**{selected[0]: "high"}))
    with pytest.raises(ValueError, match=r"values below 1e.150, but sample 1 holds inf"):
        model.predict(named(NEW).assign(**{selected[0]: [0.0, np.inf, *NEW[2:, 0]]}))


# Markers ------------------------------------------------------------------------------------


# The data of the fit ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["markers", "sample_distances", "data_of_fit"])
def test_methods_need_the_data_of_the_fit(method):
    frame = named(X).set_axis([f"s{i}" for i in range(45)])
    model = HighVarianceHC(5, n_clusters=2).fit(frame)
    call = getattr(model, method)
    for same in (
        frame,
        frame.iloc[:, ::-1],
        frame.assign(note="text"),
        frame.reset_index(drop=True),
    ):
        call(same)
    for other in (frame.iloc[::-1], frame.rename({"s3": "x"})):
        with pytest.raises(
            ValueError, match="X must be the data of the fit with the samples in the"
        ):
            call(other)
    with pytest.raises(ValueError, match="the data of the fit, with 45 samples, got 15"):
        call(named(NEW))
    with pytest.raises(ValueError, match="needed, but 1 of them is missing: 'g0'"):
        call(frame.iloc[:, 1:])
    plain = HighVarianceHC(5, n_clusters=2).fit(X)
    shuffled = pd.DataFrame(X)[::-1]
    for other in (shuffled, pd.DataFrame(X).iloc[:, ::-1]):
        with pytest.raises(ValueError, match="in the same order"):
            getattr(plain, method)(other)


def test_features_of_markers_have_their_own_names():
    model = HighVarianceHC(5, n_clusters=2).fit(named(X))
    expected = model.markers(named(X), alpha=1.0)
    reordered = model.markers(named(X).iloc[:, ::-1], alpha=1.0)
    pd.testing.assert_frame_equal(reordered, expected)
    assert set(expected.query("selected")["feature"]) == set(model.get_feature_names_out())
    plain = HighVarianceHC(5, n_clusters=2).fit(X)
    assert set(plain.markers(X, alpha=1.0)["feature"]) == set(range(80))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        table = plain.markers(named(X), alpha=1.0)
    pd.testing.assert_frame_equal(table, expected)


# Summaries ----------------------------------------------------------------------------------


def test_summaries_describe_the_fit():
    model = HighVarianceHC(40, n_clusters=3, linkage="ward").fit(named(X))
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    assert str(model.summary()) == (
        "HighVarianceHC(linkage='ward', n_clusters=3, n_features_to_select=40)\n"
        "  data               45 samples, 80 features\n"
        f"  clusters           3 (sizes {sizes})\n"
        "  selected features  40 of 80 (50.00%)"
    )
    html = model.summary()._repr_html_()
    assert "<caption>HighVarianceHC(linkage=&#x27;ward&#x27;" in html
    assert html.count("<tr>") == 3
    assert repr(model.summary()) == str(model.summary())


def rows_of(model, data=X):
    return dict(model.fit(data).summary().rows)


def test_rows_of_summaries():
    rows = rows_of(MODELS["AssociationHC"], named(X).rename(columns={"g0": "a\n0"}))
    model = MODELS["AssociationHC"]
    n = model.associated_features_.size
    assert rows["held-out features"] == f"support the clusters; {n:,} are associated with them"
    assert rows["rank"] == str(model.rank_)
    assert rows["candidates compared"] == str(len(model.search_results_["chosen"]))
    largest = np.argsort(-np.abs(model.components_).max(axis=0), kind="stable")[:8]
    shown = rows["largest loadings"].split(" and ")[0].split(", ")
    assert shown == ["a?0" if j == 0 else f"g{j}" for j in largest]
    n_loaded = np.count_nonzero(model.components_.any(axis=0))
    assert rows["largest loadings"].endswith(f" and {n_loaded - 8:,} more")
    spoilt = X.copy()
    spoilt[[4, 9]] += 40.0
    assert rows_of(MODELS["robust"], spoilt)["outlying samples"] == "4, 9"
    rows = rows_of(HighVarianceHC(5))
    assert rows["clusters"] == "none: the tree was not cut; set n_clusters, or use cut(k)"
    rows = rows_of(HighVarianceHC(5, n_clusters=14))
    assert rows["clusters"].startswith("14 (sizes ")
    assert rows["clusters"].endswith(" and 2 more)")
    assert rows_of(HighVarianceHC(5, n_clusters=1))["clusters"] == "1"
    rows = rows_of(SHC(30, n_clusters=3, max_iter=1))
    assert rows["convergence"] == "not reached; the result may differ from the optimum"
    largest = np.argsort(-SHC(30, max_iter=1).fit(X).feature_weights_, kind="stable")[:8]
    assert rows["largest weights"].startswith(", ".join(map(str, largest)))
    assert "convergence" not in rows_of(MODELS["SparseKMeans"])
    title = SHC(30, complement_of=np.ones((45, 45)) - np.eye(45)).fit(X).summary().title
    assert title == "SHC(complement_of=<ndarray>, n_features_to_select=30)"
