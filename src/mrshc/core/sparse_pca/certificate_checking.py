"""Certification that components found on working sets are optimal for all features.

A certifier receives the certificate of each component. For data in memory, all features take part
and there is nothing to certify. Where a pass over the data is expensive, certificates are collected
and checked in one pass. On a device, where a pass is cheap, each certificate is checked as soon as
its component is found, together with the certificates of other threads that are waiting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index, Mask
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centring import Centring
from mrshc.core.sparse_pca.certificates import Certificate, CertificateBatch, Violations
from mrshc.core.sparse_pca.working_sets import WorkingSets, take_columns

ComponentKey = tuple[float, int]  # L1 bound, and position of the component, from zero


class Certifier(ABC):
    """Decides whether components found on working sets are those of all features.

    Attributes
    ----------
    is_deferred : bool
        Whether components are provisional until `check_pending` is called.
    """

    is_deferred = False

    @abstractmethod
    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Return whether to use a component.

        If not, its working set has been enlarged, and the component has to be computed again.

        Parameters
        ----------
        key : tuple of (float, int)
            L1 bound and position of the component.
        certificate : Certificate or None
            None if the component was found on all features.
        """

    def check_pending(self) -> list[ComponentKey]:
        """Check all deferred certificates; return the keys of the components that fail."""
        return []


class NullCertifier(Certifier):
    """Certifier of components that were found on all features."""

    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Accept every component."""
        return True


class DeferredCertifier(Certifier):
    """Certifier that collects certificates and checks all of them in one pass.

    Parameters
    ----------
    matrix : CentredBlocks
        The data.
    working_sets : WorkingSets
        Updated with the outcome of each check.
    """

    is_deferred = True

    def __init__(self, matrix: CentredBlocks, working_sets: WorkingSets) -> None:
        self._matrix = matrix
        self._working_sets = working_sets
        self._pending: dict[ComponentKey, Certificate] = {}

    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Accept a component provisionally."""
        assert certificate is not None
        # A component that is computed again replaces its earlier certificate.
        self._pending[key] = certificate
        return True

    def check_pending(self) -> list[ComponentKey]:
        """Check all deferred certificates; return the keys of the components that fail."""
        keys, certificates = list(self._pending), list(self._pending.values())
        self._pending.clear()
        outcomes = check_certificates(self._matrix, certificates)
        # Sets of certificates that hold are stored too: neighbouring L1 bounds start from them.
        for (l1_bound, position), outcome in zip(keys, outcomes, strict=True):
            self._working_sets.update(l1_bound, position, outcome.working_set)
        # Sorted, so that the outcome does not depend on the order in which threads finish.
        return sorted(key for key, outcome in zip(keys, outcomes, strict=True) if not outcome.holds)


class ImmediateCertifier(Certifier):
    """Certifier that checks each certificate as soon as its component is found.

    Threads that wait at the same time share a pass. The number of passes therefore depends on the
    timing of the threads; the components do not.

    Parameters
    ----------
    matrix : CentredBlocks
        The data.
    working_sets : WorkingSets
        Updated with the outcome of each check.
    """

    def __init__(self, matrix: CentredBlocks, working_sets: WorkingSets) -> None:
        self._matrix = matrix
        self._working_sets = working_sets
        self._waiting: SimpleQueue[tuple[Certificate, Future[CheckOutcome]]] = SimpleQueue()
        self._pass_lock = Lock()

    def accept(self, key: ComponentKey, certificate: Certificate | None) -> bool:
        """Return whether a certificate holds; if not, the working set has been enlarged."""
        assert certificate is not None
        future = Future[CheckOutcome]()
        self._waiting.put((certificate, future))
        # The first thread to enter checks the certificates of all threads that wait by then; the
        # others find their future done when they get the lock.
        with self._pass_lock:
            if not future.done():
                self._check_waiting()
        outcome = future.result()
        self._working_sets.update(*key, outcome.working_set)
        return outcome.holds

    def _check_waiting(self) -> None:
        """Check all certificates in the queue in one pass, and set the results of their futures."""
        certificates, futures = zip(*_drain_queue(self._waiting), strict=True)
        try:
            outcomes = check_certificates(self._matrix, certificates)
        except BaseException as error:
            # Threads whose certificates were taken from the queue would otherwise wait forever.
            for future in futures:
                future.set_exception(error)
            raise
        for future, outcome in zip(futures, outcomes, strict=True):
            future.set_result(outcome)


