"""Upper bounds of slopes, by which columns are excluded in later runs."""

import numpy as np
import pytest

from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.screening import ColumnNorms, plan_from_bounds
from mrshc.core.kernels.slope_bounds import SlopeBounds, has_bounds, write_bounds, write_threshold

N, P = 12, 400


@jit()
def number_and_slope_bound(norms, bounds, u, columns):
    """Return the fields of a screen: functions called from Python return no named tuples."""
    screen = plan_from_bounds(norms, bounds, 0, u, columns)
    return screen.n_columns, screen.slope_bound


def empty_bounds(n_iter):
    return SlopeBounds(
        np.empty((n_iter, N)),
        np.empty((n_iter, P), np.uint8),
        np.empty(n_iter),
        np.full(n_iter, -1.0),
    )


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e150])
def test_bounds_are_at_least_the_slopes_and_at_most_one_unit_above(factor):
    rng = np.random.default_rng(1)
    u, slopes, bounds = rng.normal(size=N), factor * rng.standard_t(2, size=P), empty_bounds(3)
    write_bounds(bounds, 2, u, slopes)
    found = bounds.quantised[2] * bounds.units[2]
    assert (found >= np.abs(slopes)).all()
    assert (found <= np.abs(slopes) + 1.01 * bounds.units[2]).all()
    np.testing.assert_array_equal(bounds.scores[2], u)


def test_bounds_are_used_only_after_their_threshold_is_known():
    bounds = empty_bounds(2)
    write_bounds(bounds, 0, np.ones(N), np.ones(P))
    assert not has_bounds(bounds, 0)
    write_threshold(bounds, 0, 0.5)
    assert has_bounds(bounds, 0)
    assert not has_bounds(bounds, 1)
    write_bounds(bounds, 2, np.ones(N), np.ones(P))  # later iterations are not stored
    write_threshold(bounds, 2, 0.5)
    assert not has_bounds(bounds, 2)


def test_a_screen_from_bounds_contains_all_columns_above_its_slope_bound():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, P))
    X[:, :20] *= 3.0
    old = rng.normal(size=N)
    old /= np.linalg.norm(old)
    u = old + 0.05 * rng.normal(size=N)
    u /= np.linalg.norm(u)
    bounds, columns = empty_bounds(1), np.empty(P // 4, np.intp)
    write_bounds(bounds, 0, old, X.T @ old)
    write_threshold(bounds, 0, 5.0)
    added = 0.01 * rng.random(P)
    norms = ColumnNorms(np.linalg.norm(X, axis=0), added)
    n_columns, slope_bound = number_and_slope_bound(norms, bounds, u, columns)
    residual = X + added * rng.choice([-1.0, 1.0], P) * old[:, None]
    large = np.flatnonzero(np.abs(residual.T @ u) >= slope_bound)
    assert large.size > 0
    assert np.isin(large, columns[:n_columns]).all()
    assert 0 < n_columns < P // 4
    assert number_and_slope_bound(norms, bounds, u, columns[:2])[0] == 0
