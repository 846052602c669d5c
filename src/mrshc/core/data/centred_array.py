"""Centred data in memory: products for the sparse components, Gram matrix, selected columns.

The array is neither centred in place nor copied. Products subtract the offsets on the fly and add
up in double precision, so that float32 data remain float32 without a loss of accuracy by centring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.centring import Center, offsets_and_fill
from mrshc.core.data.statistics import ColumnSummary, column_blocks, column_summary
from mrshc.core.kernels.products import column_norms, multiply, multiply_transposed

T = TypeVar("T")

# X'X is added up over this many cells at a time, so that the centred copy of a block takes 4 MB in
# double precision. Not tuned.
_BLOCK_CELLS = 1 << 19


class CentredArray(CentredMatrix):
    """A centred array in memory.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        float32 or float64, C- or F-contiguous, without NaN.
    offsets : ndarray of shape (p,)
        Subtracted from every row.
    missing : sparse array of shape (n, p) or None
        The missing cells, which are filled in `values`; None if no cell is missing.
    fill : float
        Value of missing cells after centring.
    n_observed : int
        Number of cells that are not missing, in all columns of the data.
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
        """None: data in memory need no passes."""
        return None

    def multiply(self, indices: Index, weights: Float) -> Float:
        """Return X v, (n,), for the vector v with `weights` at `indices` and zeros elsewhere."""
        return multiply(*self.kernel_arguments, indices, weights)

    def multiply_transposed(self, u: Float) -> Float:
        """Return X'u, (p,), for a vector u of shape (n,)."""
        out = multiply_transposed(*self.kernel_arguments, u)
        if self.fill_error is not None:
            rows, columns = self.missing_cells
            out += np.bincount(columns, self.fill_error * u[rows], minlength=out.size)
        return out

    @property
    def kernel_arguments(self) -> tuple[NDArray[Any], bool, Float]:
        """The first three arguments of the compiled products.

        They are the array or its transpose, whichever is C-contiguous; whether it is the transpose;
        and the offsets.
        """
        by_columns = not self.values.flags.c_contiguous
        values = self.values.T if by_columns else self.values.view()
        # numba distinguishes writeable from read-only arrays. If all are read-only, the loops are
        # compiled once, also for data that the user has protected.
        values.flags.writeable = False
        return values, by_columns, self.offsets

    @cached_property
    def column_norms(self) -> Float:
        """Euclidean norm of each centred column, (p,)."""
        return column_norms(*self.kernel_arguments)

    def columns(self, indices: Index) -> Float:
        """Return the columns at m indices as given, (n, m), in float64, NaN where missing."""
        out = np.ascontiguousarray(self.values[:, indices], dtype=np.float64)
        if self.missing is not None:
            cells = self._missing_by_column[:, indices].tocoo()
            out[cells.coords] = np.nan
        return out

    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield positions in `indices` and function(columns) for blocks of columns as given."""
        for block in column_blocks(self.shape[0], indices.size):
            yield block, function(self.columns(indices[block]))

    @cached_property
    def missing_cells(self) -> tuple[Index, Index]:
        """Row and column of each missing cell; only for data with missing cells."""
        assert self.missing is not None
        rows, columns = (axis.astype(np.intp) for axis in self.missing.coords)
        return rows, columns

    @cached_property
    def _missing_by_column(self) -> sparse.csc_array:
        # Columns of a CSC array are selected in time proportional to their missing cells.
        assert self.missing is not None
        return self.missing.tocsc()

    @cached_property
    def fill_error(self) -> Float | None:
        """Rounding error of the filled value of each missing cell; None if there is none.

        Single precision rounds offset + fill. At a large offset the error is large compared with
        the centred value, so that products have to be corrected for it.
        """
        if self.missing is None or self.values.dtype == np.float64:
            return None
        rows, columns = self.missing_cells
        error: Float = self.offsets[columns] + self.fill - self.values[rows, columns]
        return error

    @cached_property
    def gram(self) -> Float:
        """The Gram matrix X X' of the samples, (n, n)."""
        n = self.shape[0]
        total = np.zeros((n, n))
        for block in column_blocks(*self.shape):
            part = self._centred_columns(block)
            total += part @ part.T
        return total

    def _centred_columns(self, indices: slice | Index) -> Float:
        # Offsets are float64, so that single-precision values are subtracted in double precision.
        part: Float = self.values[:, indices] - self.offsets[indices]
        if self.fill_error is not None:
            part[self._missing_by_column[:, indices].tocoo().coords] = self.fill
        return part

    def _recompute_gram_without(self, indices: Index) -> Float:
        others = np.setdiff1d(np.arange(self.shape[1]), indices, assume_unique=True)
        total = np.zeros((self.shape[0], self.shape[0]))
        for block in column_blocks(self.shape[0], others.size):
            part = self._centred_columns(others[block])
            total += part @ part.T
        return total

    def cross_product(self) -> Float:
        """Return X'X, (p, p); only for p <= n, where it is the smaller of the two products."""
        n, p = self.shape
        total = np.zeros((p, p))
        step = max(1, _BLOCK_CELLS // p)
        for start in range(0, n, step):
            part = self.values[start : start + step] - self.offsets
            total += part.T @ part
        return total


def centre_array(
    X: NDArray[Any],
    *,
    center: Center,
    drop_constant: bool,
    statistics: ColumnSummary | None = None,
) -> CentredArray:
    """Return a view of an array whose products are those of the centred data.

    X is copied only if it has missing cells or is not contiguous. Missing cells (NaN) are filled
    with the mean of all observed cells after centring, as in the R package PMA.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        float32 or float64, NaN where missing.
    center : {"columns", "grand", "none"}
        Offset of a column: its mean, the mean of all observed cells, or zero.
    drop_constant : bool
        Whether the offset of a constant column is its value for every `center`. Its centred values
        are then exactly zero, and no component can load on it.
    statistics : ColumnSummary or None, default=None
        Statistics of the columns; None to compute them.

    Returns
    -------
    CentredArray
    """
    # The compiled products need rows or columns that are contiguous.
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
