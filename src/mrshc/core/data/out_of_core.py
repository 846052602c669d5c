"""Data that are too large, or too far away, to be looked at as a whole.

Whatever is asked of them is answered in sweeps over blocks of columns, which are counted: a sweep
is the unit of cost. Columns that were fetched once are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.arrays import Float, Index, Mask
from mrshc.core.data.centred import (
    SMALLEST,
    Center,
    Matrix,
    centred_matrix,
    column_blocks,
    column_summary,
    column_variances,
    offsets_and_fill,
)
from mrshc.core.data.interface import ArraySource, Source, beside, to_host

T = TypeVar("T")

# An array with so many columns is swept too: looking at all of them in each step takes longer.
_MANY = 200_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """What one sweep over all columns tells."""

    means: Float  # (p,), of the observed cells
    counts: Float  # (p,), of them
    constant: Mask  # (p,), whether they are all the same
    row_counts: Float  # (n,), observed cells of each sample
    row_sums: Float  # (n,), of them
    lowest: float  # observed cell
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FarData:
    """Data that were swept once, before anything is done with them."""

    source: Source
    found: Summary

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the columns."""
        return self.source.dtype


def summary(source: Source, *, n_threads: int = 1) -> Summary:
    """Sweep over all columns for their statistics."""
    parts = swept(source, _summary_of, n_threads)
    columns, rows, sums, lowest, highest = zip(*parts, strict=True)
    means, counts, constant = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return Summary(
        means=means,
        counts=counts,
        constant=constant,
        row_counts=np.sum(rows, axis=0),
        row_sums=np.sum(sums, axis=0),
        lowest=min(lowest),
        highest=max(highest),
    )


def _summary_of(
    block: Any, _: int, xp: Any
) -> tuple[tuple[Float, Float, Mask], Float, Float, float, float]:
    missing = xp.isnan(block)
    rows = block.shape[1] - to_host(xp.sum(xp.astype(missing, xp.float64), axis=1))
    lowest = float(xp.min(xp.where(missing, xp.inf, block)))
    highest = float(xp.max(xp.where(missing, -xp.inf, block)))
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values are refused later
        columns = column_summary(block) if xp is np else _device_summary(block, missing, xp)
        observed = xp.where(missing, 0.0, xp.astype(block, xp.float64))
        sums = to_host(xp.sum(observed, axis=1))
    return columns, rows, sums, lowest, highest


def _device_summary(block: Any, missing: Any, xp: Any) -> tuple[Float, Float, Mask]:
    """As `column_summary` of the matrix, in another namespace."""
    part = xp.astype(block, xp.float64)
    counts = xp.sum(xp.astype(~missing, xp.float64), axis=0)
    smallest = xp.min(xp.where(missing, xp.inf, part), axis=0)
    shift = xp.where(missing[0, :], xp.where(counts > 0, smallest, 0.0), part[0, :])
    part = xp.where(missing, 0.0, part - shift)
    means = shift + xp.sum(part, axis=0) / xp.where(counts > 0, counts, 1.0)
    constant = ~xp.any(xp.abs(part) > SMALLEST, axis=0)
    return to_host(means), to_host(counts), to_host(constant)


