"""Components found on working sets equal those of all columns, and certificates detect others."""

from concurrent.futures import ThreadPoolExecutor
from types import MethodType

import array_api_strict
import numpy as np
import pytest

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.search import SearchPlan, search
from mrshc.core.sparse_pca import certificates, solvers, working_sets
from mrshc.core.sparse_pca.certificate_checking import (
    Certifier,
    DeferredCertifier,
    check_certificates,
)
from mrshc.core.sparse_pca.certificates import (
    NEAR_VIOLATION,
    Certificate,
    CertificateBatch,
    Violations,
)
from mrshc.core.sparse_pca.l1_path import ComponentPath
from mrshc.core.sparse_pca.next_component import leading_starts
from mrshc.core.sparse_pca.solvers import AlternationLimits, FullSolver, WorkingSetSolver
from mrshc.core.sparse_pca.working_sets import initial_pass
from mrshc.core.trees.gap_statistic import GapSettings
from storage_backends import (
    ArrayInBlocks,
    assert_same_components,
    assert_same_features,
    clustered,
    matrix_at,
    path_on,
    searched,
    use_small_blocks,
)

N, P = 30, 1500


@pytest.fixture(autouse=True)
def one_thread():
    with limit_blas_to_one_thread():
        yield


@pytest.fixture
def small_working_sets(monkeypatch):
    """Make working sets begin with five columns and grow by few."""
    monkeypatch.setattr(working_sets, "_COLUMNS_PER_SQUARED_BOUND", 0.0)
    for module in (working_sets, solvers):
        monkeypatch.setattr(module, "EXTRA_COLUMNS", 5)


BACKENDS = {"blocks": ArrayInBlocks, "device": array_api_strict.asarray}
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def both_paths(X, *, n_components=4, most=60, center="columns", backend="blocks"):
    """Return the paths of an array in memory and in another storage backend, and its matrix."""
    matrices = [matrix_at(stored, center=center) for stored in (X, BACKENDS[backend](X))]
    paths = [path_on(matrix, n_components=n_components, most=most) for matrix in matrices]
    return *paths, matrices[1]


def noise(rng):
    return rng.normal(size=(N, P))


def signal(rng):
    return clustered(N, P, seed=rng.integers(1000))


def heavy_tails(rng):
    return rng.standard_t(2, size=(N, P))


