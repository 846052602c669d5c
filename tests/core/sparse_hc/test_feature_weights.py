from dataclasses import asdict
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config
from scipy.spatial.distance import squareform

import reference
from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.permutations import PermutationGap
from mrshc.core.sparse_hc.feature_weights import WeightPath, permutation_gap, permuted_criteria
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.permuted_pairs import PermutedPairs
from mrshc.core.sparse_hc.weighted_dissimilarity import DataDissimilarity
from mrshc.core.trees.tree import agglomerate
from plain_twin import sparse_direction
from storage_backends import ArrayInBlocks, clustered, tables, tables_in_turn

METRICS = {"squared.distance": "sqeuclidean", "absolute.value": "cityblock"}
R_DEFAULTS = {"max_iter": 15, "tol": 1e-4}


def weight_path(pairs):
    return WeightPath(DataDissimilarity(pairs), **R_DEFAULTS)


def solution(X, bound, metric, *, orthogonal_to=None, **options):
    pairs = PairDistances(as_data_matrix(X), metric)
    weighted = DataDissimilarity(pairs, orthogonal_to=orthogonal_to)
    found = WeightPath(weighted, **{**R_DEFAULTS, **options}).solve(bound)
    return SimpleNamespace(
        **asdict(found), dissimilarity=weighted.matrix(found.indices, found.weights)
    )


def weights(found, p):
    dense = np.zeros(p)
    dense[found.indices] = found.weights
    return dense


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

    u = unit(np.ones(D.shape[1]))
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        w = sparse_direction(np.maximum(D.T @ u, 0), bound)
        old, u = u, unit(w)
        if np.abs(u - old).sum() <= tol * np.abs(old).sum():
            break
    return u, w, np.linalg.norm(D @ w), n_iter


@pytest.mark.parametrize("dissimilarity", METRICS)
@pytest.mark.parametrize("name", ["A", "B"])
def test_weights_agree_with_stored_runs_of_sparcl(name, dissimilarity):
    X = reference.matrix(f"input_{name}")
    runs = [
        r
        for r in reference.runs("shc")
        if (r["input"], r["dissimilarity"]) == (name, dissimilarity)
    ]
    assert len(runs) == 10
    for run in runs:
        found = solution(X, run["wbound"], METRICS[dissimilarity])
        dense = weights(found, X.shape[1])
        np.testing.assert_array_equal(dense > 0, np.array(run["ws"]) > 0)
        # sparcl searches for its threshold to this accuracy only.
        np.testing.assert_allclose(dense, run["ws"], atol=2e-3)
        assert found.criterion == pytest.approx(run["crit"], rel=1e-3)
        tree = agglomerate(found.dissimilarity, run["method"])
        np.testing.assert_allclose(tree.linkage_matrix[:, 2], run["height"], atol=2e-3)
        if run["u_lower"] is not None:
            u = squareform(found.dissimilarity, checks=False)
            np.testing.assert_allclose(u, run["u_lower"], atol=2e-3)


@pytest.mark.parametrize(
    ("name", "metric"), [("C_squared", "sqeuclidean"), ("C_absolute", "cityblock")]
)
def test_missing_values_are_treated_as_sparcl_does(name, metric):
    run = reference.runs("shc_extra")[name]
    found = solution(reference.matrix("input_C"), 3.0, metric)
    dense = weights(found, 100)
    np.testing.assert_array_equal(dense > 0, np.array(run["ws"]) > 0)
    np.testing.assert_allclose(dense, run["ws"], atol=2e-3)
    np.testing.assert_allclose(
        squareform(found.dissimilarity, checks=False), run["u_lower"], atol=2e-3
    )


def test_complementary_clustering_is_that_of_sparcl():
    run = reference.runs("shc_extra")["A_complementary"]
    X = reference.matrix("input_A")
    first = solution(X, 1.5, "sqeuclidean")
    second = solution(X, 1.5, "sqeuclidean", orthogonal_to=first.dissimilarity)
    np.testing.assert_array_equal(weights(second, 15) > 0, np.array(run["ws"]) > 0)
    np.testing.assert_allclose(weights(second, 15), run["ws"], atol=2e-3)
    assert np.sum(first.dissimilarity * second.dissimilarity) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solution_is_that_of_the_explicit_matrix(metric, share_missing, dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(-40, 40, size=(25, 60)) / 8).astype(dtype)
    X[rng.random(X.shape) < share_missing] = np.nan
    D = explicit_pairs(X.astype(np.float64), metric)
    for bound in (1.0, 1.7, 4.0, np.sqrt(60)):
        found = solution(X, bound, metric)
        u, w, criterion, n_iter = explicit_solution(D, bound, **R_DEFAULTS)
        np.testing.assert_allclose(weights(found, 60), w, atol=1e-6)
        np.testing.assert_allclose(
            squareform(found.dissimilarity, checks=False) * np.sqrt(2), u, atol=1e-6
        )
        assert found.criterion == pytest.approx(criterion)
        assert found.n_iter == n_iter
        assert np.linalg.norm(found.dissimilarity) == pytest.approx(1)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-9])