def _drain_queue(queue: SimpleQueue[Any]) -> list[Any]:
    """Remove and return all entries of a queue."""
    entries = []
    # Other threads may add entries meanwhile, so the size of the queue is not asked for.
    try:
        while True:
            entries.append(queue.get_nowait())
    except Empty:
        return entries


class CheckOutcome(NamedTuple):
    """The outcome of checking a certificate."""

    working_set: Index  # that of the certificate, and the columns that violate it or nearly do
    holds: bool


def check_certificates(
    matrix: CentredBlocks, certificates: Sequence[Certificate]
) -> list[CheckOutcome]:
    """Check certificates in one pass over all columns, and store the columns that violate them.

    Parameters
    ----------
    matrix : CentredBlocks
        The data. Violating columns are stored in it, since the enlarged working sets need them.
    certificates : sequence of Certificate
        Those without a step hold trivially.

    Returns
    -------
    outcomes : list of CheckOutcome
        One for each certificate, in the same order.
    """
    outcomes = [CheckOutcome(c.working_set, True) for c in certificates]
    # An alternation makes no step where the residual is zero: then there is nothing to check.
    with_steps = [i for i, c in enumerate(certificates) if c.thresholds.size]
    if not with_steps:
        return outcomes
    violations = _find_violations(matrix, [certificates[i] for i in with_steps])
    # Group the violations by certificate.
    order = np.argsort(violations.certificates, kind="stable")
    ends = np.searchsorted(violations.certificates[order], np.arange(len(with_steps) + 1))
    for k, i in enumerate(with_steps):
        rows = order[ends[k] : ends[k + 1]]
        columns, products = violations.columns[rows], violations.products[rows]
        # After a first wrong step, later iterates are wrong too and seem to need many columns.
        # Those with the largest products are the most likely to be needed.
        largest = np.argsort(-products, kind="stable")[: certificates[i].max_violations]
        holds = bool(products.max(initial=0.0) <= 1.0)
        working_set = np.union1d(certificates[i].working_set, columns[largest])
        outcomes[i] = CheckOutcome(working_set, holds)
    return outcomes


def _find_violations(matrix: CentredBlocks, certificates: Sequence[Certificate]) -> Violations:
    """Return the columns that violate certificates or nearly do, from one pass over the data."""
    batch = CertificateBatch.from_certificates(certificates, unit=matrix.rms_column_norm)
    if matrix.certification == "deferred":
        batch.groups  # noqa: B018 - computed once here, not by every worker
    check = partial(_check_block, centring=matrix.centring, is_stored=matrix.is_stored, batch=batch)
    violations_of_blocks = list[Violations]()
    for violations, indices, columns in matrix.map_blocks(check):
        # Stored while the block is at hand: reading the columns later would be another pass.
        matrix.store(indices, columns)
        violations_of_blocks.append(violations)
    parts = zip(*violations_of_blocks, strict=True)
    return Violations(*(np.concatenate(part) for part in parts))


def _check_block(
    block: Any, start: int, xp: Any, *, centring: Centring, is_stored: Mask, batch: CertificateBatch
) -> tuple[Violations, Index, NDArray[Any]]:
    """Check the columns of a block.

    Returns
    -------
    violations : Violations
        Columns of the block that violate a certificate or nearly do.
    indices : ndarray of shape (m,)
        Those of them that are not stored yet.
    columns : ndarray of shape (n_samples, m)
        These columns, as given.
    """
    centred = centring(block, start, xp)
    missing_norms = None
    if centring.fill is not None:
        missing_norms = xp.sqrt(xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0))
    violations = batch.check(centred, missing_norms, start, xp)
    new = np.unique(violations.columns)
    new = new[~is_stored[new]]
    return violations, new, take_columns(block, new - start, xp)
