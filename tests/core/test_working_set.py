"""Components computed on a few features are those of all features, wherever the data are."""

import numpy as np
import pytest

from mrshc.core import parallel, sparse_components
from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix, centring, summarise
from mrshc.core.sparse_components import (
    component_path,
    search_grid,
    sparse_direction,
    starts_in_memory,
)
from storage_backends import in_array_api, use_small_blocks

GRID = [(q, r) for q in (5, 12, 25) for r in (1, 2, 4)]


def clusters(share=0.0, seed=0, n=24, p=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[: n // 3, :25] += 2.0
    X[n // 3 : n // 2, 15:40] -= 2.5
    X[:, 300:310] = X[:, :10]  # copies
    X[:, 50] = 3.0
    X[rng.random(X.shape) < share] = np.nan
    return X


def search(matrix, *, center=True, **limits):
    offsets = centring(summarise(matrix), center)
    path = component_path(matrix, offsets, rank=4, max_features=25)
    options = {"tolerance": 0, "smallest": 1} | limits
    return path, search_grid(path, GRID, **options)


@pytest.fixture
def few_features(monkeypatch):
    """Begin with so few features that most components fail the check."""
    monkeypatch.setattr(sparse_components, "_ALL_VALUES", 0)
    monkeypatch.setattr(sparse_components, "_ALL_STORED", 0)
    monkeypatch.setattr(sparse_components, "_PER_FEATURE", 0)
    monkeypatch.setattr(sparse_components, "_ADDITIONAL", 8)
    use_small_blocks(monkeypatch, 24 * 60)


def stationary_loadings(path, filled, bound, k):
    """Return the loadings that follow from the scores of component k, over all features."""
    found, (X, missing) = path.solve(bound, k + 1), filled
    loadings = path.loadings(bound, k + 1)
    left = X - (found.scores[:k].T * found.scales[:k]) @ loadings[:k]
    if missing.any():
        left[missing] = left[~missing].mean()
    return loadings[k], sparse_direction(left.T @ found.scores[k], bound)


@pytest.mark.parametrize("center", [True, "grand", False])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("place", [ArrayMatrix, lambda X: as_matrix(in_array_api(X))])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.usefixtures("few_features")
def test_components_are_stationary_for_all_features(share, place, center, n_threads):
    n_features = []
    for seed in range(3):
        X = clusters(share, seed)
        with parallel.threads(n_threads):
            path, found = search(place(X), center=center)
        assert path._matrix is not None
        for components in path.bounds.values():
            assert np.all(np.diff(components.features) > 0)
            n_features.append(components.features.size)
        offsets = centring(summarise(ArrayMatrix(X)), center)
        missing, left = np.isnan(X), (X - offsets.offsets) / offsets.unit
        for (q, rank), features in zip(GRID, found, strict=True):
            assert features.reached == (features.features.size == q)
            support = path.loadings(features.l1_bound, rank).any(axis=0)
            np.testing.assert_array_equal(np.flatnonzero(support), features.features)
            for k in range(rank):
                v, expected = stationary_loadings(path, (left, missing), features.l1_bound, k)
                expected *= np.sign(expected @ v)
                np.testing.assert_allclose(v, expected, atol=1e-7)
    assert min(n_features) < 64 < max(n_features), "features were added"


@pytest.mark.parametrize(("scale", "constant"), [(2.0**-480, 0), (2.0**480, 0), (1.0, 1e60)])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_single_precision_is_enough(scale, constant, n_threads, monkeypatch):
    X = clusters() * scale
    X[:, 50] += constant
    monkeypatch.setattr(sparse_components, "_PER_FEATURE", 0)
    monkeypatch.setattr(sparse_components, "_ADDITIONAL", 8)
    monkeypatch.setattr(sparse_components, "_MANY_VALUES", 0)
    for size in (0, 24 * 400):
        monkeypatch.setattr(sparse_components, "_ALL_VALUES", size)
        with parallel.threads(n_threads):
            found, expected = (search(ArrayMatrix(Y))[1] for Y in (X, clusters()))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.features, other.features)


def test_small_data_and_tall_data_are_computed_on_with_all_features(monkeypatch):
    X = clusters()
    for size, shape, is_partial in (
        (24 * 400, X.shape, False),
        (24 * 400 - 1, X.shape, True),
        (0, (24, 24), False),
        (0, (24, 25), True),
    ):
        monkeypatch.setattr(sparse_components, "_ALL_VALUES", size)
        matrix = ArrayMatrix(X[:, : shape[1]])
        offsets = centring(summarise(matrix), True)
        path = component_path(matrix, offsets, rank=2, max_features=2)
        assert (path._matrix is not None) == is_partial


def test_eigenvectors_of_many_samples_are_those_of_numpy(monkeypatch):
    X = np.random.default_rng(0).normal(size=(80, 400)) * np.linspace(3, 1, 80)[:, None]
    gram = X @ X.T
    expected = np.linalg.eigh(gram)[1][:, ::-1][:, :4].T
    found = sparse_components._leading_eigenvectors(gram, 4)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    monkeypatch.setattr(sparse_components, "_MANY_SAMPLES", 80)
    by_lanczos = sparse_components._leading_eigenvectors(gram, 4)
    np.testing.assert_allclose(np.abs(by_lanczos), np.abs(expected), atol=1e-8)
    assert np.any(by_lanczos != found)

    def fail(*_, **__):
        raise sparse_components.ArpackError(-1)

    monkeypatch.setattr(sparse_components, "eigsh", fail)
    np.testing.assert_array_equal(sparse_components._leading_eigenvectors(gram, 4), found)


@pytest.mark.parametrize("shape", [(10, 30), (30, 10)])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_starts_are_singular_vectors_with_their_products(shape, share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X[rng.random(shape) < share] = np.nan
    offsets = centring(summarise(ArrayMatrix(X)), True)
    starts = starts_in_memory((X - offsets.offsets) / offsets.unit, offsets, 3)
    filled = offsets(X, 0)
    vectors = np.linalg.svd(filled, full_matrices=False)[2][:3]
    np.testing.assert_allclose(np.abs(starts.vectors), np.abs(vectors), atol=1e-9)
    np.testing.assert_allclose(starts.images, starts.vectors @ filled.T, atol=1e-12)
    np.testing.assert_allclose(starts.at_gaps, starts.vectors @ np.isnan(X).T, atol=1e-12)
