"""Columns are copied once, as long as there is memory for the copies."""

import numpy as np

from mrshc.core.kernels.column_copies import ColumnCopies, copy_columns


def empty_copies(X, *, capacity):
    n, p = X.shape
    return ColumnCopies(np.empty((capacity, n), X.dtype), np.full(p, -1), np.zeros(1, np.intp))


def test_columns_are_copied_once_and_discarded_when_the_memory_is_full():
    X = np.random.default_rng(0).normal(size=(11, 20))
    copies = empty_copies(X, capacity=5)
    np.testing.assert_array_equal(copy_columns(copies, X, np.array([3, 7, 19])), [0, 1, 2])
    np.testing.assert_array_equal(copy_columns(copies, X, np.array([2, 7, 8])), [3, 1, 4])
    np.testing.assert_array_equal(copies.values, X.T[[3, 7, 19, 2, 8]])
    np.testing.assert_array_equal(copy_columns(copies, X, np.array([7, 9])), [0, 1])
    np.testing.assert_array_equal(copies.values[:2], X.T[[7, 9]])
    assert copies.n_used[0] == 2
