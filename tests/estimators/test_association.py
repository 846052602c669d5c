"""Clusters on the features that are associated with them."""

import numpy as np
import pytest
from sklearn.metrics import rand_score

from mrshc.core.trees import linkage_matrix, pairwise_distances
from mrshc.datasets import make_noise, make_simulation_1, make_simulation_2
from mrshc.estimators import AssociationHC, UnsupportedClustersWarning

EASY = make_simulation_1(1, mu=1.5)


@pytest.mark.parametrize("make", [make_simulation_1, make_simulation_2])
def test_features_and_clusters_are_found(make):
    data = make(1, mu=1.5)
    model = AssociationHC().fit(data.X)
    found = model.associated_features_
    assert model.supported_
    assert data.support[found].sum() >= 45
    assert data.support[found].mean() > 0.85
    assert rand_score(model.cut(data.labels.max() + 1), data.labels) > 0.9
    np.testing.assert_array_equal(model.get_support(indices=True), found)
    np.testing.assert_array_equal(np.flatnonzero(model.feature_qvalues_ <= 0.05), found)
    np.testing.assert_array_equal(model.labels_, model.cut(model.n_clusters_))
    assert model.components_.shape == (model.rank_, 500)
    distances = pairwise_distances(data.X[:, found], "sqeuclidean")
    np.testing.assert_allclose(model.linkage_matrix_, linkage_matrix(distances, "ward"))
    results = model.search_results_
    assert list(results) == [
        *("n_features_target", "n_features", "reached", "rank", "l1_bound", "n_leaves"),
        *("silhouette", "n_associated", "strength", "chosen"),
    ]
    (chosen,) = np.flatnonzero(results["chosen"])
    assert results["n_features"][chosen] == model.n_features_selected_
    assert results["n_associated"][chosen] == found.size
    assert results["n_leaves"][chosen] == model.n_clusters_


def test_noise_is_one_cluster_unless_a_number_is_given():
    X = make_noise(0, n_samples=40, n_features=60).X
    with pytest.warns(UnsupportedClustersWarning) as caught:
        model = AssociationHC().fit(X)
    warning = caught[0].message
    assert warning.finding == (
        "The clusters are not supported by held-out features: fewer than 5 features are associated "
        "with clusters of trees that were built without them."
    )
    assert "labels_ holds one cluster. Use cut(" in warning.advice
    assert caught[0].filename == __file__
    assert (model.n_clusters_, model.supported_, model.associated_features_.size) == (1, False, 0)
    np.testing.assert_array_equal(model.labels_, 0)
    with pytest.warns(UnsupportedClustersWarning, match="labels_ has all 4 clusters asked for"):
        model = AssociationHC(n_clusters=4).fit(X)
    assert len(np.unique(model.labels_)) == model.n_clusters_ == 4


def test_a_feature_with_a_single_value_causes_no_warning():
    X = EASY.X.copy()
    X[1:, 499] = np.nan
    model = AssociationHC().fit(X)
    assert model.feature_qvalues_[499] == 1.0
    assert not model.get_support()[499]
