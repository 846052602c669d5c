from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mrshc import SHC, AssociationHC, HighVarianceHC, MethodFailedWarning, MrSHC, compare
from mrshc.comparison import convert_counts_to_integers, default_methods, labels_to_score
from mrshc.datasets import make_simulation_1
from mrshc.methods import METHODS, VARIANTS, register
from mrshc.metrics import classification_error_rate, purity

pytestmark = pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")

DATA = make_simulation_1(0, mu=2.0)
X, SUPPORT = DATA.X[:, 40:70], DATA.support[40:70]


def test_a_comparison_is_shown_as_its_table_of_scores():
    methods = {
        "all": HighVarianceHC(30),
        "ranked": MrSHC(10, rank=2, random_state=0),
        "none": SHC(99),
    }
    with pytest.warns(MethodFailedWarning):
        result = compare(X, methods=methods, truth=DATA.labels)
    text, html = repr(result), result._repr_html_()
    assert text.startswith("Comparison of 3 methods\n")
    assert len(text.splitlines()) == 6
    (row,) = [line for line in text.splitlines() if line.startswith("ranked")]
    assert row.split() == [
        "ranked",
        "10",
        "2",
        *(f"{s:.3f}" for s in result.scores.loc["ranked"][2:5]),
    ]
    assert html.count("<tr") == 2 + 3
    assert "nan" not in (text + html).lower()


def test_methods_are_scored_against_truth_and_support():
    methods = {"all": HighVarianceHC(30), "sparse": SHC(10), "ranked": MrSHC(10, random_state=0)}
    result = compare(X, methods=methods, truth=DATA.labels, support=SUPPORT)
    assert list(result.scores.index) == list(result.models) == ["all", "sparse", "ranked"]
    for name, row in result.scores.iterrows():
        model = result.models[name]
        assert row["n_features"] == model.n_features_selected_
        assert row["cer"] == classification_error_rate(DATA.labels, model.cut(3))
        assert row["ari"] == adjusted_rand_score(DATA.labels, model.cut(3))
        hits = (model.get_support() & SUPPORT).sum()
        assert row["recall"] == hits / 10
        assert row["precision"] == hits / model.n_features_selected_
    assert np.isnan(result.scores.loc["all", "rank"])


def test_a_method_may_use_the_result_of_another():
    methods = {
        "first": SHC(7),
        "second": lambda fitted: HighVarianceHC(fitted["first"].n_features_selected_),
    }
    result = compare(X, methods=methods)
    assert result.scores["n_features"].tolist() == [7, 7]
    assert list(result.scores.columns) == ["n_features", "rank"], "no truth, no scores"


def test_default_methods_get_the_parameters_that_they_have():
    methods = default_methods(X, metric="cityblock", robust=True)
    assert methods["AssociationHC"].robust
    assert methods["MrSHC"].robust
    assert methods["SHC"].metric == "cityblock"


def test_methods_take_missing_values():
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    result = compare(gaps, truth=DATA.labels, random_state=0)
    assert "error" not in result.scores


def test_given_estimators_remain_unfitted():
    estimator = HighVarianceHC(5)
    compare(X, methods={"it": estimator})
    assert not hasattr(estimator, "linkage_matrix_")


def test_trees_may_be_cut_into_another_number_than_that_of_the_classes():
    result = compare(X, methods={"it": SHC(10)}, truth=DATA.labels, n_clusters=5)
    expected = classification_error_rate(DATA.labels, result.models["it"].cut(5))
    assert result.scores.loc["it", "cer"] == expected


def test_a_method_that_fails_does_not_stop_the_others():
    methods = {"bad": SHC(99), "good": SHC(5), "follows": lambda fitted: fitted["bad"]}
    with pytest.warns(MethodFailedWarning) as caught:
        result = compare(X, methods=methods)
    assert [str(w.message).split(" failed")[0] for w in caught] == ["bad", "follows"]
    assert list(result.models) == ["good"]
    assert result.scores.loc["bad", "error"].startswith("ValueError: n_features_to_select")
    assert result.scores.loc["good", "n_features"] == 5
    assert result.scores.loc["follows", "error"] == (
        "RuntimeError: it uses the result of bad, which failed"
    )


def test_an_error_of_all_methods_is_raised():
    with pytest.raises(ValueError, match="n_features_to_select must be"):
        compare(X, methods={"one": SHC(99), "two": HighVarianceHC(99)})


@pytest.mark.parametrize("methods", [{}, {"class": SHC}, {"list": [SHC(5)]}, [SHC(5)]])
def test_values_that_are_not_methods_are_refused(methods):
    with pytest.raises(ValueError, match="methods must name methods, or map names to"):
        compare(X, methods=methods)


# Clusterers without a tree ------------------------------------------------------------------------


CLUSTERERS = {
    "k-means": KMeans(3, n_init=3, random_state=0),
    "agglomerative": AgglomerativeClustering(3, linkage="average"),
    "density": HDBSCAN(min_cluster_size=8, copy=True),
}


