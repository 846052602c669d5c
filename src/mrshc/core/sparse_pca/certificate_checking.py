"""Certification: components found on working sets are shown to be those of all features.

A certifier takes the certificate of each component. In memory there is nothing to certify; where a
pass over the data is expensive, certificates are collected and checked in one pass; on a device,
where a pass is cheap, each is checked as it comes, together with those that other threads wait for.
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
from mrshc.core.sparse_pca.working_sets import WorkingSets, some_columns

Key = tuple[float, int]  # L1 bound, and position of the component


class Certifier(ABC):
    """Decides whether components that were found on working sets are those of all features."""

    is_deferred = False  # whether components are provisional until `check_pending`

    @abstractmethod
    def accept(self, key: Key, certificate: Certificate | None) -> bool:
        """Return whether to go on with a component; if not, its working set has grown."""

    def check_pending(self) -> list[Key]:
        """Check all certificates that were deferred; return the components that fail."""
        return []


class NullCertifier(Certifier):
    """For components that were found on all features."""

    def accept(self, key: Key, certificate: Certificate | None) -> bool:
        """Accept every component."""
        return True


class DeferredCertifier(Certifier):
    """Collects certificates and checks all of them in one pass."""

    is_deferred = True

    def __init__(self, matrix: CentredBlocks, working_sets: WorkingSets) -> None:
        self._matrix = matrix
        self._working_sets = working_sets
        self._pending: dict[Key, Certificate] = {}

    def accept(self, key: Key, certificate: Certificate | None) -> bool:
        """Accept a component provisionally."""
        assert certificate is not None
        self._pending[key] = certificate
        return True

    def check_pending(self) -> list[Key]:
        """Check all certificates that were deferred; return the components that fail."""
        keys, certificates = list(self._pending), list(self._pending.values())
        self._pending.clear()
        outcomes = check_certificates(self._matrix, certificates)
        for (l1_bound, position), outcome in zip(keys, outcomes, strict=True):
            self._working_sets.update(l1_bound, position, outcome.working_set)
        return sorted(key for key, outcome in zip(keys, outcomes, strict=True) if not outcome.holds)


class ImmediateCertifier(Certifier):
    """Checks each certificate as it comes.

    Threads that wait at the same time share a pass, so the number of passes depends on threads;
    the components do not.
    """

    def __init__(self, matrix: CentredBlocks, working_sets: WorkingSets) -> None:
        self._matrix = matrix
        self._working_sets = working_sets
        self._waiting: SimpleQueue[tuple[Certificate, Future[Outcome]]] = SimpleQueue()
        self._pass = Lock()

    def accept(self, key: Key, certificate: Certificate | None) -> bool:
        """Return whether a certificate holds; if not, the working set has grown."""
        assert certificate is not None
        future = Future[Outcome]()
        self._waiting.put((certificate, future))
        with self._pass:  # whoever enters first checks for all that wait by then
            if not future.done():
                self._check_waiting()
        outcome = future.result()
        self._working_sets.update(*key, outcome.working_set)
        return outcome.holds

    def _check_waiting(self) -> None:
        certificates, futures = zip(*_drained(self._waiting), strict=True)
        try:
            outcomes = check_certificates(self._matrix, certificates)
        except BaseException as error:
            for future in futures:
                future.set_exception(error)
            raise
        for future, outcome in zip(futures, outcomes, strict=True):
            future.set_result(outcome)


def _drained(queue: SimpleQueue[Any]) -> list[Any]:
    entries = []
    try:
        while True:
            entries.append(queue.get_nowait())
    except Empty:
        return entries


class Outcome(NamedTuple):
    """The outcome of checking a certificate."""

    working_set: Index  # that of the certificate, and columns that violate it or nearly do
    holds: bool


def check_certificates(matrix: CentredBlocks, certificates: Sequence[Certificate]) -> list[Outcome]:
    """Check certificates in one pass over all columns; columns that matter are stored."""
    outcomes = [Outcome(c.working_set, True) for c in certificates]
    # Without a step, where nothing is left of X, there is nothing to check.
    with_steps = [i for i, c in enumerate(certificates) if c.thresholds.size]
    if not with_steps:
        return outcomes
    violations = _violations(matrix, [certificates[i] for i in with_steps])
    order = np.argsort(violations.certificates, kind="stable")
    ends = np.searchsorted(violations.certificates[order], np.arange(len(with_steps) + 1))
    for k, i in enumerate(with_steps):
        own = order[ends[k] : ends[k + 1]]
        columns, products = violations.columns[own], violations.products[own]
        # After a wrong step, many columns seem to be needed: the largest products are the surest.
        best = np.argsort(-products, kind="stable")[: certificates[i].max_violations]
        holds = bool(products.max(initial=0.0) <= 1.0)
        working_set = np.union1d(certificates[i].working_set, columns[best])
        outcomes[i] = Outcome(working_set, holds)
    return outcomes


def _violations(matrix: CentredBlocks, certificates: Sequence[Certificate]) -> Violations:
    batch = CertificateBatch.of(certificates, unit=matrix.typical_length)
    if matrix.certification == "deferred":
        batch.groups  # noqa: B018 - computed once here, not by every worker
    check = partial(_check_block, centring=matrix.centring, stored=matrix.is_stored, batch=batch)
    found = list[Violations]()
    for violations, indices, columns in matrix.map_blocks(check):
        matrix.store(indices, columns)
        found.append(violations)
    return Violations(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _check_block(
    block: Any, start: int, xp: Any, *, centring: Centring, stored: Mask, batch: CertificateBatch
) -> tuple[Violations, Index, NDArray[Any]]:
    """Check a block; also return those of its violating columns that are not stored yet."""
    part = centring(block, start, xp)
    gaps = None
    if centring.fill is not None:
        gaps = xp.sqrt(xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0))
    violations = batch.check(part, gaps, start, xp)
    new = np.unique(violations.columns)
    new = new[~stored[new]]
    return violations, new, some_columns(block, new - start, xp)
