"""Data in files (memory maps, HDF5, Zarr) and sparse matrices, read as dense blocks of columns."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from scipy import sparse

from mrshc.core.data.matrix import DataMatrix, float_dtype


class UnreadableError(OSError):
    """Error for columns that cannot be read."""


@contextmanager
def explain_read_errors(name: str, start: int, stop: int, advice: str = "") -> Iterator[None]:
    """Within this context, errors of libraries say which columns cannot be read, and why."""
    try:
        yield
    except (MemoryError, UnreadableError):
        raise
    except Exception as error:
        # HDF5 adds its call stack after the first line.
        cause = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        advice = advice or "Check that the file is complete, and copy or write it again if not."
        raise UnreadableError(
            f"Columns {start} to {stop - 1} of {name} cannot be read: {cause}. {advice}"
        ) from error


class FileMatrix(DataMatrix):
    """Data in a numpy memory map, an h5py dataset or a Zarr array."""

    def __init__(self, array: Any, *, transposed: bool = False) -> None:
        self._name = _location(array)
        shape = array.shape
        self.dtype = float_dtype(array.dtype, shape, self._name)
        chunks = getattr(array, "chunks", None)
        if chunks:  # a contiguous HDF5 dataset has none
            self.chunk_width = chunks[0 if transposed else 1]
        self.shape = tuple(shape[::-1] if transposed else shape)
        self._array, self._transposed = array, transposed

    def columns(self, index: np.ndarray) -> np.ndarray:
        if isinstance(self._array, np.memmap):
            with explain_read_errors(self._name, int(min(index, default=0)), self.shape[1]):
                self._check_length()
                part = self._array[index].T if self._transposed else self._array[:, index]
                return np.asarray(part, dtype=np.float64)
        return super().columns(index)

    def _read(self, start: int, stop: int) -> np.ndarray:
        with explain_read_errors(self._name, start, stop):
            self._check_length()
            if self._transposed:
                return np.asarray(self._array[start:stop], dtype=self.dtype).T
            block = np.array(self._array[:, start:stop], dtype=self.dtype)
            if getattr(self._array, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
                # Else the pages count as memory of this process until the system needs them.
                with suppress(OSError):  # locked pages
                    self._array._mmap.madvise(mmap.MADV_DONTNEED)
            return block

    def _check_length(self) -> None:
        """Raise EOFError for a truncated memory map, whose values would end the process."""
        mapped = getattr(self._array, "_mmap", None)
        if mapped is not None and mapped.size() < len(mapped):
            raise EOFError(f"the file has {mapped.size()} bytes, but {len(mapped)} are expected")


class SparseMatrix(DataMatrix):
    """Data in a scipy sparse matrix; cells that are not stored are zero."""

    def __init__(self, matrix: Any, name: str = "the sparse matrix") -> None:
        self.dtype = float_dtype(matrix.dtype, matrix.shape, name)
        self.shape = matrix.shape
        try:
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)
            # scipy's compiled functions support neither float16 nor a foreign byte order.
            self._matrix = matrix.astype(self.dtype).tocsc()
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"X must be a sparse matrix whose parts fit together, but {name} is damaged: "
                f"{error}. Create it again from its row indices, column indices and values."
            ) from error

    def columns(self, index: np.ndarray) -> np.ndarray:
        return self._matrix[:, index].toarray().astype(np.float64)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._matrix[:, start:stop].toarray()


class _CompressedColumns(DataMatrix):
    """Data in a group with AnnData's encoding csc_matrix, of which only some columns are read."""

    def __init__(self, group: Any, name: str) -> None:
        self._group, self._name = group, name
        n, p = group.attrs["shape"]
        self.shape = int(n), int(p)
        self.dtype = float_dtype(group["data"].dtype, self.shape, name)
        self._pointers = np.asarray(group["indptr"][:], dtype=np.int64)
        _check_pointers(self._pointers, self.shape[1], group["data"].shape[0], name)

    def _read(self, start: int, stop: int) -> np.ndarray:
        with explain_read_errors(self._name, start, stop):
            pointers = self._pointers[start : stop + 1]
            cells = slice(int(pointers[0]), int(pointers[-1]))
            parts = (self._group["data"][cells], self._group["indices"][cells], pointers)
            return _compressed(sparse.csc_array, parts, (self.shape[0], stop - start)).toarray()


def open_sparse_group(group: Any) -> DataMatrix:
    """Return the sparse matrix that AnnData has written to a group of an HDF5 or Zarr file."""
    name = _location(group)
    kind = str(group.attrs.get("encoding-type", ""))
    if kind not in ("csr_matrix", "csc_matrix"):
        raise ValueError(
            "X must be a dataset or a sparse matrix in AnnData's format, but "
            f"{name} is a group of other objects. Pass one of them, such as file['X']."
        )
    if kind == "csc_matrix":
        with explain_read_errors(name, 0, 1):
            return _CompressedColumns(group, name)
    # Columns of compressed rows are everywhere, so all values are read.
    with explain_read_errors(name, 0, 1):
        n, p = (int(size) for size in group.attrs["shape"])
        pointers = np.asarray(group["indptr"][:], dtype=np.int64)
        _check_pointers(pointers, n, group["data"].shape[0], name)
        parts = (group["data"][:], group["indices"][:], pointers)
        return SparseMatrix(_compressed(sparse.csr_array, parts, (n, p)), name)


def _compressed(kind: Any, parts: tuple[Any, Any, np.ndarray], shape: tuple[int, int]) -> Any:
    """Return a sparse array from its parts, whose indices are checked."""
    data, indices, pointers = parts
    values = np.asarray(data, dtype=float_dtype(data.dtype, shape, "the sparse matrix"))
    matrix = kind((values, np.asarray(indices), pointers - pointers[0]), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def _check_pointers(pointers: np.ndarray, n_major: int, n_cells: int, name: str) -> None:
    """Raise ValueError unless pointers divide the stored cells into rows or columns."""
    is_valid = pointers.shape == (n_major + 1,) and pointers[0] == 0 and pointers[-1] == n_cells
    if not is_valid or (np.diff(pointers) < 0).any():
        raise ValueError(f"the pointers of {name} do not fit its {n_cells} values")


def _location(array: Any) -> str:
    """Return the file and the place in it, for messages."""
    if isinstance(array, np.memmap):
        return str(array.filename or "the memory map")
    if hasattr(array, "store_path"):  # Zarr
        return str(array.store_path)
    if not array:  # an h5py object of a closed file
        raise ValueError(
            "X must be in an open file, but its HDF5 file is closed. Keep it open while X is used."
        )
    return f"{array.file.filename}{array.name}"
