"""Sparse components agree with R's PMA and with plain implementations; Algorithm 1."""

import numpy as np
import pytest
from scipy.optimize import brentq

import plain_twin
import reference
from mrshc.core.data.matrix import ArrayMatrix, centring, summarise
from mrshc.core.sparse_components import Starts, bisect_l1_bound, component_path, sparse_direction
from mrshc.estimators import sparse_components

INEXACT_RUN = ("C", True, False, 20, 1.5)


def path_of(X, rank=5, center="grand", **options):
    matrix = ArrayMatrix(X)
    offsets = centring(summarise(matrix), center)
    return component_path(matrix, offsets, rank=rank, max_features=X.shape[1], **options)


# Directions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slopes", "bound", "expected"),
    [
        ([1.0, -3.0, 2.0], 1.0, [0, -1, 0]),  # the largest slope
        ([1.0, -3.0, 2.0], np.sqrt(3), np.array([1, -3, 2]) / np.sqrt(14)),  # without a bound
        ([2.0, -2.0, 2.0, 1.0], 1.2, [0.4, -0.4, 0.4, 0]),  # ties share a bound that is too small
        ([2.0, -2.0, 2.0, 1.0], np.sqrt(3), np.array([1, -1, 1, 0]) / np.sqrt(3)),
        ([2.0, 2.0, 2.0, 2.0, 1.0], 2.0, [0.5, 0.5, 0.5, 0.5, 0]),  # ties meet it exactly
        ([3.0, 3.0, 1.0], 1.0, [0.5, 0.5, 0]),
        ([0.0, 0.0], 1.3, [0, 0]),
        ([0.0, -4.0, 0.0], 1.5, [0, -1, 0]),
        ([5.0, 5.0], 1.4, [0.7, 0.7]),
    ],
)
def test_directions_of_equal_and_of_few_slopes(slopes, bound, expected):
    np.testing.assert_allclose(sparse_direction(np.array(slopes), bound), expected, atol=1e-14)


@pytest.mark.parametrize("seed", range(50))
def test_direction_with_ties_is_that_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 40))
    slopes = rng.integers(-3, 4, size=p) * 10.0 ** rng.integers(-20, 20)
    top, bound = np.abs(slopes).max(), rng.uniform(1, np.sqrt(p))
    n_tied = int((np.abs(slopes) == top).sum())
    found = sparse_direction(slopes, bound)
    if top == 0 or n_tied >= bound**2:
        share = 0.0 if top == 0 else bound / n_tied
        np.testing.assert_allclose(np.abs(found), share * (np.abs(slopes) == top), rtol=1e-12)
        return

    def soft(delta):
        return np.sign(slopes) * np.maximum(np.abs(slopes) - delta * top, 0) / top

    def excess(delta):
        return np.abs(soft(delta)).sum() - bound * np.linalg.norm(soft(delta))

    delta = brentq(excess, 0.0, 1 - 1e-9, xtol=1e-15) if excess(0.0) > 0 else 0.0
    np.testing.assert_allclose(found, soft(delta) / np.linalg.norm(soft(delta)), atol=1e-9)


# The stored runs of PMA ---------------------------------------------------------------------


def settings_of(run):
    return run["input"], run["center"], run["orth"], run["niter"], run["sumabsv"]


def largest_difference(run, scores, scales, loadings):
    """Supports must be equal; return the largest error of u, d and v."""
    u, v = np.array(run["u"]), np.array(run["v"])
    np.testing.assert_array_equal(loadings != 0, v != 0)
    signs = np.sign(np.sum(loadings * v, axis=1))[:, None]
    pairs = [(loadings, signs * v), (scores, signs * u), (scales, np.array(run["d"]))]
    return max(np.abs(one - other).max() for one, other in pairs)


def fitted(run):
    result = sparse_components(
        reference.matrix(f"input_{run['input']}"),
        l1_bound=run["sumabsv"],
        n_components=run["K"],
        center="grand" if run["center"] else False,
        orthogonal=run["orth"],
        max_iter=run["niter"],
    )
    return result.scores.T, result.scale, result.loadings


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_all_stored_runs_of_pma_are_met(name):
    runs = reference.runs(f"spc_{name}")
    assert len(runs) == 32
    for run in runs:
        if settings_of(run) != INEXACT_RUN:
            assert largest_difference(run, *fitted(run)) < 5e-6, settings_of(run)


def test_the_one_run_that_differs_is_met_with_pmas_own_inexact_threshold():
    (run,) = (r for r in reference.runs("spc_C") if settings_of(r) == INEXACT_RUN)
    assert 5e-6 < largest_difference(run, *fitted(run)) < 5e-5
    X = reference.matrix("input_C")
    parts = reference.components_as_in_r(X - np.nanmean(X), 1.5, run["v_init"], max_iter=20)
    assert largest_difference(run, *parts) < 5e-6


