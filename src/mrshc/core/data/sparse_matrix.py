"""Sparse matrices, in memory or in a file: a block at a time is made dense, never the whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.array_types import Index
from mrshc.core.data.array_file import file_name
from mrshc.core.data.block_reading import BlockReader
from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import (
    attribute,
    encoding_of,
    has_member,
    in_one_file,
    member,
)
from mrshc.core.data.read_errors import WHOLE_FILE, reading
from mrshc.core.data.shape_and_dtype import (
    OutOfRangeError,
    are_integers,
    block_dtype,
    in_range,
    matrix_shape,
)
from mrshc.core.data.sparse_structure import (
    StructureError,
    check_arrays,
    check_extent,
    check_indices,
    check_pointers,
    check_shape,
    check_sizes,
    check_sparse,
)

# The sparse formats of AnnData's files, and what is compressed in them.
SPARSE = {"csr_matrix": "rows", "csc_matrix": "columns"}


class SparseMatrix(BlockReader):
    """A sparse matrix of scipy. What is not in CSC format is converted once.

    Cells that are given more than once are added up as floats, as scikit-learn adds them up.
    """

    _advice = "Check it with its method check_format()."

    def __init__(self, matrix: Any, *, name: str = "the sparse matrix") -> None:
        with _parts_agree(name):
            check_arrays(matrix)
        super().__init__(
            name=name,
            shape=matrix_shape(matrix.shape, name),
            dtype=block_dtype(matrix.dtype, name),
        )
        with _parts_agree(name), in_range():
            check_sparse(matrix)
            self._matrix = _by_columns(matrix, self.dtype)
        self.holds_integers = are_integers(matrix.dtype)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns."""
        with in_range():
            return self._matrix[:, indices].astype(self.dtype).toarray()

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        return self._matrix[:, start:stop].astype(self.dtype).toarray()


@contextmanager
def _parts_agree(name: str) -> Iterator[None]:
    """Turn what is wrong with the parts of a sparse matrix into one sentence."""
    try:
        yield
    except OutOfRangeError:
        raise
    except (TypeError, ValueError) as error:  # ours is one of them
        raise ValueError(
            f"X must be a sparse matrix whose parts agree, but {name} is damaged: {error}. "
            "Make it anew from its rows, columns and values."
        ) from error


def _by_columns(matrix: Any, dtype: np.dtype[Any]) -> Any:
    """Return a sparse matrix in CSC format; the given one stays as it is.

    CSR keeps its dtype, which may be shorter: its conversion adds nothing up.
    """
    if matrix.format not in ("csr", "csc"):
        return matrix.tocoo(copy=False).astype(dtype).tocsc()
    parts = (_known_to_scipy(matrix.data), matrix.indices, matrix.indptr)
    return _compressed(parts, matrix.shape, by_rows=matrix.format == "csr").tocsc()


def _compressed(parts: tuple[Any, Any, Any], shape: tuple[int, int], *, by_rows: bool) -> Any:
    return (sparse.csr_array if by_rows else sparse.csc_array)(parts, shape=shape)


def _known_to_scipy(data: NDArray[Any]) -> NDArray[Any]:
    """Return values in a type for which scipy has loops: not of float16, of no other byte order."""
    native = np.float32 if data.dtype == np.float16 else data.dtype.newbyteorder("=")
    return data.astype(native, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compressed:
    """The parts of a sparse matrix in a file; their sizes and types agree, none is read yet."""

    shape: tuple[int, int]
    by: str  # "rows" or "columns": what is compressed
    data: Any  # datasets of h5py or arrays of Zarr
    indices: Any
    indptr: Any

    @classmethod
    def of(cls, group: Any) -> Compressed:
        """Return the parts in a group; raise a StructureError where they do not agree."""
        by = SPARSE[encoding_of(group)]
        shape = check_shape(attribute(group, "shape"))
        parts = {}
        for part in ("data", "indices", "indptr"):
            if not has_member(group, part):
                raise StructureError(f"its {part} are missing")
            parts[part] = member(group, part)
            if not hasattr(parts[part], "shape"):
                raise StructureError(f"its {part} must be a vector, but are a group")
        check_sizes(**parts, n_major=shape[0 if by == "rows" else 1])
        n_cells, n_listed = (parts[part].shape[0] for part in ("data", "indptr"))
        check_extent(shape, n_cells=n_cells, n_listed=n_listed)
        return cls(shape=shape, by=by, **parts)

    def pointers(self) -> NDArray[np.int64]:
        """Read where rows or columns begin and end."""
        indptr = self.indptr[:]
        check_pointers(indptr, self.data.shape[0])
        return indptr.astype(np.int64)

    def part(self, pointers: NDArray[np.int64]) -> Any:
        """Read the rows or columns between pointers, as a sparse matrix of scipy."""
        cells = slice(int(pointers[0]), int(pointers[-1]))
        n_major, n_minor = len(pointers) - 1, self.shape[1 if self.by == "rows" else 0]
        data, indices = self.data[cells], self.indices[cells]
        check_indices(indices, n_minor)
        parts = (_known_to_scipy(data), indices, pointers - pointers[0])
        if self.by == "rows":
            return _compressed(parts, (n_major, n_minor), by_rows=True)
        return _compressed(parts, (n_minor, n_major), by_rows=False)


class CompressedColumns(BlockReader):
    """A group in AnnData's format csc_matrix, of which a block's columns are read as they lie."""

    def __init__(self, parts: Compressed, *, name: str) -> None:
        super().__init__(name=name, shape=parts.shape, dtype=block_dtype(parts.data.dtype, name))
        self.holds_integers = are_integers(parts.data.dtype)
        self._parts = parts
        with self._reading(0, self.shape[1]):
            self._ends = parts.pointers()

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        return self._parts.part(self._ends[start : stop + 1]).astype(self.dtype).toarray()


def open_sparse_group(group: Any) -> BlockReader:
    """Return a sparse matrix that AnnData wrote to HDF5 or Zarr.

    Columns are what is asked for. Where a file has compressed rows (csr_matrix), all of it is read
    once and kept as a sparse matrix of columns: no larger than in the file without compression.
    """
    name = file_name(group)
    if encoding_of(group) not in SPARSE:
        raise ValueError(
            f"X must be a dataset or a sparse matrix in AnnData's format, but {name} is a group of "
            "others. Pass one of them, such as file['X']."
        )
    with in_one_file(name), reading(name, 0, _shape(group, name)[1], WHOLE_FILE):
        parts = Compressed.of(group)
    if parts.by == "columns":
        return CompressedColumns(parts, name=name)
    block_dtype(parts.data.dtype, name)  # refuses other than numbers before they are read
    with reading(name, 0, parts.shape[1], WHOLE_FILE):
        matrix = parts.part(parts.pointers())
    return SparseMatrix(matrix, name=name)


def _shape(group: Any, name: str) -> tuple[int, int]:
    try:
        return check_shape(attribute(group, "shape"))
    except StructureError as error:
        raise UnreadableError(f"{name} cannot be read: {error}. {WHOLE_FILE}") from error
