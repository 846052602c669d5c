"""Certificates that a component found on a working set is optimal for all features.

A component that was found on some columns is that of all columns if no other column would have
entered during the alternation: at each iterate u, the absolute inner product of every other column
with u is at most the soft threshold of that step. Many certificates are checked together, in one
matrix product for each block of columns.
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
from mrshc.core.kernels.column_sets import are_in_sets
from mrshc.core.kernels.leader_groups import (
    VectorGroups,
    leader_clustering,
    update_largest_products,
)

# Columns with a product above this multiple of a threshold are reported too: thresholds decrease a
# little when the working set grows, and these columns would violate the next certificate. Chosen on
# one simulated data set. It affects the number of passes, not the result.
NEAR_VIOLATION = 0.97

# Vectors within this distance of each other, in multiples of the threshold, are bounded together.
# A larger radius gives fewer groups but looser bounds. Chosen on one simulated data set. It affects
# the time, not the result.
_GROUP_RADIUS = 0.15

# Thresholds are lowered by this relative amount, since rounding errors of inner products in double
# precision are far below it. It can only make certification stricter.
_RELATIVE_ROUNDING = 1e-9

# A threshold of zero, where the L1 bound is inactive, is replaced by this multiple of the typical
# length of a column. It is small enough to act as zero and large enough for quotients to be finite.
_MIN_RELATIVE_THRESHOLD = 1e-100

# Inner products computed on a device at a time: 2 GB in double precision, which common devices
# hold. It affects the memory, not the result.
_MAX_DEVICE_PRODUCTS = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """The thresholds that a component on a working set implies for all other columns.

    Attributes
    ----------
    working_set : ndarray of shape (m,)
        Columns that the component was found on, increasing.
    scores : ndarray of shape (n_steps, n_samples)
        The iterate u of each step of the alternation.
    thresholds : ndarray of shape (n_steps,)
        Soft threshold of each step: an upper limit of absolute inner products with u.
    fill_change : float
        Amount by which earlier components lower the value that missing cells are filled with.
    max_violations : int
        Largest number of columns to add to the working set if the certificate fails.
    """

    working_set: Index
    scores: Float
    thresholds: Float
    fill_change: float
    max_violations: int


class Violations(NamedTuple):
    """Columns outside the working sets whose inner products are near or above a threshold."""

    certificates: Index  # (m,), position of the violated certificate in its batch
    columns: Index  # (m,)
    products: Float  # (m,), the largest over all steps, in multiples of the threshold


class ColumnSets(NamedTuple):
    """Sets of columns in one array: set i is columns[starts[i]:starts[i + 1]]."""

    starts: Index  # (sets + 1,)
    columns: Index  # increasing within each set

    @classmethod
    def from_list(cls, sets: Sequence[Index]) -> ColumnSets:
        """Concatenate sets of columns."""
        sizes = [0, *(columns.size for columns in sets)]
        return cls(np.cumsum(sizes), np.concatenate(sets))

    def are_members(self, sets: Index, columns: Index) -> Mask:
        """Return for each i whether columns[i] is in the set with the number sets[i]."""
        return are_in_sets(self.starts, self.columns, sets, columns)


class _Groups(NamedTuple):
    """Groups of close vectors, so that one bound per column holds for all vectors of a group."""

    order: Index  # (N,), vectors of the first group, of the second, ...
    ends: Index  # (groups,), end of each group in `order`
    centres: Float  # (groups, n)
    radii: Float  # (groups,), largest distance of a vector from its centre
    largest_shifts: Float  # (groups,)


@dataclass(frozen=True, kw_only=True, eq=False)
class CertificateBatch:
    """Certificates that are checked together.

    A certificate holds if no column outside its working set has an absolute inner product above
    one with any of its vectors. Columns are divided by `unit` first, so that products of very
    large or very small data neither overflow nor underflow.

    Attributes
    ----------
    vectors : ndarray of shape (N, n_samples)
        Iterates u of all certificates, divided by their thresholds and multiplied by `unit`.
    shifts : ndarray of shape (N,)
        Absolute change of the fill of missing cells, divided by the threshold.
    owners : ndarray of shape (N,)
        Position of the certificate that each vector belongs to.
    working_sets : ColumnSets
        Working set of each certificate.
    n_certificates : int
        Number of certificates.
    unit : float
        Typical length of a column.
    """

    vectors: Float
    shifts: Float
    owners: Index
    working_sets: ColumnSets
    n_certificates: int
    unit: float
    _device_copies: list[Any] = field(default_factory=list)  # vectors and shifts, copied once

    @classmethod
    def from_certificates(
        cls, certificates: Sequence[Certificate], *, unit: float
    ) -> CertificateBatch:
        """Combine certificates, each of which has at least one step."""
        counts = [c.thresholds.size for c in certificates]
        thresholds = np.concatenate([c.thresholds for c in certificates])
        thresholds = thresholds * (1.0 - _RELATIVE_ROUNDING)
        thresholds = np.maximum(thresholds, _MIN_RELATIVE_THRESHOLD * unit)
        scores = np.concatenate([c.scores for c in certificates])
        changes = np.repeat(np.abs([c.fill_change for c in certificates]), counts)
        return cls(
            vectors=scores * (unit / thresholds)[:, None],
            shifts=changes / thresholds,
            owners=np.repeat(np.arange(len(certificates)), counts),
            working_sets=ColumnSets.from_list([c.working_set for c in certificates]),
            n_certificates=len(certificates),
            unit=unit,
        )

    @cached_property
    def groups(self) -> _Groups:
        """Vectors grouped by distance. Not used on a device."""
        leaders, labels = leader_clustering(self.vectors, _GROUP_RADIUS)
        distances = np.linalg.norm(self.vectors - self.vectors[leaders[labels]], axis=1)
        return _Groups(
            order=np.argsort(labels, kind="stable"),
            ends=np.cumsum(np.bincount(labels)),
            centres=self.vectors[leaders],
            radii=_group_maxima(distances, labels),
            largest_shifts=_group_maxima(self.shifts, labels),
        )

    def check(self, block: Any, missing_norms: Any, start: int, xp: Any) -> Violations:
        """Return the columns of a block that violate a certificate or nearly do.

        Parameters
        ----------
        block : array of shape (n_samples, b)
            Centred columns.
        missing_norms : array of shape (b,) or None
            Square root of the number of missing cells of each column; None if no cell is missing.
            Times the change of the fill, it bounds the change of the product with a unit vector.
        start : int
            Number of the first column of the block.
        xp : module
            Array namespace of the block.
        """
        find = self._near_violations_by_groups if xp is np else self._near_violations_on_device
        parts = [_NO_VIOLATIONS, *find(block, missing_norms, xp)]
        owners, columns, products = (np.concatenate(part) for part in zip(*parts, strict=True))
        columns += start
        outside = ~self.working_sets.are_members(owners, columns)
        return Violations(owners[outside], columns[outside], products[outside])

    def _near_violations_by_groups(
        self, block: Float, missing_norms: Float | None, _: Any
    ) -> Iterator[Violations]:
        """Yield large products: groups are bounded first, then candidates are computed exactly."""
        if missing_norms is None:
            missing_norms = np.zeros(block.shape[1])
        groups = VectorGroups(
            self.vectors, self.shifts, self.owners, self.groups.order, self.groups.ends
        )
        for part in column_blocks(*block.shape):
            # One column after the other in memory, as the compiled loop reads them.
            columns = np.ascontiguousarray(block[:, part].T / self.unit)
            largest = np.zeros((self.n_certificates, columns.shape[0]))
            candidates = self._candidate_groups(columns, missing_norms[part])
            update_largest_products(groups, candidates, columns, missing_norms[part], largest)
            owners, near = np.nonzero(largest > NEAR_VIOLATION)
            yield Violations(owners, near + part.start, largest[owners, near])

    def _candidate_groups(self, columns: Float, missing_norms: Float) -> Mask:
        """Return which groups may have a vector with a large product, (groups, columns).

        For a group with the centre c and the radius r, a column x and any vector g of the group,
        |g'x| <= |c'x| + r |x| by the Cauchy-Schwarz inequality.
        """
        groups = self.groups
        with np.errstate(over="ignore", invalid="ignore"):
            # Single precision halves the time of the product: a bound need not be exact.
            centres, single = groups.centres.astype(np.float32), columns.astype(np.float32)
            # An inner product of n terms has a relative error of at most about n times eps; the
            # factor 4 covers the conversion of both operands and the rounding of the bound.
            rounding = 4.0 * single.shape[1] * np.finfo(np.float32).eps
            radii = groups.radii + rounding * np.linalg.norm(centres, axis=1)
            bound = np.abs(centres @ single.T)
            lengths = np.sqrt(np.einsum("ji,ji->j", single, single))
            bound += radii.astype(np.float32)[:, None] * lengths
            if missing_norms.any():
                bound += np.outer(groups.largest_shifts, missing_norms)
        # Negated, so that NaN from overflow in single precision counts as a candidate.
        return ~(bound <= NEAR_VIOLATION)

    def _near_violations_on_device(
        self, block: Any, missing_norms: Any, xp: Any
    ) -> Iterator[Violations]:
        """Yield large products of all vectors: on a device, selecting groups would cost more."""
        if not self._device_copies:
            vectors, shifts = self._padded_vectors_and_shifts()
            self._device_copies[:] = (
                to_device_of(block, vectors, xp),
                to_device_of(block, shifts, xp),
            )
        vectors, shifts = self._device_copies
        n_vectors, n_columns = int(vectors.shape[0]), int(block.shape[1])
        n_steps = n_vectors // self.n_certificates
        # Whole certificates at a time, so that the maximum over steps is within one slice.
        step = max(1, _MAX_DEVICE_PRODUCTS // (n_columns * n_steps)) * n_steps
        for first in range(0, n_vectors, step):
            part = slice(first, min(first + step, n_vectors))
            products = xp.abs(vectors[part, :] @ block)
            if missing_norms is not None:
                products = products + shifts[part, None] * missing_norms[None, :]
            largest = xp.max(xp.reshape(products, (-1, n_steps, n_columns)), axis=1)
            i, j = xp.nonzero(largest > NEAR_VIOLATION)
            yield Violations(to_host(i) + first // n_steps, to_host(j), to_host(largest[i, j]))

    def _padded_vectors_and_shifts(self) -> tuple[Float, Float]:
        """Return vectors and shifts, padded with zeros to the same number per certificate.

        A zero vector has a product of zero with every column and thus violates nothing. The
        vectors are divided by `unit`, since blocks on a device are not.
        """
        counts = np.bincount(self.owners)
        n_steps = int(counts.max())
        # Position of each vector within its certificate.
        step = np.arange(self.owners.size) - np.repeat(np.cumsum(counts) - counts, counts)
        vectors = np.zeros((self.n_certificates, n_steps, self.vectors.shape[1]))
        vectors[self.owners, step] = self.vectors / self.unit
        shifts = np.zeros((self.n_certificates, n_steps))
        shifts[self.owners, step] = self.shifts
        return vectors.reshape(-1, vectors.shape[2]), shifts.ravel()


_NO_VIOLATIONS = Violations(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def _group_maxima(values: Float, labels: Index) -> Float:
    """Return the largest of the non-negative values with each label."""
    largest = np.zeros(labels.max() + 1)
    np.maximum.at(largest, labels, values)
    return largest
