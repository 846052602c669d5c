import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist, squareform
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import ThreadpoolController

from mrshc import COSA, SHC, HighVarianceHC, MrSHC, SparseKMeans, UnsupportedClustersWarning
from mrshc.core.trees.tree import LINKAGES
from mrshc.datasets import make_section2_example, make_simulation_1
from mrshc.metrics import feature_recall
from mrshc.plotting import dendrogram_lines

# Much of what is fitted here has no clusters, or only ten reference samples to see them by.
pytestmark = pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others


def quick(n_features_to_select=10, **options):
    """A search small enough for a test."""
    options = {"max_rank": 2, "n_references": 10, "random_state": 0, **options}
    return MrSHC(n_features_to_select, **options)


# scikit-learn's own checks ------------------------------------------------------------------

CHECKS_OF_ONE_CLUSTER = (
    "check_dont_overwrite_parameters",
    "check_fit2d_predict1d",
    "check_methods_subset_invariance",
)
EXPECTED_FAILURES = {
    "MrSHC": dict.fromkeys(
        CHECKS_OF_ONE_CLUSTER,
        "the check asks for one cluster; the reference number K is at least two",
    ),
    "SparseKMeans": dict.fromkeys(
        CHECKS_OF_ONE_CLUSTER,
        "the check asks for one cluster; no feature differs between clusters then",
    ),
    "SHC": {
        "check_estimators_pickle": "it leaves samples without a feature in common: no distance"
    },
    "COSA": {
        "check_estimators_pickle": "it leaves samples without a feature in common: no distance"
    },
    "HighVarianceHC": {
        "check_estimators_pickle": "a sample lacks the only selected feature: it has no distance"
    },
}