def stored_sets(name):
    """Yield rank, features (0-based) and bound of Algorithm 1 in R."""
    for row in reference.runs("rep1_reference")[name]["spc_bisection"]:
        yield row["r"], np.sort(row["features"]) - 1, row["lambda"]


@pytest.mark.parametrize("name", ["I", "IIone"])
def test_algorithm_1_finds_the_stored_sets_on_the_simulations(name):
    path = path_of(reference.matrix(f"sim{name}_rep1"))
    for rank, features, bound in stored_sets(name):
        found = path.search(50, rank, tolerance=0, smallest=1)
        assert (found.reached, found.rank) == (True, rank)
        np.testing.assert_array_equal(found.features, features)
        assert found.l1_bound == pytest.approx(bound, rel=1e-12)


def test_stored_sets_of_higher_rank_need_an_inexact_threshold():
    """For r = 3, 4, 5 the stored sets count loadings of 5e-8 that an inexact threshold leaves.

    With the exact threshold they do not exist: at a bound of 1 the components have 3, 4 and 5
    features, and just above it 6, 7 and 9.
    """
    X = reference.matrix("input_A")
    path, centred = path_of(X), X - X.mean()
    starts = np.linalg.svd(centred, full_matrices=False)[2]
    for rank, features, _ in stored_sets("A"):
        found = path.search(4, rank, tolerance=0, smallest=1)
        if rank <= 2:
            np.testing.assert_array_equal(found.features, features)
            continue
        assert (found.features.size, found.l1_bound) == (rank, 1.0)

        def select(bound, rank=rank):
            bound = max(bound, 1 + 1e-12)  # R never looks at the end itself
            v = reference.components_as_in_r(centred, bound, starts[:rank], max_iter=20)[2]
            return np.flatnonzero(v.any(axis=0))

        low, high, sizes = 1.0, np.sqrt(15), []
        while high - low > 3e-12 and (not sizes or sizes[-1].size != 4):
            sizes.append(select((low + high) / 2))
            is_larger = sizes[-1].size > 4
            low, high = (low, (low + high) / 2) if is_larger else ((low + high) / 2, high)
        closest = min([select(1.0), *sizes], key=lambda s: (abs(s.size - 4), s.size))
        np.testing.assert_array_equal(closest, features)


# Components ---------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 3, 20, 500])
@pytest.mark.parametrize("bound", [1.0, 1.5, 3.0, 5.0])
def test_components_are_those_of_the_plain_twin(bound, max_iter):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 200))
    X[:8, :15] += 2.0
    X[8:14, 15:25] -= 2.0
    X -= X.mean(axis=0)
    found = sparse_components(X, l1_bound=bound, n_components=3, center=False, max_iter=max_iter)
    expected = plain_twin.sparse_components(X, bound, 3, max_iter=max_iter)
    for v, w in zip(found.loadings, expected, strict=True):
        np.testing.assert_allclose(v, w * np.sign(w[np.abs(w).argmax()]), atol=1e-6)
        assert v[np.abs(v).argmax()] > 0
    assert (found.n_iter <= max_iter).all()
    assert found.converged.all() or max_iter < 500
    assert max_iter > 1 or not found.converged.any()
    np.testing.assert_allclose(np.linalg.norm(found.scores, axis=0), 1.0)


@pytest.mark.parametrize(
    ("norms", "order"),
    [([3, 2, 1], [0, 1, 2]), ([3, 2, 5e-15, 0], [0, 1, 1, 1]), ([3, 1e-15], [0, 0]), ([0], [0])],
)
def test_starts_within_the_rank(norms, order):
    """Images are rounding errors up to the longest times the larger dimension times epsilon."""
    starts = Starts(np.eye(len(norms), 9), np.diag(norms).astype(float), np.eye(len(norms)))
    assert starts.noise == pytest.approx(max(norms) * 9 * 2**-52)
    found = starts.within_rank()
    for name in ("vectors", "images", "at_gaps"):
        np.testing.assert_array_equal(getattr(found, name), getattr(starts, name)[order])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [True, "grand", False])
