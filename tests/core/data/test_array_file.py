"""Dense matrices in files: their names, chunks and orientation."""

import os
import pathlib

import numpy as np
import pytest

from mrshc.core.data.array_file import FileMatrix, MappedMatrix, describe_location, open_array
from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.shape_and_dtype import OutOfRangeError
from storage_backends import hdf5_group, in_hdf5, in_zarr, mapped

A = np.arange(35.0).reshape(5, 7)


@pytest.mark.parametrize("make", [mapped, in_hdf5, in_zarr])
def test_arrays_are_transposed_only_on_request(tmp_path, make):
    array = make(A, tmp_path)
    for matrix, expected in (
        (open_array(array), A),
        (open_array(array, transposed=False), A),
        (open_array(array, transposed=True), A.T),
    ):
        assert matrix.shape == expected.shape
        np.testing.assert_array_equal(matrix.columns(np.array([3, 1])), expected[:, [3, 1]])
    assert isinstance(open_array(array), MappedMatrix if make is mapped else FileMatrix)


@pytest.mark.parametrize(
    ("options", "width", "transposed_width"), [({}, 1, 1), ({"chunks": (2, 3)}, 3, 2)]
)
def test_blocks_are_aligned_with_the_chunks_of_features(tmp_path, options, width, transposed_width):
    dataset = in_hdf5(A, tmp_path, **options)
    assert FileMatrix(dataset).chunk_width == width
    assert FileMatrix(dataset, transposed=True).chunk_width == transposed_width


@pytest.mark.parametrize(("dtype", "is_integer"), [(int, True), (bool, False), (float, False)])
@pytest.mark.parametrize("make", [mapped, in_hdf5])
def test_integers_are_recognised(tmp_path, make, dtype, is_integer):
    assert open_array(make(A.astype(dtype), tmp_path)).holds_integers == is_integer


@pytest.mark.parametrize(
    ("indices", "columns"),
    [
        ([0], "Column 0"),
        ([4], "Column 4"),
        ([2, 6], "Columns 2 to 6"),
        ([6, 1, 3], "Columns 1 to 6"),
    ],
)
def test_the_columns_of_a_truncated_memory_map_are_named(tmp_path, indices, columns):
    matrix = MappedMatrix(mapped(A, tmp_path))
    np.testing.assert_array_equal(matrix.columns(np.array(indices)), A[:, indices])
    size = pathlib.Path(tmp_path / "X.npy").stat().st_size
    os.truncate(tmp_path / "X.npy", size - 1)
    message = rf"^{columns} of .*X\.npy cannot be read: the file has {size - 1} bytes, but {size} "
    with pytest.raises(UnreadableError, match=message):
        matrix.columns(np.array(indices))


def test_numbers_too_large_for_double_precision_are_refused(tmp_path):
    matrix = MappedMatrix(mapped(np.full((2, 3), np.longdouble(10) ** 400), tmp_path))
    with pytest.raises(OutOfRangeError):
        matrix.columns(np.array([1]))


def test_a_memory_map_without_a_file_name():
    array = np.ones((2, 3, 4)).view(np.memmap)
    array.filename = None
    with pytest.raises(ValueError, match="but the memory map has 3 dimensions"):
        MappedMatrix(array)


def test_the_location_is_the_file_and_the_path_in_it(tmp_path):
    assert describe_location(in_hdf5(A, tmp_path)) == f"{tmp_path / 'X.h5'}/X"
    assert describe_location(hdf5_group(tmp_path)) == f"{tmp_path / 'X.h5ad'}/X"
    assert describe_location(in_zarr(A, tmp_path)).endswith(f"{tmp_path / 'X.zarr'}")
