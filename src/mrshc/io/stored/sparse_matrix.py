"""The parts of a sparse matrix in a file, checked before they are read.

CSR and CSC are the sparse formats with compressed rows and with compressed columns, respectively.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.io.stored.hdf5_zarr_safe_access import (
    encoding_type,
    get_member,
    has_member,
    read_attribute,
)
from mrshc.io.stored.sparse_structure import (
    StructureError,
    check_extent,
    check_indices,
    check_pointers,
    check_shape,
    check_sizes,
)

# Maps each encoding type that AnnData uses for sparse matrices to the axis that is compressed.
SPARSE_ENCODINGS = {"csr_matrix": "rows", "csc_matrix": "columns"}


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
