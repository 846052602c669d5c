"""Dense matrices in files: maps of numpy, HDF5, Zarr."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.block_reading import BlockReader
from mrshc.core.data.hdf5_zarr_safe_access import in_one_file, refuse_outside
from mrshc.core.data.shape_and_dtype import are_integers, block_dtype, in_range, matrix_shape


class MappedMatrix(BlockReader):
    """A memory map of numpy, in either order.

    Blocks are copied out of the map, so that the system may drop its pages at any time.
    """

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        name = str(array.filename or "the memory map")
        super().__init__(
            name=name,
            shape=matrix_shape(array.shape, name),
            dtype=block_dtype(array.dtype, name),
        )
        self._array = array
        self.holds_integers = are_integers(array.dtype)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns. They are picked row by row: a page is visited once."""
        first, last = int(np.min(indices, initial=0)), int(np.max(indices, initial=0))
        with self._reading(first, last + 1), in_range():
            self._check_length()
            return np.asarray(self._array[:, indices], dtype=self.dtype)

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        self._check_length()
        return np.array(self._array[:, start:stop], dtype=self.dtype)

    def _check_length(self) -> None:
        """Refuse a file that was cut: to touch what is gone would end the process."""
        mapped = getattr(self._array, "_mmap", None)
        if mapped is not None and mapped.size() < len(mapped):
            raise EOFError(f"the file has {mapped.size()} bytes of {len(mapped)}")


class FileMatrix(BlockReader):
    """A dataset of h5py or an array of Zarr; `transposed` if it holds features in rows.

    Blocks end where chunks end, so that a pass reads a chunk once. Only where a chunk is so wide
    that all samples of it would be a large part of the memory, it is read for several blocks.
    """

    def __init__(self, dataset: Any, *, transposed: bool = False) -> None:
        name = file_name(dataset)
        with in_one_file(name):
            refuse_outside(dataset)
        shape = matrix_shape(dataset.shape, name)
        chunks = dataset.chunks or (1, 1)
        super().__init__(
            name=name,
            shape=shape[::-1] if transposed else shape,
            dtype=block_dtype(dataset.dtype, name),
            chunk=chunks[0 if transposed else 1],
        )
        self._dataset = dataset
        self.holds_integers = are_integers(dataset.dtype)
        self._transposed = transposed

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        if self._transposed:
            return np.asarray(self._dataset[start:stop, :]).T
        return np.asarray(self._dataset[:, start:stop])


def open_array(node: Any, *, transposed: bool = False) -> BlockReader:
    """Return a memory map, a dataset of h5py or an array of Zarr as a matrix."""
    if isinstance(node, np.memmap):
        return MappedMatrix(node.T if transposed else node)
    return FileMatrix(node, transposed=transposed)


def file_name(dataset: Any) -> str:
    """Return what to call a dataset or a group in a sentence: where it lies."""
    if hasattr(dataset, "store_path"):  # Zarr
        return str(dataset.store_path)
    if not dataset:  # what h5py says of one whose file is closed
        raise ValueError("X lies in an HDF5 file that is closed. Keep it open while X is used.")
    return f"{dataset.file.filename}{dataset.name}"