@parametrize_with_checks(
    [
        MrSHC(n_references=5, max_rank=2),
        MrSHC(selection="association"),
        SHC(n_permutations=2, n_clusters=2),
        SHC(penalty="ssl", spike_penalty=[2.0, 20.0], n_permutations=2, n_clusters=2),
        COSA(n_clusters=2),
        HighVarianceHC(1, n_clusters=2),
        SparseKMeans(2, n_permutations=2),
        SparseKMeans(2, n_features_to_select=1),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[type(estimator).__name__],
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


# What a fit gives ---------------------------------------------------------------------------


def test_clusters_and_features_of_an_easy_problem_are_found():
    model = MrSHC(50, random_state=0).fit(EASY.X)
    assert rand_score(model.labels_, EASY.labels) == 1
    np.testing.assert_array_equal(model.get_support(), EASY.support)
    assert (model.n_clusters_, model.rank_, model.n_features_selected_) == (3, 1, 50)


def test_fitted_attributes_agree_with_each_other():
    model = quick([5, 10, 15]).fit(SMALL)
    n, p = SMALL.shape
    results = model.search_results_
    assert model.linkage_matrix_.shape == (n - 1, 4)
    np.testing.assert_array_equal(model.children_, model.linkage_matrix_[:, :2])
    np.testing.assert_array_equal(model.distances_, model.linkage_matrix_[:, 2])
    assert model.n_leaves_ == n
    assert model.components_.shape == (model.rank_, p)
    np.testing.assert_array_equal(model.get_support(), np.any(model.components_ != 0, axis=0))
    assert model.n_features_selected_ == model.get_support().sum()
    np.testing.assert_array_equal(model.transform(SMALL), SMALL[:, model.get_support()])
    assert len(np.unique(model.labels_)) == model.n_clusters_
    np.testing.assert_array_equal(model.cut(1), 0)
    assert len(np.unique(model.cut(7))) == 7
    assert list(results) == [
        "n_features_target",
        "n_features",
        "reached",
        "rank",
        "l1_bound",
        "n_leaves",
        "silhouette",
        "screened_out",
        "best_rank",
        "removed",
        "chosen",
    ]
    tests = model.split_tests_
    assert tests["node"][0] == 2 * n - 2
    assert tests["n_samples"][0] == n
    assert tests["split"].sum() == model.n_clusters_ - 1
    excess = tests["drop"] - tests["expected_drop"]
    np.testing.assert_array_equal(tests["supported"], excess > tests["standard_error"])
    assert not np.any(tests["split"] & ~tests["supported"])
    for mean, drops in zip(tests["expected_drop"], tests["reference_drops"], strict=True):
        assert mean == pytest.approx(np.mean(drops))
    assert {len(column) for column in results.values()} == {6}
    (chosen,) = np.flatnonzero(results["chosen"])
    assert results["rank"][chosen] == model.rank_
    assert results["n_features"][chosen] == model.n_features_selected_
    np.testing.assert_array_equal(
        results["reached"], results["n_features"] == [5, 5, 10, 10, 15, 15]
    )


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("estimator", [quick, HighVarianceHC])
def test_no_sparsity_gives_classical_hierarchical_clustering(linkage, estimator):
    euclidean = linkage in ("ward", "centroid", "median")
    expected = scipy_linkage(pdist(SMALL, "euclidean" if euclidean else "sqeuclidean"), linkage)
    model = estimator(SMALL.shape[1], linkage=linkage).fit(SMALL)
    assert model.get_support().all()
    np.testing.assert_allclose(model.linkage_matrix_, expected)


@pytest.mark.parametrize("estimator", [quick, HighVarianceHC])
def test_no_sparsity_gives_classical_clustering_on_city_blocks_too(estimator):
    expected = scipy_linkage(pdist(SMALL, "cityblock"), "average")
    model = estimator(SMALL.shape[1], linkage="average", metric="cityblock").fit(SMALL)
    np.testing.assert_allclose(model.linkage_matrix_, expected)


def test_high_variance_features_are_kept():
    X = np.random.default_rng(0).normal(size=(20, 5)) * [1, 5, 3, 4, 2]
    model = HighVarianceHC(2, n_clusters=3).fit(X)
    np.testing.assert_array_equal(model.get_support(indices=True), [1, 3])
    np.testing.assert_array_equal(model.labels_, model.cut(3))


def test_high_variance_needs_a_number_of_clusters_to_predict():
    with pytest.raises(ValueError, match="fit_predict needs n_clusters"):
        HighVarianceHC(2).fit_predict(SMALL)
    model = HighVarianceHC(2, n_clusters=2).fit(SMALL)
    assert not hasattr(model.set_params(n_clusters=None).fit(SMALL[:10]), "labels_")


def test_known_rank_is_kept_even_above_the_number_of_features():
    model = quick(2, rank=4).fit(SMALL)
    assert model.rank_ == 4
    assert len(model.search_results_["rank"]) == 1


def test_default_candidates_follow_the_number_of_features():
    for p, expected in (
        (2, [2]),
        (5, [2, 3]),
        (15, [2, 3, 4, 5, 6, 7, 8]),
        (150, [10, 20, 40, 60, 80, 100, 120, 140]),
    ):
        X = EASY.X[:, :p]
        model = quick("auto", max_rank=1, n_clusters=2).fit(X)
        assert model.search_results_["n_features_target"].tolist() == expected


@pytest.mark.parametrize(
    "estimator",
    [
        quick(20, rank=1),
        quick(20, rank=1, n_clusters=5),
        quick(20, rank=1, n_clusters=5, robust=True),
        SHC(20, n_clusters=5),
        COSA(n_clusters=5),
        HighVarianceHC(20, n_clusters=5, linkage="ward"),
    ],
)
def test_clusters_are_numbered_from_the_left_of_the_drawn_tree(estimator):
    X = make_simulation_1(3, mu=2.0).X
    X[7] *= 20.0  # an outlying sample, which a robust fit attaches to the tree
    model = estimator.fit(X)
    leaves = dendrogram_lines(model.linkage_matrix_).order
    for labels in (model.labels_, model.cut(2), model.cut(9)):
        drawn = labels[leaves]
        assert drawn[0] == 0
        assert set(np.diff(drawn)) <= {0, 1}
    assert drawn[-1] == 8
    markers = model.markers(X, k=9, alpha=1.0).query("contrast == 'split'")
    for inside, outside in zip(markers["inside"], markers["outside"], strict=True):
        assert int(inside.split(", ")[-1]) < int(outside.split(", ")[0])


def test_section_2_example_needs_rank_two():
    data = make_section2_example(1)
    model = MrSHC(4, rank=2, random_state=0).fit(data.X)
    np.testing.assert_array_equal(model.get_support(), data.support)
    assert rand_score(model.cut(4), data.labels) == 1


def test_the_warning_points_at_the_caller():
    with pytest.warns(UnsupportedClustersWarning) as caught:
        MrSHC(4, random_state=0).fit(np.random.default_rng(1).random((12, 4)))
    assert caught[0].filename == __file__


def test_a_given_number_of_clusters_is_obtained_and_a_warning_says_how_many_are_supported():
    X = np.random.default_rng(0).random((20, 10))
    model = quick(3, n_clusters=8)
    message = r"gap statistic finds .* 8 clusters asked for\. labels_ has all 8\.$"
    with pytest.warns(UnsupportedClustersWarning, match=message):
        model.fit(X)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == 8
    assert model.search_results_["screened_out"].all()
    assert model.search_results_["n_leaves"].max() < 8
    tests = model.split_tests_
    assert np.any(tests["split"] & ~tests["supported"])


def test_one_cluster_is_an_answer_too():
    X = np.random.default_rng(1).random((12, 4))
    model = MrSHC(4, random_state=0)
    with pytest.warns(UnsupportedClustersWarning, match="finds a single cluster, whatever"):
        model.fit(X)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.labels_, 0)


# SHC ----------------------------------------------------------------------------------------


def test_shc_finds_an_easy_problem():
    model = SHC(50, n_clusters=3).fit(EASY.X)
    np.testing.assert_array_equal(model.get_support(), EASY.support)
    assert rand_score(model.labels_, EASY.labels) == 1
    assert np.linalg.norm(model.feature_weights_) == pytest.approx(1)
    assert model.feature_weights_.sum() == pytest.approx(model.l1_bound_)
    assert np.linalg.norm(model.dissimilarity_) == pytest.approx(1)
    assert model.converged_


def test_shc_builds_its_tree_on_the_dissimilarity():
    model = SHC(l1_bound=3.0, linkage="average").fit(SMALL)
    condensed = squareform(model.dissimilarity_, checks=False)
    np.testing.assert_allclose(model.linkage_matrix_, scipy_linkage(condensed, "average"))
    assert model.l1_bound_ == 3.0
    assert model.search_results_["chosen"].tolist() == [True]


@pytest.mark.parametrize("options", [{}, {"l1_bound": "auto"}, {"n_features_to_select": [5, 10]}])
def test_shc_chooses_the_largest_permutation_gap(options):
    model = SHC(**options, random_state=0, n_permutations=5).fit(SMALL)
    results = model.search_results_
    (chosen,) = np.flatnonzero(results["chosen"])
    assert chosen == results["gap"].argmax()
    assert results["n_features"][chosen] == model.n_features_selected_
    assert results["l1_bound"][chosen] == model.l1_bound_
    other = clone(model).set_params(n_jobs=2).fit(SMALL)
    for name, values in results.items():
        np.testing.assert_array_equal(values, other.search_results_[name])


def test_shc_with_the_spike_and_slab_lasso():
    candidates = [5.0, 150.0]
    model = SHC(
        penalty="ssl", spike_penalty=candidates, n_clusters=3, random_state=0, n_permutations=3
    ).fit(EASY.X)
    results = model.search_results_
    assert list(results) == ["spike_penalty", "n_features", "criterion", "chosen", "gap", "gap_sd"]
    assert results["spike_penalty"].tolist() == candidates
    (chosen,) = np.flatnonzero(results["chosen"])
    assert chosen == results["gap"].argmax()
    assert model.spike_penalty_ == candidates[chosen]
    assert not hasattr(model, "l1_bound_")
    assert results["n_features"][chosen] == np.count_nonzero(model.feature_weights_)
    assert np.linalg.norm(model.feature_weights_) == pytest.approx(1.0)
    # A large penalty leaves the informative features only.
    sparse = clone(model).set_params(spike_penalty=150.0).fit(EASY.X)
    np.testing.assert_array_equal(sparse.get_support(), EASY.support)
    assert rand_score(sparse.labels_, EASY.labels) == 1
    condensed = squareform(sparse.dissimilarity_, checks=False)
    np.testing.assert_allclose(sparse.linkage_matrix_, scipy_linkage(condensed, "complete"))
    other = clone(model).set_params(n_jobs=2).fit(EASY.X)
    np.testing.assert_array_equal(other.search_results_["gap"], results["gap"])
    # Attributes of a fit with the other penalty do not remain.
    refitted = sparse.set_params(penalty="l1", spike_penalty=None, l1_bound=3.0).fit(EASY.X)
    assert not hasattr(refitted, "spike_penalty_")
    assert refitted.l1_bound_ == 3.0


def test_shc_with_the_spike_and_slab_lasso_takes_missing_values():
    X = EASY.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = SHC(penalty="ssl", spike_penalty=150.0, n_clusters=3).fit(X)
    np.testing.assert_array_equal(model.get_support(), EASY.support)
    assert rand_score(model.labels_, EASY.labels) == 1


def test_shc_with_the_spike_and_slab_lasso_finds_a_complement():
    data = make_section2_example(0)
    X = data.X[:, :4]
    first = SHC(penalty="ssl", spike_penalty=1000.0).fit(X)
    second = clone(first).set_params(complement_of=first.dissimilarity_).fit(X)
    assert np.sum(first.dissimilarity_ * second.dissimilarity_) == pytest.approx(0, abs=1e-12)
    assert np.all(second.distances_ >= 0)
    assert second.get_support().tolist() == [True, True, False, False]


def test_shc_with_the_spike_and_slab_lasso_takes_other_options():
    model = SHC(
        penalty="ssl", spike_penalty=150.0, metric="cityblock", refine=True, n_clusters=3
    ).fit(EASY.X)
    assert model.supported_
    assert feature_recall(EASY.support, model.get_support()) > 0.9
    assert rand_score(model.labels_, EASY.labels) == 1


def test_shc_tries_100_spike_penalties_by_default():
    parameters = {"penalty": "ssl", "n_permutations": 2, "random_state": 0}
    model = SHC(**parameters).fit(SMALL)
    auto = SHC(**parameters, spike_penalty="auto").fit(SMALL)
    assert model.search_results_["spike_penalty"].size == 100
    assert model.search_results_["spike_penalty"][0] == 1.0
    for name, values in model.search_results_.items():
        np.testing.assert_array_equal(auto.search_results_[name], values)


def test_shc_reports_whether_the_number_of_features_was_reached():
    X = SMALL.copy()
    X[:, :5] = 1.0
    results = SHC(28).fit(X).search_results_
    assert results["n_features_target"].tolist() == [28]
    assert results["n_features"].tolist() == [25]
    assert results["reached"].tolist() == [False]
    assert SHC(10).fit(X).search_results_["reached"].tolist() == [True]


def test_shc_takes_missing_values():
    X = EASY.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = SHC(50, n_clusters=3).fit(X)
    assert feature_recall(EASY.support, model.get_support()) > 0.9
    assert rand_score(model.labels_, EASY.labels) == 1


def test_shc_refuses_a_complement_that_does_not_exist():
    X = np.zeros((10, 3))
    X[:, 0] = np.arange(10.0)
    first = SHC(1).fit(X)
    with pytest.raises(ValueError, match="must not be a multiple of complement_of"):
        SHC(1, complement_of=first.dissimilarity_).fit(X)


@pytest.mark.parametrize("value", ["text", np.eye(60), np.triu(np.ones((60, 60)), 1)])
def test_shc_refuses_a_complement_of_an_invalid_dissimilarity(value):
    with pytest.raises(ValueError, match="complement_of must be the dissimilarity_ of an earlier"):
        SHC(2, complement_of=value).fit(SMALL)


def test_shc_does_not_try_the_same_bound_twice():
    assert SHC(l1_bound="auto").fit(SMALL[:, :2]).search_results_["l1_bound"].tolist() == [1.1]


def test_shc_finds_a_complement():
    data = make_section2_example(0)
    first = SHC(2).fit(data.X[:, :4])
    second = SHC(2, complement_of=first.dissimilarity_).fit(data.X[:, :4])
    assert np.sum(first.dissimilarity_ * second.dissimilarity_) == pytest.approx(0, abs=1e-12)
    assert np.all(second.distances_ >= 0)
    # The two pairs of features say different things of the samples.
    assert not np.any(first.get_support() & second.get_support())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_features_to_select": 5, "l1_bound": 2.0},
            "n_features_to_select or l1_bound, not both",
        ),
        ({"l1_bound": 0.5}, r"l1_bound must be a number in \[1, 5.47723\], got 0.5"),
        ({"l1_bound": [2.0, 9.0]}, "l1_bound must be a number in"),
        ({"n_features_to_select": 31}, r"in \[1, 30\], got 31"),
        ({"l1_bound": []}, "at least one number, got an empty sequence"),
        ({"l1_bound": "foo"}, "l1_bound must be a number in .* got 'foo'"),
        ({"complement_of": np.ones((60, 60))}, "complement_of needs one n_features_to_select"),
        ({"n_permutations": 1}, r"n_permutations must be a whole number in \[2, 1000000\]"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": -1}, "tol must be a number in"),
        ({"penalty": "l2"}, "penalty must be one of 'l1', 'ssl', got 'l2'"),
        ({"spike_penalty": 3.0}, "spike_penalty has an effect only if penalty is 'ssl', got 3.0"),
        (
            {"penalty": "ssl", "n_features_to_select": 5},
            "follows from spike_penalty, so n_features_to_select cannot be given, got 5",
        ),
        ({"penalty": "ssl", "l1_bound": "auto"}, "l1_bound cannot be given, got 'auto'"),
        ({"slab_penalty": 2.0}, "slab_penalty has an effect only if penalty is 'ssl', got 2.0"),
        ({"penalty": "ssl", "slab_penalty": 0}, "slab_penalty must be a number in"),
        ({"penalty": "ssl", "spike_penalty": 0.5}, r"spike_penalty must be a number in \[1, "),
        ({"penalty": "ssl", "spike_penalty": []}, "at least one number, got an empty sequence"),
        (
            {"penalty": "ssl", "complement_of": np.ones((60, 60))},
            "complement_of needs one spike_penalty, got 100 candidates",
        ),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"linkage": "mean"}, "linkage must be one of"),
        (
            {"n_features_to_select": 5, "complement_of": np.zeros((3, 3))},
            r"of shape \(60, 60\), got shape \(3, 3\)",
        ),
    ],
)
def test_bad_parameters_of_shc_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SHC(**options).fit(SMALL)


