"""Results and messages of a fit are right, and mistakes are found before anything is written."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score, silhouette_samples, silhouette_score

from mrshc import COSA, SHC, AssociationHC, HighVarianceHC, MrSHC
from mrshc.app import (
    compare_methods,
    comparison_notes,
    fit,
    make_plan,
    preprocessing_summary,
    result_summary,
)
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import Table, load_result
from mrshc.io.result import outlier_message, write_result
from mrshc.metrics import classification_error_rate
from mrshc.preprocessing import chain
from mrshc.report.sentences import answer_sentences, facts

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
    return fit(make_plan(made, method=method, parameters=parameters, steps=steps, truth=truth))


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


@pytest.mark.parametrize("method", ["mrshc", "hc"])
def test_clusters_are_numbered_from_1_in_the_order_of_the_leaves(method):
    given = {"n_features_to_select": 30} if method == "mrshc" else {}
    result = run(method, n_clusters=6, **given)
    in_order = result.samples.sort_values("leaf")["cluster"]
    assert in_order.is_monotonic_increasing
    assert (in_order.iloc[0], in_order.iloc[-1]) == (1, 6)
    assert result.about["cluster_sizes"] == in_order.value_counts(sort=False).tolist()
    splits = result.markers.query("contrast == 'split'")
    assert len(splits)
    for inside, outside in zip(splits["inside"], splits["outside"], strict=True):
        assert int(inside.split(", ")[-1]) < int(outside.split(", ")[0])


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
    assert scores["ari"] == adjusted_rand_score(DATA.labels, seen.labels_)
    model = MrSHC(30, n_references=10, max_rank=2, random_state=1).fit(X)
    assert scores["ari_at_n_classes"] == adjusted_rand_score(DATA.labels, model.cut(3))
    assert blind.about["scores"] is None
    gaps = classes.copy()
    gaps[:5] = None
    partly = run(n_features_to_select=30, truth="class", annotations={"class": gaps}).about[
        "scores"
    ]
    assert partly["n_samples"] == 55
    assert partly["cer"] == classification_error_rate(DATA.labels[5:], seen.labels_[5:])
    assert partly["ari"] == adjusted_rand_score(DATA.labels[5:], seen.labels_[5:])


# Methods that do not have the parameter `n_features_to_select`.
WITHOUT_NUMBER = ("hc", "cosa")


@pytest.mark.parametrize("method", ["hc", "hmv", "shc", "cosa"])
def test_methods_without_a_rule_for_k_are_cut_where_the_silhouette_is_best(method):
    given = {} if method in WITHOUT_NUMBER else {"n_features_to_select": 50}
    result = run(method, **given)
    kinds = {"hc": HighVarianceHC(80), "hmv": HighVarianceHC(50), "shc": SHC(50), "cosa": COSA()}
    model = kinds[method].fit(X)
    np.testing.assert_array_equal(result.labels_, model.cut(result.n_clusters_))
    distances = (
        model.dissimilarity_
        if method in ("shc", "cosa")
        else cdist(model.transform(X), model.transform(X), "sqeuclidean")
    )
    widths = {
        k: silhouette_score(distances, model.cut(k), metric="precomputed") for k in range(2, 11)
    }
    assert result.n_clusters_ == max(widths, key=lambda k: widths[k])
    fixed = run(method, n_clusters=5, **given)
    np.testing.assert_array_equal(fixed.labels_, model.cut(5))


@pytest.mark.parametrize(
    "title", ["sample", "cluster", "leaf", "outlying", "feature", "position", "loading_1"]
)
def test_annotations_titled_as_our_own_columns_are_kept(title, tmp_path):
    made = table(X, **{title: DATA.labels.astype(str)})
    kinds = pd.DataFrame({title: [*"uv"] * 40}, index=made.feature_names)
    made = replace(made, feature_annotations=kinds)
    parameters = {"n_features_to_select": 5, "n_clusters": 3}
    for extra in ({}, {"truth": title}):
        write_result(fit(make_plan(made, method="hmv", parameters=parameters, **extra)), tmp_path)
        result = load_result(tmp_path)
        kept = result.sample_annotations.iloc[:, 0]
        assert list(kept) == DATA.labels.astype(str).tolist()
        of_features = result.about["annotations"]["features"][0]["name"]
        assert result.features[of_features].value_counts().tolist() == [40, 40]
        assert all(name.startswith(title) for name in (kept.name, of_features))


GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
ESTIMATORS = {
    "mrshc": MrSHC(20, n_references=10, max_rank=2, random_state=1),
    "shc": SHC(20, n_clusters=3),
    "hc": HighVarianceHC(80, n_clusters=3),
    "hmv": HighVarianceHC(20, n_clusters=3),
    "cosa": COSA(n_clusters=3),
}


@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_method_takes_missing_values(method):
    given = {} if method in WITHOUT_NUMBER else {"n_features_to_select": 20}
    given |= {} if method == "mrshc" else {"n_clusters": 3}
    result, model = run(method, GAPS, **given), ESTIMATORS[method].fit(GAPS)
    np.testing.assert_array_equal(result.labels_, model.labels_)
    widths = silhouette_samples(model.sample_distances(GAPS), model.cut(4), metric="precomputed")
    np.testing.assert_allclose(result.silhouettes["cut_4"], widths, atol=1e-9)
    assert result.n_missing == np.isnan(GAPS[:, model.get_support()]).sum() > 0


def test_missing_values_may_be_imputed_first():
    filled = run("mrshc", GAPS, steps=chain(impute="features"), n_features_to_select=20)
    assert filled.about["preprocessing"][0]["n_values_changed"] == np.isnan(GAPS).sum()
    assert filled.n_missing == 0


def test_many_missing_values_are_a_concern():
    many = np.where(np.random.default_rng(0).random(X.shape) < 0.4, np.nan, X)
    (sentence,) = run("hc", many, n_clusters=3).caveats
    assert sentence.startswith("40% of the cells of the selected features are missing")
    assert run("hc", GAPS, n_clusters=3).caveats == []


def test_features_without_values_are_left_out_by_name():
    gaps = X.copy()
    gaps[:, [4, 9]] = np.nan
    plan = make_plan(table(gaps))
    assert preprocessing_summary(plan) == [
        "Features without any value, 2 features removed, 78 left: g4, g9."
    ]
    assert not {"g4", "g9"} & set(plan.feature_names)


def test_samples_without_values_are_refused_by_name():
    gaps = X.copy()
    gaps[7] = np.nan
    with pytest.raises(UserError, match="Every sample needs a value, but sample 's7' has none"):
        make_plan(table(gaps))
    gaps[7, np.argmin(np.nanvar(gaps, axis=0))] = 0.0  # in a feature that the filter removes
    with pytest.raises(UserError, match="sample 's7' has none in the 10 features that are left"):
        make_plan(table(gaps), steps=chain(top_variance=10))


def test_samples_that_share_nothing_are_refused_by_name_where_that_matters():
    gaps = X.copy()
    gaps[7, :40] = gaps[9, 40:] = np.nan
    with pytest.raises(UserError, match=r"but 's7' and 's9' have none in common.*impute="):
        make_plan(table(gaps), method="shc")
    parameters = {"n_features_to_select": 20, "random_state": 0}
    plan = make_plan(table(gaps), method="mrshc", parameters=parameters)
    with pytest.raises(UserError, match="'s7' and 's9' have none in common"):
        compare_methods(plan, n_clusters=2)
    assert fit(make_plan(table(gaps), method="hc", parameters={"n_clusters": 3})).n_clusters_ == 3


def test_associated_features_are_those_of_the_estimator():
    result = run("association")
    model = AssociationHC().fit(X)
    in_order = result.features.sort_values("position")
    np.testing.assert_array_equal(in_order["q_value"], model.feature_qvalues_)
    assert np.flatnonzero(in_order["associated"]).tolist() == model.associated_features_.tolist()
    np.testing.assert_array_equal(in_order["selected"], model.get_support())
    np.testing.assert_array_equal(result.labels_, model.labels_)
    about = result.about
    assert (about["supported"], about["n_associated"]) == (True, model.associated_features_.size)
    assert about["splits"] == []
    for name, column in model.search_results_.items():
        np.testing.assert_allclose(result.search_results_[name], column)


def test_structure_without_support_is_reported_as_one_cluster():
    noise = np.random.default_rng(0).normal(size=(40, 60))
    result = run("association", noise)
    assert (result.n_clusters_, result.about["supported"], result.about["n_associated"]) == (
        1,
        False,
        0,
    )
    assert result.markers.empty
    assert sum("not supported by held-out features" in s for s in result_summary(result)) == 1


def test_without_tests_of_features_the_result_does_not_mention_them():
    result = run(n_features_to_select=20)
    assert (result.about["supported"], result.about["n_associated"]) == (None, None)
    assert not {"q_value", "associated"} & set(result.features)
    assert "outlying" not in result.samples
    assert not any("associated" in text for text in result_summary(result))


def test_outlying_samples_are_named():
    spoilt = X.copy()
    spoilt[[4, 50]] += np.random.default_rng(1).normal(scale=8, size=(2, 80))
    result = run(values=spoilt, n_features_to_select=20, robust=True)
    assert np.flatnonzero(result.samples["outlying"]).tolist() == [4, 50]
    assert result.outlier_samples_.tolist() == [4, 50]
    assert result.about["outliers"] == ["s4", "s50"]
    expected_start = (
        "Note: Samples s4, s50 are outlying: set apart, and attached to the nearest cluster"
    )
    assert any(sentence.startswith(expected_start) for sentence in result_summary(result))
    clean = run(n_features_to_select=20, robust=True)
    assert not clean.samples["outlying"].any()
    assert (clean.about["outliers"], clean.caveats) == ([], [])


def test_many_outlying_samples_are_counted():
    assert outlier_message(["a"]).startswith("Sample a is outlying")
    assert outlier_message(list("abcdefgh")).startswith(
        "Samples a, b, c, d, e and 3 more are outlying"
    )


def test_markers_are_those_of_the_estimator_by_name_and_counted_from_one():
    result = run(n_features_to_select=20)
    model = ESTIMATORS["mrshc"].fit(X)
    expected = model.markers(X)
    np.testing.assert_allclose(result.markers["effect_size"], expected["effect_size"])
    assert result.markers["feature"].tolist() == [f"g{j}" for j in expected["feature"]]
    back = [", ".join(str(int(k) - 1) for k in text.split(", ")) for text in result.markers.outside]
    assert back == expected["outside"].tolist()
    assert result.markers["q_value"].max() <= 0.05


def test_markers_belong_to_the_clusters_that_were_cut():
    result = run("hc")
    own = result.markers.query("contrast == 'cluster'")
    sizes = dict(enumerate(result.about["cluster_sizes"], start=1))
    assert {
        int(k): n for k, n in zip(own.inside, own.n_inside, strict=True)
    }.items() <= sizes.items()


def test_preprocessing_is_reported_with_its_counts():
    steps = chain(top_variance=40, standardize="features")
    plan = make_plan(table(), steps=steps, parameters={"random_state": 0})
    assert plan.feature_names.size == 40
    sentences = preprocessing_summary(plan)
    assert sentences[0].endswith("40 features removed, 40 left.")
    assert "removed" not in sentences[1]


def test_the_summary_reports_the_choice():
    classes = np.array([f"c{label}" for label in DATA.labels], dtype=object)
    result = run(n_features_to_select=30, truth="class", annotations={"class": classes})
    sentences = "\n".join(result_summary(result))
    assert "Chose q = 30 of 80 features" in sentences
    assert "Clusters (samples): 1 (" in sentences
    scores = result.about["scores"]
    definition = "share of pairs of samples that one partition puts together and the other apart"
    assert f"Against 'class': classification error rate {scores['cer']:.3f} ({definition})" in (
        sentences
    )
    assert f"adjusted Rand index {scores['ari']:.3f}, purity" in sentences
    assert f"adjusted Rand index {scores['ari_at_n_classes']:.3f}." in sentences
    report = " ".join(answer_sentences(result))
    assert f"classification error rate is {scores['cer']:.3f}: the {definition}." in report
    assert f"adjusted Rand index is {scores['ari']:.3f}" in report
    numbers = dict(facts(result))
    assert numbers["adjusted Rand index (class)"] == f"{scores['ari']:.3f}"
    assert not any("error rate" in name for name in numbers), "it needs an explanation next to it"


def test_warnings_are_reported_and_stored():
    noise = np.random.default_rng(0).normal(size=(20, 30))
    result = run(values=noise, n_features_to_select=10, n_clusters=6)
    assert any("The gap statistic finds" in warning for warning in result.about["warnings"])
    summary = result_summary(result)
    assert sum(sentence.startswith("Note: The gap") for sentence in summary) == 1
    assert summary[0].endswith("rank r = 1. Cut the tree into K = 6 clusters, the number given.")
    seen = [text for text in summary if text.startswith("Note: ")]
    known = [text.removeprefix("Note: ") for text in seen]
    assert set(summary) - set(result_summary(result, known_caveats=known)) == set(seen)


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_a_given_number_of_clusters_is_obtained_without_support(n_clusters):
    noise = np.random.default_rng(0).normal(size=(40, 60))
    result = run("association", noise, n_clusters=n_clusters)
    assert result.about["supported"] is False
    assert result.n_clusters_ == result.samples["cluster"].nunique() == n_clusters
    summary = " ".join(result_summary(result))
    assert f"K = {n_clusters} clusters" in summary
    assert "no groups" not in summary
    assert "not supported by held-out features" in summary
    assert "No groups" not in " ".join(answer_sentences(result))


def test_one_cluster_that_was_asked_for_is_not_reported_as_a_finding():
    result = run("hc", n_clusters=1)
    assert result.n_clusters_given == result.n_clusters_ == 1
    assert "one cluster, as asked for." in result_summary(result)[0]
    assert "All samples are in one cluster, as asked for." in answer_sentences(result)
    assert run("hc").n_clusters_given is None


def test_the_report_compares_candidates_at_the_clusters_of_the_chosen_one():
    """Six clusters are given, but no tree has six clusters by the gap statistic."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 20))
    X[:15, :10] += 6.0
    result = run(values=X, n_features_to_select=[4, 8], rank=1, n_clusters=6)
    n_leaves = result.chosen_candidate["n_leaves"]
    assert 1 < n_leaves < result.n_clusters_ == 6
    sentences = " ".join(answer_sentences(result))
    assert "6 clusters" not in sentences
    assert f"{n_leaves} clusters" in sentences


