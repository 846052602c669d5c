"""Fits to data with missing values and outlying samples."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from scipy.sparse import csr_array

from mrshc.core.linkages import EUCLIDEAN_LINKAGES, LINKAGES
from mrshc.core.outliers import winsorisation_limits, winsorise
from mrshc.datasets import make_simulation_1
from mrshc.estimators import AssociationHC, MrSHC
from mrshc.metrics import classification_error_rate

pytestmark = pytest.mark.filterwarnings("ignore::mrshc.estimators.UnsupportedClustersWarning")

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others


def quick(n_features_to_select=10, **options):
    options = {"max_rank": 2, "n_references": 5, "random_state": 0, "n_clusters": 3} | options
    return MrSHC(n_features_to_select, **options)


def holes(X, share=0.1, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def spoilt():
    """Two outlying samples, and extreme values in some others."""
    rng, X = np.random.default_rng(1), EASY.X.copy()
    X[[5, 33]] += 8 * rng.normal(size=(2, 500))
    X[rng.random(X.shape) < 0.003] += 30
    return X


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_every_linkage_gives_a_valid_tree(linkage, robust):
    for metric in ("sqeuclidean", "cityblock", "correlation"):
        if metric == "cityblock" and linkage in EUCLIDEAN_LINKAGES:
            continue
        X = holes(SMALL) if not robust else np.vstack([holes(SMALL), 30 * SMALL[::20, ::-1]])
        model = quick(linkage=linkage, metric=metric, rank=1, robust=robust).fit(X)
        assert is_valid_linkage(model.linkage_matrix_)
        assert is_monotonic(model.linkage_matrix_) or linkage in ("centroid", "median")
        assert len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize("estimator", [AssociationHC, lambda **o: quick(50, **o)])
def test_outlying_samples_and_values_hardly_matter(estimator):
    X = spoilt()
    model = estimator(robust=True).fit(X)
    assert model.outlier_samples_.tolist() == [5, 33]
    usual = np.setdiff1d(np.arange(60), [5, 33])
    assert classification_error_rate(EASY.labels[usual], model.labels_[usual]) < 0.05
    assert EASY.support[model.get_support()].mean() > 0.9
    alone = estimator(robust=True).fit(X[usual])
    assert alone.outlier_samples_.size == 0
    np.testing.assert_array_equal(alone.get_support(), model.get_support())
    pairs = set(zip(model.labels_[usual], alone.labels_, strict=True))
    assert len(pairs) == model.n_clusters_ == alone.n_clusters_
    # Values are winsorised as in the fit, and those of new samples at the same limits.
    values = model.data_of_fit(X).values
    np.testing.assert_array_equal(values, winsorise(X, np.array([5, 33])))
    centres = model.cluster_centres(X)
    limits = winsorisation_limits(X[:, model.get_support()], np.array([5, 33]))
    np.testing.assert_array_equal(centres.limits, limits)
    assert model.cluster_distances(X + 1e6).max() < 1e4
    table = model.markers(X, alpha=1.0)
    clusters = table.query("contrast == 'cluster'")
    assert set(clusters["n_inside"] + clusters["n_outside"]) == {58}
    assert not hasattr(model.set_params(robust=False).fit(X), "outlier_samples_")


def test_values_that_only_an_outlying_sample_lacks():
    X = np.random.default_rng(0).uniform(-1, 1, size=(20, 30))  # without extreme values
    X[:10, :10] += 1.0
    X[0] = 40.0
    X[0, :5] = np.nan
    model = quick(30, rank=1, robust=True, n_clusters=2).fit(X)
    assert model.outlier_samples_.tolist() == [0]
    assert np.isfinite(model.sample_distances(X)).all()


def test_robust_fits_need_data_in_memory():
    with pytest.raises(ValueError, match="robust=True needs X in memory, as an array, but X is"):
        AssociationHC(robust=True).fit(csr_array(EASY.X))
    with pytest.raises(ValueError, match="robust must be one of False, True, got 1"):
        AssociationHC(robust=1).fit(EASY.X)