def test_samples_with_nothing_in_common_are_refused():
    X = SMALL[:4].copy()
    X[1, :15], X[3, 15:] = np.nan, np.nan
    with pytest.raises(ValueError, match="samples 1 and 3 have none in common"):
        SHC(5).fit(X)
    X[1] = np.nan
    with pytest.raises(ValueError, match="sample 1 of X has none"):
        SHC(5).fit(X)


# The same answer --------------------------------------------------------------------------


def fingerprint(model):
    """Everything that must not depend on how the work was spread."""
    return {
        **model.search_results_,
        "labels": model.labels_,
        "tree": model.linkage_matrix_,
        "loadings": model.components_,
    }


def assert_same(one, other):
    for name, values in fingerprint(one).items():
        np.testing.assert_array_equal(values, fingerprint(other)[name], err_msg=name)


@pytest.mark.parametrize("workers", ["two", "threading", "loky"])
def test_workers_and_backends_do_not_matter(workers):
    model = MrSHC([5, 10], n_references=10, max_rank=3, random_state=0)
    alone = clone(model).set_params(n_jobs=1).fit(SMALL)
    if workers == "two":
        other = clone(model).set_params(n_jobs=2).fit(SMALL)
    else:
        with joblib.parallel_config(backend=workers, n_jobs=2):
            other = clone(model).fit(SMALL)
    assert_same(alone, other)


