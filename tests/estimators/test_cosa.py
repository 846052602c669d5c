"""COSA: attributes, weights, missing values and parameters."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import cdist, squareform

from mrshc.core.cosa import feature_scales
from mrshc.datasets import make_simulation_1
from mrshc.estimators import COSA

SMALL = np.ascontiguousarray(make_simulation_1(0).X[:, 30:65])


def subsets(share=0.0):
    """Return three clusters of 20 samples, each of which is compact in four features of its own."""
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(60, 30)), np.repeat([0, 1, 2], 20)
    for k in range(3):
        X[classes == k, 4 * k : 4 * k + 4] = 1.5 + 0.1 * rng.normal(size=(20, 4))
    return np.where(rng.random(X.shape) < share, np.nan, X), classes


def test_fitted_attributes_agree_with_each_other():
    X = SMALL.copy()
    X[:, 7], X[0, 7] = 0.0, 1.0  # its quartiles are equal
    model = COSA(linkage="complete", n_clusters=4).fit(X)
    condensed = squareform(model.dissimilarity_)
    np.testing.assert_allclose(model.linkage_matrix_, scipy_linkage(condensed, "complete"))
    np.testing.assert_array_equal(model.sample_distances(X), model.dissimilarity_)
    mean = model.mean_feature_weights_
    np.testing.assert_array_equal(mean, model.feature_weights_.mean(axis=0))
    np.testing.assert_array_equal(model.feature_weights_[:, 7], 0.0)
    np.testing.assert_array_equal(model.get_support(), mean >= (1 - 1e-9) / 34)
    np.testing.assert_array_equal(model.labels_, model.cut(4))
    scaled = np.arange(35) != 7
    weights = mean[scaled] / feature_scales(X)[scaled]
    centres = [np.median(X[model.labels_ == k][:, scaled], axis=0) for k in range(4)]
    expected = cdist(X[:, scaled], centres, "cityblock", w=weights)
    np.testing.assert_allclose(model.cluster_distances(X), expected)
    other = X.copy()
    other[:, 7] = 1e6
    np.testing.assert_array_equal(model.predict(other), expected.argmin(axis=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, r"scale must be a number in \[0.001, 1000\], got 0"),
        ({"scale": 1001}, "scale must be a number"),
        ({"n_neighbors": 60}, r"n_neighbors must be a whole number in \[1, 59\], got 60"),
        ({"n_neighbors": None}, "n_neighbors must be a whole number"),
        ({"linkage": "ward"}, "linkage must be one of 'single', 'complete', 'average', 'weighted'"),
        ({"n_clusters": 61}, r"n_clusters must be a whole number in \[1, 60\]"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        COSA(**options).fit(SMALL)


def test_data_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="all 3 of its features are constant"):
        COSA().fit(np.ones((10, 3)))
    X = np.zeros((10, 3))
    X[0] = 1.0
    with pytest.raises(ValueError, match="a feature whose quartiles differ"):
        COSA().fit(X)
    X = SMALL[:, :4].copy()
    X[3, :2] = X[9, 2:] = np.nan
    with pytest.raises(ValueError, match="samples 3 and 9 have none in common"):
        COSA().fit(X)
