"""All that the algorithms ask of the data: two products, column statistics, some columns.

The data are never centred in place and never copied. Products subtract the offsets on the fly and
add up in double precision, so float32 data stay float32 and lose nothing to the centring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.arrays import Float, Index, Mask
from mrshc.core.kernels.products import column_norms, multiply, multiply_transposed

T = TypeVar("T")

Center = Literal["columns", "grand", "none"]

# Differences below this have no square: a column without larger ones counts as constant.
SMALLEST = 1e-150

# What is left of a difference must be no smaller part of the whole, or it has too few digits.
_DIGITS_LEFT = 1e-6

# Temporaries are made for this many cells at a time: 4 MB in double precision.
_BLOCK_CELLS = 1 << 19


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A data matrix minus one offset per column, with its missing cells filled."""

    values: NDArray[Any]  # (n, p), float32 or float64, C- or F-contiguous, no NaN
    offsets: Float  # (p,), subtracted from every row
    missing: sparse.coo_array | None  # (n, p), the missing cells; None: all were observed
    fill: float  # what missing cells hold after the offset is subtracted: the mean of the others
    n_observed: int  # cells that are not missing, of all columns that there are
    n_constant: int  # columns that hold one value only

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        n, p = self.values.shape
        return n, p

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
        """Return some columns as they came, not centred, in double precision, NaN if missing."""
        out = np.ascontiguousarray(self.values[:, indices], dtype=np.float64)
        if self.missing is not None:
            cells = self._missing_by_column[:, indices].tocoo()
            out[cells.coords] = np.nan
        return out

    def visit(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield function(columns) for some columns, as they came, a block at a time, and which."""
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

    def gram_without(self, indices: Index) -> Float:
        """Return the inner products of the samples in all columns but some."""
        part = self._centred(indices)
        rest = self.gram - part @ part.T
        if np.trace(rest) > _DIGITS_LEFT * np.trace(self.gram):
            return rest
        # Next to columns of huge variance, the difference would be rounding errors.
        others = np.setdiff1d(np.arange(self.shape[1]), indices, assume_unique=True)
        rest = np.zeros_like(rest)
        for block in column_blocks(self.shape[0], others.size):
            part = self._centred(others[block])
            rest += part @ part.T
        return rest

    def cross_product(self) -> Float:
        """Return X'X, (p, p). Only for p <= n."""
        n, p = self.shape
        total = np.zeros((p, p))
        step = max(1, _BLOCK_CELLS // p)
        for start in range(0, n, step):
            part = self.values[start : start + step] - self.offsets
            total += part.T @ part
        return total


def centred_matrix(X: NDArray[Any], *, center: Center, drop_constant: bool) -> Matrix:
    """Wrap an array so that products see it centred.

    With `drop_constant` a constant column is offset by its own value, whatever the centring: its
    residual is exactly zero and no component can load on it.

    Missing cells (NaN) are filled with the mean of all observed cells after centring, as PMA does;
    only then is X copied.
    """
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        X = np.ascontiguousarray(X)
    means, counts, constant = column_summary(X)
    n_observed = counts.sum()
    offsets, fill = offsets_and_fill(
        means, counts, constant, center=center, drop_constant=drop_constant
    )
    missing = None
    if n_observed < X.size:
        rows, cols = np.nonzero(np.isnan(X))
        X = X.copy(order="K")
        X[rows, cols] = offsets[cols] + fill
        missing = sparse.coo_array((np.ones(rows.size), (rows, cols)), shape=X.shape)
    return Matrix(
        values=X,
        offsets=offsets,
        missing=missing,
        fill=fill,
        n_observed=int(n_observed),
        n_constant=int(constant.sum()),
    )


def offsets_and_fill(
    means: Float, counts: Float, constant: Mask, *, center: Center, drop_constant: bool
) -> tuple[Float, float]:
    """Return what is subtracted from each column, and the mean of the observed cells after that."""
    n_observed = counts.sum()
    offsets = {
        "columns": means,
        "grand": np.full(means.size, float(means @ counts) / n_observed),
        "none": np.zeros(means.size),
    }[center]
    if drop_constant:
        offsets = np.where(constant, means, offsets)
    return offsets, float((means - offsets) @ counts / n_observed)


def n_constant_columns(X: NDArray[Any]) -> int:
    """Return the number of columns whose observed cells are all the same."""
    return int(column_summary(X)[2].sum())


def column_variances(X: NDArray[Any]) -> Float:
    """Return the variance of the observed cells of each column, exactly zero where it is constant.

    A single observed cell does not vary.
    """
    variances = np.empty(X.shape[1])
    for block in column_blocks(*X.shape):
        # Shifting by an observed cell makes constant columns exact and large offsets harmless.
        part, observed = _shifted(X[:, block])[:2]
        counts = observed.sum(axis=0)
        part -= np.nansum(part, axis=0) / np.maximum(counts, 1)
        variances[block] = np.nansum(np.square(part), axis=0) / np.maximum(counts - 1, 1)
    return variances


def column_summary(X: NDArray[Any]) -> tuple[Float, Float, Mask]:
    """Return mean and number of the observed cells of each column, and whether it is constant."""
    p = X.shape[1]
    means, counts, constant = np.empty(p), np.empty(p), np.empty(p, dtype=bool)
    for block in column_blocks(*X.shape):
        # Shifted by an observed cell, so that a constant column has exactly its value as mean.
        part, observed, shift = _shifted(X[:, block])
        counts[block] = observed.sum(axis=0)
        means[block] = shift + np.nansum(part, axis=0) / np.maximum(counts[block], 1)
        constant[block] = ~np.any((np.abs(part) > SMALLEST) & observed, axis=0)
    return means, counts, constant


def _shifted(X: NDArray[Any]) -> tuple[Float, Mask, Float]:
    """Return columns less their first observed cell, which cells are observed, and that cell."""
    part = X.astype(np.float64)
    observed = ~np.isnan(part)
    # A column without any is taken to hold zeros.
    shift = np.nan_to_num(part[observed.argmax(axis=0), np.arange(part.shape[1])])
    part -= shift
    return part, observed, shift


def column_blocks(n: int, p: int) -> Iterator[slice]:
    """Yield slices of p columns, small enough for temporaries of n rows in double precision."""
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, p, step):
        yield slice(start, min(start + step, p))
