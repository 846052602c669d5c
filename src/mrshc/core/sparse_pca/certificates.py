"""Certificates: what makes a component that was found on a working set that of all features.

A component that was found on some columns is that of all columns if no other column would have
entered on the way: at each u of the alternation, no other column has an inner product with u above
the threshold of that step. Many such certificates are checked in one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.data.host_transfer import to_device_of, to_host
from mrshc.core.data.statistics import column_blocks
from mrshc.core.kernels.column_sets import sets_contain
from mrshc.core.kernels.leader_groups import (
    VectorGroups,
    leader_clustering,
    update_largest_products,
)

# Columns with a product above this multiple of a threshold are reported too: on a slightly larger
# working set, the thresholds are slightly different. Chosen on one simulated data set; it changes
# the number of passes, not the result.
NEAR_VIOLATION = 0.97

# Vectors within this distance, in multiples of the threshold, are tested together. Chosen likewise.
_GROUP_RADIUS = 0.15

# Products that differ by less from a threshold cannot be told from it because of rounding.
_ROUNDING = 1e-9

# A threshold of zero, where the bound does not bind, is replaced by this multiple of the typical
# length of a column, so that quotients stay finite.
_SMALLEST_THRESHOLD = 1e-100

# Products held on a device at a time: 2 GB in double precision.
_DEVICE_CELLS = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """The thresholds that a component on a working set implies for all other columns."""

    working_set: Index  # columns it was found on, increasing
    scores: Float  # (T, n), u of each step
    thresholds: Float  # (T,), of the absolute inner products with u
    fill_change: float  # by how much the earlier components lower the fill of missing cells
    max_violations: int  # columns to add to the working set at most if it fails


class Violations(NamedTuple):
    """Columns outside the working sets with products near or above a threshold."""

    certificates: Index  # which certificate
    columns: Index
    products: Float  # the largest, in multiples of the threshold


class ColumnSets(NamedTuple):
    """Sets of columns, one after the other: set i is columns[starts[i]:starts[i + 1]]."""

    starts: Index
    columns: Index  # increasing within each set

    @classmethod
    def of(cls, sets: Sequence[Index]) -> ColumnSets:
        """Put some sets one after the other."""
        sizes = [0, *(columns.size for columns in sets)]
        return cls(np.cumsum(sizes), np.concatenate(sets))

    def contain(self, sets: Index, columns: Index) -> Mask:
        """Return whether each column is in the set that is given with it."""
        return sets_contain(self.starts, self.columns, sets, columns)


class _Groups(NamedTuple):
    """Groups of close vectors: a bound for the centre and the radius holds for all members."""

    order: Index  # (N,), members of the first group, of the second, ...
    ends: Index  # (groups,), where each ends
    centres: Float  # (groups, n)
    radii: Float  # (groups,)
    largest_shifts: Float  # (groups,)


@dataclass(frozen=True, kw_only=True, eq=False)
class CertificateBatch:
    """Certificates that are checked together.

    They hold if no column outside of the working set has a product above one with any vector of
    its certificate. Columns are given in multiples of `unit`, about the length of one.
    """

    vectors: Float  # (N, n), u divided by its threshold, times the unit
    shifts: Float  # (N,), change of the fill of missing cells, divided by the threshold, absolute
    owners: Index  # (N,), which certificate each vector belongs to
    working_sets: ColumnSets
    n_certificates: int
    unit: float
    _on_device: list[Any] = field(default_factory=list)  # vectors and shifts, copied once

    @classmethod
    def of(cls, certificates: Sequence[Certificate], *, unit: float) -> CertificateBatch:
        """Put some certificates, each with at least one step, together."""
        counts = [c.thresholds.size for c in certificates]
        thresholds = np.concatenate([c.thresholds for c in certificates]) * (1.0 - _ROUNDING)
        thresholds = np.maximum(thresholds, _SMALLEST_THRESHOLD * unit)
        scores = np.concatenate([c.scores for c in certificates])
        changes = np.repeat(np.abs([c.fill_change for c in certificates]), counts)
        return cls(
            vectors=scores * (unit / thresholds)[:, None],
            shifts=changes / thresholds,
            owners=np.repeat(np.arange(len(certificates)), counts),
            working_sets=ColumnSets.of([c.working_set for c in certificates]),
            n_certificates=len(certificates),
            unit=unit,
        )

    @cached_property
    def groups(self) -> _Groups:
        """Vectors grouped by distance. Not used on a device."""
        leaders, labels = leader_clustering(self.vectors, _GROUP_RADIUS)
        apart = np.linalg.norm(self.vectors - self.vectors[leaders[labels]], axis=1)
        return _Groups(
            order=np.argsort(labels, kind="stable"),
            ends=np.cumsum(np.bincount(labels)),
            centres=self.vectors[leaders],
            radii=_largest_of_each(apart, labels),
            largest_shifts=_largest_of_each(self.shifts, labels),
        )

    def check(self, block: Any, gaps: Any, start: int, xp: Any) -> Violations:
        """Check a block of centred columns, whose first is column `start` of all.

        `gaps` holds the square root of the number of missing cells of each column; None: nothing
        is missing.
        """
        large = self._large_by_groups if xp is np else self._large_on_device
        found = [_NOTHING, *large(block, gaps, xp)]
        owners, columns, products = (np.concatenate(parts) for parts in zip(*found, strict=True))
        columns += start
        outside = ~self.working_sets.contain(owners, columns)
        return Violations(owners[outside], columns[outside], products[outside])

    def _large_by_groups(self, block: Float, gaps: Float | None, _: Any) -> Iterator[Violations]:
        """Yield large products: groups are tested first, then the members of those in question."""
        if gaps is None:
            gaps = np.zeros(block.shape[1])
        groups = VectorGroups(
            self.vectors, self.shifts, self.owners, self.groups.order, self.groups.ends
        )
        for part in column_blocks(*block.shape):
            columns = np.ascontiguousarray(block[:, part].T / self.unit)
            largest = np.zeros((self.n_certificates, columns.shape[0]))
            in_question = self._groups_in_question(columns, gaps[part])
            update_largest_products(groups, in_question, columns, gaps[part], largest)
            owners, found = np.nonzero(largest > NEAR_VIOLATION)
            yield Violations(owners, found + part.start, largest[owners, found])

    def _groups_in_question(self, columns: Float, gaps: Float) -> Mask:
        """Return which groups may have a member with a large product, (groups, columns)."""
        groups = self.groups
        with np.errstate(over="ignore", invalid="ignore"):
            centres, single = groups.centres.astype(np.float32), columns.astype(np.float32)
            rounding = 4.0 * single.shape[1] * np.finfo(np.float32).eps
            radii = groups.radii + rounding * np.linalg.norm(centres, axis=1)
            bound = np.abs(centres @ single.T)
            lengths = np.sqrt(np.einsum("ji,ji->j", single, single))
            bound += radii.astype(np.float32)[:, None] * lengths
            if gaps.any():
                bound += np.outer(groups.largest_shifts, gaps)
        return ~(bound <= NEAR_VIOLATION)  # NaN, by overflow in single precision, is in question

    def _large_on_device(self, block: Any, gaps: Any, xp: Any) -> Iterator[Violations]:
        """Yield the same from all vectors: on a device this costs less than to choose."""
        if not self._on_device:  # once for all blocks
            vectors, shifts = self._padded()
            self._on_device[:] = to_device_of(block, vectors, xp), to_device_of(block, shifts, xp)
        vectors, shifts = self._on_device
        n_vectors, n_columns = int(vectors.shape[0]), int(block.shape[1])
        n_steps = n_vectors // self.n_certificates
        at_once = max(1, _DEVICE_CELLS // (n_columns * n_steps)) * n_steps
        for first in range(0, n_vectors, at_once):
            some = slice(first, min(first + at_once, n_vectors))
            products = xp.abs(vectors[some, :] @ block)
            if gaps is not None:
                products = products + shifts[some, None] * gaps[None, :]
            largest = xp.max(xp.reshape(products, (-1, n_steps, n_columns)), axis=1)
            i, j = xp.nonzero(largest > NEAR_VIOLATION)
            yield Violations(to_host(i) + first // n_steps, to_host(j), to_host(largest[i, j]))

    def _padded(self) -> tuple[Float, Float]:
        """Return vectors and shifts, equally many for each certificate, filled up with zeros."""
        counts = np.bincount(self.owners)
        n_steps = int(counts.max())
        step = np.arange(self.owners.size) - np.repeat(np.cumsum(counts) - counts, counts)
        vectors = np.zeros((self.n_certificates, n_steps, self.vectors.shape[1]))
        vectors[self.owners, step] = self.vectors / self.unit
        shifts = np.zeros((self.n_certificates, n_steps))
        shifts[self.owners, step] = self.shifts
        return vectors.reshape(-1, vectors.shape[2]), shifts.ravel()


_NOTHING = Violations(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def _largest_of_each(values: Float, labels: Index) -> Float:
    largest = np.zeros(labels.max() + 1)
    np.maximum.at(largest, labels, values)
    return largest
