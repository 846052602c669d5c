"""Dense matrices in files: numpy memory maps, HDF5 datasets and Zarr arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.block_reading import BlockReader
from mrshc.core.data.hdf5_zarr_safe_access import refuse_external_storage, refuse_unsafe_content
from mrshc.core.data.read_errors import column_span
from mrshc.core.data.shape_and_dtype import (
    block_dtype,
    check_two_dimensions,
    is_integer_dtype,
    refuse_overflow,
)


class MappedMatrix(BlockReader):
    """Data matrix in a numpy memory map, in C or Fortran order.

    Each block of columns is copied from the memory map, so the operating system may release the
    pages of the map at any time. The constructor raises ValueError if the array is not a matrix of
    real numbers.

    Parameters
    ----------
    array : memmap of shape (n, p)
        The memory map, with n samples in rows and p features in columns.
    """

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        name = str(array.filename or "the memory map")
        super().__init__(
            name=name,
            shape=check_two_dimensions(array.shape, name),
            dtype=block_dtype(array.dtype, name),
        )
        self._array = array
        self.holds_integers = is_integer_dtype(array.dtype)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as an array of shape (n, m), for n samples.

        Raise UnreadableError if the columns cannot be read, for example because the file has been
        truncated. Raise OutOfRangeError if a value is too large for floating-point numbers.
        """
        with self._translate_errors(*column_span(indices)), refuse_overflow():
            self._check_length()
            # numpy selects the values row by row, so each page of a memory map in C order is loaded
            # only once.
            return np.asarray(self._array[:, indices], dtype=self.dtype)

    def _read_columns(self, start: int, stop: int) -> NDArray[Any]:
        self._check_length()
        return np.array(self._array[:, start:stop], dtype=self.dtype)

    def _check_length(self) -> None:
        """Raise EOFError if the file has been truncated since the memory map was created."""
        # Without this check, an attempt to read beyond the end of the file would terminate the
        # process (bus error).
        mapped = getattr(self._array, "_mmap", None)
        if mapped is not None and mapped.size() < len(mapped):
            raise EOFError(f"the file has {mapped.size()} bytes, but {len(mapped)} are expected")


class FileMatrix(BlockReader):
    """Data matrix in an h5py dataset or a Zarr array.

    Blocks of columns are aligned with the chunks of the file, so a pass over the data reads each
    chunk once. However, if the chunks are so wide that a block of whole chunks would exceed a
    memory limit, each chunk is divided between several blocks and read once for each of them.

    The constructor raises ValueError if the array is not a matrix of real numbers, if its values
    are stored in another file, or if they are pickled objects.

    Parameters
    ----------
    dataset : h5py.Dataset or zarr.Array
        The array in the file, of shape (n, p), or (p, n) if `transposed`, for n samples and p
        features.
    transposed : bool, default=False
        Whether the array in the file has features in rows and samples in columns.
    """

    def __init__(self, dataset: Any, *, transposed: bool = False) -> None:
        name = describe_location(dataset)
        with refuse_unsafe_content(name):
            refuse_external_storage(dataset)
        shape = check_two_dimensions(dataset.shape, name)
        # A contiguous dataset has no chunks, so its blocks may end at any column.
        chunks = dataset.chunks or (1, 1)
        super().__init__(
            name=name,
            shape=shape[::-1] if transposed else shape,
            dtype=block_dtype(dataset.dtype, name),
            chunk=chunks[0 if transposed else 1],
        )
        self._dataset = dataset
        self.holds_integers = is_integer_dtype(dataset.dtype)
        self._transposed = transposed

    def _read_columns(self, start: int, stop: int) -> NDArray[Any]:
        if self._transposed:
            return np.asarray(self._dataset[start:stop, :]).T
        return np.asarray(self._dataset[:, start:stop])


def open_array(node: Any, *, transposed: bool = False) -> BlockReader:
    """Return the data matrix for a numpy memory map, an h5py dataset or a Zarr array.

    If `transposed` is True, the array has features in rows and samples in columns.
    """
    if isinstance(node, np.memmap):
        return MappedMatrix(node.T if transposed else node)
    return FileMatrix(node, transposed=transposed)


def describe_location(dataset: Any) -> str:
    """Return the file name and internal path of an HDF5 or Zarr array or group, for messages.

    Raise ValueError if the HDF5 file has been closed.
    """
    if hasattr(dataset, "store_path"):  # Zarr
        return str(dataset.store_path)
    # The truth value of an h5py object is False if its file has been closed.
    if not dataset:
        raise ValueError(
            "X must be in an open file, but its HDF5 file is closed. Keep the file open while X is "
            "used."
        )
    return f"{dataset.file.filename}{dataset.name}"
