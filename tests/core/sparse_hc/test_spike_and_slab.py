"""Sparse hierarchical clustering with the spike-and-slab lasso."""

import numpy as np
import pytest

from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.spike_and_slab import (
    permuted_spike_and_slab_criteria,
    spike_and_slab_gap,
    spike_and_slab_path,
    spike_and_slab_settings,
)
from mrshc.core.sparse_hc.weighted_dissimilarity import DataDissimilarity
from mrshc.datasets import make_simulation_1

RULE = {"max_iter": 15, "tol": 1e-4}


def pairs_of(X, metric="sqeuclidean"):
    return PairDistances(as_data_matrix(X), metric)


def path_of(X, penalties=None, *, slab_penalty=1.0, **rule):
    pairs = pairs_of(X)
    settings = spike_and_slab_settings(pairs, slab_penalty=slab_penalty, **{**RULE, **rule})
    chosen = settings.path_penalties if penalties is None else penalties
    return spike_and_slab_path(DataDissimilarity(pairs), chosen, settings=settings), settings


def explicit_path(D, settings):
    """Return the weights for each penalty of the settings, by the formulas, from D itself."""
    p = D.shape[1]
    w, theta, found = np.full(p, 1 / np.sqrt(p)), 0.5, []
    for spike in settings.path_penalties:
        u = D @ w / np.linalg.norm(D @ w)
        for _ in range(settings.max_iter):
            ratio = spike / settings.slab_penalty * (1 - theta) / theta
            slab = 1 / (1 + ratio * np.exp(-w * (spike - settings.slab_penalty)))
            threshold = settings.slab_penalty * slab + spike * (1 - slab)
            w = np.maximum(D.T @ u - threshold, 0)
            w /= np.linalg.norm(w)
            theta = (1 + np.count_nonzero(w)) / (1 + p + p)
            old, u = u, D @ w / np.linalg.norm(D @ w)
            if np.abs(u - old).sum() <= settings.tol * np.abs(old).sum():
                break
        found.append(w)
    return np.array(found)


def dense(solutions, p):
    weights = np.zeros((len(solutions), p))
    for row, solution in zip(weights, solutions, strict=True):
        row[solution.indices] = solution.weights
    return weights


@pytest.mark.parametrize("slab_penalty", [1.0, 0.1, 6.0])
def test_weights_are_those_of_the_formulas(slab_penalty):
    X = make_simulation_1(3).X[:, :80]
    solutions, settings = path_of(X, slab_penalty=slab_penalty)
    assert settings.path_penalties[0] == slab_penalty
    i, j = np.triu_indices(len(X), 1)
    D = (X[i] - X[j]) ** 2
    # A feature with variance one has the mean distance two.
    D *= 2 / np.median(D.mean(axis=0))
    np.testing.assert_allclose(dense(solutions, 80), explicit_path(D, settings), atol=1e-9)
    # Informative features are kept, and most others are not.
    last = solutions[-1].indices
    assert np.mean(last < 50) > 0.9
    assert last.size < 60


def test_the_criterion_is_that_of_the_distances_of_the_data():
    X = 7.0 * make_simulation_1(3).X[:, :80]
    solutions, _ = path_of(X)
    i, j = np.triu_indices(len(X), 1)
    for solution in solutions[::30]:
        product = (X[i] - X[j])[:, solution.indices] ** 2 @ solution.weights
        assert solution.criterion == pytest.approx(np.linalg.norm(product), rel=1e-10)


@pytest.mark.parametrize("factor", [1e-60, 3.0, 1e60])
def test_weights_do_not_depend_on_the_unit_of_the_data(factor):
    X = make_simulation_1(3).X[:, :80]
    expected, settings = path_of(X)
    found, scaled_settings = path_of(factor * X)
    np.testing.assert_allclose(scaled_settings.path_penalties, settings.path_penalties, rtol=1e-9)
    np.testing.assert_allclose(dense(found, 80), dense(expected, 80), atol=1e-7)


