"""Columns that are added to the cache are returned as they were given."""

import numpy as np
import pytest

from mrshc.core.data.column_cache import ColumnCache


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "additions",
    [[[4]], [[4], [0], [7, 2], [9], [1, 3, 5, 6, 8]], [[3, 1, 0], [], [2], [9, 8, 7, 6, 5, 4]]],
)
def test_added_columns_are_stored_and_no_others(dtype, additions):
    X = np.random.default_rng(0).normal(size=(3, 10)).astype(dtype)
    cache = ColumnCache(X.shape, np.dtype(dtype))
    assert not cache.is_stored.any()
    assert cache.take(np.array([], dtype=int)).shape == (3, 0)
    stored = []
    for addition in additions:
        indices = np.array(addition, dtype=int)
        cache.add(indices, X[:, indices])
        stored = [*addition, *stored]  # in another order than added
        np.testing.assert_array_equal(np.flatnonzero(cache.is_stored), sorted(stored))
        found = cache.take(np.array(stored, dtype=int))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, X[:, stored])
        np.testing.assert_array_equal(cache.contains(np.arange(10)), cache.is_stored)


def test_a_reader_keeps_its_columns_while_others_are_added():
    X = np.arange(12.0).reshape(2, 6)
    cache = ColumnCache(X.shape, X.dtype)
    cache.add(np.array([5, 1]), X[:, [5, 1]])
    before = cache.take(np.array([5, 1]))
    cache.add(np.array([0, 2, 3, 4]), X[:, [0, 2, 3, 4]])
    np.testing.assert_array_equal(before, X[:, [5, 1]])
    np.testing.assert_array_equal(cache.take(np.arange(6)), X)
