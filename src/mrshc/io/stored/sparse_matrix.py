"""Sparse matrices in memory or in a file, which are converted to dense arrays block by block.

CSR and CSC are the sparse formats with compressed rows and with compressed columns, respectively.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.array_types import Index
from mrshc.core.data.array_file import describe_location
from mrshc.core.data.block_reading import BlockReader
from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import (
    encoding_type,
    get_member,
    has_member,
    read_attribute,
    refuse_unsafe_content,
)
from mrshc.core.data.read_errors import CHECK_FILE_ADVICE, translate_read_errors
from mrshc.core.data.shape_and_dtype import (
    OutOfRangeError,
    block_dtype,
    check_two_dimensions,
    is_integer_dtype,
    refuse_overflow,
)
from mrshc.core.data.sparse_structure import (
    StructureError,
    check_extent,
    check_indices,
    check_part_types,
    check_pointers,
    check_shape,
    check_sizes,
    check_sparse_structure,
)

# Maps each encoding type that AnnData uses for sparse matrices to the axis that is compressed.
SPARSE_ENCODINGS = {"csr_matrix": "rows", "csc_matrix": "columns"}


class SparseMatrix(BlockReader):
    """Data matrix in a scipy sparse matrix.

    A matrix in a format other than CSC is converted to CSC once. If a sparse matrix contains
    several values for the same row and column, these values are summed in floating point, as in
    scikit-learn.

    The constructor raises ValueError if the values are not real numbers, or if the arrays that form
    the matrix are inconsistent.

    Parameters
    ----------
    matrix : scipy sparse matrix or array of shape (n, p)
        The data, in any sparse format, for n samples and p features.
    name : str, default="the sparse matrix"
        Name of the data in messages.
    """

    _advice = "Check it with its method check_format()."

    def __init__(self, matrix: Any, *, name: str = "the sparse matrix") -> None:
        with _refuse_inconsistent_parts(name):
            check_part_types(matrix)
        super().__init__(
            name=name,
            shape=check_two_dimensions(matrix.shape, name),
            dtype=block_dtype(matrix.dtype, name),
        )
        with _refuse_inconsistent_parts(name), refuse_overflow():
            check_sparse_structure(matrix)
            self._matrix = _to_csc(matrix, self.dtype)
        self.holds_integers = is_integer_dtype(matrix.dtype)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as a dense array of shape (n, m), for n samples.

        Raise OutOfRangeError if a value is too large for the dtype of the matrix.
        """
        with refuse_overflow():
            return self._matrix[:, indices].astype(self.dtype).toarray()

    def _read_columns(self, start: int, stop: int) -> NDArray[Any]:
        # The values are converted to floating point first, since toarray() sums values at the same
        # position, and a sum of integers could overflow.
        return self._matrix[:, start:stop].astype(self.dtype).toarray()


@contextmanager
def _refuse_inconsistent_parts(name: str) -> Iterator[None]:
    """Within this context, raise ValueError with advice in place of TypeError and ValueError.

    The context checks or converts the arrays that form a sparse matrix (its parts). `name` is the
    name of the data in the message. An OutOfRangeError is raised unchanged.
    """
    try:
        yield
    except OutOfRangeError:
        raise
    except (TypeError, ValueError) as error:  # StructureError is a ValueError
        raise ValueError(
            f"X must be a sparse matrix whose parts are consistent, but {name} is damaged: "
            f"{error}. Create it again from its row indices, column indices and values."
        ) from error


def _to_csc(matrix: Any, dtype: np.dtype[Any]) -> Any:
    """Return a sparse matrix in CSC format; the given matrix is not changed.

    The values of a CSR or CSC matrix are not converted to `dtype`, which may need more memory. They
    need not be converted, because the conversion to CSC does not sum values at the same position.
    The values of matrices in other formats are first converted to `dtype`.
    """
    if matrix.format not in ("csr", "csc"):
        return matrix.tocoo(copy=False).astype(dtype).tocsc()
    parts = (_to_supported_dtype(matrix.data), matrix.indices, matrix.indptr)
    return _compressed_array(parts, matrix.shape, by_rows=matrix.format == "csr").tocsc()


def _compressed_array(parts: tuple[Any, Any, Any], shape: tuple[int, int], *, by_rows: bool) -> Any:
    """Return a CSR array (if `by_rows`) or a CSC array, given its data, indices and pointers."""
    return (sparse.csr_array if by_rows else sparse.csc_array)(parts, shape=shape)


