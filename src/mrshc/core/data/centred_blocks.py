"""Centred data that are read in blocks of columns; columns that were read once can be kept."""

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

# More than this share of the columns is read in a pass over all of them, not one by one. Not
# tuned: results do not depend on it.
_MANY_COLUMNS = 1 / 8


class CentredBlocks(CentredMatrix):
    """A centred matrix that is read in blocks of columns.

    Parameters
    ----------
    data : DataMatrix
        The data as given.
    passes : Passes
        How to pass over them.
    center, drop_constant
        As for :meth:`DataMatrix.centred`.
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
            summary.means,
            summary.counts,
            summary.constant,
            center=center,
            drop_constant=drop_constant,
        )
        self._has_missing = summary.has_missing
        self._stored = ColumnCache(data.shape, data.dtype)

    @property
    def n_passes(self) -> int:
        """Passes over all columns so far."""
        return self._passes.n_passes

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks of columns as given: one pass."""
        return self._passes.map(function)

    @property
    def centring(self) -> Centring:
        """What turns a block of columns as given into a centred one without missing cells."""
        return Centring(offsets=self.offsets, fill=self.fill if self._has_missing else None)

    @property
    def is_stored(self) -> Mask:
        """Which columns are kept in memory."""
        return self._stored.is_stored

    def store(self, indices: Index, columns: NDArray[Any]) -> None:
        """Keep some columns, (n, m), that are not kept yet."""
        self._stored.add(indices, columns)

    def stored_columns(self, indices: Index) -> CentredArray:
        """Return the centred matrix of some columns that are kept in memory."""
        offsets, cells = self.offsets[indices], None
        # By rows, products take a third of the time.
        values = np.ascontiguousarray(self._stored.take(indices).T)
        if self._has_missing:
            rows, columns = np.nonzero(np.isnan(values))
            values[rows, columns] = offsets[columns] + self.fill
            cells = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=values.shape)
        return CentredArray(
            values=values,
            offsets=offsets,
            missing=cells,
            fill=self.fill,
            n_observed=self.n_observed,
        )

    def columns(self, indices: Index) -> Float:
        """Return some columns as given, not centred, in double precision, NaN if missing."""
        out = np.empty((self.shape[0], indices.size))
        stored = self.is_stored[indices]
        out[:, stored] = self._stored.take(indices[stored]).T
        if not stored.all():
            out[:, ~stored] = self._data.columns(indices[~stored])
        return out

    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield positions and function(columns) for some columns as given, a block at a time."""
        if indices.size < _MANY_COLUMNS * self.shape[1]:
            for block in column_blocks(self.shape[0], indices.size):
                yield block, function(self.columns(indices[block]))
            return
        wanted = np.zeros(self.shape[1], dtype=bool)
        wanted[indices] = True
        # Blocks come in the order of the columns; the results belong in the order of the indices.
        order = np.argsort(indices, kind="stable")
        done = 0
        for results in self.map_blocks(partial(_map_wanted, wanted=wanted, function=function)):
            for count, result in results:
                yield order[done : done + count], result
                done += count

    @cached_property
    def gram(self) -> Float:
        """The inner products of the samples, X X', (n, n)."""
        return self._gram_of(np.ones(self.shape[1], dtype=bool))

    @cached_property
    def typical_length(self) -> float:
        """Root mean square length of the columns."""
        return float(np.sqrt(np.trace(self.gram) / self.shape[1])) or 1.0

    def _centred_columns(self, indices: Index) -> Float:
        return np.nan_to_num(self.columns(indices) - self.offsets[indices], nan=self.fill)

    def _gram_of_others(self, indices: Index) -> Float:
        others = np.ones(self.shape[1], dtype=bool)
        others[indices] = False
        return self._gram_of(others)

    def _gram_of(self, wanted: Mask) -> Float:
        gram_of_block = partial(_gram_of_block, centring=self.centring, wanted=wanted)
        total = np.zeros((self.shape[0], self.shape[0]))
        for part in self.map_blocks(gram_of_block):
            total += part
        return total


def _gram_of_block(block: Any, start: int, xp: Any, *, centring: Centring, wanted: Mask) -> Float:
    part = centring(block, start, xp)
    mask = wanted[start : start + block.shape[1]]
    if not mask.all():
        part = part * to_device_of(block, mask.astype(np.float64), xp)
    return to_host(part @ part.T)


def _map_wanted(
    block: Any, start: int, _: Any, *, wanted: Mask, function: Callable[[Float], T]
) -> list[tuple[int, T]]:
    """Return numbers of columns and function(columns) for the wanted columns of a block."""
    columns = np.flatnonzero(wanted[start : start + block.shape[1]])
    values = to_host(block)
    results = []
    for part in column_blocks(block.shape[0], columns.size):
        some = columns[part]
        results.append((some.size, function(values[:, some].astype(np.float64))))
    return results