def correlated(rng):
    return np.repeat(rng.normal(size=(N, P // 20)), 20, axis=1) + 0.5 * noise(rng)


def copies(rng):
    X = signal(rng)
    X[:, P // 2 :] = X[:, : P // 2]
    return X


def zeros_and_ones(rng):
    return (rng.random((N, P)) < 0.2).astype(float)


def mostly_constant(rng):
    X = np.full((N, P), 3.0)
    some = rng.choice(P, 200, replace=False)
    X[:, some] = clustered(N, 200)
    return X


def gaps(rng):
    return np.where(rng.random((N, P)) < 0.1, np.nan, signal(rng))


def gaps_in_single_precision(rng):
    return (gaps(rng) + 1000.0).astype(np.float32)


DATA_SETS = (
    noise,
    signal,
    heavy_tails,
    correlated,
    copies,
    zeros_and_ones,
    mostly_constant,
    gaps,
    gaps_in_single_precision,
)
every_data_set = pytest.mark.parametrize(
    "make", DATA_SETS, ids=[kind.__name__ for kind in DATA_SETS]
)


# Same results -------------------------------------------------------------------------------


@pytest.mark.slow
@every_data_set
@every_backend
def test_features_and_bounds_are_those_of_the_array(make, backend, monkeypatch):
    use_small_blocks(monkeypatch, 350 * N)
    X = make(np.random.default_rng(0))
    in_memory, path, _matrix = both_paths(X, backend=backend)
    expected = searched(in_memory, (1, 20, 60), (1, 2, 4))
    assert_same_features(expected, searched(path, (1, 20, 60), (1, 2, 4)))
    bound = expected[60, 4].l1_bound
    assert_same_components(in_memory.components(bound, 4), path.components(bound, 4))


@pytest.mark.slow
@every_data_set
@pytest.mark.usefixtures("small_working_sets")
def test_small_working_sets_change_the_number_of_passes_only(make):
    # Fewer columns, since the small working sets need many passes over them.
    X = make(np.random.default_rng(2))[:, ::2]
    in_memory, path, matrix = both_paths(X, n_components=3, most=20)
    expected = searched(in_memory, (1, 8, 20), (1, 2, 3))
    assert_same_features(expected, searched(path, (1, 8, 20), (1, 2, 3)))
    assert matrix.n_passes > 5


@every_backend
@pytest.mark.parametrize("center", ["columns", "grand", "none"])
@pytest.mark.parametrize("scale", [1e120, 1e-120])
@pytest.mark.usefixtures("small_working_sets")
def test_features_do_not_depend_on_unit_or_centring(center, scale, backend):
    X = (clustered(N, 500) + 0.5) * scale
    in_memory, path, _matrix = both_paths(
        X, n_components=2, most=20, center=center, backend=backend
    )
    expected = searched(in_memory, (5, 20), (1, 2))
    assert_same_features(expected, searched(path, (5, 20), (1, 2)))


@every_backend
@pytest.mark.usefixtures("small_working_sets")
def test_more_than_half_of_the_features_can_be_selected(backend):
    in_memory, path, _matrix = both_paths(
        clustered(N, 200), n_components=2, most=200, backend=backend
    )
    expected = searched(in_memory, (100, 150, 200), (1, 2))
    assert_same_features(expected, searched(path, (100, 150, 200), (1, 2)))
    assert expected[200, 1].indices.size == 200


@pytest.mark.parametrize("center", ["columns", "grand"])
def test_tied_columns_of_the_initial_working_set_are_stored(center, monkeypatch):
    """Of tied columns, a block may return others than a selection among all columns would."""
    use_small_blocks(monkeypatch, 1500 * N)
    rng = np.random.default_rng(4)
    X = np.full((N, 6000), 3.0)
    some = rng.choice(6000, 300, replace=False)
    X[:, some] = clustered(N, 300)
    in_memory, path, matrix = both_paths(X, most=20, center=center)
    initial = initial_pass(
        matrix_at(ArrayInBlocks(X), center=center), n_components=4, max_features=20
    )
    assert matrix.is_stored[initial.working_sets.initial_set([], 10.0)].all()
    expected = searched(in_memory, (1, 5, 20), (1, 2, 3, 4))
    assert_same_features(expected, searched(path, (1, 5, 20), (1, 2, 3, 4)))


@every_backend
@pytest.mark.usefixtures("small_working_sets")
def test_concurrent_searches_have_the_same_results(backend):
    X = signal(np.random.default_rng(5))
    in_memory, path, _matrix = both_paths(X, n_components=3, most=20, backend=backend)
    expected = searched(in_memory, (1, 5, 8, 20), (1, 2, 3))
    is_certified = False
    while not is_certified:
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda key: path.search(key[0], rank=key[1]), expected)
            sets = dict(zip(expected, found, strict=True))
        is_certified = path.certify()
    assert_same_features(expected, sets)


@pytest.mark.usefixtures("small_working_sets")
def test_an_error_in_a_shared_pass_reaches_every_waiting_search():
    """No search waits forever if a device is lost, and later searches raise the error too."""
    _, path, matrix = both_paths(signal(np.random.default_rng(6)), n_components=3, backend="device")

    def raise_error(_self, _function):
        raise UnreadableError("The device was lost.")

    matrix.map_blocks = MethodType(raise_error, matrix)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(path.search, q, rank=2) for q in (5, 8, 12, 20, 30, 40)]
    assert all(isinstance(search.exception(), UnreadableError) for search in waiting)


@pytest.mark.usefixtures("small_working_sets")
def test_components_are_certified():
    in_memory, path, matrix = both_paths(signal(np.random.default_rng(3)), n_components=3)
    for bound in (6.0, 2.0):
        found = path.components(bound, 3)
        assert_same_components(in_memory.components(bound, 3), found)
        before = matrix.n_passes
        assert all(a is b for a, b in zip(path.components(bound, 3), found, strict=True))
        assert matrix.n_passes == before


# Checking certificates ----------------------------------------------------------------------


def certificate(rng, X, working_set, *, tightness, fill_change=0.0, n_steps=6):
    """Return a certificate of random vectors close to each other, thresholds near the maximum."""
    scores = rng.normal(size=X.shape[0]) + 0.05 * rng.normal(size=(n_steps, X.shape[0]))
    scores /= np.linalg.norm(scores, axis=1)[:, None]
    thresholds = tightness * np.abs(scores @ X).max(axis=1)
    return Certificate(
        working_set=working_set,
        scores=scores,
        thresholds=thresholds,
        fill_change=fill_change,
        max_violations=10,
    )


def products_of(made, X, gaps):
    """Return the largest product of each column with a vector, in multiples of its threshold."""
    products = np.abs(made.scores @ X) + abs(made.fill_change) * gaps
    return (products / made.thresholds[:, None]).max(axis=0)


def assert_complete(found, made, X, gaps):
    """Check that all pairs of a certificate and a violating column are found, and no others."""
    reported = np.zeros((len(made), X.shape[1]))
    reported[found.certificates, found.columns] = found.products
    assert np.count_nonzero(reported) == found.columns.size
    for mine, one in zip(reported, made, strict=True):
        expected = products_of(one, X, gaps)
        expected[one.working_set] = 0.0
        assert np.all(mine[expected > NEAR_VIOLATION * (1 + 1e-8)] > 0.0)
        assert np.all(mine[expected < NEAR_VIOLATION * (1 - 1e-8)] == 0.0)
        large = mine > 0.0
        np.testing.assert_allclose(mine[large], expected[large], rtol=1e-7)


def violations(made, X, gaps, xp, *, step):
    """Check certificates in blocks of columns."""
    unit = float(np.sqrt(np.mean(np.sum(X**2, axis=0))))
    batch = CertificateBatch.from_certificates(made, unit=unit)
    parts = []
    for start in range(0, X.shape[1], step):
        block, roots = X[:, start : start + step], gaps[start : start + step]
        indices = np.arange(start, start + block.shape[1])
        parts.append(
            batch.check(xp.asarray(block), xp.asarray(roots) if gaps.any() else None, indices, xp)
        )
    return Violations(*(np.concatenate(part) for part in zip(*parts, strict=True)))


namespaces = pytest.mark.parametrize("xp", [np, array_api_strict], ids=["groups", "device"])
TIGHTNESS = (
    0.3,
    0.9,
    0.999999,
    1 - 2e-8,
    1.0,
    1 + 1e-7,
    1 / NEAR_VIOLATION - 1e-6,
    1 / NEAR_VIOLATION + 1e-6,
    3.0,
)


@namespaces
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("scale", [1.0, 1e120, 1e-120])
def test_all_near_violations_are_found(xp, share_missing, scale, monkeypatch):
    monkeypatch.setattr(certificates, "_MAX_DEVICE_PRODUCTS", 5000)
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(20, 700)) * scale
    missing = rng.random(X.shape) < share_missing
    gaps = np.sqrt(missing.sum(axis=0).astype(float))
    made = [
        certificate(
            rng,
            X,
            np.sort(rng.choice(700, rng.integers(1, 30), replace=False)),
            tightness=t,
            fill_change=taken * scale,
            n_steps=int(rng.integers(1, 9)),
        )
        for t in TIGHTNESS
        for taken in (0.0, -0.1, 1e-3)
    ]
    found = violations(made, X, gaps, xp, step=300)
    assert found.columns.size
    assert_complete(found, made, X, gaps)


@namespaces
def test_violations_beyond_the_range_of_single_precision_are_found(xp):
    """Very small thresholds, very small columns, and both at once."""
    rng = np.random.default_rng(1)
    sizes = 10.0 ** np.tile([0, 3, -3, -18, -30, -50], 20)
    X = rng.normal(size=(20, 120)) * sizes
    nothing = np.zeros(120)
    for power in (0, -3, -18, -25, -30, -40, -50, -60):
        made = [certificate(rng, X, np.array([5]), tightness=10.0**power) for _ in range(3)]
        assert_complete(violations(made, X, nothing, xp, step=120), made, X, nothing)


@namespaces
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e140, 1e-140])
def test_every_varying_column_violates_a_threshold_of_zero(xp, scale):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 50)) * scale
    X[:, 7] = 0.0
    free = certificate(rng, X, np.array([0, 3]), tightness=0.0)
    found = violations([free], X, np.zeros(50), xp, step=50)
    np.testing.assert_array_equal(found.columns, np.setdiff1d(np.arange(50), [0, 3, 7]))
    assert np.all(found.products > 1.0)
    assert np.isfinite(found.products).all()


