"""Centred data that are read in blocks of columns; selected columns can be stored in memory.

The number of samples is n, and the number of features is p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.centring import Center, Centring, offsets_and_fill
from mrshc.core.data.column_cache import ColumnCache
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.host_transfer import to_device_of, to_host
from mrshc.core.data.passes import BlockFunction, Passes
from mrshc.core.data.statistics import column_blocks

T = TypeVar("T")

# Selected columns are read individually only if they are less than this share of all columns. A
# larger share is read in a pass over all columns, because reading individual columns takes more
# time per column. The share has not been tuned; it does not affect the results.
_MAX_SHARE_OF_SELECTED_COLUMNS = 1 / 8


class CentredBlocks(CentredMatrix):
    """A centred matrix whose data are read in blocks of columns.

    The attribute `is_on_device` tells whether blocks are arrays on a device, and the attribute
    `is_single` whether they are in single precision.

    Parameters
    ----------
    data : DataMatrix
        The data before centring.
    passes : Passes
        Object that makes passes over the data, counts them, and reports their progress.
    center : {"columns", "grand", "none"}
        Offset of a column: the mean of the column, the mean of all non-missing values of the data,
        or zero.
    drop_constant : bool
        If True, the offset of a constant column is its constant value, whatever the value of
        `center`.
    """

    def __init__(
        self, data: DataMatrix, passes: Passes, *, center: Center, drop_constant: bool
    ) -> None:
        summary = data.summary()
        self._data = data
        self._passes = passes
        self.shape = data.shape
        self.certification = data.certification
        self.n_observed = summary.n_observed
        self.offsets, self.fill = offsets_and_fill(
            summary.columns, center=center, drop_constant=drop_constant
        )
        self._has_missing = summary.has_missing
        self.is_on_device = data.is_on_device
        self.is_complete_on_device = data.is_on_device and not summary.has_missing
        self.is_single = data.dtype == np.float32
        self._cache = ColumnCache(data.shape, data.dtype)
        self._store_lock = Lock()

    @property
    def n_passes(self) -> int:
        """Number of passes over all columns so far."""
        return self._passes.n_passes

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Make one pass over the data: yield function(block, start, xp) for each block, in order.

        The blocks contain columns before centring. `start` is the index of the first column of the
        block, and `xp` is the array namespace of the block, such as numpy.
        """
        return self._passes.map(function)

    @property
    def centring(self) -> Centring:
        """Function that centres a block of columns and fills its missing values."""
        # If the data have no missing values, fill=None avoids a search for NaN in each block.
        return Centring(offsets=self.offsets, fill=self.fill if self._has_missing else None)

    @property
    def is_stored(self) -> Mask:
        """Mask of shape (p,) that is True for columns that are stored in memory."""
        return self._cache.is_stored

    def store(self, indices: Index, columns: NDArray[Any]) -> None:
        """Store m columns in memory.

        `columns` has shape (n, m) and contains the columns at `indices`, before centring. None of
        these columns may already be stored.
        """
        self._cache.add(indices, columns)

    def store_from_data(self, indices: Index) -> None:
        """Store the columns at `indices` in memory, unless they are already stored.

        The columns are read one at a time, which takes little time only for data on a device. This
        method may be called from several threads at the same time.
        """
        if self._cache.contains(indices).all():
            return
        with self._store_lock:
            new = indices[~self._cache.contains(indices)]
            if new.size:
                self._cache.add(new, self._data.columns(new))

    def stored_columns(self, indices: Index) -> CentredArray:
        """Return the columns at `indices`, which must be stored in memory, as a CentredArray."""
        offsets, missing = self.offsets[indices], None
        # Matrix products take a third of the time if rows, rather than columns, are contiguous.
        values = self._cache.take(indices)
        if self._has_missing:
            rows, columns = np.nonzero(np.isnan(values))
            values[rows, columns] = offsets[columns] + self.fill
            missing = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=values.shape)
        return CentredArray(
            values=values,
            offsets=offsets,
            missing=missing,
            fill=self.fill,
            n_observed=self.n_observed,
        )

    def columns(self, indices: Index) -> Float:
        """Return the m columns at `indices`, before centring, as a float64 array of shape (n, m).

        Missing values are NaN.
        """
        out = np.empty((self.shape[0], indices.size))
        stored = self.is_stored[indices]
        out[:, stored] = self._cache.take(indices[stored])
        if not stored.all():
            out[:, ~stored] = self._data.columns(indices[~stored])
        return out

    def centred_columns_on_device(self, indices: Index) -> tuple[Any, Any]:
        """Return the m columns at `indices` after centring, and their array namespace.

        The array has shape (n, m), is in double precision, and is on the device of the data. The
        data must be on a device and have no missing values.
        """
        columns, xp = self._data.columns_on_device(indices)
        centring = Centring(offsets=self.offsets[indices], fill=None)
        return centring(columns, 0, xp), xp

    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to the columns at `indices`, before centring, in blocks.

        For each block, yield the positions of its columns in `indices`, and function(block), where
        `block` is the float64 array of these columns, with NaN for missing values.
        """
        if indices.size < _MAX_SHARE_OF_SELECTED_COLUMNS * self.shape[1]:
            for block in column_blocks(self.shape[0], indices.size):
                yield block, function(self.columns(indices[block]))
            return
        selected = np.zeros(self.shape[1], dtype=bool)
        selected[indices] = True
        # A pass yields the selected columns in increasing order of their indices. `order` contains
        # the positions of these columns in `indices`, in the same order.
        order = np.argsort(indices, kind="stable")
        n_done = 0
        map_block = partial(_map_selected_columns, selected=selected, function=function)
        for results in self.map_blocks(map_block):
            for count, result in results:
                yield order[n_done : n_done + count], result
                n_done += count

    def map_all_columns(
        self,
        function: Callable[[Float], T],
        on_device: BlockFunction[list[tuple[int, T]]],
        *,
        n_jobs: int | None,
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to all columns, before centring, in blocks; see `CentredMatrix`."""
        if not self.is_complete_on_device:
            yield from self.map_columns(np.arange(self.shape[1]), function)
            return
        first = 0
        for results in self.map_blocks(on_device):
            for count, result in results:
                yield slice(first, first + count), result
                first += count

    @cached_property
    def gram(self) -> Float:
        """The Gram matrix XX' of the samples, of shape (n, n), where X is the centred matrix.

        The matrix is computed in one pass over the data when it is first used.
        """
        return self._sum_gram(np.ones(self.shape[1], dtype=bool))

    def release_gram(self) -> None:
        """Keep the Gram matrix, since it would take a pass to compute it again."""

    @cached_property
    def rms_column_norm(self) -> float:
        """Root mean square of the norms of the centred columns; 1 if all norms are zero."""
        return float(np.sqrt(np.trace(self.gram) / self.shape[1])) or 1.0

    def _centred_columns(self, indices: Index) -> Float:
        return np.nan_to_num(self.columns(indices) - self.offsets[indices], nan=self.fill)

    def _recompute_gram_without(self, indices: Index) -> Float:
        others = np.ones(self.shape[1], dtype=bool)
        others[indices] = False
        return self._sum_gram(others)

    def _sum_gram(self, selected: Mask) -> Float:
        """Return the Gram matrix of the selected columns, of shape (n, n).

        `selected` is a mask over all columns. The matrix is computed in one pass over the data.
        """
        block_gram = partial(_block_gram, centring=self.centring, selected=selected)
        total = np.zeros((self.shape[0], self.shape[0]))
        for part in self.map_blocks(block_gram):
            total += part
        return total


