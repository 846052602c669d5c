"""Bounds on a device exclude no column with a large inner product, however products are rounded."""

import array_api_strict as xp
import numpy as np
import pytest
import torch
from array_api_compat import torch as torch_namespace

from mrshc.core.sparse_pca import certificate_checking, device_bounds
from mrshc.core.sparse_pca.certificate_checking import _find_violations
from mrshc.core.sparse_pca.certificates import NEAR_VIOLATION, Certificate, Violations
from mrshc.core.sparse_pca.device_bounds import ColumnBounds, ScaledVectors
from storage_backends import clustered, matrix_at, path_on, use_small_blocks


def unit_vectors(rng, shape):
    vectors = rng.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def found_columns(X, offsets, vectors, limit, *, start=0, namespace=xp):
    """Return the columns that may exceed a limit; torch is the namespace with half precision."""
    bounds = ColumnBounds(
        np.concatenate([np.full(start, 1e9), offsets]), lambda _: namespace is torch_namespace
    )
    vectors = ScaledVectors.from_vectors(namespace.asarray(vectors), namespace)
    block = namespace.asarray(X)
    found = bounds.may_exceed(limit, vectors, block=block, start=start, xp=namespace)
    return np.flatnonzero(np.asarray(found))


def with_factors_of_8_bits(monkeypatch):
    """Cut the vectors in single precision off after 8 bits, at least as much as devices round."""
    plain = xp.astype

    def rounded(values, dtype, **options):
        values = plain(values, dtype, **options)
        if dtype != xp.float32 or values.ndim < 2 or values.shape[1] == 1:
            return values
        bits = np.array(values).view(np.int32) & ~np.int32((1 << 16) - 1)
        return xp.asarray(bits.view(np.float32))

    monkeypatch.setattr(xp, "astype", rounded)


@pytest.mark.parametrize("is_coarse", [False, True], ids=["single", "bfloat16"])
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (10.0, 1.0), (0.0, 1e-30)])
def test_no_large_product_is_missed_and_few_columns_are_left(shift, scale, is_coarse, monkeypatch):
    monkeypatch.setattr(device_bounds, "_MAX_PRODUCTS", 2000 * 3)  # several parts
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 2000)) + shift * rng.normal(size=2000)) * scale
    X = X.astype(np.float32)
    offsets = X.mean(axis=0, dtype=np.float64)
    vectors = unit_vectors(rng, (7, 50))
    largest = np.abs(vectors @ (X - offsets)).max(axis=0)
    # Limits just below the products of columns, which must therefore be found.
    if is_coarse:
        with_factors_of_8_bits(monkeypatch)
    for limit in (np.sort(largest)[[-1, -10, -50]] * (1 - 1e-9)).tolist():
        found = found_columns(X, offsets, vectors, limit, start=4)
        assert set(np.flatnonzero(largest > limit)) <= set(found)
        assert found.size < np.count_nonzero(largest > 0.9 * limit)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (10.0, 1.0), (0.0, 1e-30), (0.0, 1e37)])
def test_no_large_product_is_missed_in_half_precision(shift, scale, monkeypatch):
    monkeypatch.setattr(device_bounds, "_MAX_PRODUCTS", 2000 * 3)  # several parts
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(50, 2000)) + shift * rng.normal(size=2000)) * scale
    # Columns of very different norms, and a column without variation.
    X = (X * 10.0 ** -rng.integers(0, 5, 2000)).astype(np.float32)
    X[:, 7] = X[0, 7]
    offsets = X.mean(axis=0, dtype=np.float64)
    # Values that are rounded to zero in half precision.
    vectors = unit_vectors(rng, (7, 50)) * 10.0 ** rng.integers(-3, 3, (7, 1))
    vectors[0, :25] *= 1e-6
    largest = np.abs(vectors @ (X - offsets)).max(axis=0)
    for limit in (np.sort(largest)[[-1, -10, -50]] * (1 - 1e-9)).tolist():
        found = found_columns(X, offsets, vectors, limit, start=4, namespace=torch_namespace)
        assert set(np.flatnonzero(largest > limit)) <= set(found)
        assert found.size <= np.count_nonzero(largest > 0.9 * limit)
        assert 7 not in found


