"""Whether the parts of a sparse matrix agree.

The compiled loops of scipy write to wherever an index points, so that every index is checked before
one of them is used. The check copies and changes nothing, other than scipy's `check_format`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows or columns for each value, and a number of them that is no harm: not tuned, data have less
# than one.
_MOST_EMPTY, _SMALL = 1000, 10**6


class StructureError(ValueError):
    """Parts of a sparse matrix that do not agree: a clause that follows a colon."""


# The parts of each format of scipy that must be arrays; the others are made of them.
_ARRAYS = {
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "csc": ("data", "indices", "indptr"),
    "csr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
    "lil": ("data", "rows"),
}


def check_arrays(matrix: Any) -> None:
    """Refuse a sparse matrix of scipy of which a part is no array, before any of it is used."""
    for name in _ARRAYS.get(matrix.format, ()):
        part = getattr(matrix, name, None)
        if not isinstance(part, np.ndarray):
            raise StructureError(f"its {name} must be an array, but is a {type(part).__name__}")


def check_sparse(matrix: Any) -> None:
    """Refuse a sparse matrix of scipy, of any format, whose parts do not agree."""
    check = _CHECKS.get(matrix.format)
    if check is not None:
        check(matrix)
    listed = getattr(matrix, "indptr", getattr(matrix, "rows", ()))
    check_extent(matrix.shape, n_cells=matrix.nnz, n_listed=len(listed))


def check_shape(shape: Any) -> tuple[int, int]:
    """Return a shape that a file gives, as two whole numbers."""
    sizes = np.asarray(shape if isinstance(shape, list | tuple | np.ndarray) else ())
    # Numbers too large for numpy come as objects.
    whole = sizes.shape == (2,) and all(isinstance(size, int) for size in sizes.tolist())
    if not whole or min(sizes.tolist()) < 0 or sizes.dtype.kind == "b":
        given = "is missing" if shape is None else f"is {str(shape)[:60]!r}"
        raise StructureError(f"its attribute 'shape' must be two whole numbers, but {given}")
    n, p = sizes.tolist()
    return n, p


def check_extent(shape: tuple[int, int], *, n_cells: int, n_listed: int) -> None:
    """Refuse a shape of which nearly all rows or columns are empty: it may ask for any memory.

    Those that have a pointer or a list of their own (`n_listed`) are there already.
    """
    if max(shape) > max(_MOST_EMPTY * (n_cells + n_listed), _SMALL):
        raise StructureError(
            f"its shape must be one that its values fill, but is {shape} for {n_cells:,} values"
        )


def check_sizes(data: Any, indices: Any, indptr: Any, *, n_major: int) -> None:
    """Refuse parts of a compressed matrix whose sizes or types do not agree; none is read."""
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        if len(part.shape) != 1:
            raise StructureError(f"its {name} must be a vector, but has shape {part.shape}")
        if name != "data" and part.dtype.kind not in "iu":
            raise StructureError(f"its {name} must be whole numbers, but are of type {part.dtype}")
    if indices.shape != data.shape:
        raise StructureError(
            f"its indices must be as many as data, but are {indices.shape[0]:,} for "
            f"{data.shape[0]:,} values"
        )
    if indptr.shape != (n_major + 1,):
        raise StructureError(
            f"its indptr must have length {n_major + 1:,}, but has length {indptr.shape[0]:,}"
        )


def check_pointers(indptr: NDArray[Any], n_cells: int) -> None:
    """Refuse pointers that do not divide the cells into rows or columns."""
    # Compared, not subtracted: differences of unsigned numbers are never below zero.
    if np.any(indptr[1:] < indptr[:-1]):
        raise StructureError("its indptr must not decrease, but does")
    if indptr[0] != 0 or indptr[-1] != n_cells:
        raise StructureError(
            f"its indptr must run from 0 to {n_cells:,}, but runs from {indptr[0]} to {indptr[-1]}"
        )


def check_indices(indices: NDArray[Any], size: int, *, name: str = "indices") -> None:
    """Refuse indices of rows or columns that are not there."""
    if indices.size == 0:
        return
    if indices.dtype.kind not in "iu":
        raise StructureError(f"its {name} must be whole numbers, but are of type {indices.dtype}")
    low, high = indices.min(), indices.max()
    if low < 0 or high >= size:
        raise StructureError(
            f"its {name} must lie in 0 to {size - 1}, but one of them is {low if low < 0 else high}"
        )


def _check_compressed(matrix: Any) -> None:
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    check_sizes(matrix.data, matrix.indices, matrix.indptr, n_major=n_major)
    check_pointers(matrix.indptr, matrix.data.size)
    check_indices(matrix.indices, n_minor)


def _check_blocks(matrix: Any) -> None:
    blocks, sizes = matrix.data, matrix.blocksize
    if blocks.ndim != 3 or min(sizes) < 1 or any(np.remainder(matrix.shape, sizes)):
        raise StructureError(
            f"its data must be blocks that fill the shape {matrix.shape}, but have shape "
            f"{blocks.shape}"
        )
    n_major, n_minor = (size // step for size, step in zip(matrix.shape, sizes, strict=True))
    check_sizes(blocks[:, 0, 0], matrix.indices, matrix.indptr, n_major=n_major)
    check_pointers(matrix.indptr, len(blocks))
    check_indices(matrix.indices, n_minor)


def _check_coordinates(matrix: Any) -> None:
    coordinates = (matrix.row, matrix.col)
    for name, part, size in zip(("rows", "columns"), coordinates, matrix.shape, strict=True):
        if part.shape != matrix.data.shape or part.ndim != 1:
            raise StructureError(
                f"its {name} must be as many as data, but have shape {part.shape} for "
                f"{matrix.data.shape}"
            )
        check_indices(part, size, name=name)


def _check_diagonals(matrix: Any) -> None:
    data, offsets = matrix.data, matrix.offsets
    if data.ndim != 2 or offsets.shape != (len(data),):
        raise StructureError(
            f"its offsets must be as many as diagonals, but have shape {offsets.shape} for "
            f"{data.shape}"
        )
    if offsets.dtype.kind not in "iu":
        raise StructureError(f"its offsets must be whole numbers, but are of type {offsets.dtype}")
    if len(np.unique(offsets)) != len(offsets):
        raise StructureError("its offsets must differ, but one of them is given twice")


def _check_lists(matrix: Any) -> None:
    n, p = matrix.shape
    if matrix.rows.shape != (n,) or matrix.data.shape != (n,):
        raise StructureError(
            f"its rows and data must be {n} lists, but have shapes {matrix.rows.shape} and "
            f"{matrix.data.shape}"
        )
    for columns, values in zip(matrix.rows, matrix.data, strict=True):
        if len(columns) != len(values):
            raise StructureError(
                f"its indices must be as many as data, but are {len(columns):,} for "
                f"{len(values):,} values in a row"
            )
        check_indices(np.asarray(columns), p, name="columns")


def _check_keys(matrix: Any) -> None:
    keys = np.array(list(matrix.keys())).reshape(-1, 2)
    for name, size, part in zip(("rows", "columns"), matrix.shape, keys.T, strict=True):
        check_indices(part, size, name=name)


_CHECKS = {
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "csc": _check_compressed,
    "csr": _check_compressed,
    "dia": _check_diagonals,
    "dok": _check_keys,
    "lil": _check_lists,
}