def test_one_cluster_separates_nothing():
    noise = np.random.default_rng(0).normal(size=(40, 60))
    result = run(values=noise, n_features_to_select=20)
    assert result.n_clusters_ == 1
    assert result.features["effect_size"].isna().all()
    assert "one cluster: no groups were found" in result_summary(result)[0]


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ({"truth": "clas"}, "There is no annotation 'clas' of the samples; there are: class, age"),
        (
            {"method": "kmeans"},
            "method must be one of association, mrshc, shc, hc, hmv, cosa, got 'kmeans'",
        ),
        ({"method": "hmv"}, "Method hmv needs a number of features"),
        ({"method": "hc", "parameters": {"n_features_to_select": 5}}, "hc takes all features"),
        ({"method": "hc", "parameters": {"rank": 2}}, "rank has no meaning for method hc"),
        (
            {"method": "shc", "parameters": {"robust": True}},
            "robust has no meaning for method shc",
        ),
        (
            {"parameters": {"n_features_to_select": 5}},
            "n_features_to_select has no meaning for method association",
        ),
        ({"steps": chain(top_variance=500)}, r"n_features must be a whole number in \[1, 80\]"),
        ({"steps": chain(log2=True)}, "logarithm"),
    ],
)
def test_mistakes_are_found_before_the_fit(mistake, sentence):
    made = table(**{"class": ["x", "y"] * 30, "age": np.arange(60.0)})
    with pytest.raises(UserError, match=sentence):
        make_plan(made, **mistake)


