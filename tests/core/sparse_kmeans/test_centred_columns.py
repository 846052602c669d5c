import numpy as np
import pytest

from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.sparse_kmeans import centred_columns
from mrshc.core.sparse_kmeans.centred_columns import CentredColumns

X = np.random.default_rng(0).normal(3.0, 2.0, size=(12, 30))
LABELS = np.arange(12) % 3


@pytest.fixture(params=["kept", "read again", "one block"])
def columns(request, monkeypatch):
    if request.param != "one block":
        monkeypatch.setattr("mrshc.core.data.statistics._BLOCK_CELLS", 12 * 7)
    if request.param == "read again":
        monkeypatch.setattr(centred_columns, "_MAX_KEPT_VALUES", 12 * 30 - 1)
    return CentredColumns(as_data_matrix(X))


def test_inner_products_are_those_of_the_weighted_centred_columns(columns):
    indices = np.array([0, 6, 7, 29])
    weights = np.array([0.5, 0.1, 2.0, 1.0])
    chosen = (X - X.mean(axis=0))[:, indices]
    found = columns.inner_products(indices, weights) * columns.length**2
    np.testing.assert_allclose(found, chosen * weights @ chosen.T, atol=1e-12)


def test_sums_of_squares_between_clusters_are_total_minus_within(columns):
    total = np.square(X - X.mean(axis=0)).sum(axis=0)
    groups = [X[k == LABELS] for k in range(3)]
    within = sum(np.square(group - group.mean(axis=0)).sum(axis=0) for group in groups)
    found = columns.between_sums_of_squares(LABELS, 3) * columns.length**2
    np.testing.assert_allclose(found, total - within)


def test_cluster_means_are_on_the_scale_of_the_data(columns):
    expected = [X[k == LABELS].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(columns.cluster_means(LABELS, 3), expected)


def permuted_values(columns):
    return np.hstack([values for _, values in columns.blocks()]) * columns.length + X.mean(axis=0)


def test_each_column_is_permuted_on_its_own(columns):
    first, again, second = (columns.permute(5, m) for m in (0, 0, 1))
    values = permuted_values(first)
    np.testing.assert_allclose(np.sort(values, axis=0), np.sort(X, axis=0))
    order = np.argsort(values, axis=0).argsort(axis=0)
    unpermuted = np.argsort(X, axis=0).argsort(axis=0)
    moved = [tuple(np.argsort(a)[b]) for a, b in zip(order.T, unpermuted.T, strict=True)]
    assert len(set(moved)) == 30
    np.testing.assert_array_equal(values, permuted_values(again))
    assert not np.allclose(values, permuted_values(second))


def test_permutations_do_not_depend_on_whether_columns_are_kept(monkeypatch):
    kept = permuted_values(CentredColumns(as_data_matrix(X)).permute(1, 2))
    monkeypatch.setattr(centred_columns, "_MAX_KEPT_VALUES", 0)
    read = CentredColumns(as_data_matrix(X)).permute(1, 2)
    np.testing.assert_array_equal(permuted_values(read), kept)
    np.testing.assert_array_equal(permuted_values(read), kept)


def test_constant_columns_have_no_sum_of_squares():
    data = np.column_stack([X[:, 0], np.full(12, 0.1), np.full(12, 1e7 / 3)])
    found = CentredColumns(as_data_matrix(data)).between_sums_of_squares(LABELS, 3)
    np.testing.assert_array_equal(found[1:], 0.0)
    assert found[0] > 0
