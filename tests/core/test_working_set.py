"""Components computed on a few features are those of all features, wherever the data are."""

import numpy as np
import pytest

from mrshc.core import parallel, working_set
from mrshc.core.data.matrix import ArrayMatrix, as_matrix
from mrshc.core.sparse_components import ComponentPath
from mrshc.core.statistics import centring, summarise
from mrshc.core.working_set import component_path, search_grid, starts_in_memory
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
    return path, search_grid(path, GRID, matrix, offsets, **options)


def full_path(X, center=True):
    matrix = ArrayMatrix(X)
    offsets, index = centring(summarise(matrix), center), np.arange(X.shape[1])
    columns = offsets.columns(matrix, index)
    return ComponentPath(columns, index, starts_in_memory(columns, offsets, 4), offsets)


@pytest.fixture
def few_features(monkeypatch):
    """Begin with so few features that most components fail the check."""
    monkeypatch.setattr(working_set, "_ALL_VALUES", 0)
    monkeypatch.setattr(working_set, "_PER_FEATURE", 0)
    monkeypatch.setattr(working_set, "_ADDITIONAL", 40)
    use_small_blocks(monkeypatch, 24 * 60)


@pytest.mark.parametrize("center", [True, "grand", False])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("place", [ArrayMatrix, lambda X: as_matrix(in_array_api(X))])
@pytest.mark.usefixtures("few_features")
def test_features_and_loadings_are_those_of_all_features(share, place, center):
    for seed in range(3):
        X = clusters(share, seed)
        path, found = search(place(X), center=center)
        assert path.is_partial
        assert path.index.size < 400
        assert np.all(np.diff(path.index) > 0)
        complete = full_path(X, center)
        assert not complete.is_partial
        for (q, rank), features in zip(GRID, found, strict=True):
            expected = complete.search(q, rank, tolerance=0, smallest=1)
            np.testing.assert_array_equal(features.features, expected.features)
            assert (features.l1_bound, features.rank) == (expected.l1_bound, rank)
            loadings = path.loadings(features.l1_bound, rank)
            np.testing.assert_allclose(
                loadings, complete.loadings(features.l1_bound, rank), atol=1e-6
            )


def test_components_outside_the_working_set_are_found_and_computed_again(few_features, monkeypatch):
    """Without the check, features would be missed."""
    monkeypatch.setattr(working_set, "_ADDITIONAL", 12)
    X = clusters(seed=1)
    matrix = ArrayMatrix(X)
    complete = full_path(X)
    expected = [complete.search(q, r, tolerance=0, smallest=1).features for q, r in GRID]
    with monkeypatch.context() as patch:
        patch.setattr(working_set, "_add_violators", lambda *_: False)
        _, unchecked = search(matrix)
    missed = [not np.array_equal(u.features, e) for u, e in zip(unchecked, expected, strict=True)]
    assert any(missed)
    checks, check = [], working_set._add_violators
    monkeypatch.setattr(
        working_set, "_add_violators", lambda *args: checks.append(check(*args)) or checks[-1]
    )
    path, _ = search(matrix)
    assert checks[-1] is False
    assert 2 <= len(checks) < 20
    assert all(found.n_checked == found.n_known for found in path.bounds.values())


@pytest.mark.usefixtures("few_features")
def test_several_threads_find_the_same(share=0.1):
    X = clusters(share)
    _, alone = search(ArrayMatrix(X))
    with parallel.threads(2):
        _, shared = search(ArrayMatrix(X))
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one.features, other.features)
        assert one.l1_bound == other.l1_bound


def test_small_data_and_tall_data_are_computed_on_with_all_features(monkeypatch):
    X = clusters()
    for size, shape, is_partial in (
        (24 * 400, X.shape, False),
        (24 * 400 - 1, X.shape, True),
        (0, (24, 24), False),
        (0, (24, 25), True),
    ):
        monkeypatch.setattr(working_set, "_ALL_VALUES", size)
        monkeypatch.setattr(working_set, "_ADDITIONAL", 3)
        monkeypatch.setattr(working_set, "_PER_FEATURE", 0)
        matrix = ArrayMatrix(X[:, : shape[1]])
        offsets = centring(summarise(matrix), True)
        path = component_path(matrix, offsets, rank=2, max_features=2)
        assert path.is_partial == is_partial


def test_working_sets_hold_the_largest_loadings_of_singular_vectors_and_components(monkeypatch):
    monkeypatch.setattr(working_set, "_ALL_VALUES", 0)
    monkeypatch.setattr(working_set, "_ADDITIONAL", 20)
    X = clusters()
    matrix = ArrayMatrix(X)
    offsets = centring(summarise(matrix), True)
    path = component_path(matrix, offsets, rank=2, max_features=10)
    vectors = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2]
    np.testing.assert_allclose(np.abs(path.starts.vectors), np.abs(vectors), atol=1e-9)
    for v in np.abs(vectors):
        assert set(np.argsort(-v)[:40]) <= set(path.index), "two for each feature, and 20"
    assert 40 < path.index.size < 200
    pilots = [np.sqrt(q) for q in (1.25, 5, 10)]
    assert sorted(path.bounds) == pytest.approx(pilots)
    complete = full_path(X)
    for bound in pilots:
        scores = complete.solve(bound, 2).scores[:2]
        for product in np.abs(scores @ (X - X.mean(axis=0))):
            assert set(np.argsort(-product)[:20]) <= set(path.index)


def test_eigenvectors_of_many_samples_are_those_of_numpy(monkeypatch):
    X = np.random.default_rng(0).normal(size=(80, 400)) * np.linspace(3, 1, 80)[:, None]
    gram = X @ X.T
    expected = np.linalg.eigh(gram)[1][:, ::-1][:, :4].T
    found = working_set._leading_eigenvectors(gram, 4)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    monkeypatch.setattr(working_set, "_MANY_SAMPLES", 80)
    by_lanczos = working_set._leading_eigenvectors(gram, 4)
    np.testing.assert_allclose(np.abs(by_lanczos), np.abs(expected), atol=1e-8)
    assert np.any(by_lanczos != found)

    def fail(*_, **__):
        raise working_set.ArpackError(-1)

    monkeypatch.setattr(working_set, "eigsh", fail)
    np.testing.assert_array_equal(working_set._leading_eigenvectors(gram, 4), found)


@pytest.mark.parametrize("shape", [(10, 30), (30, 10)])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_starts_are_singular_vectors_with_their_products(shape, share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X[rng.random(shape) < share] = np.nan
    offsets = centring(summarise(ArrayMatrix(X)), True)
    starts = starts_in_memory(X - offsets.offsets, offsets, 3)
    filled = offsets(X, 0)
    vectors = np.linalg.svd(filled, full_matrices=False)[2][:3]
    np.testing.assert_allclose(np.abs(starts.vectors), np.abs(vectors), atol=1e-9)
    np.testing.assert_allclose(starts.images, starts.vectors @ filled.T, atol=1e-12)
    np.testing.assert_allclose(starts.at_gaps, starts.vectors @ np.isnan(X).T, atol=1e-12)
