"""Centred data in memory: matrix products, the Gram matrix, and selected columns.

The centred matrix X has n rows (samples) and p columns (features). Its missing values are filled. X
is not stored: functions that need X subtract the column offsets from the data. Differences and sums
are computed in double precision, so float32 data need not be converted to float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.centring import Center, offsets_and_fill
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.statistics import ColumnSummary, column_blocks, column_summary
from mrshc.core.kernels.products import column_norms, multiply, multiply_transposed
from mrshc.core.parallel import MANY_SAMPLES, effective_n_threads, run_in_parallel, run_parts

T = TypeVar("T")

# Approximate number of values in a block of rows of X. The matrix X'X is computed as a sum over
# such blocks. The centred copy of a block takes 4 MB in double precision. The number has not been
# tuned.
_BLOCK_CELLS = 1 << 19

# Data that are stored column by column are copied row by row if they have at most this many values,
# 16 MB in double precision. Products with the copy take less time, since several columns are
# multiplied at the same time. The result is the same.
_MAX_COPIED_CELLS = 1 << 21

# Number of rows and columns of a tile of the Gram matrix of many samples, and number of blocks of
# columns whose products are added to a tile before the next tile. A tile takes 2 MB, and stays in
# the cache; the blocks take 32 MB. The numbers do not affect the result.
_TILE, _BLOCKS_PER_TILE = 512, 8


class _WriteableView:
    """Describes the memory of a read-only array to numpy as if it were writeable."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values  # keeps the memory alive
        interface = values.__array_interface__
        address = interface["data"][0]
        self.__array_interface__ = interface | {"data": (address, False)}