def test_threads_of_blas_are_as_before_after_concurrent_fits():
    controller = ThreadpoolController()

    def threads():
        return [lib["num_threads"] for lib in controller.info() if lib["user_api"] == "blas"]

    with controller.limit(limits=2, user_api="blas"):
        before = threads()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda seed: quick(random_state=seed).fit(SMALL), range(8)))
        assert threads() == before


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: pd.DataFrame(X),
        lambda X: pl.DataFrame(X, schema=[f"g{j}" for j in range(X.shape[1])]),
        lambda X: np.repeat(X, 2, axis=0)[::2],
    ],
    ids=["list", "Fortran", "pandas", "polars", "strided"],
)
def test_containers_do_not_matter(convert):
    plain, other = quick().fit(SMALL), quick().fit(convert(SMALL))
    np.testing.assert_array_equal(plain.get_support(), other.get_support())
    np.testing.assert_array_equal(plain.labels_, other.labels_)
    np.testing.assert_allclose(plain.linkage_matrix_, other.linkage_matrix_)


def test_read_only_data_are_accepted_and_left_alone():
    X = SMALL.copy()
    X.setflags(write=False)
    assert_same(quick().fit(X), quick().fit(SMALL))


def test_integers_are_taken_for_numbers():
    X = np.round(SMALL * 8)
    assert_same(quick().fit(X.astype(int)), quick().fit(X))


