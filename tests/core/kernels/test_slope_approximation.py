"""Approximate slopes: their errors are within the bounds, for data of every size."""

import numpy as np
import pytest

from mrshc.core.kernels.slope_approximation import absolute_error, approximate_slopes
from mrshc.core.sparse_pca.next_component import single_precision
from storage_backends import matrix_at


@pytest.mark.parametrize("n", [3, 8, 60, 777])
@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.parametrize("order", ["C", "F"])
def test_errors_are_at_most_the_bound(n, scale, order):
    rng = np.random.default_rng(n)
    # Columns whose norms differ by many orders of magnitude, and a constant one.
    X = rng.normal(size=(n, 40)) * 10.0 ** rng.uniform(-40, 0, 40) * scale + 3.0 * scale
    X[:, 5] = scale
    matrix = matrix_at(np.asarray(X, order=order), drop_constant=False)
    u = rng.normal(size=n)
    u[0] *= 1e-20
    u /= np.linalg.norm(u)
    exact, slopes = matrix.multiply_transposed(u), np.empty(40)
    single = single_precision(matrix)
    error = approximate_slopes(single, None, u, slopes)
    assert np.all(np.isfinite(slopes))
    bound = error * matrix.column_norms + absolute_error(single)
    assert np.all(np.abs(slopes - exact) <= bound)
    # The bound excludes most columns only if it is small.
    assert error < 1e-3
    assert absolute_error(single) <= 1e-30 * matrix.column_norms.max()
