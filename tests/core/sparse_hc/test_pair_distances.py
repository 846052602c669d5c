import array_api_strict
import numpy as np
import pytest

from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.sparse_hc.pair_distances import PairDistances, _medians_and_shared_counts
from storage_backends import ArrayInBlocks, use_small_blocks

every_metric = pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
N = None  # short form of NaN in the tables below


def array(rows):
    return np.array(rows, dtype=np.float64)


@every_metric
@pytest.mark.parametrize("spread", [1.0, 1.3, 1.5, 5.0, 6.0, 1e-9, 3e7])
def test_distances_are_divided_by_a_power_of_two_close_to_the_spread(metric, spread):
    X = 7.0 + spread * array([[0.0, 0.25], [1.0, 0.5], [0.5, 0.75]])
    pairs = PairDistances(as_data_matrix(X), metric)
    length = np.sqrt(pairs.unit) if metric == "sqeuclidean" else pairs.unit
    assert np.frexp(pairs.unit)[0] == 0.5
    assert 0.7 < length / spread < 1.42
    distances = pairs.weighted_distances(np.arange(2), np.ones(2)) * pairs.unit
    assert distances[0, 1] == pytest.approx(
        spread**2 * 1.0625 if metric == "sqeuclidean" else spread * 1.25, rel=1e-5
    )


@every_metric
def test_constant_data_are_not_scaled(metric):
    pairs = PairDistances(as_data_matrix(np.full((4, 3), 5.0)), metric)
    assert pairs.unit == 1.0
    assert not pairs.weighted_distances(np.arange(3), np.ones(3)).any()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_passes_over_the_data_are_counted(n_threads):
    """Up to an eighth of the columns are read one by one; more of them in a pass."""
    X = np.random.default_rng(0).normal(size=(5, 24))
    pairs = PairDistances(ArrayInBlocks(X), "sqeuclidean", n_threads=n_threads)
    assert pairs.shape == (5, 24)
    assert pairs.n_passes == 2
    for n_features, n_passes in ((3, 2), (4, 3), (24, 4)):
        pairs.weighted_distances(np.arange(n_features), np.ones(n_features))
        assert pairs.n_passes == n_passes
    pairs.slopes(np.ones((5, 5)))
    assert pairs.n_passes == 5


@pytest.mark.parametrize("storage", [np.asarray, ArrayInBlocks])
def test_data_in_memory_are_recognised(storage):
    pairs = PairDistances(as_data_matrix(storage(np.eye(3))), "sqeuclidean")
    assert pairs.in_memory == (storage is np.asarray)


@every_metric
def test_columns_that_are_read_one_by_one_may_fill_several_blocks(metric, monkeypatch):
    X = np.random.default_rng(0).normal(size=(6, 80))
    indices, weights = np.arange(3, 73, 10), np.linspace(0.5, 1.5, 7)
    pairs = PairDistances(as_data_matrix(X), metric)
    expected = pairs.weighted_distances(np.arange(80), np.bincount(indices, weights, minlength=80))
    monkeypatch.setattr("mrshc.core.data.statistics._BLOCK_CELLS", 12)
    found = pairs.weighted_distances(indices, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("rows", "shared", "pair"),
    [
        ([[1, 2], [3, 4], [5, 7]], None, None),
        ([[1, N], [3, 4], [5, 7]], [[1, 1, 1], [1, 2, 2], [1, 2, 2]], None),
        ([[1, N, 2], [3, 4, 5], [N, 7, N]], [[2, 2, 0], [2, 3, 1], [0, 1, 1]], (0, 2)),
        ([[1, 5, 2], [3, N, N], [N, 7, 1]], [[3, 1, 2], [1, 1, 0], [2, 0, 2]], (1, 2)),
    ],
)
def test_features_that_two_samples_share_are_counted(rows, shared, pair, monkeypatch):
    use_small_blocks(monkeypatch, 6)
    pairs = PairDistances(as_data_matrix(array(rows)), "sqeuclidean")
    if shared is None:
        assert pairs.n_shared_features is None
    else:
        np.testing.assert_array_equal(pairs.n_shared_features, shared)
    assert pairs.incomparable_pair == pair


@every_metric
def test_distances_with_missing_values_are_scaled_up(metric):
    """Samples 0 and 1 share one of four features, 0 and 2 share none, 1 and 2 share two."""
    X = array([[1, N, N, N], [3, 2, N, 8], [N, 6, 1, 5]])
    pairs = PairDistances(as_data_matrix(X), metric)
    power = 2 if metric == "sqeuclidean" else 1
    near, far = 4 * 2.0**power, 2 * (4.0**power + 3.0**power)
    found = pairs.weighted_distances(np.arange(4), np.ones(4)) * pairs.unit
    np.testing.assert_allclose(found, [[0, near, 0], [near, 0, far], [0, far, 0]], rtol=1e-12)
    rows = pairs.feature_distances(slice(1, 4)) * pairs.unit
    expected = [[0, 0, 2 * 4.0**power], [0, 0, 0], [0, 0, 2 * 3.0**power]]
    np.testing.assert_allclose(rows, expected, rtol=1e-12)


COLUMNS = array(
    [
        [1, N, N, 4, -9, N],
        [2, N, 7, 3, N, 6],
        [9, N, N, N, N, 1],
        [4, N, N, 8, -1, 2],
        [5, N, N, 1, N, 3],
    ]
)


@pytest.mark.parametrize("xp", [np, array_api_strict])
@pytest.mark.parametrize("n_samples", [1, 2, 4, 5])
def test_medians_are_those_of_the_observed_values(xp, n_samples):
    X = COLUMNS[:n_samples]
    is_observed = ~np.isnan(X)
    expected = [
        np.median(x[~np.isnan(x)]) if seen else 0.0
        for x, seen in zip(X.T, is_observed.any(axis=0), strict=True)
    ]
    medians, shared = _medians_and_shared_counts(xp.asarray(X), 0, xp, has_missing=True)
    np.testing.assert_array_equal(medians, expected)
    np.testing.assert_array_equal(shared, is_observed.astype(int) @ is_observed.T.astype(int))
    complete = np.nan_to_num(X, nan=11.0)
    medians, shared = _medians_and_shared_counts(xp.asarray(complete), 0, xp, has_missing=False)
    np.testing.assert_array_equal(medians, np.median(complete, axis=0))
    assert shared is None


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_medians_of_single_precision_do_not_overflow(xp):
    X = np.full((4, 2), 3e38, dtype=np.float32)
    medians, _ = _medians_and_shared_counts(xp.asarray(X), 0, xp, has_missing=False)
    np.testing.assert_array_equal(medians, X[0].astype(np.float64))
