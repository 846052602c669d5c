"""The methods that all data matrices outside of main memory have in common."""

import numpy as np
import pytest

from mrshc.core.data.data_matrix import DataMatrix


class Blocks(DataMatrix):
    """A matrix of two blocks that counts its passes."""

    def __init__(self, A):
        self.A, self.shape, self.dtype, self.n_passes = A, A.shape, A.dtype, 0

    def map_blocks(self, function):
        """Yield the results for both blocks."""
        self.n_passes += 1
        yield function(self.A[:, :2], 0, np)
        yield function(self.A[:, 2:], 2, np)

    def columns(self, indices):
        """Return columns of the array."""
        return self.A[:, indices]


def make_table(dtype=np.float64):
    A = np.random.default_rng(0).normal(size=(4, 7)).astype(dtype)
    A[1, 2] = np.nan
    return A


@pytest.mark.parametrize(("dtype", "n_bytes"), [(np.float64, 224), (np.float32, 112)])
def test_attributes_of_data_outside_of_memory(dtype, n_bytes):
    matrix = Blocks(make_table(dtype))
    assert matrix.nbytes == n_bytes
    assert matrix.chunk_widths is None
    assert matrix.values is matrix
    assert matrix.in_memory is False
    assert matrix.has_local_blocks is True
    assert matrix.holds_integers is False
    assert matrix.certification == "deferred"


@pytest.mark.parametrize("options", [{}, {"n_threads": 1}, {"n_threads": 2}])
def test_statistics_take_one_pass(options):
    A = make_table()
    matrix = Blocks(A)
    summary = matrix.summary(**options)
    np.testing.assert_allclose(summary.means, np.nanmean(A, axis=0), atol=1e-15)
    assert matrix.summary() is summary
    assert matrix.n_passes == 1
    np.testing.assert_allclose(matrix.variances(), np.nanvar(A, axis=0, ddof=1), rtol=1e-12)
    assert matrix.n_passes == 2


def test_samples_cannot_be_selected():
    matrix = Blocks(make_table())
    assert matrix.select_samples(np.arange(4)) is matrix
    with pytest.raises(
        ValueError, match=r"but 3 of the 4 samples of out-of-core data were requested\. Load X"
    ):
        matrix.select_samples(np.array([0, 1, 3]))


def test_the_fingerprint_depends_on_type_shape_means_and_sums():
    A = make_table()
    expected = Blocks(A).fingerprint()
    assert Blocks(A.copy()).fingerprint() == expected
    others = [A[::-1], A[:, ::-1], A + 1, np.nan_to_num(A)]
    found = {Blocks(other).fingerprint() for other in others}
    whole = np.zeros((4, 7))
    found |= {Blocks(other).fingerprint() for other in (whole, whole.astype(np.float32))}
    assert len(found | {expected}) == 7