def test_clusterers_of_scikit_learn_are_scored_by_their_own_clusters():
    methods = {"tree": HighVarianceHC(10), **CLUSTERERS}
    result = compare(X, methods=methods, truth=DATA.labels, support=SUPPORT)
    assert list(result.models) == list(result.scores.index) == list(methods)
    for name in ("k-means", "agglomerative"):
        row, labels = result.scores.loc[name], result.models[name].labels_
        assert row["cer"] == classification_error_rate(DATA.labels, labels)
        assert row["ari"] == adjusted_rand_score(DATA.labels, labels)
        assert row["purity"] == purity(DATA.labels, labels)
    without_tree = result.scores.loc[list(CLUSTERERS)]
    assert without_tree[["n_features", "rank", "recall", "precision"]].isna().all(axis=None)
    assert result.scores.loc["tree", ["n_features", "recall", "precision"]].notna().all()
    assert not hasattr(CLUSTERERS["k-means"], "labels_"), "a copy is fitted"
    assert convert_counts_to_integers(result.scores)["n_features"].tolist() == [10, *[pd.NA] * 3]


def test_scores_need_no_method_with_a_tree():
    result = compare(X, methods=CLUSTERERS, truth=DATA.labels)
    assert convert_counts_to_integers(result.scores)["rank"].isna().all()
    assert result.scores["ari"].notna().all()


def test_every_sample_of_noise_is_a_cluster_of_its_own():
    model = SimpleNamespace(labels_=np.array([0, -1, 0, 2, -1, -2]))
    assert labels_to_score(model, 2).tolist() == [0, 2, 0, 1, 3, 4]
    assert model.labels_.tolist() == [0, -1, 0, 2, -1, -2]
    noise = SimpleNamespace(labels_=np.full(4, -1))
    assert labels_to_score(noise, 2).tolist() == [0, 1, 2, 3]
    result = compare(X, methods={"density": CLUSTERERS["density"]}, truth=DATA.labels)
    labels = result.models["density"].labels_
    assert (labels == -1).any()
    apart = np.where(labels == -1, 1000 + np.arange(60), labels)
    assert result.scores.loc["density", "ari"] == adjusted_rand_score(DATA.labels, apart)


def test_a_clusterer_need_not_derive_from_scikit_learn():
    class Halves:
        def fit(self, X):
            self.labels_ = np.arange(len(X)) % 2
            return self

    given = Halves()
    result = compare(X, methods={"halves": given}, truth=np.arange(60) % 2)
    assert result.scores.loc["halves", "ari"] == 1
    assert not hasattr(given, "labels_")


def test_a_function_may_return_a_clusterer_without_a_tree():
    methods = {"first": KMeans(2, n_init=1), "second": lambda fitted: clone(fitted["first"])}
    assert list(compare(X, methods=methods).models) == ["first", "second"]


def test_estimators_without_clusters_fail():
    methods = {"scaler": StandardScaler(), "good": SHC(5)}
    with pytest.warns(MethodFailedWarning, match="labels_ after fit, but StandardScaler"):
        result = compare(X, methods=methods)
    assert list(result.models) == ["good"]


def test_pipelines_are_refused():
    with pytest.raises(ValueError, match="Transform X first in place of giving a pipeline"):
        compare(X, methods={"it": make_pipeline(StandardScaler(), KMeans(3))})


# Default methods ----------------------------------------------------------------------------------


LABELS = ["AssociationHC", "HMV 500, Ward", "MrSHC", "SHC", "HC", "HC-HMV"]


def test_variants_have_their_fixed_parameters_and_share_the_others():
    given = {"linkage": "average", "metric": "cityblock", "n_features_to_select": [4, 8]}
    methods = default_methods(np.zeros((20, 600)), random_state=3, n_clusters=3, **given)
    assert list(methods) == LABELS
    filtered = methods["HMV 500, Ward"].get_params()
    assert filtered == HighVarianceHC(500, linkage="ward").get_params()
    assert methods["AssociationHC"].get_params() == AssociationHC().get_params()
    assert methods["MrSHC"].linkage == methods["HC"].linkage == "average"
    fitted = {"MrSHC": SimpleNamespace(n_features_selected_=7)}
    assert methods["HC-HMV"](fitted).n_features_to_select == 7


def test_a_variance_filter_takes_all_features_if_there_are_few():
    assert default_methods(X)["HMV 500, Ward"].n_features_to_select == 30


def test_a_variant_that_equals_another_method_is_left_out():
    """With 30 features and Ward's linkage, the variance filter is classical clustering."""
    names = list(default_methods(X, linkage="ward", n_features_to_select=np.array([4, 8])))
    assert names == [name for name in LABELS if name != "HMV 500, Ward"]