def _to_supported_dtype(data: NDArray[Any]) -> NDArray[Any]:
    """Return the values, converted to a type that scipy's sparse arrays support."""
    # The compiled functions of scipy support neither float16 nor a non-native byte order.
    native = np.float32 if data.dtype == np.float16 else data.dtype.newbyteorder("=")
    return data.astype(native, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompressedParts:
    """The arrays that form a sparse matrix in a file.

    The sizes of the arrays and the types of `indices` and `indptr` have been checked. The type of
    `data` has not been checked, and no values have been read.

    Attributes
    ----------
    shape : tuple of int
        Shape of the matrix.
    compressed_axis : {"rows", "columns"}
        The compressed axis: "rows" for CSR, "columns" for CSC.
    data, indices, indptr : h5py.Dataset or zarr.Array
        The values, their indices along the axis that is not compressed, and the pointers: the
        positions in `data` at which the rows (CSR) or columns (CSC) start and end.
    """

    shape: tuple[int, int]
    compressed_axis: str
    data: Any
    indices: Any
    indptr: Any

    @classmethod
    def from_group(cls, group: Any) -> CompressedParts:
        """Return the arrays in a group that AnnData has written for a sparse matrix.

        Raise StructureError if arrays are missing or inconsistent, and UnsafeContentError if their
        values are not safe to read.
        """
        shape = check_shape(read_attribute(group, "shape"))
        return cls.from_members(group, shape, SPARSE_ENCODINGS[encoding_type(group)])

    @classmethod
    def from_members(
        cls, group: Any, shape: tuple[int, int], compressed_axis: str
    ) -> CompressedParts:
        """Return the arrays `data`, `indices` and `indptr` in a group.

        Raise StructureError if arrays are missing or inconsistent, and UnsafeContentError if their
        values are not safe to read.
        """
        parts = {}
        for part in ("data", "indices", "indptr"):
            if not has_member(group, part):
                raise StructureError(f"its {part} are missing")
            parts[part] = get_member(group, part)
            if not hasattr(parts[part], "shape"):
                raise StructureError(f"its {part} must be a vector, but are a group")
        check_sizes(**parts, n_major=shape[0 if compressed_axis == "rows" else 1])
        n_cells, n_listed = (parts[part].shape[0] for part in ("data", "indptr"))
        check_extent(shape, n_cells=n_cells, n_listed=n_listed)
        return cls(shape=shape, compressed_axis=compressed_axis, **parts)

    def read_pointers(self) -> NDArray[np.int64]:
        """Return the positions in `data` at which the rows (CSR) or columns (CSC) start and end.

        Raise StructureError if the positions are inconsistent.
        """
        indptr = self.indptr[:]
        check_pointers(indptr, self.data.shape[0])
        return indptr.astype(np.int64)

    def read_part(self, pointers: NDArray[np.int64]) -> Any:
        """Return consecutive rows (CSR) or columns (CSC) as a scipy sparse array.

        `pointers` contains the positions in `data` at which these rows or columns start and end.
        Raise StructureError if an index is out of range.
        """
        cells = slice(int(pointers[0]), int(pointers[-1]))
        n_major, n_minor = len(pointers) - 1, self.shape[1 if self.compressed_axis == "rows" else 0]
        data, indices = self.data[cells], self.indices[cells]
        check_indices(indices, n_minor)
        # The pointers of the result are relative to its first value.
        parts = (_to_supported_dtype(data), indices, pointers - pointers[0])
        if self.compressed_axis == "rows":
            return _compressed_array(parts, (n_major, n_minor), by_rows=True)
        return _compressed_array(parts, (n_minor, n_major), by_rows=False)


class CompressedColumnsMatrix(BlockReader):
    """Data matrix in a group that AnnData has written with the encoding csc_matrix.

    Blocks of columns are read from the file one at a time. The constructor raises ValueError if the
    values are not real numbers, and UnreadableError if the pointers cannot be read or are
    inconsistent.

    Parameters
    ----------
    parts : CompressedParts
        The arrays that form the matrix.
    name : str
        Name of the data in messages.
    """

    def __init__(self, parts: CompressedParts, *, name: str) -> None:
        super().__init__(name=name, shape=parts.shape, dtype=block_dtype(parts.data.dtype, name))
        self.holds_integers = is_integer_dtype(parts.data.dtype)
        self._parts = parts
        # The pointers are read once and kept in memory, since there are far fewer pointers than
        # values.
        with self._translate_errors(0, self.shape[1]):
            self._pointers = parts.read_pointers()

    def _read_columns(self, start: int, stop: int) -> NDArray[Any]:
        return self._parts.read_part(self._pointers[start : stop + 1]).astype(self.dtype).toarray()


def open_sparse_group(group: Any) -> BlockReader:
    """Return the sparse matrix that AnnData has written to a group of an HDF5 or Zarr file.

    The algorithms read the matrix by columns. If its rows are compressed (csr_matrix), the whole
    matrix is therefore read, converted to compressed columns, and kept in memory. This takes about
    as much memory as the uncompressed values and indices in the file.

    Raise ValueError if the group does not contain a sparse matrix, if the values are not real
    numbers, or if the values are in another file or are pickled objects. Raise UnreadableError if
    the matrix is damaged.
    """
    name = describe_location(group)
    if encoding_type(group) not in SPARSE_ENCODINGS:
        raise ValueError(
            "X must be a dataset or a sparse matrix in AnnData's format, but "
            f"{name} is a group of other objects. Pass one of them, such as file['X']."
        )
    n_columns = _read_shape(group, name)[1]
    with (
        refuse_unsafe_content(name),
        translate_read_errors(name, start=0, stop=n_columns, advice=CHECK_FILE_ADVICE),
    ):
        parts = CompressedParts.from_group(group)
    if parts.compressed_axis == "columns":
        return CompressedColumnsMatrix(parts, name=name)
    # If the values are not real numbers, this call raises ValueError before the values are read.
    block_dtype(parts.data.dtype, name)
    with translate_read_errors(name, start=0, stop=parts.shape[1], advice=CHECK_FILE_ADVICE):
        matrix = parts.read_part(parts.read_pointers())
    return SparseMatrix(matrix, name=name)


def _read_shape(group: Any, name: str) -> tuple[int, int]:
    """Return the shape of the sparse matrix in a group; raise UnreadableError for a wrong shape."""
    try:
        return check_shape(read_attribute(group, "shape"))
    except StructureError as error:
        raise UnreadableError(f"{name} cannot be read: {error}. {CHECK_FILE_ADVICE}") from error
