"""What a sparse component takes for granted about columns it was not shown, and whether it holds.

A component that was sought in some columns is that of all columns if no other one would have been
taken on the way: at each u, none has a slope above the threshold of that step. That is a claim
about products of vectors with columns, and many are tested in one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mrshc.core.arrays import Float, Index, Mask
from mrshc.core.data.centred import column_blocks
from mrshc.core.data.interface import beside, to_host
from mrshc.core.kernels.grouping import (
    VectorGroups,
    leader_clustering,
    update_largest_products,
)

# Columns that come this near to a threshold are reported too: with slightly other columns, the
# next search has slightly other thresholds.
NEAR = 0.97

# Vectors that lie together are tested together, within this part of a threshold.
_TOGETHER = 0.15

# Slopes that differ by less may be told apart by rounding.
_ROUNDING = 1e-9

# A threshold of zero, where the bound does not bind, is taken for this part of the unit: quotients
# stay numbers.
_LEAST = 1e-100

# On a device so many products are held at a time (2 GB).
_DEVICE_CELLS = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """What a component rests on: for each u on the way, the slope above which columns count."""

    shown: Index  # columns it was sought in, increasing
    scores: Float  # (T, n), the u's
    thresholds: Float  # (T,)
    fill_taken: float  # by how much the components before lower the fill of missing cells
    enough: int  # columns to be told at most, if they would have been taken


class Near(NamedTuple):
    """Columns that were not shown to a course and come near one of its thresholds."""

    courses: Index
    columns: Index
    products: Float  # the largest, in multiples of the threshold


class _Groups(NamedTuple):
    """Vectors that lie together: what holds for a centre with room for its radius holds for all."""

    order: Index  # (N,), vectors of the first group, of the second, ...
    ends: Index  # (groups,), where each ends
    centres: Float  # (groups, n)
    radii: Float  # (groups,)
    widest: Float  # (groups,), largest shift


@dataclass(frozen=True, kw_only=True, eq=False)
class Claims:
    """That no column that was not shown has a product of more than one with any of these vectors.

    Columns are to be given in multiples of `unit`, about the length of one.
    """

    vectors: Float  # (N, n), u divided by its threshold, times the unit
    shifts: Float  # (N,), by which missing cells are filled differently, likewise, absolute
    courses: Index  # (N,), which each belongs to
    shown: Index  # course times number of columns, plus column; increasing
    n_columns: int
    n_courses: int
    unit: float
    _there: list[Any] = field(default_factory=list)  # what a device needs, where it is

    @classmethod
    def of(cls, courses: Sequence[Course], *, n_columns: int, unit: float) -> Claims:
        """Claim what courses took for granted."""
        counts = [c.thresholds.size for c in courses]
        thresholds = np.concatenate([c.thresholds for c in courses]) * (1.0 - _ROUNDING)
        thresholds = np.maximum(thresholds, _LEAST * unit)
        return cls(
            vectors=np.concatenate([c.scores for c in courses]) * (unit / thresholds)[:, None],
            shifts=np.repeat(np.abs([c.fill_taken for c in courses]), counts) / thresholds,
            courses=np.repeat(np.arange(len(courses)), counts),
            shown=np.concatenate([i * n_columns + c.shown for i, c in enumerate(courses)]),
            n_columns=n_columns,
            n_courses=len(courses),
            unit=unit,
        )

    @cached_property
    def groups(self) -> _Groups:
        """Vectors that lie together. On a device there is no need for it."""
        leaders, labels = leader_clustering(self.vectors, _TOGETHER)
        apart = np.linalg.norm(self.vectors - self.vectors[leaders[labels]], axis=1)
        return _Groups(
            order=np.argsort(labels, kind="stable"),
            ends=np.cumsum(np.bincount(labels)),
            centres=self.vectors[leaders],
            radii=_largest_of_each(apart, labels),
            widest=_largest_of_each(self.shifts, labels),
        )

    def test(self, part: Any, gaps: Any, start: int, xp: Any) -> Near:
        """Test a block of columns, centred, whose first is column `start` of all.

        `gaps` holds the roots of the numbers of missing cells; None: nothing is missing.
        """
        find = self._in_groups if xp is np else self._on_device
        found = [_NOTHING, *find(part, gaps, xp)]
        courses, columns, products = (np.concatenate(parts) for parts in zip(*found, strict=True))
        columns += start
        keys = courses * self.n_columns + columns
        place = np.searchsorted(self.shown, keys)
        place[place == self.shown.size] = 0
        new = self.shown[place] != keys
        return Near(courses[new], columns[new], products[new])

    def _in_groups(self, part: Float, gaps: Float | None, _: Any) -> Iterator[_Pairs]:
        """Yield courses and columns with large products: groups are tested, then members."""
        if gaps is None:
            gaps = np.zeros(part.shape[1])
        groups = VectorGroups(
            self.vectors, self.shifts, self.courses, self.groups.order, self.groups.ends
        )
        for block in column_blocks(*part.shape):
            columns = np.ascontiguousarray(part[:, block].T / self.unit)
            largest = np.zeros((self.n_courses, columns.shape[0]))
            suspects = self._suspects(columns, gaps[block])
            update_largest_products(groups, suspects, columns, gaps[block], largest)
            courses, found = np.nonzero(largest > NEAR)
            yield courses, found + block.start, largest[courses, found]

    def _suspects(self, columns: Float, gaps: Float) -> Mask:
        """Return which groups may have a member with a large product, (groups, columns)."""
        groups = self.groups
        with np.errstate(over="ignore", invalid="ignore"):
            centres, single = groups.centres.astype(np.float32), columns.astype(np.float32)
            lost = 4.0 * single.shape[1] * np.finfo(np.float32).eps
            room = (groups.radii + lost * np.linalg.norm(centres, axis=1)).astype(np.float32)
            reach = np.abs(centres @ single.T)
            reach += room[:, None] * np.sqrt(np.einsum("ji,ji->j", single, single))
            if gaps.any():
                reach += np.outer(groups.widest, gaps)
        return ~(reach <= NEAR)  # what single precision cannot say is suspicious too

    def _on_device(self, part: Any, gaps: Any, xp: Any) -> Iterator[_Pairs]:
        """Yield the same, from all vectors: on a device this costs less than to choose."""
        if not self._there:  # once for all blocks
            vectors, shifts = self._padded()
            self._there[:] = beside(part, vectors, xp), beside(part, shifts, xp)
        vectors, shifts = self._there
        n_vectors, n_columns = int(vectors.shape[0]), int(part.shape[1])
        n_steps = n_vectors // self.n_courses
        at_once = max(1, _DEVICE_CELLS // (n_columns * n_steps)) * n_steps
        for first in range(0, n_vectors, at_once):
            some = slice(first, min(first + at_once, n_vectors))
            products = xp.abs(vectors[some, :] @ part)
            if gaps is not None:
                products = products + shifts[some, None] * gaps[None, :]
            largest = xp.max(xp.reshape(products, (-1, n_steps, n_columns)), axis=1)
            i, j = xp.nonzero(largest > NEAR)
            yield to_host(i) + first // n_steps, to_host(j), to_host(largest[i, j])

    def _padded(self) -> tuple[Float, Float]:
        """Return vectors and shifts, as many for each course, so that a course is an axis."""
        counts = np.bincount(self.courses)
        n_steps = int(counts.max())
        place = self.courses * n_steps + np.arange(self.courses.size)
        place -= np.repeat(np.cumsum(counts) - counts, counts)
        vectors = np.zeros((self.n_courses * n_steps, self.vectors.shape[1]))
        vectors[place] = self.vectors / self.unit
        shifts = np.zeros(self.n_courses * n_steps)
        shifts[place] = self.shifts
        return vectors, shifts


_Pairs = tuple[Index, Index, Float]
_NOTHING: _Pairs = (np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def _largest_of_each(values: Float, labels: Index) -> Float:
    largest = np.zeros(labels.max() + 1)
    np.maximum.at(largest, labels, values)
    return largest
