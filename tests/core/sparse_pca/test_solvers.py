import numpy as np
import pytest

from mrshc.core.kernels.component_sequence import SequenceEnd
from mrshc.core.sparse_pca import next_component, solvers, working_sets
from mrshc.core.sparse_pca.next_component import leading_starts
from mrshc.core.sparse_pca.solvers import AlternationLimits, FullSolver, WorkingSetSolver
from mrshc.core.sparse_pca.working_sets import initial_pass
from storage_backends import ArrayInBlocks, assert_same_components, clustered, matrix_at

N, P = 20, 80


def table(share_missing=0.0, dtype=np.float64):
    """Return a table whose columns from 40 on have zero loadings if the L1 bound is small."""
    X = (clustered(N, P) * np.repeat([1.0, 0.1], 40) + 500.0).astype(dtype)
    X[np.random.default_rng(0).random(X.shape) < share_missing] = np.nan
    return X


def both_solvers(X, *, max_iter=20, tol=1e-7):
    """Return solvers on all columns and on working sets that may have all columns."""
    limits = AlternationLimits(max_iter=max_iter, tol=tol)
    array, blocks = matrix_at(X), matrix_at(ArrayInBlocks(X))
    initial = initial_pass(blocks, n_components=3, max_features=40)
    return (
        FullSolver(array, leading_starts(array, 3), limits),
        WorkingSetSolver(blocks, initial, limits),
    )


def solve_next(solver, earlier, l1_bound):
    """Return the solution for the component that follows `earlier`."""
    [solution] = solver.solve(earlier, l1_bound, end=SequenceEnd(len(earlier) + 1, np.inf))
    return solution


@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("extra", [30, 500])
def test_components_on_sufficient_working_sets_are_those_on_all_columns(
    share_missing, dtype, extra, monkeypatch
):
    """Working sets of some columns suffice if their certificates hold."""
    for module in (solvers, working_sets):
        monkeypatch.setattr(module, "EXTRA_COLUMNS", extra)
    full, restricted = both_solvers(table(share_missing, dtype))
    earlier = []
    # The certificate of the third component does not hold on the smaller working set.
    for _ in range(2 if extra == 30 else 3):
        expected = solve_next(full, earlier, 2.0)
        found = solve_next(restricted, earlier, 2.0)
        assert expected.certificate is None
        assert_same_components([expected.component], [found.component])
        assert found.component.scale == pytest.approx(expected.component.scale, rel=1e-7)
        assert found.component.n_iter == expected.component.n_iter
        assert found.component.converged == expected.component.converged
        assert (found.certificate.working_set.size < P) == (extra == 30)
        earlier.append(expected.component)


@pytest.mark.parametrize("max_iter", [1, 2, 20])
@pytest.mark.parametrize("l1_bound", [1.5, 3.0, np.sqrt(P)])
def test_a_certificate_has_the_scores_and_threshold_of_every_iteration(l1_bound, max_iter):
    X = table()
    _, solver = both_solvers(X, max_iter=max_iter)
    component, certificate = solve_next(solver, [], l1_bound)
    assert certificate.scores.shape == (component.n_iter, N)
    assert certificate.thresholds.shape == (component.n_iter,)
    assert certificate.fill_change == 0.0
    # The loadings of an iteration are the soft-thresholded products with its scores, scaled to unit
    # length.
    products = certificate.scores[-1] @ (X - X.mean(axis=0))
    magnitudes = np.maximum(np.abs(products) - certificate.thresholds[-1], 0.0)
    loadings = np.sign(products) * magnitudes / np.linalg.norm(magnitudes)
    expected = np.zeros(P)
    expected[component.indices] = component.weights
    np.testing.assert_allclose(loadings * np.sign(loadings @ expected), expected, atol=1e-9)


def test_a_certificate_has_the_change_of_the_fill_value():
    X = table(0.2)
    _, solver = both_solvers(X)
    first = solve_next(solver, [], 3.0)
    second = solve_next(solver, [first.component], 3.0)
    v = np.zeros(P)
    v[first.component.indices] = first.component.weights
    taken = first.component.scale * np.outer(first.component.u, v)
    assert first.certificate.fill_change == 0.0
    assert second.certificate.fill_change == pytest.approx(taken[~np.isnan(X)].mean(), rel=1e-9)


def test_a_residual_of_zero_has_a_certificate_without_steps():
    X = np.outer(np.arange(6.0), np.arange(1.0, 10.0))
    _, solver = both_solvers(X)
    first = solve_next(solver, [], 3.0).component
    second = solve_next(solver, [first], 3.0)
    assert second.component.indices.size == 0
    assert second.certificate.thresholds.size == 0


def test_more_columns_may_be_added_to_working_sets_of_larger_bounds(monkeypatch):
    """At least the squared bound: so many loadings are not zero if the bound is active."""
    monkeypatch.setattr(solvers, "EXTRA_COLUMNS", 5)
    _, solver = both_solvers(table())
    limits = [solve_next(solver, [], bound).certificate.max_violations for bound in (1.0, 1.5, 3.0)]
    assert limits == [6, 7, 14]


@pytest.mark.parametrize("order", ["C", "F"])
def test_components_of_many_samples_are_those_of_few_in_every_digit(order, monkeypatch):
    """For many samples, slopes are combined, and copies of columns are kept between bounds."""
    scales = np.where(np.arange(400) < 30, 1.0, 0.2)
    matrix = matrix_at(np.asarray(clustered(60, 400) * scales, order=order))
    starts = leading_starts(matrix, 2)
    few, many = (FullSolver(matrix, starts, AlternationLimits(max_iter=20, tol=0.0)) for _ in "ab")
    for l1_bound in (2.0, 3.0, 2.5, 4.0, 1.5):
        solutions = []
        for solver, many_samples in (few, 1000), (many, 10):
            monkeypatch.setattr(next_component, "MANY_SAMPLES", many_samples)
            solutions.append(solver.solve([], l1_bound, end=SequenceEnd(2, np.inf)))
        for (one, _), (other, _) in zip(*solutions, strict=True):
            np.testing.assert_array_equal(one.u, other.u)
            np.testing.assert_array_equal(one.indices, other.indices)
            np.testing.assert_array_equal(one.weights, other.weights)
