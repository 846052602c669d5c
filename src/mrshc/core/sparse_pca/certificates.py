"""Certificates of sparse components that are computed on working sets.

A sparse component is computed by an alternating algorithm, which computes a score vector u and a
soft threshold in each step. A column x has a zero loading in a step if |x'u| is at most the
threshold. If this condition holds in every step for all columns outside the working set, then the
component computed on the working set equals the component computed on all columns. The vectors u
and the thresholds of all steps are the certificate of the component. Many certificates are checked
together in one pass over all columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.data.host_transfer import to_device_of, to_host
from mrshc.core.data.statistics import column_blocks
from mrshc.core.kernels.column_sets import are_in_sets
from mrshc.core.sparse_pca.device_bounds import ColumnBounds, ScaledVectors
from mrshc.core.sparse_pca.grouped_vectors import (
    GroupedVectors,
    group_vectors,
    largest_products,
    may_exceed,
)

# A column nearly violates a certificate if its absolute inner product with u is above this multiple
# of the threshold. Such columns are added to the working set too: thresholds decrease slightly when
# the working set grows, so the columns might violate the next certificate. The value was chosen on
# one simulated data set. It affects the number of passes over the data, but not the result.
NEAR_VIOLATION = 0.97

# Thresholds are lowered by this relative amount, so that rounding errors cannot hide a violation.
# The relative rounding errors of inner products in double precision are much smaller than this
# amount. A larger amount would only make certification stricter.
_RELATIVE_ROUNDING = 1e-9

# The threshold is zero if the L1 bound is inactive. A zero threshold is replaced by this multiple
# of the typical norm of a column. The multiple is small enough to act as zero, and large enough
# that quotients with the threshold as the denominator are finite.
_MIN_RELATIVE_THRESHOLD = 1e-100

# Largest number of inner products that are computed on a device at one time. This number of
# products takes 2 GB in double precision, which fits into the memory of common devices. The value
# does not affect the result.
_MAX_DEVICE_PRODUCTS = 1 << 28

# Up to this number of largest products are copied from a device as they are (1 MB), since further
# calls that select some of them would take more time. The value has not been tuned; it does not
# affect the result.
_MAX_TRANSFERRED = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """Conditions under which a component computed on a working set is valid for all columns.

    The certificate holds if |x'u| is at most the threshold, for every step of the computation and
    every column x outside the working set. If it holds, the component equals the one computed on
    all columns.

    Attributes
    ----------
    working_set : ndarray of shape (m,)
        Indices of the columns from which the component was computed, in increasing order.
    scores : ndarray of shape (n_steps, n_samples)
        Score vector u of each step of the alternating algorithm.
    thresholds : ndarray of shape (n_steps,)
        Soft threshold of each step.
    fill_change : float
        Amount by which the value that replaces missing values becomes smaller when the earlier
        components are subtracted from the data.
    max_violations : int
        Largest number of columns that a check of the certificate adds to the working set.
    """

    working_set: Index
    scores: Float
    thresholds: Float
    fill_change: float
    max_violations: int


class Violations(NamedTuple):
    """Pairs of a certificate and a column that violates or nearly violates the certificate.

    Entry i of each array belongs to pair i. Columns of the working set, which cannot violate the
    certificate, may be contained too, if they would almost violate it.
    """

    certificates: Index  # (m,), position of the certificate in its batch
    columns: Index  # (m,), index of the column
    # (m,), the absolute inner product of the column with u, plus a bound on the effect of missing
    # values, divided by the threshold; the maximum over all steps of the certificate.
    products: Float
    are_members: Mask  # (m,), whether the column is in the working set of the certificate

    def take(self, pairs: Index) -> Violations:
        """Return some of the pairs, given by their positions."""
        return Violations(
            self.certificates[pairs],
            self.columns[pairs],
            self.products[pairs],
            self.are_members[pairs],
        )


class ColumnSets(NamedTuple):
    """Sets of column indices in one array: set i is columns[starts[i]:starts[i + 1]]."""

    starts: Index  # (n_sets + 1,), start of each set in `columns`, and the length of `columns`
    columns: Index  # column indices of all sets, in increasing order within each set

    @classmethod
    def from_list(cls, sets: Sequence[Index]) -> ColumnSets:
        """Return the given sets of column indices as a `ColumnSets`.

        The column indices of each set must be in increasing order.
        """
        sizes = [0, *(columns.size for columns in sets)]
        return cls(np.cumsum(sizes), np.concatenate(sets))

    def are_members(self, sets: Index, columns: Index) -> Mask:
        """Return a mask whose entry i is True if columns[i] is in set number sets[i]."""
        return are_in_sets(self.starts, self.columns, sets, columns)


class _LargeProducts(NamedTuple):
    """Pairs of a certificate and a column with a large inner product; see `Violations`."""

    certificates: Index
    columns: Index
    products: Float


@dataclass(frozen=True, kw_only=True, eq=False)
class CertificateBatch:
    """Certificates that are checked together.

    A certificate consists of a score vector u and a threshold for each step of the computation of a
    component on a working set. The certificate holds if |x'u| is at most the threshold, for every u
    and every column x outside the working set. Here, the vectors u are divided by their thresholds,
    so all thresholds are one. In addition, the columns are divided by `unit`, and the vectors are
    multiplied by `unit`. This avoids overflow and underflow if the values of the data are very
    large or very small.

    Attributes
    ----------
    vectors : ndarray of shape (N, n_samples)
        Vectors u of all certificates, divided by their thresholds and multiplied by `unit`. N is
        the total number of steps of all certificates.
    shifts : ndarray of shape (N,)
        For each vector, the absolute value of `fill_change` of its certificate, divided by the
        threshold of the vector.
    owners : ndarray of shape (N,)
        Position of the certificate to which each vector belongs.
    working_sets : ColumnSets
        Working set of each certificate.
    n_certificates : int
        Number of certificates.
    unit : float
        Typical Euclidean norm of a column.
    """

    vectors: Float
    shifts: Float
    owners: Index
    working_sets: ColumnSets
    n_certificates: int
    unit: float
    # Copies on the device: the vectors, and the vectors and shifts with the same number of vectors
    # for each certificate. The lists are empty until the copies are needed.
    _vectors_for_bounds: list[Any] = field(default_factory=list)
    _device_copies: list[Any] = field(default_factory=list)

    @classmethod
    def from_certificates(
        cls, certificates: Sequence[Certificate], *, unit: float
    ) -> CertificateBatch:
        """Return the batch of the given certificates, each of which must have at least one step.

        `unit` is the typical Euclidean norm of a column.
        """
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
    def grouped(self) -> GroupedVectors:
        """The vectors in groups, which are used only if the blocks are numpy arrays."""
        return group_vectors(self.vectors, self.shifts, self.owners)

    def check(
        self,
        block: Any,
        missing_norms: Any,
        indices: Index,
        xp: Any,
        *,
        member_limit: float = np.inf,
    ) -> Violations:
        """Return the columns of a block that violate or nearly violate a certificate.

        Parameters
        ----------
        block : array of shape (n_samples, b)
            Centred columns.
        missing_norms : array of shape (b,) or None
            Square root of the number of missing values in each column; None if no value is
            missing. If the value that replaces missing values changes by c, then the inner product
            of the column with a unit vector changes by at most |c| times this root.
        indices : ndarray of shape (b,)
            Indices of the columns of the block in the data.
        xp : module
            Array namespace of the block, such as numpy or torch.
        member_limit : float, default=inf
            Columns of the working set are returned too if their inner product, divided by the
            threshold, exceeds this number. This is possible only on a device.
        """
        if xp is np:
            found = self._near_violations_by_groups(block, missing_norms)
        else:
            limit = min(NEAR_VIOLATION, member_limit)
            found = self._large_products_on_device(block, missing_norms, xp, limit=limit)
        parts = [NO_LARGE_PRODUCTS, *found]
        owners, columns, products = (np.concatenate(part) for part in zip(*parts, strict=True))
        columns = indices[columns]
        are_members = self.working_sets.are_members(owners, columns)
        kept = products > np.where(are_members, member_limit, NEAR_VIOLATION)
        return Violations(owners[kept], columns[kept], products[kept], are_members[kept])

    def may_violate_in_memory(self, block: NDArray[Any], offsets: Float, fill: float) -> Mask:
        """Return which columns of a block may violate or nearly violate a certificate.

        Parameters
        ----------
        block : ndarray of shape (n_samples, b)
            Columns before centring, with NaN for missing values.
        offsets : ndarray of shape (b,)
            Offsets of the columns.
        fill : float
            Value that replaces missing values after centring.

        Returns
        -------
        ndarray of bool of shape (b,)
            True for columns that have to be checked in double precision.
        """
        return may_exceed(
            NEAR_VIOLATION, self.grouped, block, offsets=offsets, fill=fill, unit=self.unit
        )

    def _near_violations_by_groups(
        self, block: Float, missing_norms: Float | None
    ) -> Iterator[_LargeProducts]:
        """Yield pairs of a certificate and a column with a large inner product, in several parts.

        An inner product is large if, divided by its threshold, it exceeds `NEAR_VIOLATION`. The
        pairs may include columns of the working sets. Upper bounds for groups of vectors are
        computed first. Inner products are computed exactly only for groups whose upper bound is
        large.
        """
        if missing_norms is None:
            missing_norms = np.zeros(block.shape[1])
        for part in column_blocks(*block.shape):
            # The transposed copy stores each column contiguously, because the compiled loop reads
            # one column at a time.
            columns = np.ascontiguousarray(block[:, part].T / self.unit)
            largest = largest_products(NEAR_VIOLATION, self.grouped, columns, missing_norms[part])
            owners, near = np.nonzero(largest > NEAR_VIOLATION)
            yield _LargeProducts(owners, near + part.start, largest[owners, near])

    def _large_products_on_device(
        self, block: Any, missing_norms: Any, xp: Any, *, limit: float
    ) -> Iterator[_LargeProducts]:
        """Yield pairs of a certificate and a column with a large inner product, in several parts.

        An inner product is large if, divided by its threshold, it exceeds `limit`. The pairs may
        include columns of the working sets. All inner products are computed, since selecting groups
        first would take more time on a device.
        """
        vectors, shifts = self._vectors_and_shifts_on_device(block, xp)
        n_vectors, n_columns = int(vectors.shape[0]), int(block.shape[1])
        n_steps = n_vectors // self.n_certificates
        # Each slice contains all vectors of each of its certificates, so that the maximum over the
        # steps of a certificate can be computed from one slice.
        step = max(1, _MAX_DEVICE_PRODUCTS // (n_columns * n_steps)) * n_steps
        for first in range(0, n_vectors, step):
            part = slice(first, min(first + step, n_vectors))
            products = xp.abs(vectors[part, :] @ block)
            if missing_norms is not None:
                products = products + shifts[part, None] * missing_norms[None, :]
            largest = xp.max(xp.reshape(products, (-1, n_steps, n_columns)), axis=1)
            if int(largest.shape[0]) * n_columns <= _MAX_TRANSFERRED:
                host = to_host(largest)
                owners, columns = np.nonzero(host > limit)
                yield _LargeProducts(owners + first // n_steps, columns, host[owners, columns])
                continue
            i, j = xp.nonzero(largest > limit)
            yield _LargeProducts(to_host(i) + first // n_steps, to_host(j), to_host(largest[i, j]))

    def may_violate(self, block: Any, start: int, xp: Any, *, bounds: ColumnBounds) -> Any:
        """Return which columns of a block may violate or nearly violate a certificate.

        Parameters
        ----------
        block : array of shape (n_samples, b)
            Columns in single precision on a device, before centring and without missing values.
        start : int
            Index of the first column of the block in the data.
        xp : module
            Array namespace of the block, such as torch.
        bounds : ColumnBounds
            Object that computes bounds of inner products.

        Returns
        -------
        array of uint8 of shape (b,)
            One for columns that have to be checked, and zero for the others, on the device.
        """
        if not self._vectors_for_bounds:
            vectors = to_device_of(block, self.vectors / self.unit, xp)
            self._vectors_for_bounds.append(ScaledVectors.from_vectors(vectors, xp))
        [scaled] = self._vectors_for_bounds
        return bounds.may_exceed(NEAR_VIOLATION, scaled, block=block, start=start, xp=xp)

    def _vectors_and_shifts_on_device(self, block: Any, xp: Any) -> list[Any]:
        """Return the padded vectors and shifts on the device of a block."""
        if not self._device_copies:
            self._device_copies[:] = (
                to_device_of(block, values, xp) for values in self._padded_vectors_and_shifts()
            )
        return self._device_copies

    def _padded_vectors_and_shifts(self) -> tuple[Float, Float]:
        """Return the vectors and the shifts, with the same number of vectors for each certificate.

        Zero vectors with a shift of zero are added to certificates that have fewer vectors than
        others. The inner product of a zero vector with every column is zero, so zero vectors do not
        affect the outcome. The returned vectors are divided by `unit`, since the columns of blocks
        on a device are not divided by `unit`.
        """
        counts = np.bincount(self.owners)
        n_steps = int(counts.max())
        # `step` is the position of each vector within its certificate.
        step = np.arange(self.owners.size) - np.repeat(np.cumsum(counts) - counts, counts)
        vectors = np.zeros((self.n_certificates, n_steps, self.vectors.shape[1]))
        vectors[self.owners, step] = self.vectors / self.unit
        shifts = np.zeros((self.n_certificates, n_steps))
        shifts[self.owners, step] = self.shifts
        return vectors.reshape(-1, vectors.shape[2]), shifts.ravel()


NO_LARGE_PRODUCTS = _LargeProducts(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
NO_VIOLATIONS = Violations(*NO_LARGE_PRODUCTS, np.empty(0, bool))
