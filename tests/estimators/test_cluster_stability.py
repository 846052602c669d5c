"""`stability` of fitted estimators."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array
from sklearn.cluster import KMeans

from mrshc import COSA, SHC, HighVarianceHC, MrSHC, stability
from mrshc.datasets import make_noise, make_simulation_1
from mrshc.errors import ParameterError

RECOMMENDED = {"selection": "association", "linkage": "ward"}
CLEAR = make_simulation_1(0, mu=3.0, sizes=(10, 10, 10)).X


def assert_equal(one, other):
    for name in ("cluster_jaccard", "feature_frequency", "branch_support", "consensus"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def test_clear_clusters_are_stable():
    model = MrSHC(**RECOMMENDED, n_clusters=3).fit(CLEAR)
    found = stability(model, CLEAR, n_resamples=10, random_state=0)
    np.testing.assert_array_equal(found.cluster_jaccard, 1.0)
    informative = np.arange(CLEAR.shape[1]) < 50
    assert found.feature_frequency[informative].min() == 1.0
    assert found.feature_frequency[~informative].mean() < 0.1
    # The branches of the three clusters, of 10 samples each.
    sizes = model.linkage_matrix_[:, 3]
    np.testing.assert_array_equal(found.branch_support[sizes == 10], 1.0)
    same = model.labels_[:, None] == model.labels_
    np.testing.assert_array_equal(found.consensus, same)


def test_the_true_clusters_are_stable_and_one_more_is_not():
    X = make_simulation_1(1).X
    true, one_more = (
        stability(MrSHC(**RECOMMENDED, n_clusters=k).fit(X), X, n_resamples=10, random_state=0)
        for k in (3, 4)
    )
    assert true.cluster_jaccard.min() > 0.9
    assert one_more.cluster_jaccard.min() < 0.6


def test_clusters_of_noise_are_not_stable():
    X = make_noise(0, n_samples=40, n_features=200).X
    model = HighVarianceHC(20, n_clusters=4, linkage="ward").fit(X)
    found = stability(model, X, n_resamples=20, random_state=0)
    assert found.cluster_jaccard.mean() < 0.6
    assert found.branch_support[-20:-1].mean() < 0.6


@pytest.mark.parametrize(
    "model",
    [
        MrSHC(5, rank=1, n_references=5, n_clusters=2, random_state=0),
        MrSHC(**RECOMMENDED),
        SHC(10, n_clusters=2, n_permutations=2, random_state=0),
        COSA(n_clusters=2),
        HighVarianceHC(10, n_clusters=2),
    ],
    ids=["silhouette", "association", "SHC", "COSA", "variance"],
)
def test_the_number_of_workers_does_not_matter(model):
    X = CLEAR[:, 20:80]
    model.fit(X)
    one, two = (
        stability(model, X, n_resamples=4, random_state=3, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert_equal(one, two)
    assert one.consensus.shape == (30, 30)
    assert one.branch_support.shape == (29,)
    assert one.feature_frequency.shape == (60,)


def test_a_data_frame_gives_the_same_result_as_its_values():
    X = CLEAR[:, 20:80]
    model = MrSHC(**RECOMMENDED).fit(X)
    expected = stability(model, X, n_resamples=3, random_state=0)
    names = [f"g{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    named = MrSHC(**RECOMMENDED).fit(frame)
    assert_equal(stability(named, frame, n_resamples=3, random_state=0), expected)


def test_data_out_of_memory_are_refused():
    model = HighVarianceHC(10, n_clusters=2).fit(CLEAR)
    with pytest.raises(ValueError, match="stability needs X in memory"):
        stability(model, csc_array(CLEAR))


def test_robust_fits_and_missing_values():
    X = CLEAR.copy()
    X[0] += 50.0
    model = MrSHC(**RECOMMENDED, robust=True).fit(X)
    assert model.outlier_samples_.tolist() == [0]
    found = stability(model, X, n_resamples=5, random_state=0)
    assert found.feature_frequency[:50].min() == 1.0
    holes = np.where(np.random.default_rng(0).uniform(size=CLEAR.shape) < 0.1, np.nan, CLEAR)
    model = MrSHC(**RECOMMENDED).fit(holes)
    found = stability(model, holes, n_resamples=5, random_state=0)
    np.testing.assert_array_equal(found.cluster_jaccard, 1.0)


def test_the_callback_counts_the_subsamples():
    model, calls = HighVarianceHC(10, n_clusters=2).fit(CLEAR), []
    stability(model, CLEAR, n_resamples=3, callback=lambda *numbers: calls.append(numbers))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_the_model_is_not_changed():
    model = HighVarianceHC(10, n_clusters=2).fit(CLEAR)
    before = model.linkage_matrix_.copy(), model.labels_.copy()
    stability(model, CLEAR, n_resamples=2)
    np.testing.assert_array_equal(model.linkage_matrix_, before[0])
    np.testing.assert_array_equal(model.labels_, before[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 1}, "n_resamples must be a whole number at least 2"),
        ({"fraction": 1.0}, "fraction must be"),
        ({"fraction": 0.01}, "fraction must be"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    model = HighVarianceHC(10, n_clusters=2).fit(CLEAR)
    with pytest.raises(ParameterError, match=message):
        stability(model, CLEAR, **options)


def test_models_without_clusters_and_other_data_are_refused():
    with pytest.raises(ParameterError, match="stability needs a model with clusters"):
        stability(HighVarianceHC(10).fit(CLEAR), CLEAR)
    with pytest.raises(ValueError, match="must be the data of the fit, with 30 samples, got 29"):
        stability(HighVarianceHC(10, n_clusters=2).fit(CLEAR), CLEAR[1:])
    with pytest.raises(
        ParameterError, match="fitted MrSHC, SHC, COSA or HighVarianceHC, got KMeans"
    ):
        stability(KMeans(2).fit(CLEAR), CLEAR)


@pytest.mark.parametrize("model", [MrSHC(**RECOMMENDED), HighVarianceHC(10, n_clusters=2)])
@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        lambda X: X + np.random.default_rng(0).normal(size=X.shape),
    ],
    ids=["samples", "features", "values"],
)
def test_other_data_of_the_same_shape_are_refused(model, change):
    model.fit(CLEAR)
    with pytest.raises(ValueError, match="must be the data of the fit, but its samples have other"):
        stability(model, change(CLEAR), n_resamples=2)


def test_a_single_cluster_has_no_stability():
    model = HighVarianceHC(10, n_clusters=1).fit(CLEAR)
    found = stability(model, CLEAR, n_resamples=2)
    np.testing.assert_array_equal(found.cluster_jaccard, [np.nan])


def test_features_without_values_in_a_subsample():
    X = CLEAR.copy()
    X[1:, 7] = np.nan  # a single value
    model = HighVarianceHC(X.shape[1], n_clusters=3).fit(X)
    found = stability(model, X, n_resamples=10, random_state=0)
    np.testing.assert_array_equal(np.delete(found.feature_frequency, 7), 1.0)
    assert found.feature_frequency[7] < 1.0


def test_clusters_of_pruned_trees_are_compared_with_clusters_of_pruned_trees():
    """The tree of every subsample is pruned as that of the model, not cut at one height."""
    model = MrSHC(50, rank=2, n_references=10, random_state=0).fit(CLEAR)
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(
        stability(model, CLEAR, n_resamples=5, random_state=0).cluster_jaccard, 1.0
    )


def test_too_few_samples_for_the_clusters_are_refused():
    model = HighVarianceHC(10, n_clusters=30).fit(CLEAR)
    with pytest.raises(ParameterError, match="at least 30 samples, for a tree with 30 clusters"):
        stability(model, CLEAR)


def test_a_complementary_fit_is_refused():
    first = SHC(10, random_state=0).fit(CLEAR)
    options = {"complement_of": first.dissimilarity_, "n_clusters": 2, "random_state": 0}
    with pytest.raises(ParameterError, match="complement_of refers to a fit of these samples"):
        stability(SHC(10, **options).fit(CLEAR), CLEAR)


def test_parameters_are_reduced_to_the_samples_of_a_subsample():
    X = CLEAR[:, :40]
    model = MrSHC(10, rank=29, n_clusters=2, n_references=5, random_state=0).fit(X)
    assert stability(model, X, n_resamples=2, random_state=0).n_resamples == 2