def _block_gram(block: Any, start: int, xp: Any, *, centring: Centring, selected: Mask) -> Float:
    """Return the Gram matrix, of shape (n, n), of the selected columns of a block, after centring.

    Parameters
    ----------
    block : array of shape (n, b)
        The columns of the block, before centring.
    start : int
        Index of the first column of the block.
    xp : module
        Array namespace of the block, such as numpy.
    centring : Centring
        Function that centres the block.
    selected : ndarray of bool of shape (p,)
        Mask over all columns of the data.
    """
    part = centring(block, start, xp)
    mask = selected[start : start + block.shape[1]]
    if not mask.all():
        # Columns that are not selected are multiplied by zero, since the array API standard does
        # not support boolean indexing along one axis.
        part = part * to_device_of(block, mask.astype(np.float64), xp)
    return to_host(part @ part.T)


def _map_selected_columns(
    block: Any, start: int, _: Any, *, selected: Mask, function: Callable[[Float], T]
) -> list[tuple[int, T]]:
    """Apply a function to the selected columns of a block, in parts of limited size.

    Return one pair (number of columns, function(columns)) for each part. `start` is the index of
    the first column of the block, and `selected` is a mask over all columns of the data.
    """
    columns = np.flatnonzero(selected[start : start + block.shape[1]])
    values = to_host(block)
    results = []
    # The block is processed in small parts, since `function` creates temporary arrays in double
    # precision.
    for part in column_blocks(block.shape[0], columns.size):
        # A slice is not copied before the conversion.
        chosen = part if columns.size == block.shape[1] else columns[part]
        # Most functions need the values of each feature next to each other.
        features = values[:, chosen].T.astype(np.float64, order="C")
        results.append((len(features), function(features.T)))
    return results
