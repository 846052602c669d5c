"""Fits to parts of the data."""

import numpy as np
import pytest

from mrshc import HighVarianceHC, MrSHC
from mrshc.estimators.refits import fit_observed_features


def part_without_some_features():
    X = np.random.default_rng(0).normal(size=(12, 40))
    X[:, 20:30] = np.nan
    return X


def test_features_without_values_are_not_selected():
    X = part_without_some_features()
    model = HighVarianceHC(40)
    support = fit_observed_features(model, X)
    np.testing.assert_array_equal(support, ~np.isnan(X).any(axis=0))
    assert model.n_features_to_select == 30


@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_candidates_that_exceed_the_number_of_features_are_reduced():
    model = MrSHC([10, 35, 38], rank=1, n_clusters=2, n_references=5, random_state=0)
    support = fit_observed_features(model, part_without_some_features())
    assert support.size == 40
    assert not support[20:30].any()
    assert [*model.n_features_to_select] == [10, 30]
