import numpy as np
import pytest

from mrshc.core.trees.correlation import shared_feature_correlation_distances, standardise_rows


def distances_of(X, variances=None):
    return standardise_rows(X, variances).distances()


@pytest.mark.parametrize("offset", [0.0, 8.0, 1e6])
@pytest.mark.parametrize(("n", "q"), [(3, 3), (20, 5), (5, 400)])
def test_distances_are_one_minus_the_correlations_of_numpy(n, q, offset):
    X = np.random.default_rng(0).normal(size=(n, q)) + offset
    found = distances_of(X)
    np.testing.assert_allclose(found, 1 - np.corrcoef(X), atol=1e-14 * (1 + offset))
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 0.0)


def test_squared_norms_and_distances_of_standardised_rows():
    X = np.random.default_rng(1).normal(size=(9, 6))
    rows = standardise_rows(X)
    np.testing.assert_allclose(rows.values.mean(axis=1), 0.0, atol=1e-16)
    np.testing.assert_allclose(np.square(rows.values).sum(axis=1), 0.5)
    np.testing.assert_array_equal(rows.own_squares, 0.0)
    assert not rows.is_constant.any()


def test_offset_and_scale_of_a_row_do_not_matter():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(10, 7))
    expected = distances_of(X)
    scales = 10.0 ** rng.uniform(-140, 140, size=(10, 1))
    np.testing.assert_allclose(distances_of(X * scales), expected, atol=1e-14)
    shifted = X + rng.normal(scale=100, size=(10, 1))
    np.testing.assert_allclose(distances_of(shifted), expected, atol=1e-12)
    np.testing.assert_allclose(distances_of(-X), expected, atol=1e-14)


def test_rows_that_differ_in_sign_are_at_the_distance_two():
    X = np.random.default_rng(3).normal(size=(2, 8))
    X[1] = -3 * X[0] + 5
    np.testing.assert_allclose(distances_of(X)[0, 1], 2.0)


def test_small_distances_have_correct_digits():
    """1 - r would have none: r differs from 1 by less than the rounding error of r."""
    x = np.array([1.0, -1.0, 0.0, 0.0])
    y = np.array([0.0, 0.0, 1.0, -1.0])
    for angle in (1e-3, 1e-6, 1e-9):
        X = np.vstack([x, np.cos(angle) * x + np.sin(angle) * y])
        assert distances_of(X)[0, 1] == pytest.approx(angle**2 / 2, rel=1e-5)


def test_memory_layout_does_not_change_a_bit():
    X = np.random.default_rng(4).normal(size=(30, 300))
    expected = distances_of(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(distances_of(other), expected)


def test_order_of_the_features_does_not_matter():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 50))
    np.testing.assert_allclose(distances_of(X[:, rng.permutation(50)]), distances_of(X), atol=1e-15)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e140])
def test_a_constant_sample_is_at_the_distance_one_from_every_other_sample(value):
    """Also from other constant samples. The mean of many 0.1 is not exactly 0.1."""
    X = np.random.default_rng(6).normal(size=(6, 1001))
    X[[1, 4]] = value
    rows = standardise_rows(X)
    assert rows.is_constant.tolist() == [False, True, False, False, True, False]
    found = rows.distances()
    for i in (1, 4):
        others = np.delete(np.arange(6), i)
        np.testing.assert_array_equal(found[i, others], 1.0)
        np.testing.assert_array_equal(found[others, i], 1.0)
        assert found[i, i] == 0.0
    usual = np.ix_([0, 2, 3, 5], [0, 2, 3, 5])
    np.testing.assert_allclose(found[usual], (1 - np.corrcoef(X[[0, 2, 3, 5]])), atol=1e-13)


def test_a_sample_is_constant_up_to_rounding_errors():
    near, far = 0.3 * (1 + 1e-12), 0.1 + 0.2
    assert far != 0.3
    X = np.array([[0.3, 0.3, far, 0.3], [0.3, 0.3, near, 0.3], [1.0, 2.0, 3.0, 4.0]])
    assert standardise_rows(X).is_constant.tolist() == [True, False, False]


@pytest.mark.parametrize("q", [1, 2])
def test_fewer_than_three_features_have_no_correlations(q):
    X = np.random.default_rng(7).normal(size=(5, q))
    np.testing.assert_array_equal(distances_of(X), 1 - np.eye(5))


def test_constant_samples_are_points_in_euclidean_space():
    X = np.random.default_rng(8).normal(size=(15, 6))
    X[[0, 3, 4]] = [[1.0], [1.0], [2.0]]
    centring = np.eye(15) - 1 / 15
    gram = -0.5 * centring @ distances_of(X) @ centring
    assert np.linalg.eigvalsh(gram).min() > -1e-12


def test_variances_increase_the_sums_of_squares():
    rng = np.random.default_rng(9)
    X, variances = rng.normal(size=(6, 8)), rng.uniform(size=(6, 8))
    variances[0] = 0.0
    X[5] = 3.0  # constant, whatever its variances
    centred = X - X.mean(axis=1, keepdims=True)
    squares = np.square(centred).sum(axis=1) + 7 / 8 * variances.sum(axis=1)
    expected = 1 - centred @ centred.T / np.sqrt(np.outer(squares, squares))
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(distances_of(X, variances), expected, atol=1e-14)
    np.testing.assert_allclose(distances_of(1e140 * X, 1e280 * variances), expected, atol=1e-14)


# Correlations over the features that two samples share ----------------------------------------


def plain_shared_distances(X):
    n = len(X)
    distances, counts = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            shared = ~np.isnan(X[i]) & ~np.isnan(X[j])
            counts[i, j] = shared.sum()
            x, y = X[i, shared], X[j, shared]
            if i != j:
                defined = shared.sum() >= 3 and np.ptp(x) > 0 and np.ptp(y) > 0
                distances[i, j] = 1 - np.corrcoef(x, y)[0, 1] if defined else 1.0
    return distances, counts


@pytest.mark.parametrize("offset", [0.0, 8.0, 1e6])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_distances_over_shared_features_are_those_of_numpy(share, offset):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(12, 15)) + offset
    X[rng.random(X.shape) < share] = np.nan
    X[:, 0] = offset  # every sample has a value
    X[3] = np.where(np.isnan(X[3]), np.nan, 0.1)
    found, counts = shared_feature_correlation_distances(X)
    expected, expected_counts = plain_shared_distances(X)
    np.testing.assert_array_equal(counts, expected_counts)
    np.testing.assert_allclose(found, expected, atol=1e-12 * (1 + offset))


def test_shared_features_in_blocks_single_precision_and_any_unit(monkeypatch):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(8, 60))
    X[rng.random(X.shape) < 0.2] = np.nan
    expected = plain_shared_distances(X)[0]
    for scale in (1e140, 1e-140):
        np.testing.assert_allclose(
            shared_feature_correlation_distances(X * scale)[0], expected, atol=1e-13
        )
    monkeypatch.setattr("mrshc.core.data.statistics._BLOCK_CELLS", 100)
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        shared_feature_correlation_distances(single)[0],
        plain_shared_distances(single.astype(np.float64))[0],
        atol=1e-13,
    )
