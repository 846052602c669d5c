"""Dense matrices in files: memory maps of numpy, HDF5 datasets and Zarr arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.block_reading import BlockReader
from mrshc.core.data.hdf5_zarr_safe_access import refuse_external_storage, refuse_unsafe_content
from mrshc.core.data.shape_and_dtype import (
    block_dtype,
    check_two_dimensions,
    is_integer_dtype,
    refuse_overflow,
)


class MappedMatrix(BlockReader):
    """A memory map of numpy, in C or Fortran order.

    Blocks are copied out of the map, so that the system may drop its pages at any time.

    Parameters
    ----------
    array : memmap of shape (n, p)
        The memory map.
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
        """Return the columns at m indices, (n, m)."""
        first, last = int(np.min(indices, initial=0)), int(np.max(indices, initial=0))
        with self._translate_errors(first, last + 1), refuse_overflow():
            self._check_length()
            # numpy picks them row by row, so that each page of a map in C order is loaded once.
            return np.asarray(self._array[:, indices], dtype=self.dtype)

    def _read_columns(self, start: int, stop: int) -> NDArray[Any]:
        self._check_length()
        return np.array(self._array[:, start:stop], dtype=self.dtype)

    def _check_length(self) -> None:
        """Refuse a file that has been truncated since it was mapped."""
        # Access beyond the end of the file would end the process with a bus error.
        mapped = getattr(self._array, "_mmap", None)
        if mapped is not None and mapped.size() < len(mapped):
            raise EOFError(f"the file has {mapped.size()} bytes, but {len(mapped)} are expected")


class FileMatrix(BlockReader):
    """A dataset of h5py or an array of Zarr.

    Blocks end at the ends of chunks, so that a pass reads each chunk once. Only a chunk with so
    many columns that all samples of them would take a large part of the memory is read for several
    blocks.

    Parameters
    ----------
    dataset : h5py.Dataset or zarr.Array
        The array in the file, of shape (n, p).
    transposed : bool, default=False
        Whether the array has features in rows, that is, shape (p, n).
    """

    def __init__(self, dataset: Any, *, transposed: bool = False) -> None:
        name = describe_location(dataset)
        with refuse_unsafe_content(name):
            refuse_external_storage(dataset)
        shape = check_two_dimensions(dataset.shape, name)
        # A contiguous dataset has no chunks: blocks may end at any column.
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
    """Return a memory map, a dataset of h5py or an array of Zarr as a matrix."""
    if isinstance(node, np.memmap):
        return MappedMatrix(node.T if transposed else node)
    return FileMatrix(node, transposed=transposed)


def describe_location(dataset: Any) -> str:
    """Return the file and the path inside it of a dataset or a group, for messages."""
    if hasattr(dataset, "store_path"):  # Zarr
        return str(dataset.store_path)
    # An object of h5py is false if its file has been closed.
    if not dataset:
        raise ValueError(
            "X must be in an open file, but its HDF5 file is closed. Keep the file open while X is "
            "used."
        )
    return f"{dataset.file.filename}{dataset.name}"