def test_more_features_than_survive_the_filters():
    with pytest.raises(
        UserError, match=r"n_features_to_select must be .* \[1, 40\], got 50.*relax the filter"
    ):
        run(steps=chain(top_variance=40), n_features_to_select=50)


def test_the_default_methods_side_by_side():
    classes = [f"c{label}" for label in DATA.labels]
    parameters = {"random_state": 0, "n_features_to_select": 30, "linkage": "average"}
    made = table(**{"class": classes})
    plan = make_plan(made, method="mrshc", parameters=parameters, truth="class")
    comparison = compare_methods(plan, n_clusters=None)
    scores = comparison.scores
    association = comparison.models["AssociationHC"]
    assert association.linkage == "ward"
    assert scores["n_features"].to_dict() == {
        "AssociationHC": association.get_support().sum(),
        "HMV 500, Ward": 80,
        "MrSHC": 30,
        "SHC": 30,
        "HC": 80,
        "HC-HMV": 30,
    }
    expected = HighVarianceHC(80, linkage="average").fit(X).cut(3)
    assert scores.loc["HC", "cer"] == classification_error_rate(DATA.labels, expected)


def test_options_of_a_comparison_reach_the_methods_that_know_them():
    parameters = {"random_state": 0, "n_features_to_select": 20, "robust": True}
    spoilt = X.copy()
    spoilt[4] += np.random.default_rng(1).normal(scale=8, size=80)
    plan = make_plan(table(spoilt), method="mrshc", parameters=parameters)
    comparison = compare_methods(plan, n_clusters=3)
    assert comparison.models["MrSHC"].get_params().items() >= parameters.items()
    n_features = comparison.scores["n_features"]
    assert n_features["HC-HMV"] == n_features["MrSHC"]
    sentences = comparison_notes(comparison, plan)
    expected = ["AssociationHC", "AssociationHC", "MrSHC"]
    assert [text.partition(": ")[0] for text in sentences] == expected
    assert all("Sample s4 is outlying" in text for text in sentences[1:])
