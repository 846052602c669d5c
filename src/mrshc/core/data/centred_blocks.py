"""Centred data that are read in blocks of columns; selected columns can be kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
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

# A larger share of the columns is read in a pass over all of them, since reading selected columns
# costs more per column. Not tuned: results do not depend on it.
_MAX_SHARE_OF_SELECTED_COLUMNS = 1 / 8


class CentredBlocks(CentredMatrix):
    """A centred matrix that is read in blocks of columns.

    Parameters
    ----------
    data : DataMatrix
        The data as given.
    passes : Passes
        Passes over the data, with their number of threads and their progress.
    center : {"columns", "grand", "none"}
        Offset of a column: its mean, the mean of all observed cells, or zero.
    drop_constant : bool
        Whether the offset of a constant column is its value for every `center`.
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
        self._cache = ColumnCache(data.shape, data.dtype)

    @property
    def n_passes(self) -> int:
        """Passes over all columns so far."""
        return self._passes.n_passes

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks of columns as given: one pass."""
        return self._passes.map(function)

    @property
    def centring(self) -> Centring:
        """Function that centres a block of columns as given and fills its missing cells."""
        # Without missing cells, blocks need not be searched for them.
        return Centring(offsets=self.offsets, fill=self.fill if self._has_missing else None)

    @property
    def is_stored(self) -> Mask:
        """Whether each column is kept in memory, (p,)."""
        return self._cache.is_stored

    def store(self, indices: Index, columns: NDArray[Any]) -> None:
        """Keep the columns, (n, m), at m indices that are not kept yet."""
        self._cache.add(indices, columns)

    def stored_columns(self, indices: Index) -> CentredArray:
        """Return the centred array of columns that are kept in memory."""
        offsets, missing = self.offsets[indices], None
        # Products take a third of the time if the rows are contiguous.
        values = np.ascontiguousarray(self._cache.take(indices).T)
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
        """Return the columns at m indices as given, (n, m), in float64, NaN where missing."""
        out = np.empty((self.shape[0], indices.size))
        stored = self.is_stored[indices]
        out[:, stored] = self._cache.take(indices[stored]).T
        if not stored.all():
            out[:, ~stored] = self._data.columns(indices[~stored])
        return out

    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield positions in `indices` and function(columns) for blocks of columns as given."""
        if indices.size < _MAX_SHARE_OF_SELECTED_COLUMNS * self.shape[1]:
            for block in column_blocks(self.shape[0], indices.size):
                yield block, function(self.columns(indices[block]))
            return
        selected = np.zeros(self.shape[1], dtype=bool)
        selected[indices] = True
        # A pass yields the columns in increasing order; `order` maps them to their positions.
        order = np.argsort(indices, kind="stable")
        n_done = 0
        map_block = partial(_map_selected_columns, selected=selected, function=function)
        for results in self.map_blocks(map_block):
            for count, result in results:
                yield order[n_done : n_done + count], result
                n_done += count

    @cached_property
    def gram(self) -> Float:
        """The Gram matrix X X' of the samples, (n, n)."""
        return self._sum_gram(np.ones(self.shape[1], dtype=bool))

    @cached_property
    def rms_column_norm(self) -> float:
        """Root mean square of the Euclidean norms of the columns; one if all are zero."""
        return float(np.sqrt(np.trace(self.gram) / self.shape[1])) or 1.0

    def _centred_columns(self, indices: Index) -> Float:
        return np.nan_to_num(self.columns(indices) - self.offsets[indices], nan=self.fill)

    def _recompute_gram_without(self, indices: Index) -> Float:
        others = np.ones(self.shape[1], dtype=bool)
        others[indices] = False
        return self._sum_gram(others)

    def _sum_gram(self, selected: Mask) -> Float:
        """Return the Gram matrix of the selected columns, summed over the blocks of a pass."""
        block_gram = partial(_block_gram, centring=self.centring, selected=selected)
        total = np.zeros((self.shape[0], self.shape[0]))
        for part in self.map_blocks(block_gram):
            total += part
        return total


def _block_gram(block: Any, start: int, xp: Any, *, centring: Centring, selected: Mask) -> Float:
    """Return the Gram matrix of the selected columns of a block, (n, n)."""
    part = centring(block, start, xp)
    mask = selected[start : start + block.shape[1]]
    if not mask.all():
        # Multiplied by zeros, since the array API standard has no boolean index for one axis.
        part = part * to_device_of(block, mask.astype(np.float64), xp)
    return to_host(part @ part.T)


def _map_selected_columns(
    block: Any, start: int, _: Any, *, selected: Mask, function: Callable[[Float], T]
) -> list[tuple[int, T]]:
    """Return numbers of columns and function(columns) for the selected columns of a block."""
    columns = np.flatnonzero(selected[start : start + block.shape[1]])
    values = to_host(block)
    results = []
    # In small parts, since the function makes temporaries in double precision.
    for part in column_blocks(block.shape[0], columns.size):
        chosen = columns[part]
        results.append((chosen.size, function(values[:, chosen].astype(np.float64))))
    return results
