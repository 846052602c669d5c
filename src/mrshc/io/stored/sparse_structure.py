"""Checks that the arrays that form a sparse matrix (its parts) are consistent.

The compiled functions of scipy do not check indices, so an invalid index could overwrite memory
outside the arrays. Therefore every index is checked before it is used. Unlike scipy's
`check_format`, the checks do not change the matrix and do not copy its values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest accepted number of rows or columns, divided by the number of stored values and pointers.
# Real data have fewer rows and columns than values, so a ratio above 1000 indicates a wrong shape.
# The number has not been tuned.
_MAX_EXTENT_PER_VALUE = 1000

# Up to this number of rows or columns, a shape is accepted for any number of values, since arrays
# of this length need little memory (8 MB in double precision). The number has not been tuned.
_HARMLESS_EXTENT = 10**6


class StructureError(ValueError):
    """Error raised if the parts of a sparse matrix are inconsistent.

    The message is a clause that the caller appends to its own message after a colon.
    """


# Names of the attributes that must be numpy arrays, for each sparse format of scipy. Other
# attributes, such as `dtype` and `nnz`, are derived from these arrays. The format DOK has no such
# arrays.
_ARRAY_PARTS = {
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "csc": ("data", "indices", "indptr"),
    "csr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
    "lil": ("data", "rows"),
}


def check_part_types(matrix: Any) -> None:
    """Raise StructureError if a part of a scipy sparse matrix is not a numpy array.

    Call this function before all other checks, since even `matrix.dtype` and `matrix.nnz` use the
    parts.
    """
    for name in _ARRAY_PARTS.get(matrix.format, ()):
        part = getattr(matrix, name, None)
        if not isinstance(part, np.ndarray):
            raise StructureError(f"its {name} must be an array, but is a {type(part).__name__}")


def check_sparse_structure(matrix: Any) -> None:
    """Raise StructureError if a scipy sparse matrix, of any format, has inconsistent parts."""
    check = _CHECKS.get(matrix.format)
    if check is not None:
        check(matrix)
    listed = getattr(matrix, "indptr", getattr(matrix, "rows", ()))
    check_extent(matrix.shape, n_cells=matrix.nnz, n_listed=len(listed))


def check_shape(shape: Any) -> tuple[int, int]:
    """Return a shape that was read from a file as two Python integers.

    Raise StructureError if the shape does not consist of two non-negative integers.
    """
    sizes = np.asarray(shape if isinstance(shape, list | tuple | np.ndarray) else ())
    # The values are tested instead of the dtype, because numpy stores integers of more than 64 bits
    # as objects.
    are_two_integers = sizes.shape == (2,) and all(isinstance(n, int) for n in sizes.tolist())
    if not are_two_integers or min(sizes.tolist()) < 0 or sizes.dtype.kind == "b":
        given = "is missing" if shape is None else f"is {str(shape)[:60]!r}"
        raise StructureError(f"its attribute 'shape' must be two whole numbers, but {given}")
    n, p = sizes.tolist()
    return n, p


def check_extent(shape: tuple[int, int], *, n_cells: int, n_listed: int) -> None:
    """Raise StructureError if a matrix has far more rows or columns than stored values.

    Such a shape is probably wrong, and arrays with one entry per row or column might not fit into
    memory.

    Parameters
    ----------
    shape : tuple of int
        Shape of the matrix.
    n_cells : int
        Number of stored values.
    n_listed : int
        Length of the array `indptr` (formats CSR, CSC and BSR) or `rows` (format LIL); zero for
        other formats.
    """
    if max(shape) > max(_MAX_EXTENT_PER_VALUE * (n_cells + n_listed), _HARMLESS_EXTENT):
        raise StructureError(
            f"its shape must fit the number of its values, but is {shape} for {n_cells:,} values"
        )


def check_sizes(data: Any, indices: Any, indptr: Any, *, n_major: int) -> None:
    """Raise StructureError if parts of a compressed matrix have inconsistent sizes or types.

    The values of the parts are not read.

    Parameters
    ----------
    data, indices, indptr : array, h5py.Dataset or zarr.Array
        Values, indices and pointers of a matrix in CSR or CSC format.
    n_major : int
        Size of the compressed axis: the number of rows for CSR, the number of columns for CSC.
    """
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        if len(part.shape) != 1:
            raise StructureError(f"its {name} must be a vector, but has shape {part.shape}")
        if name != "data" and part.dtype.kind not in "iu":
            raise StructureError(f"its {name} must be whole numbers, but are of type {part.dtype}")
    if indices.shape != data.shape:
        raise StructureError(
            f"its indices must be as many as its data, but there are {indices.shape[0]:,} for "
            f"{data.shape[0]:,} values"
        )
    if indptr.shape != (n_major + 1,):
        raise StructureError(
            f"its indptr must have length {n_major + 1:,}, but has length {indptr.shape[0]:,}"
        )


def check_pointers(indptr: NDArray[Any], n_cells: int) -> None:
    """Raise StructureError if pointers do not divide `n_cells` values into rows or columns.

    Valid pointers do not decrease; the first is 0 and the last is `n_cells`.
    """
    # The pointers are compared rather than subtracted, since differences of unsigned integers are
    # never negative.
    if np.any(indptr[1:] < indptr[:-1]):
        raise StructureError("its indptr must not decrease, but it does")
    if indptr[0] != 0 or indptr[-1] != n_cells:
        raise StructureError(
            f"its indptr must run from 0 to {n_cells:,}, but runs from {indptr[0]} to {indptr[-1]}"
        )


def check_indices(indices: NDArray[Any], size: int, *, name: str = "indices") -> None:
    """Raise StructureError if indices are not integers from 0 to `size` - 1.

    `name` is the name of the indices in the message.
    """
    if indices.size == 0:
        return
    if indices.dtype.kind not in "iu":
        raise StructureError(f"its {name} must be whole numbers, but are of type {indices.dtype}")
    low, high = indices.min(), indices.max()
    if low < 0 or high >= size:
        raise StructureError(
            f"its {name} must be between 0 and {size - 1}, but one of them is "
            f"{low if low < 0 else high}"
        )


def _check_compressed(matrix: Any) -> None:
    """Raise StructureError if a matrix in CSR or CSC format is inconsistent.

    These formats have compressed rows (CSR) or compressed columns (CSC).
    """
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    check_sizes(matrix.data, matrix.indices, matrix.indptr, n_major=n_major)
    check_pointers(matrix.indptr, matrix.data.size)
    check_indices(matrix.indices, n_minor)


def _check_blocks(matrix: Any) -> None:
    """Raise StructureError if a matrix in BSR format is inconsistent.

    The values of a BSR matrix are stored as dense blocks of equal size.
    """
    blocks, sizes = matrix.data, matrix.blocksize
    if blocks.ndim != 3 or min(sizes) < 1 or any(np.remainder(matrix.shape, sizes)):
        raise StructureError(
            f"its data must be blocks that divide the shape {matrix.shape}, but have shape "
            f"{blocks.shape}"
        )
    n_major, n_minor = (size // step for size, step in zip(matrix.shape, sizes, strict=True))
    # In BSR, indices and pointers are defined as in CSR, with blocks in place of values. To check
    # the sizes, each block is represented by its first value.
    check_sizes(blocks[:, 0, 0], matrix.indices, matrix.indptr, n_major=n_major)
    check_pointers(matrix.indptr, len(blocks))
    check_indices(matrix.indices, n_minor)


def _check_coordinates(matrix: Any) -> None:
    """Raise StructureError if a matrix in COO format is inconsistent.

    The format has a row index and a column index for each value.
    """
    coordinates = (matrix.row, matrix.col)
    for name, part, size in zip(("rows", "columns"), coordinates, matrix.shape, strict=True):
        if part.shape != matrix.data.shape or part.ndim != 1:
            raise StructureError(
                f"its {name} must be as many as its data, but have shape {part.shape} for "
                f"{matrix.data.shape}"
            )
        check_indices(part, size, name=name)


def _check_diagonals(matrix: Any) -> None:
    """Raise StructureError if a matrix in DIA format is inconsistent.

    The format consists of diagonals and their offsets from the main diagonal. A diagonal may lie
    outside the matrix.
    """
    data, offsets = matrix.data, matrix.offsets
    if data.ndim != 2 or offsets.shape != (len(data),):
        raise StructureError(
            f"its offsets must be as many as its diagonals, but have shape {offsets.shape} for "
            f"{data.shape}"
        )
    if offsets.dtype.kind not in "iu":
        raise StructureError(f"its offsets must be whole numbers, but are of type {offsets.dtype}")
    if len(np.unique(offsets)) != len(offsets):
        raise StructureError("its offsets must differ, but one of them is given twice")


def _check_lists(matrix: Any) -> None:
    """Raise StructureError if a matrix in LIL format is inconsistent.

    The format has, for each row, a list of column indices and a list of values.
    """
    n, p = matrix.shape
    if matrix.rows.shape != (n,) or matrix.data.shape != (n,):
        raise StructureError(
            f"its rows and data must be {n} lists, but have shapes {matrix.rows.shape} and "
            f"{matrix.data.shape}"
        )
    for columns, values in zip(matrix.rows, matrix.data, strict=True):
        if len(columns) != len(values):
            raise StructureError(
                f"its indices must be as many as its data, but there are {len(columns):,} for "
                f"{len(values):,} values in a row"
            )
        check_indices(np.asarray(columns), p, name="columns")


def _check_keys(matrix: Any) -> None:
    """Raise StructureError if a matrix in DOK format is inconsistent.

    The format is a dictionary whose keys are pairs (row index, column index).
    """
    # The array is reshaped because an empty list of keys would become a one-dimensional array.
    keys = np.array(list(matrix.keys())).reshape(-1, 2)
    for name, size, part in zip(("rows", "columns"), matrix.shape, keys.T, strict=True):
        check_indices(part, size, name=name)


# The check for each sparse format of scipy. If a future version of scipy adds a format, only the
# shape is checked for this format.
_CHECKS = {
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "csc": _check_compressed,
    "csr": _check_compressed,
    "dia": _check_diagonals,
    "dok": _check_keys,
    "lil": _check_lists,
}