def test_the_alternation_ends_at_convergence_or_at_the_limit(tol):
    X = np.random.default_rng(0).normal(size=(15, 30))
    D = explicit_pairs(X, "sqeuclidean")
    u, _w, _criterion, needed = explicit_solution(D, 2.5, max_iter=500, tol=tol)
    assert needed > 1
    for max_iter, converged in ((1, False), (needed - 1, False), (needed, True), (500, True)):
        found = solution(X, 2.5, "sqeuclidean", max_iter=max_iter, tol=tol)
        assert (found.n_iter, found.converged) == (min(needed, max_iter), converged)
    np.testing.assert_allclose(squareform(found.dissimilarity) * np.sqrt(2), u, atol=1e-9)


def test_a_tolerance_of_zero_is_met_if_nothing_changes():
    """A bound of one selects the same single feature in the first two iterations."""
    X = np.random.default_rng(0).normal(size=(8, 3)) * [1.0, 5.0, 2.0]
    found = solution(X, 1.0, "sqeuclidean", max_iter=50, tol=0.0)
    np.testing.assert_array_equal(found.indices, [1])
    assert (found.n_iter, found.converged) == (2, True)


def test_solutions_are_stored():
    pairs = PairDistances(as_data_matrix(reference.matrix("input_A")), "sqeuclidean")
    path = weight_path(pairs)
    found = path.solve(2.0)
    assert found.l1_bound == 2.0
    n_passes = pairs.n_passes
    assert path.solve(2.0) is found
    assert pairs.n_passes == n_passes


