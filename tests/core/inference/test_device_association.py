"""Tests of association on a device agree with the compiled ones."""

import numpy as np
import pytest

from mrshc.core.inference import device_association
from mrshc.core.inference.association import cauchy_combination, column_tests
from mrshc.core.inference.device_association import DeviceRanks, DeviceTests
from storage_backends import in_array_api, in_torch


@pytest.fixture(params=[in_array_api, in_torch], ids=["array API", "torch"])
def place(request):
    """Return a function that returns a matrix as an array of a package, and its namespace."""
    compat = pytest.importorskip("array_api_compat")

    def placed(X):
        block = request.param(X)
        return block, compat.array_namespace(block)

    return placed


def cuts(rng, n, n_trees):
    """Return partitions of n samples into 2 to 7 clusters, for several trees."""
    labels = [np.arange(n) % k for _ in range(n_trees) for k in range(2, 8)]
    return np.stack([rng.permutation(row) for row in labels]).reshape(n_trees, 6, n)


def run(tests, block, start, xp):
    """Return the p-values and the strengths of a block, from all of its parts."""
    counts, parts = zip(*tests(block, start, xp), strict=True)
    assert sum(counts) == block.shape[1]
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


@pytest.mark.parametrize("n", [8, 30, 200])
@pytest.mark.parametrize("kind", ["continuous", "ties", "separated"])
def test_p_values_and_strengths_are_those_of_the_compiled_tests(place, kind, n, monkeypatch):
    # Parts of 7 columns, and p-values of two parts at once.
    monkeypatch.setattr(device_association, "_PART_CELLS", 7 * n)
    monkeypatch.setattr(device_association, "_PART_P_VALUES", 2 * 7 * 12)
    rng = np.random.default_rng(n)
    partitions = cuts(rng, n, 2)
    X = rng.normal(size=(n, 40)) * 10.0 ** rng.integers(-3, 4, size=40)
    if kind == "ties":
        X = np.round(rng.normal(size=(n, 40)))
        X[:, 3] = 1.0  # a constant feature
    if kind == "separated":
        X += 100 * partitions[0, 3][:, None] * np.abs(X).max()
    block, xp = place(X)
    p_values, strengths = run(DeviceTests(partitions, DeviceRanks()), block, 0, xp)
    expected = column_tests(X, partitions.reshape(-1, n))
    combined = cauchy_combination(expected.p_values.reshape(-1, 6)).reshape(40, 2)
    np.testing.assert_allclose(p_values, combined, rtol=1e-9, atol=1e-300)
    means = expected.between.reshape(40, 2, 6).mean(axis=2)
    np.testing.assert_allclose(strengths, means, rtol=1e-9, atol=1e-12 * np.square(X).max())


def test_ranks_are_computed_once(place, monkeypatch):
    rng = np.random.default_rng(0)
    block, xp = place(rng.normal(size=(20, 30)))
    ranks = DeviceRanks()
    first = run(DeviceTests(cuts(rng, 20, 1), ranks), block, 0, xp)

    def sort_again(*_):
        raise AssertionError("the ranks are stored")

    monkeypatch.setattr(device_association, "_centred_doubled_ranks", sort_again)
    second = run(DeviceTests(cuts(rng, 20, 1), ranks), block, 0, xp)
    assert not np.array_equal(first[0], second[0])
    with pytest.raises(AssertionError, match="stored"):
        run(DeviceTests(cuts(rng, 20, 1), ranks), block, 30, xp)


def test_ranks_of_a_block_can_be_computed_in_advance(place, monkeypatch):
    monkeypatch.setattr(device_association, "_PART_CELLS", 7 * 20)
    rng = np.random.default_rng(0)
    block, xp = place(np.round(rng.normal(size=(20, 30)), 1))
    ranks, partitions = DeviceRanks(), cuts(rng, 20, 1)
    expected = run(DeviceTests(partitions, DeviceRanks()), block, 5, xp)
    assert ranks(block, 5, xp) == [(30, None)]

    def sort_again(*_):
        raise AssertionError("the ranks are stored")

    monkeypatch.setattr(device_association, "_centred_doubled_ranks", sort_again)
    for found, value in zip(
        run(DeviceTests(partitions, ranks), block, 5, xp), expected, strict=True
    ):
        np.testing.assert_array_equal(found, value)
