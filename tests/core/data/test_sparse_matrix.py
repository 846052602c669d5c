import numpy as np
import pytest

from mrshc.core.data.sparse_matrix import (
    CompressedColumnsMatrix,
    SparseMatrix,
    open_sparse_group,
)
from storage_backends import hdf5_group, in_group


@pytest.mark.parametrize(
    ("kind", "expected"), [("csc_matrix", CompressedColumnsMatrix), ("csr_matrix", SparseMatrix)]
)
def test_only_matrices_that_are_stored_by_columns_stay_in_the_file(tmp_path, kind, expected):
    A = np.eye(5)[:, [0, 2, 4, 1]]
    matrix = open_sparse_group(in_group(A, hdf5_group(tmp_path), kind))
    assert type(matrix) is expected
    np.testing.assert_array_equal(matrix.columns(np.arange(4)), A)
