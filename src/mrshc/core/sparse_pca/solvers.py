"""Solvers, which compute sparse components under an L1 bound, one after another.

A component consists of scores u and loadings v. It is computed by an alternating algorithm, either
on all columns of the data or on a subset of the columns, which is called the working set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.kernels.alternation import AlternationSettings
from mrshc.core.kernels.component_sequence import SequenceEnd, SequenceHistories
from mrshc.core.kernels.screening import SlopeHistory
from mrshc.core.sparse_pca.certificates import Certificate
from mrshc.core.sparse_pca.next_component import (
    AlternationStarts,
    Component,
    empty_histories,
    empty_record,
    fill_change,
    history_of_component,
    next_component,
    next_components,
)
from mrshc.core.sparse_pca.working_sets import EXTRA_COLUMNS, InitialPass


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternationLimits:
    """Stopping criteria of the alternating algorithm that computes a sparse component."""

    max_iter: int  # largest number of iterations
    tol: float  # the algorithm has converged if the L1 norm of the change of v is at most tol


class Solution(NamedTuple):
    """A sparse component, and the certificate that has to be checked unless all columns were used.

    If the certificate holds, the component that was computed on a working set equals the component
    computed on all columns.
    """

    component: Component
    certificate: Certificate | None  # None if the component was computed on all columns


class ComponentSolver(ABC):
    """Base class of solvers, which compute sparse components one after another.

    Attributes
    ----------
    starts : AlternationStarts
        Start vectors of all components. Each vector has one entry for each column of the data.
    """

    starts: AlternationStarts

    @abstractmethod
    def solve(
        self, earlier: list[Component], l1_bound: float, *, end: SequenceEnd
    ) -> list[Solution]:
        """Return components that follow `earlier` under an L1 bound, and their certificates.

        At least one component is returned, and no component beyond `end`. This method may be called
        from several threads at the same time.
        """

    @abstractmethod
    def release_memory(self) -> None:
        """Release memory that only makes further computations faster."""


class FullSolver(ComponentSolver):
    """Solver that computes sparse components from all columns of a matrix in memory.

    Parameters
    ----------
    matrix : CentredArray
        The data.
    starts : AlternationStarts
        Start vectors of the components.
    limits : AlternationLimits
        Convergence tolerance and largest number of iterations of the alternating algorithm.
    """

    def __init__(
        self, matrix: CentredArray, starts: AlternationStarts, limits: AlternationLimits
    ) -> None:
        self.starts = starts
        self._matrix = matrix
        self._limits = limits
        # What was found out about slopes, as far as no thread is using it, at most one entry for
        # each thread. The list methods `pop` and `append` are atomic, so no lock is needed.
        self._idle: list[SequenceHistories] = []

    def solve(
        self, earlier: list[Component], l1_bound: float, *, end: SequenceEnd
    ) -> list[Solution]:
        """Return all components from `earlier` up to `end` under an L1 bound.

        If values are missing, only the next component is returned. The certificates are None, since
        the components are computed on all columns.
        """
        idle, n_components = self._idle, self.starts.vectors.shape[0]
        histories = idle.pop() if idle else empty_histories(self._matrix, n_components)
        try:
            if self._matrix.missing is None:
                components = self._solve_all(earlier, l1_bound, histories=histories, end=end)
            else:
                history = history_of_component(histories, len(earlier))
                components = [self._solve_next(earlier, l1_bound, history)]
        finally:
            idle.append(histories)
        return [Solution(component, None) for component in components]

    def _solve_all(
        self,
        earlier: list[Component],
        l1_bound: float,
        *,
        histories: SequenceHistories,
        end: SequenceEnd,
    ) -> list[Component]:
        """Return all components from `earlier` up to `end`; there must be no missing values."""
        limits = self._limits
        return next_components(
            self._matrix,
            earlier,
            starts=self.starts,
            settings=AlternationSettings(l1_bound, limits.max_iter, limits.tol, self.starts.noise),
            histories=histories,
            end=end,
        )

    def _solve_next(
        self, earlier: list[Component], l1_bound: float, history: SlopeHistory
    ) -> Component:
        """Return the component that follows `earlier`."""
        return next_component(
            self._matrix,
            earlier,
            starts=self.starts,
            l1_bound=l1_bound,
            max_iter=self._limits.max_iter,
            tol=self._limits.tol,
            history=history,
        )

    def release_memory(self) -> None:
        """Release the memory of the histories, which is needed for trees after a search."""
        self._idle.clear()


class WorkingSetSolver(ComponentSolver):
    """Solver that computes each sparse component from a subset of the columns, its working set.

    Parameters
    ----------
    matrix : CentredBlocks
        The data. This object must store all columns of the working sets in memory, unless the data
        are on a device, from which columns are copied when they are needed.
    initial : InitialPass
        Start vectors and working sets.
    limits : AlternationLimits
        Convergence tolerance and largest number of iterations of the alternating algorithm.
    """

    def __init__(
        self, matrix: CentredBlocks, initial: InitialPass, limits: AlternationLimits
    ) -> None:
        self.starts = initial.starts
        self._sums_at_missing = initial.sums_at_missing
        self._working_sets = initial.working_sets
        self._matrix = matrix
        self._limits = limits

    def solve(
        self, earlier: list[Component], l1_bound: float, *, end: SequenceEnd
    ) -> list[Solution]:
        """Return the component that follows `earlier` under an L1 bound, and its certificate.

        `end` has no effect, since only one component is returned: the working set of the component
        after it depends on it.
        """
        columns = self._working_sets.initial_set(earlier, l1_bound)
        if self._matrix.is_on_device:
            self._matrix.store_from_data(columns)
        matrix = self._matrix.stored_columns(columns)
        # The copies of the earlier components refer to positions in the working set instead of
        # feature indices.
        restricted = [replace(c, indices=np.searchsorted(columns, c.indices)) for c in earlier]
        change = fill_change(matrix, restricted)
        record = empty_record(matrix, self._limits.max_iter)
        component = next_component(
            matrix,
            restricted,
            starts=self._restrict_starts(matrix, columns, change),
            l1_bound=l1_bound,
            max_iter=self._limits.max_iter,
            tol=self._limits.tol,
            record=record,
        )
        was_reached = record.thresholds >= 0.0
        certificate = Certificate(
            working_set=columns,
            scores=record.scores[was_reached],
            thresholds=record.thresholds[was_reached],
            fill_change=change,
            # If the L1 bound is active, at least l1_bound**2 loadings are non-zero. It is seldom
            # necessary to add many more columns than this to the working set.
            max_violations=int(l1_bound**2) + EXTRA_COLUMNS,
        )
        component = replace(component, indices=columns[component.indices])
        return [Solution(component, certificate)]

    def release_memory(self) -> None:
        """Do nothing, since components on working sets are computed without histories."""

    def _restrict_starts(
        self, matrix: CentredArray, columns: Index, change: float
    ) -> AlternationStarts:
        """Return the start vectors, restricted to the columns of a working set.

        The images, which are the products Xv of the data X with the start vectors v, are not
        restricted: they are computed from all columns. The first score vector u therefore does not
        depend on the working set.

        Missing values are replaced by a fill value, and subtracting the earlier components lowers
        the fill value by `change`. The alternating algorithm applies this change to the columns of
        the working set. This method applies the change to the images, for all other columns.
        """
        vectors, images = self.starts.vectors[:, columns], self.starts.images
        if matrix.missing is not None:
            # Subtract the change for all columns, then add it back for the working set.
            images = images - change * self._sums_at_missing
            self._add_fill_change(images, vectors, matrix, change)
        return replace(self.starts, vectors=vectors, images=images)

    @staticmethod
    def _add_fill_change(
        images: Float, vectors: Float, matrix: CentredArray, change: float
    ) -> None:
        """Add to `images` the effect of adding `change` to every missing value of `matrix`.

        The rows of `images` are the products of the whole data with the start vectors; they are
        changed in place. The rows of `vectors` are the start vectors, restricted to the columns of
        `matrix`. If the fill values of `matrix` are rounded, `images` is also corrected for their
        rounding errors.
        """
        rows, columns = matrix.missing_cells
        changes = np.full(rows.size, change)
        # The alternating algorithm also corrects the images for the rounding of the fill value to
        # single precision. The images were computed in double precision and do not contain this
        # rounding error, so it is subtracted here.
        if matrix.fill_error is not None:
            changes -= matrix.fill_error
        for image, v in zip(images, vectors, strict=True):
            image += np.bincount(rows, changes * v[columns], minlength=image.size)