def test_float32_gives_the_same_features_and_clusters():
    X = SMALL.astype(np.float32)
    narrow, wide = quick().fit(X), quick().fit(X.astype(np.float64))
    assert_same(narrow, wide)
    assert narrow.transform(X).dtype == np.float32


@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e-100, 1e100])
def test_unit_of_the_data_does_not_matter(scale):
    plain, scaled = quick("auto").fit(SMALL), quick("auto").fit(SMALL * scale)
    np.testing.assert_array_equal(plain.get_support(), scaled.get_support())
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    assert plain.rank_ == scaled.rank_


# Odd but honest data ------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, "grand", False])
def test_constant_features_are_never_selected(center):
    X = SMALL.copy()
    X[:, [0, 7]] = [0.1, 1e6]
    for q in (10, 30):
        support = quick(q, center=center).fit(X).get_support()
        assert not support[[0, 7]].any()
    assert quick(30).fit(X).n_features_selected_ == 28


def test_duplicate_samples_are_clustered_together():
    X = np.repeat(SMALL[::6], 3, axis=0)
    labels = quick().fit(X).labels_
    assert all(len(set(labels[i : i + 3])) == 1 for i in range(0, len(X), 3))


def test_three_samples_and_two_features_are_enough():
    model = MrSHC(random_state=0).fit([[0.0, 0.0], [0.1, 0.0], [9.0, 3.0]])
    assert rand_score(model.cut(2), [0, 0, 1]) == 1