@namespaces
def test_columns_of_the_working_set_are_no_violations(xp):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 50))
    seen = certificate(rng, X, np.arange(50), tightness=0.5)
    blind = certificate(rng, X, np.array([], dtype=np.intp), tightness=0.5)
    found = violations([blind, seen], X, np.zeros(50), xp, step=20)
    assert found.columns.size
    assert set(found.certificates) == {0}


@every_backend
@pytest.mark.parametrize("fill_change", [0.0, -0.4])
def test_outcomes_are_those_of_a_plain_check(backend, fill_change, monkeypatch):
    use_small_blocks(monkeypatch, 20 * 50)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 120))
    X[rng.random(X.shape) < 0.2] = np.nan
    roots = np.sqrt(np.isnan(X).sum(axis=0))
    centred = X - np.nanmean(X, axis=0)
    centred = np.nan_to_num(centred, nan=np.nanmean(centred))
    start = np.array([2, 50, 90])
    made = [
        certificate(rng, centred, start, tightness=t, fill_change=fill_change, n_steps=n)
        for t, n in ((0.6, 3), (1.0, 0), (1.5, 2), (2.5, 4), (1.01, 1))
    ]
    matrix = matrix_at(BACKENDS[backend](X))
    for one, outcome in zip(made, check_certificates(matrix, made), strict=True):
        products = np.zeros(120)
        if one.thresholds.size:
            products = products_of(one, centred, roots)
            products[start] = 0.0
        assert outcome.holds == (products.max() <= 1.0)
        largest = np.argsort(-products)[: min(10, np.count_nonzero(products > NEAR_VIOLATION))]
        np.testing.assert_array_equal(outcome.working_set, np.union1d(start, largest))
        added = np.setdiff1d(largest, start)
        np.testing.assert_array_equal(matrix.columns(added), X[:, added])
        assert matrix.is_stored[added].all()
    before = matrix.n_passes
    assert all(outcome.holds for outcome in check_certificates(matrix, made[1:2]))
    assert matrix.n_passes == before


