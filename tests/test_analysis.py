"""What is told about a fit is right, and mistakes are found before anything is written."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_score

from mrshc import SHC, HighVarianceHC, MrSHC
from mrshc.analysis import compare_methods, fit, plan_of, preparation, summary
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import Table
from mrshc.metrics import classification_error_rate
from mrshc.preprocessing import chain

DATA = make_simulation_1(5, mu=2.0)
X = DATA.X[:, :80]


def table(values=X, **annotations):
    n, p = values.shape
    samples = np.array([f"s{i}" for i in range(n)], dtype=object)
    features = np.array([f"g{j}" for j in range(p)], dtype=object)
    return Table(
        X=values,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(annotations, index=samples),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )


def run(method="mrshc", values=X, steps=(), truth=None, annotations=None, **parameters):
    if method == "mrshc":
        parameters = {"n_references": 10, "max_rank": 2, "random_state": 1, **parameters}
    made = table(values, **(annotations or {}))
    return fit(plan_of(made, method=method, parameters=parameters, steps=steps, truth=truth))


def test_the_fit_is_that_of_the_estimator():
    result = run(n_features_to_select=[10, 20, 40])
    model = MrSHC([10, 20, 40], n_references=10, max_rank=2, random_state=1).fit(X)
    np.testing.assert_array_equal(result.labels_, model.labels_)
    np.testing.assert_array_equal(result.linkage_matrix_, model.linkage_matrix_)
    np.testing.assert_array_equal(result.selected, model.transform(X))
    in_order = result.features.sort_values("position")
    np.testing.assert_array_equal(in_order["selected"], model.get_support())
    loadings = in_order[[f"loading_{k}" for k in range(1, model.rank_ + 1)]]
    # Sums over a table with names run in another order.
    np.testing.assert_allclose(loadings.to_numpy().T, model.components_, atol=1e-12)


def test_features_are_described_by_means_and_effects():
    result = run(n_features_to_select=30)
    in_order = result.features.sort_values("position")
    for k in range(result.n_clusters_):
        means = X[result.labels_ == k].mean(axis=0)
        np.testing.assert_allclose(in_order[f"mean_cluster_{k + 1}"], means, rtol=1e-12)
    groups = [X[result.labels_ == k] for k in range(result.n_clusters_)]
    within = sum(((g - g.mean(axis=0)) ** 2).sum(axis=0) for g in groups)
    effect = 1 - within / ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(in_order["effect_size"], effect, atol=1e-12)
    shown = result.features
    assert shown["selected"].is_monotonic_decreasing
    assert shown[shown["selected"]]["effect_size"].is_monotonic_decreasing


def test_scores_use_known_classes_only_and_do_not_change_the_fit():
    classes = np.array([f"c{label}" for label in DATA.labels], dtype=object)
    blind = run(n_features_to_select=30)
    seen = run(n_features_to_select=30, truth="class", annotations={"class": classes})
    np.testing.assert_array_equal(seen.labels_, blind.labels_)
    scores = seen.about["scores"]
    assert scores["cer"] == classification_error_rate(DATA.labels, seen.labels_)
    assert blind.about["scores"] is None
    gaps = classes.copy()
    gaps[:5] = None
    partly = run(n_features_to_select=30, truth="class", annotations={"class": gaps}).about[
        "scores"
    ]
    assert partly["n_samples"] == 55
    assert partly["cer"] == classification_error_rate(DATA.labels[5:], seen.labels_[5:])


@pytest.mark.parametrize("method", ["hc", "hmv", "shc"])
def test_methods_without_a_rule_for_k_are_cut_where_the_silhouette_is_best(method):
    given = {} if method == "hc" else {"n_features_to_select": 50}
    result = run(method, **given)
    kind = {"hc": HighVarianceHC(80), "hmv": HighVarianceHC(50), "shc": SHC(50)}[method]
    model = kind.fit(X)
    np.testing.assert_array_equal(result.labels_, model.cut(result.n_clusters_))
    distances = (
        model.dissimilarity_
        if method == "shc"
        else cdist(model.transform(X), model.transform(X), "sqeuclidean")
    )
    widths = {
        k: silhouette_score(distances, model.cut(k), metric="precomputed") for k in range(2, 11)
    }
    assert result.n_clusters_ == max(widths, key=lambda k: widths[k])
    fixed = run(method, n_clusters=5, **given)
    np.testing.assert_array_equal(fixed.labels_, model.cut(5))


def test_shc_takes_missing_values_and_others_say_what_to_do():
    gaps = X.copy()
    gaps[3, 4] = gaps[10, 7] = np.nan
    assert run("shc", gaps, n_features_to_select=20).about["data"]["n_missing"] == 2
    with pytest.raises(UserError, match=r"2 of 4,800 values are missing\. Add --impute features"):
        run("mrshc", gaps)
    filled = run("mrshc", gaps, steps=chain(impute="features"), n_features_to_select=20)
    assert filled.about["preprocessing"][0]["n_values_changed"] == 2


def test_preprocessing_is_told_with_its_counts():
    steps = chain(top_variance=40, standardize="features")
    plan = plan_of(table(), steps=steps, parameters={"random_state": 0})
    assert plan.feature_names.size == 40
    told = preparation(plan)
    assert told[0].endswith("40 features removed, 40 left.")
    assert "removed" not in told[1]


def test_the_summary_says_what_was_chosen():
    classes = np.array([f"c{label}" for label in DATA.labels], dtype=object)
    told = "\n".join(
        summary(run(n_features_to_select=30, truth="class", annotations={"class": classes}))
    )
    assert "Chose q = 30 of 80 features" in told
    assert "Clusters (samples): 1 (" in told
    assert "Against 'class': classification error rate" in told


def test_warnings_are_told_and_kept():
    noise = np.random.default_rng(0).normal(size=(20, 30))
    result = run(values=noise, n_features_to_select=10, n_clusters=6)
    assert any("The gap statistic supports" in warning for warning in result.about["warnings"])
    assert any(sentence.startswith("Note: The gap") for sentence in summary(result))


def test_one_cluster_separates_nothing():
    noise = np.random.default_rng(0).normal(size=(40, 60))
    result = run(values=noise, n_features_to_select=20)
    assert result.n_clusters_ == 1
    assert result.features["effect_size"].isna().all()
    assert "one cluster: no groups were found" in summary(result)[0]


def test_the_same_work_is_known_again_and_other_work_is_not():
    plan = plan_of(table(), parameters={"random_state": 0, "n_jobs": 1})
    same = plan_of(table(), parameters={"random_state": 0, "n_jobs": 2})
    others = [
        plan_of(table(), parameters={"random_state": 1}),
        plan_of(table(X + 1e-9), parameters={"random_state": 0}),
        plan_of(table(), method="hc", parameters={"random_state": 0}),
        plan_of(table(**{"class": ["x"] * 60}), parameters={"random_state": 0}),
    ]
    assert plan.work == same.work
    assert len({plan.work, *(other.work for other in others)}) == 5


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ({"truth": "clas"}, "There is no annotation 'clas' of the samples; there are: class, age"),
        ({"method": "kmeans"}, "method must be one of mrshc, shc, hc, hmv, got 'kmeans'"),
        ({"method": "hmv"}, "Method hmv needs a number of features"),
        ({"method": "hc", "parameters": {"n_features_to_select": 5}}, "hc takes all features"),
        ({"method": "hc", "parameters": {"rank": 2}}, "--rank has no meaning for method hc"),
        ({"steps": chain(top_variance=500)}, r"--top-variance must be a whole number in \[1, 80\]"),
        ({"steps": chain(log2=True)}, "logarithm"),
    ],
)
def test_mistakes_are_found_before_the_fit(mistake, sentence):
    made = table(**{"class": ["x", "y"] * 30, "age": np.arange(60.0)})
    with pytest.raises(UserError, match=sentence):
        plan_of(made, **mistake)


def test_more_features_than_survive_the_filters():
    with pytest.raises(
        UserError, match=r"--n-features must be .* \[1, 40\], got 50.*relax the filter"
    ):
        run(steps=chain(top_variance=40), n_features_to_select=50)


def test_the_paper_s_methods_side_by_side():
    classes = [f"c{label}" for label in DATA.labels]
    parameters = {"random_state": 0, "n_features_to_select": 30, "linkage": "average"}
    plan = plan_of(table(**{"class": classes}), parameters=parameters, truth="class")
    scores = compare_methods(plan, n_clusters=None).scores
    assert list(scores.index) == ["HC", "SHC", "MrSHC", "HC-HMV"]
    assert list(scores["n_features"]) == [80, 30, 30, 30]
    expected = HighVarianceHC(80, linkage="average").fit(X).cut(3)
    assert scores.loc["HC", "cer"] == classification_error_rate(DATA.labels, expected)