def test_fewer_features_than_samples_are_fine():
    X = make_simulation_1(0, mu=5.0).X[:, 45:52]
    assert rand_score(quick(5, n_clusters=3).fit(X).labels_, EASY.labels) == 1


def test_all_samples_but_one_equal():
    X = np.zeros((6, 3))
    X[0] = [1.0, 2.0, 3.0]
    assert rand_score(quick(2).fit(X).cut(2), [0, 1, 1, 1, 1, 1]) == 1


@pytest.mark.parametrize(
    ("container", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)]
)
@pytest.mark.parametrize("make", [quick, HighVarianceHC])
def test_output_can_be_a_frame(container, frame, make):
    names = [f"g{j}" for j in range(SMALL.shape[1])]
    X = frame(SMALL, **{"columns" if container == "pandas" else "schema": names})
    model = make(10).set_output(transform=container).fit(X)
    selected = model.transform(X)
    assert isinstance(selected, frame)
    assert list(selected.columns) == model.get_feature_names_out().tolist()
    assert list(selected.columns) == [names[j] for j in model.get_support(indices=True)]
    np.testing.assert_array_equal(selected.to_numpy(), SMALL[:, model.get_support()])


def test_it_stands_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), quick(n_clusters=3))
    with config_context(transform_output="pandas"):
        assert len(np.unique(pipeline.fit_predict(SMALL))) == 3