@pytest.mark.parametrize("namespace", [xp, torch_namespace], ids=["single", "half"])
def test_vectors_may_be_out_of_the_range_of_single_precision(namespace):
    rng = np.random.default_rng(1)
    X, vectors = rng.normal(size=(20, 60)).astype(np.float32), unit_vectors(rng, (2, 20))
    largest = np.abs(vectors @ X).max(axis=0)
    limit = float(np.sort(largest)[-3]) * (1 - 1e-9)
    found = found_columns(X, np.zeros(60), vectors * 1e60, limit * 1e60, namespace=namespace)
    assert set(np.flatnonzero(largest > limit)) <= set(found)
    assert found.size < 10


@pytest.mark.parametrize("namespace", [xp, torch_namespace], ids=["single", "half"])
def test_columns_that_overflow_in_single_precision_are_not_excluded(namespace):
    X = np.random.default_rng(3).normal(size=(4, 10)).astype(np.float32)
    X[:, 2] = [3e38, 3e38, 3e38, -3e38]
    offsets = X.mean(axis=0, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        found = found_columns(X, offsets, np.full((1, 4), 0.5), 1e3, namespace=namespace)
    assert found.tolist() == [2]


def test_bounds_of_all_columns_are_those_of_blocks_once_all_are_copied():
    rng = np.random.default_rng(6)
    X = torch.asarray(rng.normal(size=(10, 25)).astype(np.float32))
    bounds = ColumnBounds(np.zeros(25), lambda _: True)
    vectors = ScaledVectors.from_vectors(torch.asarray(unit_vectors(rng, (3, 10))), torch_namespace)

    def check():
        found = [
            bounds.may_exceed(1.5, vectors, block=X[:, a:b], start=a, xp=torch_namespace)
            for a, b in ((0, 10), (10, 20), (20, 25))
        ]
        return [part.numel() for part in found], torch.cat(found).tolist()

    (sizes, in_blocks), (joined_sizes, joined) = check(), check()
    assert sizes[:2] == [10, 10]
    assert joined_sizes == [25, 0, 0]
    assert joined == in_blocks
    assert 0 < sum(joined) < 25
    bounds.discard()
    assert check()[1] == in_blocks


def test_without_memory_for_copies_no_copies_are_made(monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(device_bounds, "_HalfPrecisionBounds", fail)
    X, vectors = np.eye(5, dtype=np.float32), np.eye(5)[:1]
    found = found_columns(X, np.zeros(5), vectors, 0.9, namespace=torch_namespace)
    assert found.tolist() == [0]


@pytest.mark.parametrize(("factor", "n_least"), [(1.0, 6), (3.0, 0)])
def test_violations_are_those_without_bounds(factor, n_least, monkeypatch):
    use_small_blocks(monkeypatch, 30 * 150)
    rng = np.random.default_rng(2)
    X = rng.normal(3.0, size=(30, 400)).astype(np.float32)
    matrix = matrix_at(xp.asarray(X))
    scores = unit_vectors(rng, (5, 30))
    products = np.abs(scores @ (X - matrix.offsets))
    certificate = Certificate(
        working_set=np.array([12, 40]),
        scores=scores,
        thresholds=factor * np.quantile(products, 0.998, axis=1),
        fill_change=0.0,
        max_violations=10,
    )

    def find():
        found = _find_violations(matrix, [certificate], bounds=ColumnBounds(matrix.offsets))
        return Violations(*(field[~found.are_members] for field in found))

    found, n_passes = find(), matrix.n_passes
    monkeypatch.setattr(certificate_checking, "_MAX_SHARE", -1.0)
    expected = find()
    assert matrix.n_passes - n_passes == 2
    assert (expected.columns.size > 0) == (n_least > 0)
    assert expected.columns.size >= n_least
    np.testing.assert_array_equal(found.columns, expected.columns)
    np.testing.assert_allclose(found.products, expected.products, rtol=1e-12)
    assert np.all(found.products > NEAR_VIOLATION)


def test_feature_sets_do_not_depend_on_the_precision_of_bounds(monkeypatch):
    use_small_blocks(monkeypatch, 24 * 100)
    X = clustered(24, 400, seed=1).astype(np.float32)
    expected = path_on(matrix_at(X), n_components=3)
    monkeypatch.setattr(device_bounds, "_multiplies_half_precision", lambda _: True)
    path = path_on(matrix_at(torch.asarray(X)), n_components=3)
    grid = [(q, rank) for q in (5, 20, 40) for rank in (1, 2, 3)]
    for n_jobs in (1, 4):
        found = dict(path.search_grid(grid, tolerance=0, n_jobs=n_jobs))
        for key, features in expected.search_grid(grid, tolerance=0, n_jobs=1):
            assert found[key].l1_bound == features.l1_bound
            np.testing.assert_array_equal(found[key].indices, features.indices)