class FarMatrix:
    """A data matrix minus one offset per column, swept in blocks of columns."""

    def __init__(
        self, data: FarData, *, center: Center, drop_constant: bool, n_threads: int = 1
    ) -> None:
        found = data.found
        self.source = data.source
        self.n_threads = n_threads  # a sweep over blocks that come here uses
        self.n_constant = int(found.constant.sum())
        self.n_observed = int(found.counts.sum())
        self.n_passes = 1  # the summary's
        # Told, during a sweep, the number of the pass and the columns that are done.
        self.watch: Callable[[int, int], None] = lambda _, __: None
        self.offsets, self.fill = offsets_and_fill(
            found.means, found.counts, found.constant, center=center, drop_constant=drop_constant
        )
        self._some_missing = self.n_observed < self.shape[0] * self.shape[1]
        self._n_kept = 0
        self._store = np.empty((0, self.shape[0]), data.dtype)  # columns in rows, to be added to
        self._place = np.full(self.shape[1], -1)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    def sweep(self, function: Callable[[Any, int, Any], T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks of columns, as they came."""
        self.n_passes += 1
        done = 0
        for width, result in swept(self.source, partial(_with_width, function), self.n_threads):
            done += width
            self.watch(self.n_passes, done)
            yield result

    @property
    def is_kept(self) -> Mask:
        """Which columns are kept here."""
        return self._place >= 0

    def keep(self, indices: Index, columns: NDArray[Any]) -> None:
        """Keep some columns, (n, m), that are not kept yet."""
        size, more = self._n_kept, indices.size
        if size + more > self._store.shape[0]:
            room = np.empty((max(2 * size, size + more), self.shape[0]), self._store.dtype)
            room[:size] = self._store[:size]
            self._store = room
        self._store[size : size + more] = columns.T
        self._place[indices] = np.arange(size, size + more)
        self._n_kept += more

    def part(self, indices: Index) -> Matrix:
        """Return the matrix of some columns that are kept."""
        offsets, cells = self.offsets[indices], None
        # By rows, products take a third of the time.
        values = np.ascontiguousarray(self._store.take(self._place[indices], axis=0).T)
        if self._some_missing:
            rows, columns = np.nonzero(np.isnan(values))
            values[rows, columns] = offsets[columns] + self.fill
            cells = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=values.shape)
        return Matrix(
            values=values,
            offsets=offsets,
            missing=cells,
            fill=self.fill,
            n_observed=self.n_observed,
            n_constant=0,
        )

    def columns(self, indices: Index) -> Float:
        """Return some columns as they came, not centred, in double precision, NaN if missing."""
        out = np.empty((self.shape[0], indices.size))
        here = self._place[indices] >= 0
        out[:, here] = self._store[self._place[indices[here]]].T
        if not here.all():
            out[:, ~here] = self.source.columns(indices[~here])
        return out

    def visit(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield function(columns) for some columns, as they came, a block at a time, and which."""
        if indices.size < self.shape[1] / 8:
            for block in column_blocks(self.shape[0], indices.size):
                yield block, function(self.columns(indices[block]))
        else:
            wanted = np.zeros(self.shape[1], dtype=bool)
            wanted[indices] = True
            position = np.cumsum(wanted) - 1
            place = np.empty(indices.size, np.intp)
            place[position[indices]] = np.arange(indices.size)
            done = 0
            for count, results in self.sweep(partial(_visit_block, wanted=wanted, visit=function)):
                for m, result in results:
                    yield place[done : done + m], result
                    done += m
                assert count == sum(m for m, _ in results)

    @cached_property
    def gram(self) -> Float:
        """The inner products of the samples, X X', (n, n)."""
        return self._gram_of(np.ones(self.shape[1], dtype=bool))

    @cached_property
    def unit(self) -> float:
        """About the length of a column."""
        return float(np.sqrt(np.trace(self.gram) / self.shape[1])) or 1.0

    def gram_without(self, indices: Index) -> Float:
        """Return the inner products of the samples in all columns but some."""
        part = np.nan_to_num(self.columns(indices) - self.offsets[indices], nan=self.fill)
        rest = self.gram - part @ part.T
        if np.trace(rest) > 1e-6 * np.trace(self.gram):
            return rest
        others = np.ones(self.shape[1], dtype=bool)
        others[indices] = False
        return self._gram_of(others)

    def _gram_of(self, wanted: Mask) -> Float:
        sweep = self.sweep(partial(_gram_of_block, centring=self.centring, wanted=wanted))
        total = np.zeros((self.shape[0], self.shape[0]))
        for part in sweep:
            total += part
        return total

    @property
    def centring(self) -> Centring:
        """What turns columns as they came into centred ones without gaps."""
        return Centring(offsets=self.offsets, fill=self.fill if self._some_missing else None)


AnyMatrix = Matrix | FarMatrix


def columns_of(data: NDArray[Any] | FarData, indices: Index) -> Float:
    """Return some columns of data, near or far, in double precision."""
    columns = data.source.columns(indices) if isinstance(data, FarData) else data[:, indices]
    return columns.astype(np.float64)


def variances_of(data: NDArray[Any] | FarData) -> Float:
    """Return the variance of the observed cells of each column of data, near or far."""
    if isinstance(data, FarData):
        return np.concatenate(list(data.source.sweep(_variances_of_block)))
    return column_variances(data)


def _variances_of_block(block: Any, _: int, __: Any) -> Float:
    return column_variances(to_host(block))


def matrix_of(
    data: NDArray[Any] | FarData, *, center: Center, drop_constant: bool, n_threads: int = 1
) -> AnyMatrix:
    """Return data, near or far, as the algorithms see them."""
    if not isinstance(data, FarData) and data.shape[1] >= _MANY > data.shape[0]:
        source = ArraySource(data)
        data = FarData(source=source, found=summary(source, n_threads=n_threads))
    if isinstance(data, FarData):
        return FarMatrix(data, center=center, drop_constant=drop_constant, n_threads=n_threads)
    return centred_matrix(data, center=center, drop_constant=drop_constant)


def swept(source: Source, function: Callable[[Any, int, Any], T], n_threads: int) -> Iterator[T]:
    """Yield function(block, start, xp) for all blocks, in order, in threads if they come here."""
    if n_threads == 1 or not source.is_here:
        yield from source.sweep(function)
        return
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for block in source.sweep(_as_it_is):
            waiting.append(pool.submit(function, *block))
            if len(waiting) > n_threads:  # few blocks are held
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _with_width(
    function: Callable[[Any, int, Any], T], block: Any, start: int, xp: Any
) -> tuple[int, T]:
    return block.shape[1], function(block, start, xp)


def _as_it_is(block: Any, start: int, xp: Any) -> tuple[Any, int, Any]:
    return block, start, xp


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centring:
    """Offsets of the columns, and what missing cells hold after they are subtracted."""

    offsets: Float
    fill: float | None  # None: nothing is missing

    def __call__(self, block: Any, start: int, xp: Any) -> Any:
        """Return a block of columns, centred, in double precision."""
        offsets = beside(block, self.offsets[start : start + block.shape[1]], xp)
        part = xp.astype(block, xp.float64) - offsets
        return part if self.fill is None else xp.where(xp.isnan(part), self.fill, part)


def _gram_of_block(block: Any, start: int, xp: Any, *, centring: Centring, wanted: Mask) -> Float:
    part = centring(block, start, xp)
    mask = wanted[start : start + block.shape[1]]
    if not mask.all():
        part = part * beside(block, mask.astype(np.float64), xp)
    return to_host(part @ part.T)


def _visit_block(
    block: Any, start: int, _: Any, *, wanted: Mask, visit: Callable[[Float], T]
) -> tuple[int, list[tuple[int, T]]]:
    columns = np.flatnonzero(wanted[start : start + block.shape[1]])
    values = to_host(block)
    found = []
    for part in column_blocks(block.shape[0], columns.size):
        some = columns[part]
        found.append((some.size, visit(values[:, some].astype(np.float64))))
    return columns.size, found