@namespaces
def test_rounding_errors_cannot_hide_a_violation(xp):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(20, 60))
    for tightness, is_violated in ((1.0, True), (1 + 1e-8, False)):
        made = [
            certificate(rng, X, np.array([], np.intp), tightness=tightness, n_steps=1)
            for _ in range(50)
        ]
        found = violations(made, X, np.zeros(60), xp, step=60)
        largest = np.zeros(50)
        np.maximum.at(largest, found.certificates, found.products)
        assert np.all((largest > 1.0) == is_violated)


# Components that fail -----------------------------------------------------------------------


class RefutingCertifier(Certifier):
    """Accepts every component, and reports those in `refuted` as failed."""

    is_deferred = True

    def __init__(self):
        self.accepted, self.refuted = [], []

    def accept(self, key, certificate):
        self.accepted.append(key)
        return True

    def check_pending(self):
        refuted, self.refuted = self.refuted, []
        return refuted


def test_a_failed_component_is_dropped_with_later_ones_at_its_bound_only():
    matrix = matrix_at(signal(np.random.default_rng(0)))
    limits = AlternationLimits(max_iter=20, tol=1e-7)
    certifier = RefutingCertifier()
    path = ComponentPath(FullSolver(matrix, leading_starts(matrix, 3), limits), certifier)
    bounds = (2.0, 3.0, 4.0)
    before = {bound: path.components(bound, 3) for bound in bounds}
    assert sorted(certifier.accepted) == [(bound, k) for bound in bounds for k in range(3)]
    certifier.accepted.clear()
    certifier.refuted = [(3.0, 1), (3.0, 2), (4.0, 2)]
    assert not path.certify()
    after = {bound: path.components(bound, 3) for bound in bounds}
    assert sorted(certifier.accepted) == [(3.0, 1), (3.0, 2), (4.0, 2)]
    for bound in bounds:
        assert_same_components(before[bound], after[bound])
        assert before[bound][0] is after[bound][0]