def test_missing_values_are_refilled_for_every_component(center, dtype):
    """Against the same thing done with whole matrices."""
    rng = np.random.default_rng(1)
    X = (rng.integers(-40, 40, size=(15, 60)) / 8 + rng.integers(3000, size=60)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    wide = X.astype(np.float64)
    left = wide - {True: np.nanmean(wide, axis=0), "grand": np.nanmean(wide), False: 0.0}[center]
    options = {"l1_bound": 2.5, "n_components": 3, "max_iter": 200}
    result = sparse_components(X, center=center, **options)
    filled = np.where(np.isnan(left), np.nanmean(left), left)
    starts = np.linalg.svd(filled, full_matrices=False)[2][:3]
    u, d, v = reference.components_as_in_r(
        left, 2.5, starts, max_iter=200, direction=plain_twin.sparse_direction
    )
    np.testing.assert_allclose(result.scale, d, rtol=1e-7)
    np.testing.assert_allclose(np.abs(result.loadings), np.abs(v), atol=1e-6)
    np.testing.assert_allclose(np.abs(result.scores.T), np.abs(u), atol=1e-6)


def test_alternation_starts_from_init():
    X = reference.matrix("input_B")
    first = sparse_components(X, l1_bound=3.0, max_iter=500)
    again = sparse_components(X, l1_bound=3.0, init=first.loadings)
    assert again.n_iter[0] == 1
    np.testing.assert_allclose(again.loadings, first.loadings, atol=1e-6)
    X = reference.matrix("input_C")  # with missing values
    starts = np.random.default_rng(0).normal(size=(2, 100))
    found = sparse_components(X, l1_bound=3.0, n_components=2, init=starts)
    _, d, v = reference.components_as_in_r(
        X - np.nanmean(X), 3.0, starts, max_iter=20, direction=plain_twin.sparse_direction
    )
    np.testing.assert_allclose(found.scale, d, rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.loadings), np.abs(v), atol=1e-9)


# Algorithm 1 --------------------------------------------------------------------------------


def size_function(steps, sizes, limits=None):
    def features(bound, stop_at):
        if limits is not None:
            limits.append(stop_at)
        size = int(sizes[np.searchsorted(steps, bound, side="right") - 1])
        return None if size >= stop_at else np.arange(size)

    return features


@pytest.mark.parametrize("tolerance", [0, 1])
@pytest.mark.parametrize("sizes", [[1, 2, 4], [1, 2, 50], [2, 4, 6], [1, 2, 3]])
def test_a_set_with_too_few_features_is_replaced_by_the_next_larger_one(sizes, tolerance):
    select = size_function([1.0, 2.0, 4.0], sizes)
    bound, found = bisect_l1_bound(select, 3, largest=9.0, tolerance=tolerance, smallest=3)
    assert found.size == min(size for size in sizes if size >= 3)
    assert select(bound, np.inf).size == found.size


def plain_bisection(size_at, q, largest):
    """Return the bound and size of the bisection that examines every set, and its limits."""
    low, high = 1.0, largest
    tried, limits = [(low, size_at(low))], [np.inf]

    def best():
        return min(tried, key=lambda one: (abs(one[1] - q), one[1]))

    def examine(bound):
        limits.append(q + abs(best()[1] - q))
        tried.append((bound, size_at(bound)))
        return tried[-1][1]

    if tried[0][1] >= q:
        return tried[0], limits
    if examine(high) <= q:
        return tried[1], limits
    while best()[1] != q and high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if examine(middle) > q else (middle, high)
    return best(), limits


@pytest.mark.parametrize("seed", range(10))
def test_bisection_is_that_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    steps = np.concatenate([[1.0], np.sort(rng.uniform(1.0, 9.0, size=8))])
    sizes = np.cumsum(rng.integers(1, 4, size=9))
    for q in range(1, sizes[-1] + 3):
        limits = []
        bound, found = bisect_l1_bound(size_function(steps, sizes, limits), q, largest=9.0)
        everything = size_function(steps, sizes)
        expected, expected_limits = plain_bisection(
            lambda b, all_of=everything: all_of(b, np.inf).size, q, 9.0
        )
        assert (bound, found.size) == expected
        assert limits == expected_limits


@pytest.mark.parametrize("orthogonal", [False, True])
def test_components_beyond_the_rank_of_the_data_are_zero(orthogonal):
    X = np.outer([1.0, -2, 1, 0.5, -0.5], [3.0, 1, 0, 2])
    found = sparse_components(X, l1_bound=2.0, n_components=3, center=False, orthogonal=orthogonal)
    of_first = found.scale[0] * np.outer(found.scores[:, 0], found.loadings[0])
    np.testing.assert_allclose(of_first, X, atol=1e-12)
    np.testing.assert_array_equal(found.loadings[1:], 0.0)
    np.testing.assert_array_equal(found.scores[:, 1:], 0.0)
    np.testing.assert_array_equal(found.scale[1:], 0.0)
