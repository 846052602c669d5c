"""Sparse K-means agrees with R's sparcl, with definitions and with exhaustive searches."""

from itertools import product

import numpy as np
import pytest

import reference
from mrshc.core import sparse_kmeans
from mrshc.core.data.matrix import ArrayMatrix, summarise
from mrshc.core.kernels import best_partition
from mrshc.core.sparse_components import sparse_direction
from mrshc.core.sparse_dissimilarity import permutation_gap
from mrshc.core.sparse_kmeans import CentredColumns, PartitionPath

INPUTS = {"A": "input_A", "B": "input_B", "I": "simI_rep1"}
RUNS = reference.runs("sparse_kmeans")
NO_START = np.empty(0, np.int64)


def columns_of(X):
    return CentredColumns(ArrayMatrix(X), summarise(ArrayMatrix(X)))


def path_of(X, k, seed=0, n_init=20):
    return PartitionPath(columns_of(X), k, n_init, np.random.SeedSequence(seed))


def between(X, labels):
    """Return the sum of squares between clusters of each feature, by its definition."""
    groups = [X[labels == k] for k in np.unique(labels)]
    return sum(len(g) * np.square(g.mean(axis=0) - X.mean(axis=0)) for g in groups)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['input']}-{run['wbound']}")
def test_weights_are_those_of_sparcl_and_the_criterion_is_not_smaller(run):
    X, labels = reference.matrix(INPUTS[run["input"]]), np.array(run["labels"]) - 1
    bound, columns = float(np.sum(run["ws"])), columns_of(X)
    assert bound == pytest.approx(min(run["wbound"], bound), rel=5e-4)  # sparcl exceeds it a little
    squares = columns.between(labels, run["K"])
    weights = sparse_direction(squares, bound)
    np.testing.assert_allclose(weights, run["ws"], atol=1e-6)
    criterion = weights @ squares * columns.unit**2
    assert criterion == pytest.approx(run["crit"][-1], rel=1e-6)
    for seed in range(3):
        found = path_of(X, run["K"], seed).solve(bound)
        assert found.criterion >= run["crit"][-1] * (1 - 1e-9)
        assert found.converged


@pytest.mark.parametrize(("name", "k"), [("A", 4), ("B", 3)])
def test_permutation_gaps_are_those_of_sparcl(name, k):
    """Its partition of the data may be worse, so means of the permutations are compared, too."""
    table = reference.table("sparse_kmeans_permute").query("input == @name")
    columns, bounds = columns_of(reference.matrix(f"input_{name}")), table["wbound"].tolist()

    def criteria(some, seed):
        path = PartitionPath(some, k, 20, np.random.SeedSequence(seed))
        return np.array([path.solve(bound).criterion for bound in bounds])

    own = criteria(columns, 0)
    found = permutation_gap(own, lambda m: criteria(columns.permuted(0, m), m), 40, lambda *_: None)
    # sparcl exceeds its bounds by up to this share, and so does its criterion.
    assert np.all(own >= table["tot"] * (1 - 1e-3))
    error = np.sqrt(table["sdgap"] ** 2 / 10 + found.sd**2 / 40)
    mean, mean_in_sparcl = np.log(own) - found.gap, np.log(table["tot"]) - table["gap"]
    assert np.all(np.abs(mean - mean_in_sparcl) < 3 * error)
    is_same = np.array([(name, bound) != ("A", 2.0) for bound in bounds])  # worse in sparcl
    assert np.all((np.abs(found.gap - table["gap"]) < 3 * error)[is_same])


@pytest.mark.parametrize("kept", [True, False])
def test_columns_are_centred_and_permuted_in_blocks(kept, monkeypatch):
    monkeypatch.setattr(sparse_kmeans, "_BLOCK_CELLS", 12 * 4)
    monkeypatch.setattr(sparse_kmeans, "_MAX_KEPT", 12 * 10 - (not kept))
    X, labels = np.random.default_rng(0).normal(size=(12, 10)) * 7 + 100, np.arange(12) % 3
    columns, weights = columns_of(X), np.random.default_rng(1).random(10) * (np.arange(10) != 4)
    assert (columns._kept is not None) == kept
    centred = (X - X.mean(axis=0)) / columns.unit
    np.testing.assert_allclose(columns.inner_products(weights), centred * weights @ centred.T)
    np.testing.assert_allclose(columns.between(labels, 3), between(centred, labels))
    centres = [X[labels == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(columns.centres(labels, 3), centres)
    for k, start in enumerate((0, 4, 8)):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(2, k)))
        centred[:, start : start + 4] = rng.permuted(centred[:, start : start + 4], axis=0)
    found = columns.permuted(5, 2).inner_products(np.ones(10))
    np.testing.assert_allclose(found, centred @ centred.T)


# Partitions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_many_starts_is_the_best_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, 2))
    X -= X.mean(axis=0)
    partitions = (np.array(labels) for labels in product(range(3), repeat=7))
    best = max(between(X, labels).sum() for labels in partitions if np.unique(labels).size == 3)
    labels, found = best_partition(X @ X.T, rng.random((50, 3)), NO_START)
    assert found == pytest.approx(best) == pytest.approx(between(X, labels).sum())


@pytest.mark.parametrize("k", [2, 4, 6])
def test_no_cluster_is_empty_even_if_samples_are_equal(k):
    X = np.repeat([[0.0, 1.0], [5.0, 1.0]], 3, axis=0)
    for seed in range(10):
        uniforms = np.random.default_rng(seed).random((3, k))
        labels, _ = best_partition(X @ X.T, uniforms, NO_START)
        assert np.unique(labels).size == k
