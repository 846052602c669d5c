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
    """
    if max(shape) > max(_MAX_EXTENT_PER_VALUE * (n_cells + n_listed), _HARMLESS_EXTENT):
        raise StructureError(
            f"its shape must fit the number of its values, but is {shape} for {n_cells:,} values"
        )


def check_sizes(data: Any, indices: Any, indptr: Any, *, n_major: int) -> None:
    """Raise StructureError if parts of a compressed matrix have inconsistent sizes or types.

    The values of the parts are not read.
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
