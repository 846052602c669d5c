"""Copies of the columns to which an iteration is restricted, and products with these columns.

Which columns these are is decided in :mod:`~mrshc.core.kernels.screening`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.column_copies import (
    ColumnCopies,
    write_product_of_copies,
    write_rows_of_copies,
)
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.products import (
    write_product_of_rows,
    write_transposed_product_of_columns,
    write_transposed_product_of_rows,
)
from mrshc.core.kernels.residual import (
    CellCorrections,
    Residual,
    correct_image_of_sparse,
    correct_slopes,
    subtract_components,
    subtract_components_from_image,
)
from mrshc.core.kernels.vectors import copy_into

# A screen is not made if it would contain more than this fraction of the columns, because copying
# the columns would take more time than it saves. The limit also ensures that a screen takes at most
# an eighth of the memory of X.
_MAX_FRACTION = 0.125


class Screen(NamedTuple):
    """Arrays for the columns of a screen, which each screen overwrites.

    A screen of m columns uses the first m columns of `packed`, and the first m entries of the
    arrays of length max_m. The arrays are allocated once for all screens of a component.
    """

    columns: Index  # (max_m + 1,), indices of the columns, increasing
    # (n, max_m), copies of the columns, before offsets are subtracted; for few samples
    packed: NDArray[Any]
    # (max_m,), rows of the array of the columns with consecutive values; for many samples
    rows: Index
    offsets: Float  # (max_m,), offsets of the columns
    loadings: Float  # (k, max_m), loadings of the k earlier components in the columns
    corrections: CellCorrections  # corrections in the columns
    anchor: Float  # (n,), the reference vector


class ScreenRange(NamedTuple):
    """The vectors u for which a screen is valid, and the number of its columns.

    The screen contains all columns whose absolute slope can exceed the slope bound for some u
    within the radius of the anchor.
    """

    n_columns: int  # zero if there is no screen, because it would not save time
    radius: float  # largest distance of u from the anchor; negative if there is no screen
    slope_bound: float  # within the radius, no column outside the screen has a larger slope
    n_corrections: int  # number of corrections in the columns; known when the screen is written


@jit()
def empty_screen(residual: Residual, n: int, p: int, copies: ColumnCopies | None) -> Screen:
    """Return arrays for screens of a residual with n samples and p columns."""
    max_columns, n_corrections = int(_MAX_FRACTION * p), residual.corrections.values.size
    # For many samples, a screen refers to other copies of the columns.
    n_packed = n if copies is None else 0
    return Screen(
        np.empty(max_columns + 1, np.intp),
        np.empty((n_packed, max_columns), residual.X.dtype),
        np.empty(max_columns, np.intp),
        np.empty(max_columns),
        np.empty((residual.scores.shape[0], max_columns)),
        CellCorrections(
            np.empty(n_corrections, np.intp),
            np.empty(n_corrections, np.intp),
            np.empty(n_corrections),
        ),
        np.empty(n),
    )


@jit(allocates=False)
def no_screen() -> ScreenRange:
    """Return the range of a screen that is not valid for any u."""
    return ScreenRange(0, -1.0, 0.0, 0)


@jit(allocates=False)
def screen_range(n_columns: int, radius: float, slope_bound: float) -> ScreenRange:
    """Return the range of a screen, which is not valid for any u if it has no columns."""
    return ScreenRange(n_columns, radius if n_columns > 0 else -1.0, slope_bound, 0)


@jit(allocates=False)
def write_screen(
    residual: Residual,
    screen: Screen,
    within: ScreenRange,
    anchor: Float,
    copies: ColumnCopies | None,
) -> ScreenRange:
    """Write the arrays of a screen whose columns have been chosen, and return its range.

    `within` is the range that the choice of the columns returned, and `copies` is the attribute of
    a `SlopeHistory`.
    """
    m, columns, offsets, loadings = (
        within.n_columns,
        screen.columns,
        screen.offsets,
        screen.loadings,
    )
    copy_into(screen.anchor, anchor)
    for k in range(m):
        offsets[k] = residual.offsets[columns[k]]
    for r in range(loadings.shape[0]):
        for k in range(m):
            loadings[r, k] = residual.loadings[r, columns[k]]
    _write_columns(residual.X, residual.by_columns, columns[:m], screen, copies)
    n_corrections = 0
    if residual.corrections.values.size > 0:
        n_corrections = _write_corrections(
            residual.corrections, columns[:m], residual.offsets.size, screen.corrections
        )
    return ScreenRange(m, within.radius, within.slope_bound, n_corrections)


@jit(allocates=False)
def _write_columns(
    X: NDArray[Any], by_columns: bool, columns: Index, screen: Screen, copies: ColumnCopies | None
) -> None:
    """Write copies of columns to `screen.packed` or, for many samples, their rows to `screen.rows`.

    `X` is the data matrix, or its transpose if `by_columns` is True.
    """
    m, packed = columns.size, screen.packed
    if copies is None:
        if by_columns:
            for k in range(m):
                j = columns[k]
                for i in range(packed.shape[0]):
                    packed[i, k] = X[j, i]
        else:
            for i in range(packed.shape[0]):
                for k in range(m):
                    packed[i, k] = X[i, columns[k]]
    elif by_columns:
        copy_into(screen.rows, columns)
    else:
        write_rows_of_copies(copies, X, columns, screen.rows)


@jit()
def _write_corrections(
    corrections: CellCorrections, columns: Index, p: int, out: CellCorrections
) -> int:
    """Write the corrections in some of the p columns to `out`, and return their number.

    `columns` contains the indices of the columns, in increasing order. The column indices of the
    written corrections are positions in `columns`.
    """
    position = np.empty(p, np.intp)
    position[:] = -1
    for k in range(columns.size):
        position[columns[k]] = k
    # The order of the corrections is kept, so that sums over the corrections in a column do not
    # change in any digit.
    count = 0
    for k in range(corrections.values.size):
        if position[corrections.columns[k]] >= 0:
            out.rows[count] = corrections.rows[k]
            out.columns[count] = position[corrections.columns[k]]
            out.values[count] = corrections.values[k]
            count += 1
    return count


@jit(allocates=False)
def write_screened_slopes(
    residual: Residual,
    screen: Screen,
    within: ScreenRange,
    copies: ColumnCopies | None,
    u: Float,
    slopes: Float,
) -> None:
    """Write the slopes at u of the columns of a screen to `slopes`, which has the same length."""
    if copies is None:
        write_transposed_product_of_rows(screen.packed, screen.offsets, u, slopes)
    else:
        X, rows = residual.X if residual.by_columns else copies.values, screen.rows[: slopes.size]
        write_transposed_product_of_columns(X, rows, screen.offsets, u, slopes)
    subtract_components(residual.scores, screen.loadings, slopes, u)
    correct_slopes(screen.corrections, within.n_corrections, slopes, u)


@jit(allocates=False)
def write_screened_image(
    residual: Residual,
    screen: Screen,
    within: ScreenRange,
    copies: ColumnCopies | None,
    positions: Index,
    weights: Float,
    image: Float,
) -> None:
    """Write the residual matrix times a sparse vector v to `image`.

    `positions` and `weights` are the positions and values of the non-zero entries of v among the
    columns of a screen.
    """
    if copies is None:
        write_product_of_rows(screen.packed, screen.offsets, positions, weights, image)
    else:
        X = residual.X if residual.by_columns else copies.values
        write_product_of_copies(X, screen.rows, screen.offsets, positions, weights, image)
    subtract_components_from_image(residual.scores, screen.loadings, image, positions, weights)
    if within.n_corrections > 0:
        correct_image_of_sparse(
            screen.corrections,
            within.n_corrections,
            image,
            within.n_columns,
            positions,
            weights,
        )