@pytest.mark.parametrize(
    ("remaining", "is_exhausted"), [(0.0, True), (1e-12, True), (1e-8, False), (1.0, False)]
)
def test_distances_are_exhausted_if_nothing_orthogonal_to_the_earlier_solution_remains(
    remaining, is_exhausted
):
    """Many features have the earlier distances; one feature has others, relatively small."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30))
    X = np.column_stack([*[x] * 20, 20 * remaining * y])
    earlier = np.abs(x[:, None] - x)
    for orthogonal_to in (earlier, 1e3 * earlier):
        pairs = PairDistances(as_data_matrix(X), "cityblock")
        weighted = DataDissimilarity(pairs, orthogonal_to=orthogonal_to)
        assert weighted.is_exhausted == is_exhausted


@pytest.mark.parametrize("X", [np.ones((6, 4)), np.eye(6, 4)], ids=["constant", "varying"])
def test_distances_are_not_exhausted_without_an_earlier_solution(X):
    pairs = PairDistances(as_data_matrix(X), "sqeuclidean")
    assert not DataDissimilarity(pairs).is_exhausted


def test_constant_data_have_no_weights():
    found = solution(np.ones((6, 4)), 1.5, "sqeuclidean")
    assert found.indices.size == 0
    assert found.criterion == 0.0
    np.testing.assert_array_equal(found.dissimilarity, np.zeros((6, 6)))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_complementary_solution_is_that_of_the_explicit_matrix(metric):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(14, 20))
    X[:7, :5] += 3.0
    D = explicit_pairs(X, metric)
    first = solution(X, 2.0, metric)
    fixed = squareform(first.dissimilarity) * np.sqrt(2)
    options = {"max_iter": 4, "tol": 0.0}
    found = solution(X, 2.0, metric, orthogonal_to=5 * first.dissimilarity, **options)
    u, w, _, n_iter = explicit_solution(D, 2.0, fixed=fixed, **options)
    np.testing.assert_allclose(weights(found, 20), w, atol=1e-7)
    np.testing.assert_allclose(squareform(found.dissimilarity) * np.sqrt(2), u, atol=1e-7)
    assert found.criterion == pytest.approx(u @ D @ w)
    assert found.n_iter == n_iter


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_products_are_those_of_the_explicit_matrix(metric, share_missing):
    rng = np.random.default_rng(1)
    X = rng.normal(loc=100, size=(12, 9))
    X[rng.random(X.shape) < share_missing] = np.nan
    pairs, D = PairDistances(as_data_matrix(X), metric), explicit_pairs(X, metric)
    w, u = rng.random(9), rng.normal(size=len(D))
    D = D / pairs.unit
    np.testing.assert_allclose(
        squareform(pairs.weighted_distances(np.arange(9), w), checks=False), D @ w, rtol=1e-9
    )
    np.testing.assert_allclose(pairs.slopes(squareform(u)), D.T @ u, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        pairs.feature_distances(slice(2, 7)), D[:, 2:7].T, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_weights_do_not_depend_on_the_scale_of_the_data(metric, scale):
    X = reference.matrix("input_A")
    plain, scaled = solution(X, 2.0, metric), solution(X * scale, 2.0, metric)
    np.testing.assert_allclose(weights(plain, 15), weights(scaled, 15), atol=1e-9)
    np.testing.assert_allclose(plain.dissimilarity, scaled.dissimilarity, atol=1e-9)
    power = 2 if metric == "sqeuclidean" else 1
    assert scaled.criterion == pytest.approx(plain.criterion * scale**power, rel=1e-9)


def test_search_covers_all_bounds():
    """The weights of proportional features are their scales, if the bound allows it."""
    x = np.random.default_rng(0).normal(size=10)
    pairs = PairDistances(as_data_matrix(np.column_stack([x, 2 * x, 3 * x, 4 * x])), "cityblock")
    path = weight_path(pairs)
    assert path.search(1).l1_bound == 1.0
    found = path.search(4)
    assert found.l1_bound == 2.0
    np.testing.assert_allclose(found.weights, np.arange(1, 5) / np.sqrt(30))


def test_search_reaches_the_number_of_features():
    path = weight_path(PairDistances(as_data_matrix(reference.matrix("input_B")), "sqeuclidean"))
    for q in (1, 12, 50, 200):
        assert path.search(q).indices.size == q


@pytest.mark.parametrize("name", ["A", "B"])
@pytest.mark.parametrize("dissimilarity", METRICS)
def test_permutation_gap_is_that_of_sparcl(name, dissimilarity):
    stored = reference.table("shc_permute").query(
        "input == @name and dissimilarity == @dissimilarity"
    )
    pairs = PairDistances(as_data_matrix(reference.matrix(f"input_{name}")), METRICS[dissimilarity])
    path = weight_path(pairs)
    solutions = [path.solve(bound) for bound in stored["wbound"]]
    np.testing.assert_allclose([s.criterion for s in solutions], stored["tot"], rtol=1e-3)
    assert [s.indices.size for s in solutions] == stored["nnonzerow"].tolist()
    found = permutation_gap(
        pairs,
        solutions,
        n_permutations=10,
        entropy=0,
        n_jobs=None,
        progress=lambda *_: None,
        **R_DEFAULTS,
    )
    error = np.hypot(stored["sdgap"], found.standard_deviation) / np.sqrt(10)
    assert np.all(np.abs(found.gap - stored["gap"]) < 4 * error)


@pytest.mark.parametrize(
    "options", [{"max_iter": m, "tol": t} for m in (1, 2, 30) for t in (0, 0.02)]
)
def test_permuted_criteria_are_those_of_blocks_permuted_one_by_one(options, monkeypatch):
    """Each block of features has its own random numbers, and each bound its own convergence."""
    monkeypatch.setattr("mrshc.core.data.statistics._BLOCK_CELLS", 4 * 45)
    X = np.random.default_rng(0).normal(size=(10, 15))
    pairs = PairDistances(as_data_matrix(X), "cityblock")
    bounds = [1.0, 1.6, 2.0, 3.0, 3.8]
    D = explicit_pairs(X, "cityblock")
    for k, start in enumerate(range(0, 15, 4)):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(2, k)))
        D[:, start : start + 4] = rng.permuted(D[:, start : start + 4].T, axis=1).T
    expected = [explicit_solution(D, bound, **options)[2] for bound in bounds]
    found = permuted_criteria(pairs=pairs, l1_bounds=bounds, entropy=5, permutation=2, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_permuted_distances_are_computed_once_unless_they_are_too_many(monkeypatch):
    pairs = PairDistances(as_data_matrix(reference.matrix("input_A")), "sqeuclidean")
    (n, p), plain, computed = pairs.shape, pairs.feature_distances, []

    def record(block):
        computed.append(block)
        return plain(block)

    pairs.feature_distances = record
    options = {"pairs": pairs, "l1_bounds": [2.0], "entropy": 0, "permutation": 0, **R_DEFAULTS}
    for n_kept, is_computed_once in (
        (n * (n - 1) // 2 * p, True),
        (n * (n - 1) // 2 * p - 1, False),
    ):
        monkeypatch.setattr("mrshc.core.sparse_hc.permuted_pairs._MAX_KEPT_DISTANCES", n_kept)
        computed.clear()
        permuted_criteria(**options)
        assert (computed == [slice(0, p)]) == is_computed_once


@pytest.mark.parametrize("n_used", [0, 1, 10, 40])
def test_products_with_few_weights_are_those_with_all(n_used):
    X = np.random.default_rng(0).normal(size=(9, 40))
    permuted = PermutedPairs(
        PairDistances(as_data_matrix(X), "sqeuclidean"), entropy=1, permutation=0, n_workers=2
    )
    weights = np.zeros((40, 2))
    weights[:n_used] = np.random.default_rng(1).uniform(size=(n_used, 2))
    D = np.concatenate([distances for _, distances in permuted._blocks()])
    np.testing.assert_allclose(permuted.multiply(weights), D.T @ weights, rtol=1e-12)


def test_workers_share_the_memory_for_permuted_distances(monkeypatch):
    pairs = PairDistances(
        as_data_matrix(np.random.default_rng(0).normal(size=(9, 40))), "cityblock"
    )
    monkeypatch.setattr("mrshc.core.sparse_hc.permuted_pairs._MAX_KEPT_DISTANCES", 36 * 40 * 3)
    options = {"entropy": 0, "permutation": 0}
    assert PermutedPairs(pairs, **options, n_workers=3)._kept_blocks is not None
    assert PermutedPairs(pairs, **options, n_workers=4)._kept_blocks is None


def gap_of(pairs, solutions, **options):
    return permutation_gap(
        pairs,
        solutions,
        **{
            "n_permutations": 3,
            "n_jobs": None,
            "progress": lambda *_: None,
            **R_DEFAULTS,
            **options,
        },
    )


def test_permutation_gap_compares_logarithms_of_criteria():
    pairs = PairDistances(as_data_matrix(reference.matrix("input_A")), "sqeuclidean")
    path, finished = weight_path(pairs), []
    solutions = [path.solve(bound) for bound in (1.5, 2.5)]
    found = gap_of(pairs, solutions, entropy=7, progress=lambda *done: finished.append(done))
    logs = np.log(
        [
            permuted_criteria(
                pairs=pairs, l1_bounds=[1.5, 2.5], entropy=7, permutation=k, **R_DEFAULTS
            )
            for k in range(3)
        ]
    )
    observed = np.log([s.criterion for s in solutions])
    np.testing.assert_allclose(found.gap, observed - logs.mean(axis=0), rtol=1e-12)
    variances = np.square(logs - logs.mean(axis=0)).sum(axis=0) / 2
    np.testing.assert_allclose(found.standard_deviation, np.sqrt(variances), rtol=1e-9)
    assert finished == [(1, 3), (2, 3), (3, 3)]


def test_permutations_of_out_of_core_data_run_in_threads():
    """Other processes could not read the data, which cannot be sent to them."""
    data = ArrayInBlocks(reference.matrix("input_A"))
    data.lock = Lock()
    pairs = PairDistances(data, "sqeuclidean")
    solutions = [weight_path(pairs).solve(2.0)]
    alone = gap_of(pairs, solutions, entropy=1)
    with parallel_config("loky", n_jobs=2):
        shared = gap_of(pairs, solutions, entropy=1)
    np.testing.assert_array_equal(shared.gap, alone.gap)


@pytest.mark.parametrize(("gap", "position"), [([0.1, 0.3, 0.2], 1), ([2.0, 2.0], 0), ([-1.0], 0)])
def test_best_position_has_the_largest_gap(gap, position):
    found = PermutationGap(gap=np.array(gap), standard_deviation=np.zeros(len(gap)))
    assert found.best_position == position


def test_permuted_criteria_are_those_of_a_permuted_matrix(monkeypatch):
    """All bounds together, from kept or recomputed columns, agree with each bound on its own."""
    X = reference.matrix("input_A")
    pairs = PairDistances(as_data_matrix(X), "sqeuclidean")
    bounds = [1.0, 1.6, 3.0]
    together = permuted_criteria(
        pairs=pairs, l1_bounds=bounds, entropy=3, permutation=1, **R_DEFAULTS
    )
    seed = np.random.SeedSequence(3, spawn_key=(1, 0))
    D = np.random.default_rng(seed).permuted(explicit_pairs(X, "sqeuclidean").T, axis=1).T
    expected = [explicit_solution(D, bound, **R_DEFAULTS)[2] for bound in bounds]
    np.testing.assert_allclose(together, expected, rtol=1e-9)
    monkeypatch.setattr("mrshc.core.sparse_hc.permuted_pairs._MAX_KEPT_DISTANCES", 0)
    again = permuted_criteria(pairs=pairs, l1_bounds=bounds, entropy=3, permutation=1, **R_DEFAULTS)
    np.testing.assert_array_equal(again, together)


@pytest.mark.parametrize("observed", [1.0, np.nan], ids=["complete", "missing"])
def test_one_huge_value_does_not_affect_other_distances(observed):
    X = np.random.default_rng(3).normal(size=(12, 4))
    X[11, 3] = observed
    weights = np.full(4, 0.5)
    regular = PairDistances(as_data_matrix(X), "sqeuclidean")
    X = X.copy()
    X[0, 0] = 1e9
    with_outlier = PairDistances(as_data_matrix(X), "sqeuclidean")
    expected = regular.weighted_distances(np.arange(4), weights)[1:, 1:] * regular.unit
    found = with_outlier.weighted_distances(np.arange(4), weights)[1:, 1:] * with_outlier.unit
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


# Storage backends ---------------------------------------------------------------------------


def assert_close(found, expected):
    """Compare up to rounding errors of the largest value."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_products_are_those_of_the_array_in_memory(implementation, metric):
    rng = np.random.default_rng(0)
    u = rng.normal(size=(24, 24))
    few, w = np.array([3, 17, 250]), rng.random(400)
    for A in tables(implementation):
        in_memory = PairDistances(as_data_matrix(implementation.in_memory(A)), metric)
        pairs = PairDistances(as_data_matrix(implementation(A)), metric)
        assert (pairs.unit, pairs.shape) == (in_memory.unit, in_memory.shape)
        for indices in (np.arange(400), few):
            found = pairs.weighted_distances(indices, w[indices])
            assert_close(found, in_memory.weighted_distances(indices, w[indices]))
            assert np.all(np.diag(found) == 0.0)
        assert_close(pairs.slopes(u + u.T), in_memory.slopes(u + u.T))
        assert_close(
            pairs.feature_distances(slice(100, 200)), in_memory.feature_distances(slice(100, 200))
        )


