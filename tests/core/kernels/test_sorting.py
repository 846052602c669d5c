"""The order of sorted values is that of numpy's stable sort."""

import numpy as np
import pytest

from mrshc.core.kernels.sorting import stable_order


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 31, 33, 64, 100, 257])
def test_the_order_is_that_of_numpy(n):
    rng = np.random.default_rng(n)
    for values in (
        rng.normal(size=n),
        rng.integers(4, size=n).astype(float),
        np.arange(n, 0, -1.0),
    ):
        np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


def test_missing_values_come_last_and_keep_their_order():
    values = np.random.default_rng(0).integers(5, size=90).astype(float)
    values[::7] = np.nan
    values[3], values[40] = np.inf, -np.inf
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))