# Refusals -----------------------------------------------------------------------------------


def changed(i, j, value):
    X = SMALL.astype(object if isinstance(value, str) else float)
    X[i, j] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (SMALL[:2], "minimum of 3 is required by MrSHC"),
        (SMALL[:, :1], "minimum of 2 is required by MrSHC"),
        (np.empty((0, 5)), r"0 sample\(s\)"),
        (np.empty((5, 0)), r"0 feature\(s\)"),
        (SMALL[0], "got an array, which has 1 dimension"),
        (SMALL[None], "got an array, which has 3 dimensions"),
        (SMALL + 1j, "Complex data not supported"),
        (changed(2, slice(None), np.nan), "sample 2 of X has none. Drop it"),
        (changed(slice(None), 3, np.nan), "feature 3 of X has none. Drop it"),
        (changed(2, 3, np.inf), "X must be finite, but holds inf .first at sample 2, feature 3"),
        (changed(2, 3, -np.inf), "X must be finite, but holds inf"),
        (
            changed(2, 3, "abc"),
            "must be numeric, but holds the text 'abc' in sample 2, feature 3",
        ),
        (changed(2, 3, 1e200), "X must have values below 1e\\+150"),
        (SMALL * 1e-200, "differ by more than 1e-150"),
        (np.column_stack([np.ones(60), SMALL * 1e-170]), "all 31 of its features are constant"),
        ([["1", "2"], ["3", "4"], ["5", "6"]], "holds the text '1' in sample 0, feature 0"),
        (np.ma.masked_greater(SMALL, -9.0), "feature 0 of X has none"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=4)} | {"b": range(4)}), "dates or times"),
        (
            pl.DataFrame({"a": ["1", "2", "3"], "b": [1, 2, 3]}),
            "the text '1' in sample 0, feature 'a'",
        ),
        (np.ones((5, 4)), "all 4 of its features are constant"),
    ],
)
def test_bad_data_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        MrSHC(1).fit(X)


def test_text_columns_of_a_frame_are_named():
    X = pd.DataFrame(SMALL).rename(columns=str).assign(tissue="liver")
    with pytest.raises(ValueError, match="the text 'liver' in sample 0, feature 'tissue'"):
        MrSHC().fit(X)