def test_a_penalty_does_not_depend_on_the_others():
    X = make_simulation_1(3).X[:, :80]
    path, settings = path_of(X)
    for position in (10, 70, 99):
        (alone,), _ = path_of(X, [settings.path_penalties[position]])
        np.testing.assert_array_equal(alone.indices, path[position].indices)
        np.testing.assert_array_equal(alone.weights, path[position].weights)
    many, _ = path_of(X, [300.5, 33.3, 300.5])
    for solution in many:
        (alone,), _ = path_of(X, [solution.spike_penalty])
        np.testing.assert_array_equal(alone.weights, solution.weights)
    assert [s.spike_penalty for s in many] == [300.5, 33.3, 300.5]


def test_equal_penalties_shrink_all_features_alike():
    X = make_simulation_1(3).X[:, :80]
    (found,), settings = path_of(X, [5.0], slab_penalty=5.0, max_iter=100, tol=1e-12)
    assert found.converged
    pairs = pairs_of(X)
    u, _ = DataDissimilarity(pairs).of_weights(found.indices, found.weights)
    shrunk = np.maximum(pairs.slopes(u) / settings.scale - 5.0, 0.0)
    np.testing.assert_allclose(dense([found], 80)[0], shrunk / np.linalg.norm(shrunk), atol=1e-9)


def test_one_feature_remains_if_no_slope_exceeds_the_penalty():
    X = np.random.default_rng(0).normal(size=(10, 6)) * [1, 1, 1, 1, 3, 1]
    (found,), settings = path_of(X, [1e6], slab_penalty=1e6)
    assert settings.path_penalties == (1e6,)
    assert found.indices.tolist() == [4]
    assert found.weights.tolist() == [1.0]


def test_constant_features_have_no_weight():
    X = make_simulation_1(3).X[:, :40].copy()
    X[:, [3, 20]] = 4.0
    solutions, _ = path_of(X)
    assert not any(np.isin([3, 20], solution.indices).any() for solution in solutions)


def test_the_gap_compares_logarithms_of_criteria():
    pairs = pairs_of(make_simulation_1(3).X[:30, :60])
    settings = spike_and_slab_settings(pairs, slab_penalty=1.0, **RULE)
    penalties = [2.0, 40.0, 90.0]
    solutions = spike_and_slab_path(DataDissimilarity(pairs), penalties, settings=settings)
    done = []
    common = {"n_permutations": 3, "entropy": 5, "progress": lambda *each: done.append(each)}
    gap = spike_and_slab_gap(pairs, solutions, settings=settings, n_jobs=1, **common)
    logs = np.log(
        [
            permuted_spike_and_slab_criteria(
                pairs=pairs,
                spike_penalties=penalties,
                settings=settings,
                entropy=5,
                permutation=m,
            )
            for m in range(3)
        ]
    )
    expected = np.log([s.criterion for s in solutions]) - logs.mean(axis=0)
    np.testing.assert_allclose(gap.gap, expected, rtol=1e-12)
    np.testing.assert_allclose(gap.standard_deviation, logs.std(axis=0, ddof=1), rtol=1e-9)
    assert done == [(1, 3), (2, 3), (3, 3)]
    parallel = spike_and_slab_gap(pairs, solutions, settings=settings, n_jobs=2, **common)
    np.testing.assert_array_equal(parallel.gap, gap.gap)


def test_a_permutation_breaks_the_association_of_features():
    """The distances in each feature remain, so only the sum over features differs."""
    X = np.repeat(make_simulation_1(3).X[:40, :1], 30, axis=1)
    pairs = pairs_of(X)
    settings = spike_and_slab_settings(pairs, slab_penalty=1.0, **RULE)
    (solution,) = spike_and_slab_path(DataDissimilarity(pairs), [1.0], settings=settings)
    (permuted,) = permuted_spike_and_slab_criteria(
        pairs=pairs, spike_penalties=[1.0], settings=settings, entropy=0, permutation=0
    )
    assert permuted < 0.9 * solution.criterion


def test_weights_are_those_of_the_array_in_memory(implementation):
    A = make_simulation_1(3).X[:30, :60]
    results = []
    for X in (implementation.in_memory(A), implementation(A)):
        pairs = pairs_of(X)
        settings = spike_and_slab_settings(pairs, slab_penalty=1.0, **RULE)
        results.append(
            spike_and_slab_path(DataDissimilarity(pairs), [30.0, 80.0], settings=settings)
        )
    for expected, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-6)
