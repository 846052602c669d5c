"""Solvers for the next sparse component under an L1 bound, on all columns or on a working set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.sparse_pca.certificates import Certificate
from mrshc.core.sparse_pca.next_component import (
    AlternationStarts,
    Component,
    empty_record,
    empty_trace,
    fill_change,
    next_component,
)
from mrshc.core.sparse_pca.working_sets import EXTRA_COLUMNS, InitialPass

# Iterations that a trace covers, at one byte per feature and iteration: all iterations of `MrSHC`,
# which makes at most 20. Later iterations run without the trace, with the same result.
_N_TRACED_ITERATIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternationLimits:
    """When the alternation for a component ends."""

    max_iter: int
    tol: float  # largest L1 norm of the change of v that counts as converged


class Solution(NamedTuple):
    """A component, and the certificate under which it is that of all columns, if it needs one."""

    component: Component
    certificate: Certificate | None


class ComponentSolver(ABC):
    """Computes the component that follows some others under an L1 bound.

    Attributes
    ----------
    starts : Starts
        Start vectors of the components, on all columns.
    """

    starts: AlternationStarts

    @abstractmethod
    def solve(self, earlier: list[Component], l1_bound: float) -> Solution:
        """Return the component that follows `earlier`. May be called from several threads."""


class FullSolver(ComponentSolver):
    """Solver on all columns of a matrix in memory.

    Parameters
    ----------
    matrix : CentredArray
        The data.
    starts : Starts
        Start vectors of the components.
    limits : AlternationLimits
        When the alternation ends.
    """

    def __init__(
        self, matrix: CentredArray, starts: AlternationStarts, limits: AlternationLimits
    ) -> None:
        self.starts = starts
        self._matrix = matrix
        self._limits = limits
        # Traces that no thread uses at present, by position of the component. There are at most as
        # many as threads. `pop` and `append` of a list are atomic, so no lock is needed.
        self._idle_traces: list[list[Any]] = [[] for _ in starts.vectors]

    def solve(self, earlier: list[Component], l1_bound: float) -> Solution:
        """Return the component that follows `earlier`, without a certificate."""
        idle = self._idle_traces[len(earlier)]
        trace = idle.pop() if idle else empty_trace(self._matrix, _N_TRACED_ITERATIONS)
        try:
            component = next_component(
                self._matrix,
                earlier,
                starts=self.starts,
                l1_bound=l1_bound,
                max_iter=self._limits.max_iter,
                tol=self._limits.tol,
                trace=trace,
            )
        finally:
            idle.append(trace)
        return Solution(component, None)


class WorkingSetSolver(ComponentSolver):
    """Solver on the columns of a working set, as if there were no others.

    Parameters
    ----------
    matrix : CentredBlocks
        The data, in which the columns of the working sets are stored.
    initial : InitialPass
        Start vectors and working sets.
    limits : AlternationLimits
        When the alternation ends.
    """

    def __init__(
        self, matrix: CentredBlocks, initial: InitialPass, limits: AlternationLimits
    ) -> None:
        self.starts = initial.starts
        self._sums_at_missing = initial.sums_at_missing
        self._working_sets = initial.working_sets
        self._matrix = matrix
        self._limits = limits

    def solve(self, earlier: list[Component], l1_bound: float) -> Solution:
        """Return the component that follows `earlier`, and its certificate."""
        columns = self._working_sets.initial_set(earlier, l1_bound)
        matrix = self._matrix.stored_columns(columns)
        # The same components, with positions in the working set in place of feature indices.
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
            # About as many columns as must have a loading: more are seldom needed.
            max_violations=int(l1_bound**2) + EXTRA_COLUMNS,
        )
        return Solution(replace(component, indices=columns[component.indices]), certificate)

    def _restrict_starts(
        self, matrix: CentredArray, columns: Index, change: float
    ) -> AlternationStarts:
        """Return the start vectors on the columns of a working set.

        The images remain those of all columns, so that the first u does not depend on the working
        set. Earlier components lower the fill of missing cells by `change`. The alternation
        accounts for that in the columns of the working set; this method does in all others.
        """
        vectors, images = self.starts.vectors[:, columns], self.starts.images
        if matrix.missing is not None:
            # Subtract the change in all columns, then add it back for those of the working set.
            images = images - change * self._sums_at_missing
            self._add_fill_change(images, vectors, matrix, change)
        return replace(self.starts, vectors=vectors, images=images)

    @staticmethod
    def _add_fill_change(
        images: Float, vectors: Float, matrix: CentredArray, change: float
    ) -> None:
        """Add a change of the missing cells of `matrix`, times the start vectors, to `images`."""
        rows, columns = matrix.missing_cells
        changes = np.full(rows.size, change)
        # The alternation also corrects the rounding of the fill to single precision. The images
        # were computed in double precision and do not contain this error.
        if matrix.fill_error is not None:
            changes -= matrix.fill_error
        for image, v in zip(images, vectors, strict=True):
            image += np.bincount(rows, changes * v[columns], minlength=image.size)
