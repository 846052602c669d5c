from bisect import bisect_left

import array_api_strict
import numpy as np
import pytest

from mrshc.core.sparse_pca import working_sets
from mrshc.core.sparse_pca.next_component import Component
from mrshc.core.sparse_pca.working_sets import (
    WorkingSets,
    _largest_positions_by_row,
    initial_pass,
)
from storage_backends import ArrayInBlocks, clustered, matrix_at, use_small_blocks


@pytest.fixture
def few_extra_columns(monkeypatch):
    monkeypatch.setattr(working_sets, "EXTRA_COLUMNS", 3)


def component(indices):
    return Component(
        u=np.zeros(4),
        indices=np.array(indices),
        weights=np.ones(len(indices)),
        scale=1.0,
        n_iter=1,
        converged=True,
    )


# Working sets -------------------------------------------------------------------------------


@pytest.mark.usefixtures("few_extra_columns")
def test_first_working_set_has_the_largest_columns_and_grows_with_the_squared_bound():
    rng = np.random.default_rng(0)
    largest = np.stack([rng.permutation(200) for _ in range(2)])
    sets = WorkingSets(largest)
    for bound in (1.0, 1.3, 2.0, 3.0):
        count = int(4 * bound**2) + 3
        np.testing.assert_array_equal(sets.initial_set([], bound), np.sort(largest[0, :count]))
        found = sets.initial_set([component([5, 150])], bound)
        np.testing.assert_array_equal(found, np.union1d(largest[1, :count], [5, 150]))
    np.testing.assert_array_equal(sets.initial_set([], 100.0), np.arange(200))


def test_later_working_sets_are_those_of_the_neighbouring_bounds():
    stored = {4.0: [7, 9], 1.0: [0, 1], 2.0: [1, 5], 3.0: [2, 6, 8]}
    sets = WorkingSets(np.tile(np.arange(20, 30), (3, 1)))
    for position in (0, 2):
        for bound, columns in stored.items():
            sets.update(bound, position, np.array(columns) + position)
    bounds = sorted(stored)
    for bound in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.7, 4.0, 4.5):
        above = bisect_left(bounds, bound)
        neighbours = bounds[max(above - 1, 0) : above + 1]
        expected = sorted({column for near in neighbours for column in stored[near]})
        np.testing.assert_array_equal(sets.initial_set([], bound), expected)
        found = sets.initial_set([component([3, 12]), component([4])], bound)
        later = {column + 2 for column in expected}
        np.testing.assert_array_equal(found, sorted({3, 4, 12} | later))
    np.testing.assert_array_equal(sets.initial_set([component([3])], 1.0), [3, *range(20, 30)])


def test_a_stored_working_set_is_replaced():
    sets = WorkingSets(np.arange(10)[None, :])
    for columns in ([1, 2], [1, 2, 6]):
        sets.update(2.0, 0, np.array(columns))
        for bound in (1.0, 2.0, 3.0):
            np.testing.assert_array_equal(sets.initial_set([], bound), columns)


# Initial pass -------------------------------------------------------------------------------


def centred(X):
    """Return X minus its column means, with the mean of all values where values are missing."""
    values = X - np.nanmean(X, axis=0)
    return np.nan_to_num(values, nan=np.nanmean(values))


BACKENDS = {"blocks": ArrayInBlocks, "device": array_api_strict.asarray}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
@pytest.mark.parametrize("n_cells", [10_000, 900])
def test_start_vectors_are_the_leading_singular_vectors(
    backend, share_missing, n_cells, monkeypatch
):
    use_small_blocks(monkeypatch, n_cells)
    X = clustered(30, 120)
    X[np.random.default_rng(0).random(X.shape) < share_missing] = np.nan
    initial = initial_pass(matrix_at(BACKENDS[backend](X)), n_components=3, max_features=20)
    A, vectors = centred(X), initial.starts.vectors
    expected = np.linalg.svd(A, full_matrices=False)[2][:3]
    signs = np.sign(np.sum(vectors * expected, axis=1))[:, None]
    np.testing.assert_allclose(vectors, signs * expected, atol=1e-9)
    np.testing.assert_allclose(initial.starts.images, vectors @ A.T, atol=1e-9)
    sums = vectors @ np.isnan(X).T.astype(float)
    np.testing.assert_allclose(initial.sums_at_missing, sums, atol=1e-9)


def test_data_without_variation_have_start_vectors_of_zero():
    initial = initial_pass(
        matrix_at(ArrayInBlocks(np.full((5, 8), 2.0))), n_components=2, max_features=3
    )
    assert not initial.starts.vectors.any()
    assert not initial.starts.images.any()


@pytest.mark.usefixtures("few_extra_columns")
def test_the_columns_with_the_largest_loadings_are_stored():
    """Working sets have up to eight columns for each feature, and a surplus is stored."""
    X = clustered(20, 300)
    matrix = matrix_at(ArrayInBlocks(X))
    initial = initial_pass(matrix, n_components=1, max_features=10)
    order = np.argsort(-np.abs(initial.starts.vectors[0]), kind="stable")
    found = initial.working_sets.initial_set([], 1e3)
    np.testing.assert_array_equal(found, np.sort(order[: 8 * 10 + 3]))
    stored = np.flatnonzero(matrix.is_stored)
    np.testing.assert_array_equal(stored, np.sort(order[: stored.size]))
    assert stored.size == int(1.5 * 83) + 3
    np.testing.assert_array_equal(matrix.stored_columns(stored).values, X[:, stored])


@pytest.mark.usefixtures("few_extra_columns")
def test_every_block_stores_its_share_of_the_columns(monkeypatch):
    use_small_blocks(monkeypatch, 20 * 100)
    X = clustered(20, 300)
    matrix = matrix_at(ArrayInBlocks(X))
    initial = initial_pass(matrix, n_components=1, max_features=10)
    for start in (0, 100, 200):
        sizes = np.abs(initial.starts.vectors[0, start : start + 100])
        largest = np.sort(np.argsort(-sizes)[: int(1.5 * 83 / 3) + 3])
        np.testing.assert_array_equal(
            np.flatnonzero(matrix.is_stored[start : start + 100]), largest
        )


# Selection ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7, 8, 20])
def test_positions_of_the_largest_entries_are_in_decreasing_order_of_size(count):
    products = np.random.default_rng(0).normal(size=(4, 8))
    expected = np.argsort(-np.abs(products), axis=1)[:, :count]
    np.testing.assert_array_equal(_largest_positions_by_row(products, count), expected)