class CentredArray(CentredMatrix):
    """A data matrix in memory and one offset per column, which together define the centred matrix.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        The data before centring: float32 or float64, C- or F-contiguous, without NaN. Each missing
        value has been replaced by the offset of its column plus `fill`.
    offsets : ndarray of shape (p,)
        Offset of each column, which is subtracted from the values of the column.
    missing : sparse array of shape (n, p) or None
        Array whose non-zero entries are at the positions of the missing values; None if no value is
        missing.
    fill : float
        Value that replaces missing values in the centred matrix.
    n_observed : int
        Number of non-missing values in the whole data set, even if `values` contains only some
        columns of the data set.
    """

    certification = "not needed"

    def __init__(
        self,
        *,
        values: NDArray[Any],
        offsets: Float,
        missing: sparse.coo_array | None,
        fill: float,
        n_observed: int,
    ) -> None:
        n, p = values.shape
        self.shape = (n, p)
        self.values = values
        self.offsets = offsets
        self.missing = missing
        self.fill = fill
        self.n_observed = n_observed

    @property
    def n_passes(self) -> None:
        """Always None, since passes are counted only for data that are read in blocks."""
        return None

    def multiply(self, indices: Index, weights: Float) -> Float:
        """Return the product X v, an array of shape (n,).

        The vector v has the entries `weights` at `indices` and is zero elsewhere. The rounding
        errors of filled values (`fill_error`) are not corrected.
        """
        return multiply(*self.kernel_arguments, indices, weights)

    def multiply_transposed(self, u: Float) -> Float:
        """Return the product X'u, an array of shape (p,), for a vector u of shape (n,)."""
        out = multiply_transposed(*self.kernel_arguments, u)
        if self.fill_error is not None:
            rows, columns = self.missing_cells
            out += np.bincount(columns, self.fill_error * u[rows], minlength=out.size)
        return out

    @cached_property
    def _stored_for_products(self) -> NDArray[Any]:
        """The data before centring; a copy stored row by row if the data are small."""
        if self.values.flags.c_contiguous or self.values.size > _MAX_COPIED_CELLS:
            return self.values
        return np.ascontiguousarray(self.values)

    @property
    def kernel_arguments(self) -> tuple[NDArray[Any], bool, Float]:
        """The first three arguments of the compiled functions for matrix products.

        The first argument is the array of the data before centring, or its transpose, whichever is
        C-contiguous. The second argument is True if the first is the transpose. The third argument
        contains the column offsets.
        """
        values = self._stored_for_products
        by_columns = not values.flags.c_contiguous
        # Numba compiles separate versions of a function for writeable and for read-only arrays. The
        # array of the user may be read-only, but the arrays to which compiled functions copy some
        # of its columns are not. All arrays are therefore passed as writeable, so that only one
        # version has to be compiled. No compiled function writes to the data.
        if not values.flags.writeable:
            values = np.asarray(_WriteableView(values))
        return values.T if by_columns else values, by_columns, self.offsets

    @cached_property
    def column_norms(self) -> Float:
        """Euclidean norms of the centred columns, as an array of shape (p,)."""
        return column_norms(*self.kernel_arguments)

    def columns(self, indices: Index) -> Float:
        """Return the m columns at `indices`, before centring, as a float64 array of shape (n, m).

        Missing values are NaN.
        """
        return self._columns(indices)

    def _columns(self, indices: slice | Index) -> Float:
        """Return the columns of the method `columns`; a slice takes less time than indices."""
        out = np.ascontiguousarray(self.values[:, indices], dtype=np.float64)
        if self.missing is not None:
            cells = self._missing_by_column[:, indices].tocoo()
            out[cells.coords] = np.nan
        return out

    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to the columns at `indices`, before centring, in blocks.

        For each block, yield the positions of its columns in `indices`, and function(block), where
        `block` is the float64 array of these columns, with NaN for missing values.
        """
        for block in column_blocks(self.shape[0], indices.size):
            yield block, function(self.columns(indices[block]))

    def map_all_columns(
        self,
        function: Callable[[Float], T],
        on_device: BlockFunction[list[tuple[int, T]]],
        *,
        n_jobs: int | None,
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to all columns, before centring, in blocks; see `CentredMatrix`."""
        n, p = self.shape
        n_blocks = max(effective_n_threads(n_jobs), len(list(column_blocks(n, p))))
        bounds = [p * i // n_blocks for i in range(n_blocks + 1)]
        blocks = [slice(start, stop) for start, stop in pairwise(bounds)]

        def apply(block: slice) -> T:
            return function(self._columns(block))

        arguments = ({"block": block} for block in blocks)
        results = run_in_parallel(apply, arguments, n_jobs=n_jobs, share_memory=True)
        yield from zip(blocks, results, strict=True)

    @cached_property
    def missing_cells(self) -> tuple[Index, Index]:
        """Row indices and column indices of the missing values.

        The property may be used only if there are missing values.
        """
        assert self.missing is not None
        rows, columns = (axis.astype(np.intp) for axis in self.missing.coords)
        return rows, columns

    @cached_property
    def _missing_by_column(self) -> sparse.csc_array:
        # In CSC format, the time to select columns is proportional to the number of missing values
        # in these columns.
        assert self.missing is not None
        return self.missing.tocsc()

    @cached_property
    def fill_error(self) -> Float | None:
        """Exact minus stored value of each missing value, in the order of `missing_cells`.

        The property is None if no value is missing or the data are float64. In float32 data, the
        stored value `offset + fill` is rounded. If the offset is large, the rounding error is large
        compared with the centred value `fill`, and matrix products must be corrected for the error.
        """
        if self.missing is None or self.values.dtype == np.float64:
            return None
        rows, columns = self.missing_cells
        error: Float = self.offsets[columns] + self.fill - self.values[rows, columns]
        return error

    @cached_property
    def gram(self) -> Float:
        """The Gram matrix XX' of the samples, as an array of shape (n, n)."""
        blocks = column_blocks(*self.shape)
        return sum_grams((self._centred_columns(block) for block in blocks), self.shape[0])

    def release_gram(self) -> None:
        """Release the memory of the Gram matrix, which is computed again if it is used later."""
        self.__dict__.pop("gram", None)  # where `cached_property` stores the matrix

    def _centred_columns(self, indices: slice | Index) -> Float:
        # The offsets are float64, so they are subtracted in double precision even if the values are
        # float32.
        part: Float = self.values[:, indices] - self.offsets[indices]
        if self.fill_error is not None:
            part[self._missing_by_column[:, indices].tocoo().coords] = self.fill
        return part

    def _recompute_gram_without(self, indices: Index) -> Float:
        others = np.setdiff1d(np.arange(self.shape[1]), indices, assume_unique=True)
        blocks = column_blocks(self.shape[0], others.size)
        return sum_grams((self._centred_columns(others[block]) for block in blocks), self.shape[0])

    def cross_product(self) -> Float:
        """Return the matrix X'X, an array of shape (p, p).

        The method is intended for p <= n. In this case, X'X is not larger than the Gram matrix XX'.
        """
        n, p = self.shape
        total = np.zeros((p, p))
        step = max(1, _BLOCK_CELLS // p)
        for start in range(0, n, step):
            part = self.values[start : start + step] - self.offsets
            total += part.T @ part
        return total


def sum_grams(parts: Iterable[Float], n: int) -> Float:
    """Return the sum of the Gram matrices AA' of matrices A with n rows, of shape (n, n).

    For many samples, the sum is computed in tiles, so that no second matrix of its size is needed,
    and the threads of the context `threads_for_parts` are used.
    """
    total = np.zeros((n, n))
    if n < MANY_SAMPLES:
        for part in parts:
            total += part @ part.T
        return total
    starts = range(0, n, _TILE)
    rows = [slice(start, min(start + _TILE, n)) for start in starts]
    tiles = [(a, b) for i, a in enumerate(rows) for b in rows[: i + 1]]
    remaining = iter(parts)
    while group := list(islice(remaining, _BLOCKS_PER_TILE)):
        run_parts(partial(_add_products, total, group), tiles)
    for a, b in tiles:
        if a != b:
            total[b, a] = total[a, b].T
    return total


def _add_products(total: Float, parts: list[Float], rows: slice, columns: slice) -> None:
    """Add the inner products of some rows of each part with other rows to a tile of `total`."""
    tile = total[rows, columns]
    product = np.empty(tile.shape)
    # The products are added one after another, so that the sum does not depend on how many parts
    # there are in a call.
    for part in parts:
        np.dot(part[rows], part[columns].T, out=product)
        tile += product


def centre_array(
    X: NDArray[Any],
    *,
    center: Center,
    drop_constant: bool,
    statistics: ColumnSummary | None = None,
) -> CentredArray:
    """Return an object that represents the centred data without a centred copy of X.

    X is copied only if it has missing values or is not contiguous. After centring, missing values
    (NaN) are replaced by the mean of all non-missing centred values, as in the R package PMA.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The data, float32 or float64, with NaN for missing values.
    center : {"columns", "grand", "none"}
        Offset of a column: the mean of the column, the mean of all non-missing values of X, or
        zero.
    drop_constant : bool
        If True, the offset of a constant column is its constant value, whatever the value of
        `center`. The non-missing values of the column are then exactly zero after centring. If no
        value of the column is missing, its loading is therefore zero in every sparse component.
    statistics : ColumnSummary or None, default=None
        Statistics of the columns of X. If None, the statistics are computed.

    Returns
    -------
    CentredArray
        The data and the column offsets.
    """
    # The compiled functions for matrix products require contiguous rows or columns.
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        X = np.ascontiguousarray(X)
    summary = column_summary(X) if statistics is None else statistics
    n_observed = int(summary.counts.sum())
    offsets, fill = offsets_and_fill(summary, center=center, drop_constant=drop_constant)
    missing = None
    if n_observed < X.size:
        rows, columns = np.nonzero(np.isnan(X))
        X = X.copy(order="K")
        X[rows, columns] = offsets[columns] + fill
        missing = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=X.shape)
    return CentredArray(
        values=X, offsets=offsets, missing=missing, fill=fill, n_observed=n_observed
    )
