import numpy as np
import pytest

from mrshc.core.kernels.transposition import take_rows_transposed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 70])
def test_selected_rows_are_transposed(dtype, count):
    rng = np.random.default_rng(count)
    matrix = rng.normal(size=(40, 7)).astype(dtype)
    rows = rng.integers(40, size=count)
    found = take_rows_transposed(matrix, rows)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, matrix[rows].T)
