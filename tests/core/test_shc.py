"""Weights of SHC agree with R's sparcl, with the explicit matrix of distances and the formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform

import reference
from mrshc.core import sparse_dissimilarity
from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix, summarise
from mrshc.core.sparse_dissimilarity import (
    DataDissimilarity,
    L1Path,
    permutation_gap,
)
from mrshc.core.trees import linkage_matrix
from plain_twin import sparse_direction
from storage_backends import in_array_api, use_small_blocks

METRICS = {"squared.distance": "sqeuclidean", "absolute.value": "cityblock"}
RULE = {"max_iter": 15, "tol": 1e-4}  # the defaults of sparcl


def dissimilarity_of(X, metric="sqeuclidean", earlier=None):
    matrix = X if hasattr(X, "map") else ArrayMatrix(X)
    return DataDissimilarity(matrix, summarise(matrix), metric, earlier)


def solution(X, bound, metric="sqeuclidean", *, earlier=None, **options):
    data = dissimilarity_of(X, metric, earlier)
    found = L1Path(data, **RULE | options).solve(bound)
    return found, data.of_weights(found.weights)[0] / np.sqrt(2)


def explicit_pairs(X, metric):
    """Return D by its definition, pairs in scipy's order, missing values as in sparcl."""
    i, j = np.triu_indices(len(X), 1)
    apart = X[i] - X[j]
    distances = np.square(apart) if metric == "sqeuclidean" else np.abs(apart)
    shared = (~np.isnan(distances)).sum(axis=1)
    return np.nan_to_num(distances) * (X.shape[1] / shared)[:, None]


def explicit_solution(D, bound, *, max_iter, tol, fixed=None):
    """Return u, w, the criterion and the number of iterations of the alternation on D itself."""

    def unit(w):
        u = D @ w
        if fixed is not None:
            u = u - fixed * (fixed @ u)
        return u / np.linalg.norm(u)

    u, n_iter = unit(np.ones(D.shape[1])), 0
    while n_iter < max_iter:
        n_iter += 1
        w = sparse_direction(np.maximum(D.T @ u, 0), bound)
        old, u = u, unit(w)
        if np.abs(u - old).sum() <= tol * np.abs(old).sum():
            break
    return u, w, u @ D @ w, n_iter


# The stored runs of sparcl ------------------------------------------------------------------


def test_all_40_stored_runs_of_sparcl_are_met():
    runs = reference.runs("shc")
    assert len(runs) == 40
    for run in runs:
        found, matrix = solution(
            reference.matrix(f"input_{run['input']}"), run["wbound"], METRICS[run["dissimilarity"]]
        )
        np.testing.assert_array_equal(found.weights > 0, np.array(run["ws"]) > 0)
        # sparcl searches for its threshold to this accuracy only.
        np.testing.assert_allclose(found.weights, run["ws"], atol=2e-3)
        assert found.criterion == pytest.approx(run["crit"], rel=1e-3)
        heights = linkage_matrix(matrix, run["method"])[:, 2]
        np.testing.assert_allclose(heights, run["height"], atol=2e-3)
        if run["u_lower"] is not None:
            u = squareform(matrix, checks=False)
            np.testing.assert_allclose(u, run["u_lower"], atol=2e-3)


@pytest.mark.parametrize("name", ["C_squared", "C_absolute", "A_complementary"])
def test_missing_values_and_complements_are_treated_as_sparcl_does(name):
    run, X = reference.runs("shc_extra")[name], reference.matrix(f"input_{name[0]}")
    if name == "A_complementary":
        first = solution(X, 1.5)[1]
        found, matrix = solution(X, 1.5, earlier=first)
        assert np.sum(first * matrix) == pytest.approx(0, abs=1e-12)
    else:
        found, matrix = solution(X, 3.0, "cityblock" if "abs" in name else "sqeuclidean")
        u = squareform(matrix, checks=False)
        np.testing.assert_allclose(u, run["u_lower"], atol=2e-3)
    np.testing.assert_array_equal(found.weights > 0, np.array(run["ws"]) > 0)
    np.testing.assert_allclose(found.weights, run["ws"], atol=2e-3)


@pytest.mark.parametrize("name", ["A", "B"])
@pytest.mark.parametrize("dissimilarity", METRICS)
def test_permutation_gaps_are_those_of_sparcl(name, dissimilarity):
    stored = reference.table("shc_permute").query(
        "input == @name and dissimilarity == @dissimilarity"
    )
    data = dissimilarity_of(reference.matrix(f"input_{name}"), METRICS[dissimilarity])

    def solve(some):
        path = L1Path(some, **RULE)
        return [path.solve(bound) for bound in stored["wbound"]]

    solutions = solve(data)
    criteria = [s.criterion for s in solutions]
    np.testing.assert_allclose(criteria, stored["tot"], rtol=1e-3)
    assert [s.features.size for s in solutions] == stored["nnonzerow"].tolist()
    gap = permutation_gap(
        criteria,
        lambda m: np.array([s.criterion for s in solve(data.permuted(0, m, 1))]),
        10,
        lambda *_: None,
    )
    error = np.hypot(stored["sdgap"], gap.sd) / np.sqrt(10)
    assert np.all(np.abs(gap.gap - stored["gap"]) < 4 * error)