def test_duplicate_feature_names_are_refused():
    X = pd.DataFrame(SMALL, columns=["gene", *(f"g{j}" for j in range(28)), "gene"])
    with pytest.raises(ValueError, match="must be unique, but 'gene' names 2 columns of X"):
        MrSHC().fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_features_to_select": 31},
            r"n_features_to_select must be a whole number in \[1, 30\], got 31",
        ),
        ({"n_features_to_select": 0}, "n_features_to_select must be"),
        ({"n_features_to_select": 2.5}, "n_features_to_select must be"),
        ({"n_features_to_select": True}, "n_features_to_select must be"),
        ({"n_features_to_select": "all"}, "n_features_to_select must be"),
        ({"n_features_to_select": []}, "n_features_to_select must be"),
        ({"n_features_to_select": None}, "an increasing sequence of them or 'auto', got None"),
        (
            {"n_features_to_select": [5, 3]},
            r"must increase from candidate to candidate, got \[5, 3\]",
        ),
        ({"n_features_to_select": [5, 5]}, "must increase"),
        ({"n_features_to_select": [5, 31]}, r"in \[1, 30\], got 31"),
        ({"rank": 31}, r"rank must be a whole number in \[1, 30\], got 31"),
        ({"rank": 0}, "rank must be"),
        ({"max_rank": 0}, "max_rank must be a whole number at least 1"),
        ({"n_clusters": 1}, r"n_clusters must be a whole number in \[2, 60\], got 1"),
        ({"n_clusters": 61}, "n_clusters must be"),
        ({"n_clusters": None}, "n_clusters must be"),
        ({"linkage": "mean"}, "linkage must be one of 'single', 'complete'.*got 'mean'"),
        (
            {"metric": "euclidean"},
            "metric must be one of 'sqeuclidean', 'cityblock', 'correlation', got 'euclidean'",
        ),
        (
            {"linkage": "ward", "metric": "cityblock"},
            "linkage='ward' is defined for metric='sqeuclidean' and metric='correlation' only",
        ),
        ({"n_references": 1}, r"n_references must be a whole number in \[2, 1000000\], got 1\."),
        ({"n_jobs": 0}, "n_jobs must be a whole number of workers"),
        ({"n_jobs": "2"}, "n_jobs must be a whole number of workers, -1 for every core, or None"),
        ({"stop_early": 1}, "stop_early must be one of True, False, got 1"),
        ({"feature_tolerance": -1}, "feature_tolerance must be"),
        ({"center": "columns"}, "center must be one of True, 'grand', False, got 'columns'"),
        ({"center": 1}, "center must be one of"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MrSHC(**options).fit(SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features_to_select": 31}, r"n_features_to_select must be a whole number in \[1, 30\]"),
        ({"n_features_to_select": "auto"}, "n_features_to_select must be"),
        ({"n_clusters": 0}, r"n_clusters must be a whole number in \[1, 60\]"),
        ({"linkage": "mean"}, "linkage must be one of"),
        ({"metric": "cosine"}, "metric must be one of"),
    ],
)
def test_bad_parameters_of_the_variance_filter_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        HighVarianceHC(**{"n_features_to_select": 5, **options}).fit(SMALL)


def test_parameters_may_come_from_numpy_and_pandas():
    plain = quick([5, 10], linkage="average", center=True, max_rank=2).fit(SMALL)
    other = quick(
        pd.Series([5, 10]),
        linkage=np.array(["average"])[0],
        center=np.array([True])[0],
        max_rank=np.int32(2),
    ).fit(SMALL)
    assert_same(plain, other)
    assert_same(plain, quick(range(5, 11, 5), linkage="average").fit(SMALL))


def test_tolerance_on_the_number_of_features_is_used():
    loose = quick(15, rank=1, feature_tolerance=8).fit(SMALL)
    assert 0 < abs(loose.n_features_selected_ - 15) <= 8
    assert loose.search_results_["reached"].all()


def test_cuts_outside_the_tree_are_refused():
    model = HighVarianceHC(5).fit(SMALL)
    for k in (0, 61, 2.0):
        with pytest.raises(ValueError, match=r"k must be a whole number in \[1, 60\]"):
            model.cut(k)


# Progress -----------------------------------------------------------------------------------


def test_callbacks_of_scikit_learn_are_called_for_every_step():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brings callbacks")

    class Listener:
        begun = ended = 0

        def setup(self, estimator, context):
            assert context.max_subtasks == 8

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1

    listener = Listener()
    assert isinstance(listener, callback.FitCallback)
    quick([5, 10]).set_callbacks(listener).fit(SMALL)
    assert listener.begun == listener.ended == 1 + 8


def test_verbose_is_silent_where_there_is_no_terminal(capfd):
    quick(verbose=True).fit(SMALL)
    assert capfd.readouterr() == ("", "")


def test_progress_works_where_scikit_learn_has_no_callbacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.find_spec("mrshc.utils.progress")
    progress = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(progress)
    assert not hasattr(progress.CallbackSupportMixin, "set_callbacks")
    assert progress.with_callbacks(len) is len
    with progress.report_progress(object(), n_steps=2, X=SMALL, verbose=False) as report:
        report(1, 2)
