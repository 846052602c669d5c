"""Bounds of p-values exclude no feature whose p-value may be small."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.stats import rankdata

from mrshc.core.inference import refinement
from mrshc.core.inference.association import combined_tests
from mrshc.core.inference.device_association import DeviceRanks
from mrshc.core.inference.p_value_bounds import PValueBounds, split_contrasts
from mrshc.core.inference.refinement import (
    complete_p_values,
    refine_feature_set,
    refine_feature_sets,
)
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.datasets import make_simulation_1
from storage_backends import matrix_at

N_TREES = 3


def tree_cuts(X, method="ward"):
    """Return the clusters of cuts of a tree into 2, 3, ... clusters, one cut in each row."""
    counts = [k for k in range(2, 8) if k < len(X)]
    return cut_tree(linkage(X, method), counts).T.astype(np.intp)


def make_features(rng, n):
    """Return features of several kinds, and the cuts of trees that some of them are related to."""
    noise = rng.normal(size=(n, 3000))
    trees = np.stack([tree_cuts(rng.normal(size=(n, 5))) for _ in range(N_TREES)])
    effects = rng.uniform(0.0, 3.0, size=300)
    related = noise[:, :300] + effects * (trees[0, -1][:, None] > 1)
    few_values = rng.integers(3, size=(n, 200)).astype(float)
    rare = (rng.random((n, 200)) < 1.5 / n).astype(float)  # some are constant
    return np.hstack([noise, related, few_values, rare]), trees


def test_squared_products_with_contrasts_add_up_to_sums_of_squares():
    rng = np.random.default_rng(0)
    cuts, x = tree_cuts(rng.normal(size=(30, 4))), rng.normal(size=30)
    contrasts = split_contrasts(cuts)
    np.testing.assert_allclose(contrasts.T @ contrasts, np.eye(len(cuts)), atol=1e-14)
    expected = []
    for labels in cuts:
        means = np.array([x[labels == k].mean() for k in labels])
        expected.append(((means - x.mean()) ** 2).sum())
    np.testing.assert_allclose(np.cumsum((contrasts.T @ x) ** 2), expected)


@pytest.mark.parametrize("n", [3, 4, 9, 40, 130, 200, 1010])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
def test_no_small_p_value_is_excluded(n, alpha):
    X, trees = make_features(np.random.default_rng(n), n)
    p_values = combined_tests(matrix_at(X), trees, DeviceRanks()).p_values
    marked = PValueBounds(trees, alpha=alpha).may_be_small(rankdata(X, axis=0).T)
    assert marked[p_values <= alpha].all()
    assert marked[p_values == 1.0].all()
    if n >= 40:
        # Most of the marked features have small p-values, or otherwise bounds would be useless.
        is_ordinary = slice(3300)
        n_small = np.count_nonzero(p_values[is_ordinary] <= alpha)
        assert np.count_nonzero(marked[is_ordinary]) <= 1.2 * n_small + 0.02 * 3300 * N_TREES


@pytest.mark.parametrize("share_missing", [0.0, 0.0005])
def test_other_p_values_do_not_depend_on_the_limit(share_missing):
    rng = np.random.default_rng(1)
    X, trees = make_features(rng, 150)
    X[rng.random(X.shape) < share_missing] = np.nan
    every = combined_tests(matrix_at(X), trees, DeviceRanks())
    found = combined_tests(matrix_at(X), trees, DeviceRanks(), alpha=0.05)
    is_computed = ~np.isnan(found.p_values)
    assert 0.0 < is_computed.mean() < 0.5
    assert np.all(every.p_values[~is_computed] > 0.05)
    assert np.all(every.p_values[~is_computed] < 1.0)
    np.testing.assert_array_equal(found.p_values[is_computed], every.p_values[is_computed])
    np.testing.assert_array_equal(found.strengths[is_computed], every.strengths[is_computed])


@pytest.mark.parametrize("n_continued", [None, 1])
def test_a_refinement_with_bounds_gives_the_same_result(n_continued, monkeypatch):
    X, settings = make_simulation_1(3).X, RefinementSettings(linkage="ward")
    starts = [np.arange(20), np.arange(10, 40), np.arange(200, 230), np.arange(300, 303)]
    matrix = matrix_at(X)
    expected = refine_feature_sets(matrix, starts, settings, n_continued=n_continued)
    monkeypatch.setattr(refinement, "_MIN_BOUNDED_FEATURES", 0)
    monkeypatch.setattr(refinement, "_MAX_SETS_WITH_ALL_P_VALUES", 0)
    found = refine_feature_sets(matrix, starts, settings, n_continued=n_continued)
    for with_bounds, result in zip(found, expected, strict=True):
        assert np.isnan(with_bounds.p_values).any()
        completed = complete_p_values(matrix, with_bounds, settings)
        for name in ("supported", "strength", "n_rounds"):
            assert getattr(completed, name) == getattr(result, name)
        for name in ("features", "associated", "p_values", "q_values", "tested"):
            np.testing.assert_array_equal(getattr(completed, name), getattr(result, name))
    alone = refine_feature_set(matrix, starts[0], settings)
    assert not np.isnan(alone.p_values).any()