# The alternation ----------------------------------------------------------------------------


def samples(share=0.0, shape=(25, 60), seed=0):
    X = np.random.default_rng(seed).integers(-40, 40, size=shape) / 8
    X[np.random.default_rng(1).random(shape) < share] = np.nan
    return X


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("bound", [1.0, 1.7, 4.0, np.sqrt(60)])
def test_solution_is_that_of_the_explicit_matrix(metric, share, bound):
    X = samples(share)
    D = explicit_pairs(X, metric)
    for data in (X, X.astype(np.float32), as_matrix(in_array_api(X))):
        found, matrix = solution(data, bound, metric)
        u, w, criterion, n_iter = explicit_solution(D, bound, **RULE)
        np.testing.assert_allclose(found.weights, w, atol=1e-6)
        np.testing.assert_allclose(squareform(matrix, checks=False) * np.sqrt(2), u, atol=1e-6)
        assert found.criterion == pytest.approx(criterion)
        assert (found.n_iter, found.penalty) == (n_iter, bound)
        assert np.linalg.norm(matrix) == pytest.approx(1)
    # A complement is kept orthogonal to the earlier solution, whatever its scale.
    fixed = u
    found, second = solution(X, bound, metric, earlier=5 * matrix, max_iter=4, tol=0.0)
    u, w, criterion, n_iter = explicit_solution(D, bound, fixed=fixed, max_iter=4, tol=0.0)
    np.testing.assert_allclose(found.weights, w, atol=1e-7)
    np.testing.assert_allclose(squareform(second, checks=False) * np.sqrt(2), u, atol=1e-7)
    assert found.criterion == pytest.approx(criterion)
    assert np.sum(second * matrix) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("remaining", "is_refused"), [(0.0, True), (1e-12, True), (1e-8, False)])
def test_a_multiple_of_the_earlier_solution_is_refused(remaining, is_refused):
    """Many features have the earlier distances; one feature has others, relatively small."""
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    X, earlier = np.column_stack([*[x] * 20, 20 * remaining * y]), np.abs(x[:, None] - x)
    for scale in (1.0, 1e3):
        if is_refused:
            with pytest.raises(ValueError, match="must not be a multiple of complement_of"):
                dissimilarity_of(X, "cityblock", scale * earlier)
        else:
            dissimilarity_of(X, "cityblock", scale * earlier)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("place", [ArrayMatrix, lambda X: as_matrix(in_array_api(X))])
def test_products_are_those_of_the_explicit_matrix(metric, share, place, monkeypatch):
    monkeypatch.setattr(sparse_dissimilarity, "_BLOCK_CELLS", 12 * 3)
    use_small_blocks(monkeypatch, 12 * 20)
    X, rng = samples(share, (12, 90)) + 100, np.random.default_rng(2)
    data, D = dissimilarity_of(place(X), metric), explicit_pairs(X, metric)
    D, u = D / data.unit, rng.normal(size=len(D))
    for n_weights in (90, 12, 11, 1):  # up to an eighth of the columns are read on their own
        w = np.zeros(90)
        w[rng.permutation(90)[:n_weights]] = rng.random(n_weights)
        found = data.distances(w)
        np.testing.assert_allclose(squareform(found, checks=False), D @ w, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(np.diag(found), 0.0)
        unit, norm = data.of_weights(w)
        assert norm == pytest.approx(np.linalg.norm(D @ w))
        np.testing.assert_allclose(unit * norm, found)
    slopes = data.slopes(squareform(u))
    np.testing.assert_allclose(slopes, D.T @ u, rtol=1e-8, atol=1e-8 * np.abs(slopes).max())
    pairs = data.pair_distances(slice(2, 7))
    np.testing.assert_allclose(pairs, D[:, 2:7].T, rtol=1e-9, atol=1e-9)


# Permutations -------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_each_block_is_permuted_with_a_stream_of_its_own(kept, monkeypatch):
    monkeypatch.setattr(sparse_dissimilarity, "_BLOCK_CELLS", 4 * 45)
    monkeypatch.setattr(sparse_dissimilarity, "_MAX_KEPT", 45 * 15 * 2 - (not kept))
    X = samples(shape=(10, 15))
    data, D = dissimilarity_of(X, "cityblock"), explicit_pairs(X, "cityblock")
    for k, start in enumerate(range(0, 15, 4)):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(2, k)))
        D[:, start : start + 4] = rng.permuted(D[:, start : start + 4].T, axis=1).T
    permuted = data.permuted(5, 2, 2)
    assert (permuted._kept is not None) == kept, "two workers share the memory"
    for bound in (1.0, 1.6, 3.8):
        found = L1Path(permuted, **RULE).solve(bound)
        assert found.criterion == pytest.approx(explicit_solution(D, bound, **RULE)[2], rel=1e-9)