class RecordingCertifier(DeferredCertifier):
    """Keeps the certificates that it receives."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.given = {}

    def accept(self, key, certificate):
        self.given[key] = certificate
        return super().accept(key, certificate)


@pytest.mark.usefixtures("small_working_sets")
def test_exactly_the_violated_certificates_fail():
    X = signal(np.random.default_rng(1))
    matrix = matrix_at(ArrayInBlocks(X))
    initial = initial_pass(matrix, n_components=3, max_features=60)
    certifier = RecordingCertifier(matrix, initial.working_sets)
    limits = AlternationLimits(max_iter=20, tol=1e-7)
    path = ComponentPath(WorkingSetSolver(matrix, initial, limits), certifier)
    for bound in (1.0, 1.5, 2.0, 4.0):
        path.features(bound, 3)
    centred, wrong = X - X.mean(axis=0), set()
    for key, made in certifier.given.items():
        products = np.abs(made.scores @ centred) / np.maximum(made.thresholds, 1e-99)[:, None]
        if np.delete(products.max(axis=0), made.working_set).max() > 1.0:
            wrong.add(key)
    assert 0 < len(wrong) < 12
    assert certifier.check_pending() == sorted(wrong)


def test_certified_components_are_not_checked_again():
    _, path, matrix = both_paths(signal(np.random.default_rng(2)))
    found = searched(path, (5, 20), (1, 2))
    before = matrix.n_passes
    assert path.certify()
    assert_same_features(found, searched(path, (5, 20), (1, 2)))
    assert matrix.n_passes == before


# Number of passes ---------------------------------------------------------------------------


def passes(make, p, n_jobs=1):
    plan = SearchPlan(
        targets=(10, 20, 40),
        ranks=(1, 2, 3),
        n_clusters=3,
        tolerance=0,
        gap=GapSettings(n_references=5),
        entropy=0,
    )
    matrix = matrix_at(ArrayInBlocks(make(p)))
    search(matrix, plan, n_jobs=n_jobs, progress=lambda *_: None)
    return matrix.n_passes


@pytest.mark.parametrize(
    "make",
    [
        lambda p: np.random.default_rng(0).normal(size=(40, p)),
        lambda p: clustered(40, p),
    ],
    ids=["noise", "signal"],
)
def test_the_number_of_passes_does_not_grow_with_the_features(make):
    counts = [passes(make, p) for p in (2_000, 8_000, 32_000)]
    assert max(counts) - min(counts) <= 2
    assert max(counts) < 40
    assert passes(make, 2_000, n_jobs=2) == counts[0]


# Sets that are too large --------------------------------------------------------------------


def orthogonal_column_groups(rng):
    """Two groups of columns that have no sample in common, the second one a copy of the first."""
    X = np.zeros((12, 40))
    X[:6, :20] = rng.integers(-3, 4, size=(6, 20))
    X[6:, 20:] = X[:6, :20]
    return X


def orthogonal_directions(_):
    """Columns along fifteen directions at right angles, three along each, of two lengths."""
    hadamard = np.array([[1.0]])
    for _ in range(4):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    return np.repeat(hadamard[:, 1:] * np.repeat([3.0, 1.0], [5, 10]), 3, axis=1)


def mostly_constant_columns(rng):
    X = np.ones((12, 40))
    X[:, :6] = rng.normal(size=(12, 6))
    return X


def unequal_column_groups(_):
    """The first singular vector has six non-zero entries, the second one has the other 34."""
    X = np.zeros((12, 40))
    X[:6, :6] = 9.0 * np.tile([1.0, -1.0], 3)[:, None] * np.arange(1, 7)
    X[6:, 6:] = np.tile([1.0, -1.0], 3)[:, None] * np.linspace(1.0, 2.0, 34)
    return X


def one_direction(rng):
    return np.outer(rng.normal(size=12), rng.normal(size=40))


def small(rng):
    return rng.normal(size=(12, 60))


@pytest.mark.parametrize("center", ["columns", "none"])
@pytest.mark.parametrize(
    "make",
    [
        small,
        orthogonal_column_groups,
        orthogonal_directions,
        mostly_constant_columns,
        unequal_column_groups,
        one_direction,
    ],
)
def test_features_are_none_exactly_if_at_least_stop_at_are_loaded(make, center):
    X = make(np.random.default_rng(0))
    for path in both_paths(X, most=20, center=center)[:2]:
        for bound in np.linspace(1.0, np.sqrt(X.shape[1]), 12):
            for rank in (1, 2, 4):
                size = path.features(bound, rank).size
                assert size == path.features(bound, rank, stop_at=size + 1).size
                for stop_at in {1, size - 1, size, size + 1, size + 2, 2 * size, X.shape[1]}:
                    found = path.features(bound, rank, stop_at=stop_at)
                    assert (found is None) == (size >= stop_at)
