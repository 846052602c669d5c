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


@pytest.mark.parametrize("n", [1023, 1024, 1500])
def test_many_values_of_all_kinds_are_sorted_as_by_numpy(n):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n)
    mixed = values.copy()
    mixed[::7], mixed[3::11], mixed[4::11] = np.nan, np.inf, -np.inf
    mixed[1::13], mixed[2::13] = 0.0, -0.0
    # Values that agree in their leading bits are sorted by their last bits, too.
    for kind in (values, np.round(values), mixed, 1e6 + 1e-5 * values, 1e-310 * values):
        np.testing.assert_array_equal(stable_order(kind), np.argsort(kind, kind="stable"))