@pytest.mark.slow
def test_weights_are_those_of_the_array_in_memory(implementation):
    for A, metric in tables_in_turn(implementation, ["sqeuclidean", "cityblock"]):
        memory_pairs, pairs = (
            PairDistances(as_data_matrix(X), metric)
            for X in (implementation.in_memory(A), implementation(A))
        )
        in_memory, path = weight_path(memory_pairs), weight_path(pairs)
        for expected, found in (
            (in_memory.solve(3.0), path.solve(3.0)),
            (in_memory.search(20), path.search(20)),
        ):
            assert found.l1_bound == expected.l1_bound
            np.testing.assert_array_equal(found.indices, expected.indices)
            np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-8)
            assert found.criterion == pytest.approx(expected.criterion, rel=1e-9)
            matrix, expected_matrix = (
                DataDissimilarity(each).matrix(found.indices, found.weights)
                for each in (pairs, memory_pairs)
            )
            assert_close(matrix, expected_matrix)


def test_permuted_criteria_are_those_of_the_array_in_memory(implementation, monkeypatch):
    A = clustered()
    bounds = {"l1_bounds": [1.5, 4.0], "entropy": 3, "permutation": 1, **R_DEFAULTS}
    in_memory, pairs = (
        PairDistances(as_data_matrix(X), "sqeuclidean")
        for X in (implementation.in_memory(A), implementation(A))
    )
    expected = permuted_criteria(pairs=in_memory, **bounds)
    np.testing.assert_allclose(permuted_criteria(pairs=pairs, **bounds), expected, rtol=1e-9)
    monkeypatch.setattr("mrshc.core.sparse_hc.permuted_pairs._MAX_KEPT_DISTANCES", 0)
    np.testing.assert_allclose(permuted_criteria(pairs=pairs, **bounds), expected, rtol=1e-9)


def test_complementary_clustering_accepts_missing_cells():
    X = np.where(np.random.default_rng(1).random((24, 400)) < 0.1, np.nan, clustered())
    first = solution(X, 4.0, "sqeuclidean")
    assert np.all(np.diag(first.dissimilarity) == 0.0)
    second = solution(X, 4.0, "sqeuclidean", orthogonal_to=first.dissimilarity)
    assert np.sum(first.dissimilarity * second.dissimilarity) == pytest.approx(0, abs=1e-12)
