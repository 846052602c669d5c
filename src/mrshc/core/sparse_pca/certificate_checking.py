"""Certification that components computed on working sets equal those computed on all columns.

A sparse component may be computed on a subset of the columns, its working set. The component then
has a certificate: conditions on all other columns under which the component equals the one computed
on all columns. A certifier checks these conditions. For data in memory, components are computed on
all columns, and no check is needed. If a pass over the data is expensive, certificates are
collected, and all of them are checked in one pass. On a device, where a pass takes little time,
each certificate is checked as soon as its component has been computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index, Mask
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centring import Centring
from mrshc.core.data.host_transfer import to_host
from mrshc.core.sparse_pca.certificates import (
    NO_VIOLATIONS,
    Certificate,
    CertificateBatch,
    Violations,
)
from mrshc.core.sparse_pca.device_bounds import ColumnBounds
from mrshc.core.sparse_pca.working_sets import WorkingSets

# If more than this share of the columns have large bounds, exact products are computed for all
# columns, block by block. The share has not been tuned; it does not affect the result.
_MAX_SHARE = 1 / 16

# A column stays in the working set of a certified component if its absolute inner product with u is
# above this multiple of the threshold in at least one step. At neighbouring L1 bounds, thresholds
# differ by less than this in most cases. The value was chosen on one simulated data set. It affects
# the number of passes and the computation time, but not the result.
_NEEDED_PRODUCT = 0.9

ComponentKey = tuple[float, int]  # L1 bound, and position of the component, counted from zero


class Certifier(ABC):
    """Base class of certifiers, which check the certificates of sparse components.

    Attributes
    ----------
    is_deferred : bool
        If True, `accept` returns True without checking the certificate, and `check_pending` checks
        it later.
    is_shared : bool
        If True, threads that wait for a check at the same time share a pass over the data, so that
        checks of further components take little additional time.
    """

    is_deferred = False
    is_shared = False

    @abstractmethod
    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Return whether a component may be used.

        If the result is False, this method has enlarged the working set of the component, and the
        caller has to compute the component again.

        Parameters
        ----------
        key : tuple of (float, int)
            L1 bound of the component, and position of the component, counted from zero.
        certificate : Certificate or None
            Certificate of the component; None if the component was computed on all columns.
        """

    def check_pending(self) -> list[ComponentKey]:
        """Return the keys of the components whose deferred certificates do not hold.

        All deferred certificates are checked. Their working sets are enlarged if necessary.
        """
        return []

    def discard_copies(self) -> None:
        """Release memory that only makes further checks faster."""
        return


class NullCertifier(Certifier):
    """Certifier for components that were computed on all columns and need no check."""

    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Return True for every component."""
        return True


class DeferredCertifier(Certifier):
    """Certifier that collects certificates and checks all of them in one pass over the data.

    Parameters
    ----------
    matrix : CentredBlocks
        The data.
    working_sets : WorkingSets
        Working sets of the components. Each check adds columns that violate or nearly violate a
        certificate to the working set of the component.
    """

    is_deferred = True

    def __init__(self, matrix: CentredBlocks, working_sets: WorkingSets) -> None:
        self._matrix = matrix
        self._working_sets = working_sets
        self._pending: dict[ComponentKey, Certificate] = {}

    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Store the certificate for `check_pending`, and return True."""
        assert certificate is not None
        # If the component has been computed again, its new certificate replaces the old one.
        self._pending[key] = certificate
        return True

    def check_pending(self) -> list[ComponentKey]:
        """Return the keys of the components whose collected certificates do not hold.

        All collected certificates are checked in one pass, and their working sets are updated.
        """
        keys, certificates = list(self._pending), list(self._pending.values())
        self._pending.clear()
        outcomes = check_certificates(self._matrix, certificates)
        # Working sets are stored even if their certificates hold, since computations at
        # neighbouring L1 bounds start from these working sets.
        for (l1_bound, position), outcome in zip(keys, outcomes, strict=True):
            self._working_sets.update(l1_bound, position, outcome.working_set)
        # The keys are sorted because the order of `_pending` depends on the timing of the threads.
        return sorted(key for key, outcome in zip(keys, outcomes, strict=True) if not outcome.holds)


