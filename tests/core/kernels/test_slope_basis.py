"""Slopes that are combined from those of other vectors are within their stated error."""

import numpy as np

from mrshc.core.kernels.slope_basis import SlopeBasis, add_to_basis, combine_slopes, has_vectors


def unit(vector):
    return vector / np.linalg.norm(vector)


def basis_of(X, vectors, *, capacity):
    n, p = X.shape
    shapes = [(capacity, n), (capacity, p), (capacity, n), (capacity, capacity)]
    basis = SlopeBasis(*(np.empty(shape) for shape in shapes), np.zeros(1, np.intp))
    for u in vectors:
        add_to_basis(basis, u, X.T @ u)
    return basis


def test_slopes_within_the_span_are_exact_and_others_within_their_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 50))
    vectors = [unit(vector) for vector in rng.normal(size=(4, 30))]
    basis, slopes = basis_of(X, vectors, capacity=6), np.empty(50)
    assert basis.n_used[0] == 4
    inside = unit(vectors[0] - 2.0 * vectors[3])
    assert combine_slopes(basis, inside, slopes) < 1e-8
    np.testing.assert_allclose(slopes, X.T @ inside, atol=1e-12)
    outside = unit(inside + 0.1 * unit(rng.normal(size=30)))
    error = combine_slopes(basis, outside, slopes)
    assert 0.01 < error < 0.1
    assert np.all(np.abs(slopes - X.T @ outside) <= error * np.linalg.norm(X, axis=0))


def test_vectors_in_the_span_and_vectors_beyond_the_capacity_are_not_added():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 8))
    first, second, third = (unit(vector) for vector in rng.normal(size=(3, 20)))
    basis = basis_of(X, [first, -first, unit(first + second), second, third], capacity=2)
    assert basis.n_used[0] == 2
    np.testing.assert_array_equal(basis.vectors, [first, unit(first + second)])
    assert has_vectors(basis)
    assert not has_vectors(basis_of(X, [first], capacity=0))


def test_functions_accept_that_there_is_no_basis():
    add_to_basis(None, np.ones(3), np.ones(5))
    assert not has_vectors(None)
