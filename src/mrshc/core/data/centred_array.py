"""Centred data in memory: products for the sparse components, column statistics, some columns.

The array is never centred in place and never copied. Products subtract the offsets on the fly and
add up in double precision, so float32 data stay float32 and lose nothing to the centring.
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

# The products X'X are added up over this many cells at a time, 4 MB in double precision.
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
        The missing cells, which `values` holds filled; None: all were observed.
    fill : float
        Value of missing cells after the offset is subtracted.
    n_observed : int
        Cells that are not missing, of all columns of the data.
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
        """There are no passes over data in memory."""
        return None

    def times(self, indices: Index, weights: Float) -> Float:
        """Return X v for the v that is `weights` at `indices` and zero elsewhere."""
        return multiply(*self.layout, indices, weights)

    def transposed_times(self, u: Float) -> Float:
        """Return X'u, a number for each feature."""
        out = multiply_transposed(*self.layout, u)
        if self.fill_error is not None:
            rows, columns = self.missing_cells
            out += np.bincount(columns, self.fill_error * u[rows], minlength=out.size)
        return out

    @property
    def layout(self) -> tuple[NDArray[Any], bool, Float]:
        """The data as compiled loops take them: rows or columns, which of them, offsets."""
        by_columns = not self.values.flags.c_contiguous
        values = self.values.T if by_columns else self.values.view()
        values.flags.writeable = False  # one kind of array: the loops are compiled once for both
        return values, by_columns, self.offsets

    @cached_property
    def lengths(self) -> Float:
        """Length of each column."""
        return column_norms(*self.layout)

    def columns(self, indices: Index) -> Float:
        """Return some columns as given, not centred, in double precision, NaN if missing."""
        out = np.ascontiguousarray(self.values[:, indices], dtype=np.float64)
        if self.missing is not None:
            cells = self._missing_by_column[:, indices].tocoo()
            out[cells.coords] = np.nan
        return out

    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield positions and function(columns) for some columns as given, a block at a time."""
        for block in column_blocks(self.shape[0], indices.size):
            yield block, function(self.columns(indices[block]))

    @cached_property
    def missing_cells(self) -> tuple[Index, Index]:
        """Row and column of each missing cell."""
        assert self.missing is not None  # who asks has looked
        rows, columns = (axis.astype(np.intp) for axis in self.missing.coords)
        return rows, columns

    @cached_property
    def _missing_by_column(self) -> sparse.csc_array:
        assert self.missing is not None  # who asks has looked
        return self.missing.tocsc()

    @cached_property
    def fill_error(self) -> Float | None:
        """What the fill of each missing cell lost to single precision; None: nothing."""
        if self.missing is None or self.values.dtype == np.float64:
            return None
        rows, columns = self.missing_cells
        error: Float = self.offsets[columns] + self.fill - self.values[rows, columns]
        return error

    @cached_property
    def gram(self) -> Float:
        """The inner products of the samples, X X', (n, n)."""
        n = self.shape[0]
        total = np.zeros((n, n))
        for block in column_blocks(*self.shape):
            part = self._centred(block)
            total += part @ part.T
        return total

    def _centred(self, which: slice | Index) -> Float:
        """Return some columns, less their offsets, in double precision."""
        part: Float = self.values[:, which] - self.offsets[which]
        if self.fill_error is not None:
            part[self._missing_by_column[:, which].tocoo().coords] = self.fill
        return part

    def _centred_columns(self, indices: Index) -> Float:
        return self._centred(indices)

    def _gram_of_others(self, indices: Index) -> Float:
        others = np.setdiff1d(np.arange(self.shape[1]), indices, assume_unique=True)
        total = np.zeros((self.shape[0], self.shape[0]))
        for block in column_blocks(self.shape[0], others.size):
            part = self._centred(others[block])
            total += part @ part.T
        return total

    def cross_product(self) -> Float:
        """Return X'X, (p, p). Only for p <= n."""
        n, p = self.shape
        total = np.zeros((p, p))
        step = max(1, _BLOCK_CELLS // p)
        for start in range(0, n, step):
            part = self.values[start : start + step] - self.offsets
            total += part.T @ part
        return total


def centred_array(
    X: NDArray[Any],
    *,
    center: Center,
    drop_constant: bool,
    statistics: ColumnSummary | None = None,
) -> CentredArray:
    """Wrap an array so that products see it centred.

    With `drop_constant` a constant column is offset by its own value, whatever the centring: its
    residual is exactly zero and no component can load on it. The statistics of the columns are
    computed unless they are given.

    Missing cells (NaN) are filled with the mean of all observed cells after centring, as PMA does;
    only then is X copied.
    """
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        X = np.ascontiguousarray(X)
    means, counts, constant = column_summary(X) if statistics is None else statistics
    n_observed = int(counts.sum())
    offsets, fill = offsets_and_fill(
        means, counts, constant, center=center, drop_constant=drop_constant
    )
    missing = None
    if n_observed < X.size:
        rows, cols = np.nonzero(np.isnan(X))
        X = X.copy(order="K")
        X[rows, cols] = offsets[cols] + fill
        missing = sparse.coo_array((np.ones(rows.size), (rows, cols)), shape=X.shape)
    return CentredArray(
        values=X, offsets=offsets, missing=missing, fill=fill, n_observed=n_observed
    )