class ImmediateCertifier(Certifier):
    """Certifier that checks each certificate as soon as its component has been computed.

    If several threads wait for a check at the same time, their certificates are checked in the same
    pass over the data. The number of passes therefore depends on the timing of the threads, but the
    components do not.

    Parameters
    ----------
    matrix : CentredBlocks
        The data.
    working_sets : WorkingSets
        Working sets of the components. Each check adds columns that violate or nearly violate a
        certificate to the working set of the component.
    """

    is_shared = True

    def __init__(self, matrix: CentredBlocks, working_sets: WorkingSets) -> None:
        self._matrix = matrix
        self._working_sets = working_sets
        self._waiting: SimpleQueue[tuple[Certificate, Future[Violations]]] = SimpleQueue()
        self._pass_lock = Lock()
        self._bounds = ColumnBounds(matrix.offsets)

    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Return whether the certificate of a component holds.

        If the certificate does not hold, the working set of the component is enlarged, and the
        caller has to compute the component again.
        """
        assert certificate is not None
        future = Future[Violations]()
        self._waiting.put((certificate, future))
        # The thread that acquires the lock checks all certificates in the queue. When the other
        # threads acquire the lock, the futures of the checked certificates are already done.
        with self._pass_lock:
            if not future.done():
                self._check_waiting()
        # The rest is not done within the pass, for which all other threads wait.
        outcome = _outcome_of_check(certificate, future.result())
        self._matrix.store_from_data(outcome.working_set)
        self._working_sets.update(*key, outcome.working_set)
        return outcome.holds

    def discard_copies(self) -> None:
        """Release the copies of the data on the device."""
        self._bounds.discard()

    def _check_waiting(self) -> None:
        """Check all certificates in the queue in one pass, and set the results of their futures.

        If the check raises an error, every future receives this error, and the error is raised
        again.
        """
        certificates, futures = zip(*_drain_queue(self._waiting), strict=True)
        try:
            violations = _violations_by_certificate(self._matrix, certificates, bounds=self._bounds)
        except BaseException as error:
            # If a future received neither a result nor an error, the thread that waits for it would
            # never end.
            for future in futures:
                future.set_exception(error)
            raise
        for future, of_certificate in zip(futures, violations, strict=True):
            future.set_result(of_certificate)


def _drain_queue(queue: SimpleQueue[Any]) -> list[Any]:
    """Remove and return all entries of a queue."""
    entries = []
    # The loop does not rely on the size of the queue, because other threads may add entries at the
    # same time.
    try:
        while True:
            entries.append(queue.get_nowait())
    except Empty:
        return entries


class CheckOutcome(NamedTuple):
    """The outcome of the check of a certificate."""

    # (m,), indices of the columns of the new working set: the columns of the old working set, and
    # columns that violate or nearly violate the certificate.
    working_set: Index
    holds: bool  # whether no column violates the certificate


def check_certificates(
    matrix: CentredBlocks, certificates: Sequence[Certificate]
) -> list[CheckOutcome]:
    """Check certificates in one pass over all columns, and return the outcomes.

    Parameters
    ----------
    matrix : CentredBlocks
        The data. This object stores the columns of the enlarged working sets in memory and, unless
        the data are on a device, all columns that violate or nearly violate a certificate.
    certificates : sequence of Certificate
        Certificates to check. A certificate without steps always holds.

    Returns
    -------
    outcomes : list of CheckOutcome
        Outcome for each certificate, in the order of `certificates`.
    """
    violations = _violations_by_certificate(
        matrix, certificates, bounds=ColumnBounds(matrix.offsets)
    )
    outcomes = [_outcome_of_check(*pair) for pair in zip(certificates, violations, strict=True)]
    if matrix.is_on_device and outcomes:
        matrix.store_from_data(np.unique(np.concatenate([o.working_set for o in outcomes])))
    return outcomes


def _outcome_of_check(certificate: Certificate, violations: Violations) -> CheckOutcome:
    """Return the outcome of the check of a certificate, given the columns that violate it."""
    members, outside = (
        violations.columns[rows] for rows in (violations.are_members, ~violations.are_members)
    )
    products = violations.products[~violations.are_members]
    holds = bool(products.max(initial=0.0) <= 1.0)
    # If a column violates the certificate in one step, the vectors u of all later steps are wrong.
    # Many columns that are not needed may violate the certificate in these later steps. The columns
    # with the largest products are the most likely to be needed, so only these columns are added to
    # the working set.
    largest = np.argsort(-products, kind="stable")[: certificate.max_violations]
    # A component takes less time on fewer columns, and the working set may have been made for
    # another L1 bound. The members are known only if the data are on a device.
    kept = members if holds and members.size else certificate.working_set
    return CheckOutcome(working_set=np.union1d(kept, outside[largest]), holds=holds)


def _violations_by_certificate(
    matrix: CentredBlocks, certificates: Sequence[Certificate], *, bounds: ColumnBounds
) -> list[Violations]:
    """Return the columns that violate or nearly violate each certificate, found in one pass."""
    # A certificate has no steps if the residual is zero. Such a certificate needs no check.
    with_steps = [i for i, c in enumerate(certificates) if c.thresholds.size]
    found = [NO_VIOLATIONS for _ in certificates]
    if not with_steps:
        return found
    violations = _find_violations(matrix, [certificates[i] for i in with_steps], bounds=bounds)
    order = np.argsort(violations.certificates, kind="stable")
    ends = np.searchsorted(violations.certificates[order], np.arange(len(with_steps) + 1))
    for k, i in enumerate(with_steps):
        rows = order[ends[k] : ends[k + 1]]
        found[i] = violations.take(rows)
    return found


def _find_violations(
    matrix: CentredBlocks, certificates: Sequence[Certificate], *, bounds: ColumnBounds
) -> Violations:
    """Return the columns that violate or nearly violate a certificate, found in one pass."""
    batch = CertificateBatch.from_certificates(certificates, unit=matrix.rms_column_norm)
    if matrix.is_on_device:
        return _find_violations_on_device(matrix, batch, bounds)
    return _join(_check_and_store_columns(matrix, batch))


def _join(parts: Iterable[Violations]) -> Violations:
    """Return the violations of several parts of the data."""
    return Violations(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _find_violations_on_device(
    matrix: CentredBlocks, batch: CertificateBatch, bounds: ColumnBounds
) -> Violations:
    """Return the columns that violate or nearly violate a certificate of a batch.

    No columns are copied to main memory, since those that are needed can be copied later.
    """
    centring = matrix.centring
    if matrix.is_single and centring.fill is None:
        # The bounds of all blocks are requested before the first ones are awaited, so that the
        # device is never idle.
        masks = list(matrix.map_blocks(partial(batch.may_violate, bounds=bounds)))
        is_checked = np.concatenate([to_host(mask) for mask in masks])
        is_checked[batch.working_sets.columns] = 1
        # numpy searches an array of bool many times faster than one of integers.
        near = np.flatnonzero(is_checked.view(np.bool_))
        if near.size <= _MAX_SHARE * matrix.shape[1]:
            columns, xp = matrix.centred_columns_on_device(near)
            return batch.check(columns, None, near, xp, member_limit=_NEEDED_PRODUCT)
    return _join(matrix.map_blocks(partial(_check_block_on_device, centring=centring, batch=batch)))


def _check_and_store_columns(
    matrix: CentredBlocks, batch: CertificateBatch
) -> Iterator[Violations]:
    """Yield the columns of each block that violate or nearly violate a certificate of a batch.

    These columns are stored in memory while their block is there, which saves another pass over the
    data.
    """
    batch.grouped  # noqa: B018 - compute the groups once here, not in every worker
    check = partial(_check_block, centring=matrix.centring, is_stored=matrix.is_stored, batch=batch)
    for violations, indices, columns in matrix.map_blocks(check):
        matrix.store(indices, columns)
        yield violations


def _check_block(
    block: Any,
    start: int,
    xp: Any,
    *,
    centring: Centring,
    is_stored: Mask,
    batch: CertificateBatch,
) -> tuple[Violations, Index, NDArray[Any]]:
    """Return the columns of one block that violate or nearly violate a certificate of a batch.

    Returns
    -------
    violations : Violations
        The pairs of a certificate and a column that violates or nearly violates it.
    indices : ndarray of shape (m,)
        Indices of the columns in `violations` that are not yet stored in memory.
    columns : ndarray of shape (n_samples, m)
        The columns at `indices`, before centring.
    """
    offsets = centring.offsets[start : start + block.shape[1]]
    near = np.flatnonzero(batch.may_violate_in_memory(block, offsets, centring.fill or 0.0))
    violations = _check_columns(block[:, near], start + near, xp, centring=centring, batch=batch)
    new = np.unique(violations.columns)
    new = new[~is_stored[new]]
    return violations, new, block[:, new - start]


def _check_block_on_device(
    block: Any, start: int, xp: Any, *, centring: Centring, batch: CertificateBatch
) -> Violations:
    """Return the columns of one block that violate or nearly violate a certificate of a batch."""
    indices = np.arange(start, start + block.shape[1])
    return _check_columns(block, indices, xp, centring=centring, batch=batch)


def _check_columns(
    columns: Any, indices: Index, xp: Any, *, centring: Centring, batch: CertificateBatch
) -> Violations:
    """Return those of the given columns that violate or nearly violate a certificate of a batch.

    `columns` has the shape (n_samples, m) and contains the columns at `indices`, before centring.
    """
    centred = replace(centring, offsets=centring.offsets[indices])(columns, 0, xp)
    missing_norms = None
    if centring.fill is not None:
        missing_norms = xp.sqrt(xp.sum(xp.astype(xp.isnan(columns), xp.float64), axis=0))
    return batch.check(centred, missing_norms, indices, xp)
