"""Checks that the parts of a sparse matrix are consistent.

The compiled loops of scipy write to any address that an index points to, so that all indices are
checked before the first one is used. Unlike scipy's `check_format`, the checks neither copy nor
change the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest number of rows or columns for each value: real data have less than one, so that 1000 is
# reached only by a wrong shape. Not tuned.
_MAX_EXTENT_PER_VALUE = 1000

# Number of rows or columns that needs so little memory (8 MB for one double each) that it is
# accepted for any number of values. Not tuned.
_HARMLESS_EXTENT = 10**6


class StructureError(ValueError):
    """The parts of a sparse matrix are inconsistent; the message is a clause for after a colon."""


# The parts of each format of scipy that must be arrays; its other attributes derive from them.
_ARRAY_PARTS = {
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "csc": ("data", "indices", "indptr"),
    "csr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
    "lil": ("data", "rows"),
}


def check_part_types(matrix: Any) -> None:
    """Refuse a sparse matrix of scipy with a part that is not an array.

    This comes before all other checks, since even `matrix.dtype` and `matrix.nnz` use the parts.
    """
    for name in _ARRAY_PARTS.get(matrix.format, ()):
        part = getattr(matrix, name, None)
        if not isinstance(part, np.ndarray):
            raise StructureError(f"its {name} must be an array, but is a {type(part).__name__}")


def check_sparse_structure(matrix: Any) -> None:
    """Refuse a sparse matrix of scipy, of any format, whose parts are inconsistent."""
    check = _CHECKS.get(matrix.format)
    if check is not None:
        check(matrix)
    listed = getattr(matrix, "indptr", getattr(matrix, "rows", ()))
    check_extent(matrix.shape, n_cells=matrix.nnz, n_listed=len(listed))


def check_shape(shape: Any) -> tuple[int, int]:
    """Return the shape that a file declares as two integers of Python; refuse anything else."""
    sizes = np.asarray(shape if isinstance(shape, list | tuple | np.ndarray) else ())
    # numpy keeps integers of more than 64 bits as objects, so that the dtype cannot be tested.
    are_two_integers = sizes.shape == (2,) and all(isinstance(n, int) for n in sizes.tolist())
    if not are_two_integers or min(sizes.tolist()) < 0 or sizes.dtype.kind == "b":
        given = "is missing" if shape is None else f"is {str(shape)[:60]!r}"
        raise StructureError(f"its attribute 'shape' must be two whole numbers, but {given}")
    n, p = sizes.tolist()
    return n, p


def check_extent(shape: tuple[int, int], *, n_cells: int, n_listed: int) -> None:
    """Refuse a shape with far more rows or columns than values, for which no memory may suffice.

    Parameters
    ----------
    shape : tuple of int
        Shape of the matrix.
    n_cells : int
        Number of stored values.
    n_listed : int
        Number of rows or columns with a pointer or a list of their own, which are in memory or in
        the file already.
    """
    if max(shape) > max(_MAX_EXTENT_PER_VALUE * (n_cells + n_listed), _HARMLESS_EXTENT):
        raise StructureError(
            f"its shape must fit the number of its values, but is {shape} for {n_cells:,} values"
        )


def check_sizes(data: Any, indices: Any, indptr: Any, *, n_major: int) -> None:
    """Refuse parts of a compressed matrix with inconsistent sizes or types, without reading them.

    Parameters
    ----------
    data, indices, indptr : array, h5py.Dataset or zarr.Array
        The parts of the CSR or CSC format.
    n_major : int
        Size of the compressed axis: number of rows of CSR, number of columns of CSC.
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
    """Refuse pointers that do not divide `n_cells` values into consecutive rows or columns."""
    # Compared instead of subtracted: differences of unsigned integers are never negative.
    if np.any(indptr[1:] < indptr[:-1]):
        raise StructureError("its indptr must not decrease, but it does")
    if indptr[0] != 0 or indptr[-1] != n_cells:
        raise StructureError(
            f"its indptr must run from 0 to {n_cells:,}, but runs from {indptr[0]} to {indptr[-1]}"
        )


def check_indices(indices: NDArray[Any], size: int, *, name: str = "indices") -> None:
    """Refuse indices outside of an axis of a given size; `name` stands for them in the message."""
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
    """Check a matrix in CSR or CSC format."""
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    check_sizes(matrix.data, matrix.indices, matrix.indptr, n_major=n_major)
    check_pointers(matrix.indptr, matrix.data.size)
    check_indices(matrix.indices, n_minor)


def _check_blocks(matrix: Any) -> None:
    """Check a matrix in BSR format, whose values are dense blocks of equal size."""
    blocks, sizes = matrix.data, matrix.blocksize
    if blocks.ndim != 3 or min(sizes) < 1 or any(np.remainder(matrix.shape, sizes)):
        raise StructureError(
            f"its data must be blocks that divide the shape {matrix.shape}, but have shape "
            f"{blocks.shape}"
        )
    n_major, n_minor = (size // step for size, step in zip(matrix.shape, sizes, strict=True))
    # One value of each block stands for the block: BSR is CSR on blocks.
    check_sizes(blocks[:, 0, 0], matrix.indices, matrix.indptr, n_major=n_major)
    check_pointers(matrix.indptr, len(blocks))
    check_indices(matrix.indices, n_minor)


def _check_coordinates(matrix: Any) -> None:
    """Check a matrix in COO format."""
    coordinates = (matrix.row, matrix.col)
    for name, part, size in zip(("rows", "columns"), coordinates, matrix.shape, strict=True):
        if part.shape != matrix.data.shape or part.ndim != 1:
            raise StructureError(
                f"its {name} must be as many as its data, but have shape {part.shape} for "
                f"{matrix.data.shape}"
            )
        check_indices(part, size, name=name)


def _check_diagonals(matrix: Any) -> None:
    """Check a matrix in DIA format; offsets of diagonals outside of the matrix are valid there."""
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
    """Check a matrix in LIL format, which has a list of columns and of values for each row."""
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
    """Check a matrix in DOK format, a dictionary with pairs of row and column as keys."""
    # Without keys, the list would become an array of one dimension.
    keys = np.array(list(matrix.keys())).reshape(-1, 2)
    for name, size, part in zip(("rows", "columns"), matrix.shape, keys.T, strict=True):
        check_indices(part, size, name=name)


# All formats of scipy. Another one, of a future version, is checked by its extent only.
_CHECKS = {
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "csc": _check_compressed,
    "csr": _check_compressed,
    "dia": _check_diagonals,
    "dok": _check_keys,
    "lil": _check_lists,
}
