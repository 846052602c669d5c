"""An array in memory has the interface of all data matrices."""

import numpy as np
import pytest

from mrshc.core.data.array_matrix import ArrayMatrix
from storage_backends import use_small_blocks


def block_range(block, start, _xp):
    return start, start + block.shape[1]


@pytest.mark.parametrize(
    ("n", "p", "ends"),
    [
        (1 << 22, 5, [2, 4, 5]),  # 32 MB in single precision
        ((1 << 22) + 1, 2, [1, 2]),
        (1 << 24, 2, [1, 2]),  # one column is never divided
        (3, 7, [7]),
    ],
)
def test_blocks_take_about_32_megabytes(n, p, ends):
    matrix = ArrayMatrix(np.broadcast_to(np.float32(0), (n, p)))
    assert list(matrix.map_blocks(block_range)) == list(zip([0, *ends[:-1]], ends, strict=True))


def test_values_columns_and_blocks_are_those_of_the_array():
    A = np.random.default_rng(0).normal(size=(4, 6))
    matrix = ArrayMatrix(A)
    assert matrix.in_memory
    assert matrix.values is A
    assert matrix.shape == (4, 6)
    assert matrix.nbytes == A.nbytes
    assert not matrix.holds_integers
    np.testing.assert_array_equal(matrix.columns(np.array([5, 0])), A[:, [5, 0]])
    ((block, xp),) = matrix.map_blocks(lambda block, _start, xp: (block, xp))
    assert xp is np
    np.testing.assert_array_equal(block, A)
    np.testing.assert_allclose(matrix.variances(), A.var(axis=0, ddof=1))


class RecordedPasses(ArrayMatrix):
    """An array that counts its passes."""

    n_passes = 0

    def map_blocks(self, function):
        """Count the pass."""
        self.n_passes += 1
        return super().map_blocks(function)


@pytest.mark.parametrize(
    ("options", "n_cells", "n_passes"),
    [
        ({}, 23, 0),
        ({"n_threads": 1}, 23, 0),
        ({"n_threads": 2}, 23, 1),
        ({"n_threads": 2}, 24, 0),  # one block, one thread
        ({"n_threads": 3}, 5, 1),
    ],
)
def test_statistics_are_computed_once_with_threads_for_several_blocks(
    monkeypatch, options, n_cells, n_passes
):
    use_small_blocks(monkeypatch, n_cells)
    A = np.random.default_rng(0).normal(size=(4, 6))
    A[2, 3] = np.nan
    matrix = RecordedPasses(A)
    summary = matrix.summary(**options)
    assert matrix.n_passes == n_passes
    np.testing.assert_allclose(summary.means, np.nanmean(A, axis=0), atol=1e-15)
    np.testing.assert_allclose(summary.row_sums, np.nansum(A, axis=1), atol=1e-14)
    assert matrix.summary(**options) is summary
    assert matrix.n_passes == n_passes


def test_selected_samples_are_rows_of_the_array():
    A = np.arange(12.0).reshape(4, 3)
    matrix = ArrayMatrix(A)
    assert matrix.select_samples(np.arange(4)) is matrix
    some = matrix.select_samples(np.array([0, 2, 3]))
    np.testing.assert_array_equal(some.values, A[[0, 2, 3]])
    assert some.shape == (3, 3)


def test_the_fingerprint_depends_on_every_row_and_not_on_the_layout():
    A = np.random.default_rng(0).normal(size=(130, 2))
    expected = ArrayMatrix(A).fingerprint()
    assert ArrayMatrix(np.asfortranarray(A)).fingerprint() == expected
    others = {
        ArrayMatrix(A.reshape(65, 4)).fingerprint(),
        ArrayMatrix(A.view(np.int64)).fingerprint(),
    }
    rows = range(len(A))
    for row in rows:
        changed = A.copy()
        changed[row, 1] += 1.0
        others.add(ArrayMatrix(changed).fingerprint())
    assert expected not in others
    assert len(others) == 2 + len(rows)