def test_methods_are_named_by_their_keys():
    keys = ["sparse-kmeans", "cosa", "shc-ssl", "mrshc", "hmv", "hc", "hmv-500-ward"]
    parameters = {"n_features_to_select": [4, 8], "linkage": "ward", "random_state": 0}
    methods = default_methods(X, methods=keys, n_clusters=3, **parameters)
    # With Ward's linkage, HC and the variance filter are equal, but both were named.
    labels = ["Sparse K-means", "COSA", "SHC-SSL", "MrSHC", "HC-HMV", "HC", "HMV 500, Ward"]
    assert list(methods) == labels
    assert methods["Sparse K-means"].n_clusters == 3
    assert methods["Sparse K-means"].n_features_to_select is None
    assert (methods["SHC-SSL"].penalty, methods["SHC-SSL"].n_features_to_select) == ("ssl", None)
    assert methods["MrSHC"].n_features_to_select == [4, 8]


def test_named_methods_are_fitted_and_scored():
    truth = np.repeat([0, 1], len(X) // 2)
    result = compare(X, methods=["sparse-kmeans", "hc"], truth=truth, random_state=0)
    assert list(result.scores.index) == ["Sparse K-means", "HC"]
    assert result.scores["ari"].notna().all()
    assert result.models["Sparse K-means"].n_clusters == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], r"methods must name different methods out of association, mrshc, .*, got \[\]"),
        ("hc", "methods must name different methods"),
        (["hc", "hc"], "methods must name different methods"),
        (["hc", "foo"], r"out of association, mrshc, .*sparse-kmeans, got \['hc', 'foo'\]"),
        (["hmv", "mrshc"], "must name mrshc before it, got hmv, mrshc. Name mrshc first."),
        (["hc", "sparse-kmeans"], "Sparse K-means needs the number of clusters"),
    ],
)
def test_methods_that_cannot_be_compared_are_refused(keys, message):
    with pytest.raises(ValueError, match=message):
        compare(X, methods=keys)


@pytest.mark.parametrize("key", ["hc", "shc-ssl"])
def test_keys_of_methods_and_variants_are_unique(key):
    method = replace(METHODS["shc"], key=key, label="other", fixed={"linkage": "ward"})
    with pytest.raises(ValueError, match="must have a unique key and a unique label"):
        register(method)


def test_variants_are_not_methods_of_the_command_line():
    assert list(METHODS) == ["association", "mrshc", "shc", "hc", "hmv", "cosa"]
    assert list(VARIANTS) == ["hmv-500-ward", "shc-ssl", "sparse-kmeans"]


def test_data_that_are_not_a_table_are_refused():
    with pytest.raises(
        ValueError, match="X must be a table with samples in rows and features in columns"
    ):
        compare(X[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth": DATA.labels[1:]}, "truth must hold a class for each of the 60 samples, got 59"),
        ({"truth": [None] * 60}, "60 of them missing"),
        ({"support": [1, 2]}, "support must be a mask of 30 values"),
        ({"n_clusters": 61}, r"n_clusters must be a whole number in \[1, 60\], got 61"),
    ],
)
def test_invalid_truth_and_support_are_refused_before_anything_is_fitted(options, message):
    def never(_):
        raise AssertionError

    with pytest.raises(ValueError, match=message):
        compare(X, methods={"it": never}, **options)


NAMED = pd.DataFrame(X, index=[f"s{i}" for i in range(60)], columns=[f"g{j}" for j in range(30)])
TRUTH = pd.Series(DATA.labels, index=NAMED.index)
FEATURES = pd.Series(SUPPORT, index=NAMED.columns)


def scores(data, **known):
    return compare(data, methods={"it": HighVarianceHC(10)}, **known).scores.loc["it"].to_dict()


@pytest.mark.parametrize("data", [NAMED, NAMED.reset_index(drop=True)], ids=["named", "numbered"])
def test_classes_and_features_in_a_series_are_matched_by_its_index(data):
    truth, support = TRUTH.set_axis(data.index), FEATURES
    expected = scores(data, truth=DATA.labels, support=SUPPORT)
    shuffled = {"truth": truth.sample(frac=1, random_state=0), "support": support[::-1]}
    assert scores(data, **shuffled) == expected
    assert scores(data, truth=truth[::-1]) == scores(data, truth=DATA.labels)


@pytest.mark.parametrize(
    ("data", "known", "message"),
    [
        (NAMED, {"truth": TRUTH.rename({"s3": "q"})}, "no entry for 1 of 60 samples, such as 's3'"),
        (NAMED, {"truth": TRUTH.reset_index(drop=True)}, "no entry for 60 of 60 samples"),
        (NAMED, {"support": FEATURES.iloc[1:]}, "no entry for 1 of 30 features, such as 'g0'"),
        (X, {"truth": TRUTH.reset_index(drop=True)[::-1]}, "truth has an index in another order"),
        (X, {"truth": TRUTH}, "truth has an index, such as .*, but the samples have no names"),
    ],
)
def test_a_series_that_does_not_match_is_refused(data, known, message):
    with pytest.raises(ValueError, match=message):
        scores(data, **known)


def test_a_default_index_is_matched_by_position_if_the_data_have_none():
    assert scores(X, truth=pd.Series(DATA.labels)) == scores(X, truth=DATA.labels)
