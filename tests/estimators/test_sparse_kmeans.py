"""Sparse K-means: attributes, candidates, prediction and parameters."""

import numpy as np
import pytest

from mrshc.datasets import make_simulation_1
from mrshc.estimators import SparseKMeans

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others


def quick(n_clusters=3, **options):
    return SparseKMeans(n_clusters, **{"n_permutations": 3, "random_state": 0} | options)


def test_fitted_attributes_agree_with_each_other():
    model = quick(l1_bound=3.0).fit(SMALL)
    centres = [SMALL[model.labels_ == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, centres)
    weights = model.feature_weights_
    np.testing.assert_array_equal(model.get_support(), weights > 0)
    assert model.n_features_selected_ == np.count_nonzero(weights) < 30
    assert (np.linalg.norm(weights), weights.sum()) == pytest.approx((1, 3))
    assert model.l1_bound_ == 3.0
    between = np.bincount(model.labels_) @ np.square(centres - SMALL.mean(axis=0))
    assert model.criterion_ == pytest.approx(between @ weights)
    assert model.converged_
    assert list(model.search_results_) == ["l1_bound", "n_features", "criterion", "chosen"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 1}, r"n_clusters must be a whole number in \[2, 60\], got 1"),
        ({"n_clusters": 61}, r"n_clusters must be a whole number in \[2, 60\], got 61"),
        ({"l1_bound": 0.5}, r"l1_bound must be a number in \[1, 5.47723\], got 0.5"),
        ({"l1_bound": []}, "l1_bound must hold at least one number"),
        ({"n_features_to_select": 31}, r"n_features_to_select must .* in \[1, 30\], got 31"),
        ({"n_features_to_select": 5, "l1_bound": 2.0}, "not both, got 5 and 2.0"),
        ({"n_init": 0}, "n_init must be a whole number"),
        ({"n_permutations": 1}, "n_permutations must be a whole number in"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(SMALL)


def test_missing_values_are_refused_with_advice():
    holes = SMALL.copy()
    holes[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"does not accept missing values.*NeighborImputer"):
        quick().fit(holes)
    holes[:] = np.nan
    with pytest.raises(ValueError, match="does not accept missing values"):
        quick(l1_bound=2.0).fit(SMALL).predict(holes)
    with pytest.raises(ValueError, match="all 4 of its features are constant"):
        quick().fit(np.ones((6, 4)))
