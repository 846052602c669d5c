"""Solvers: the next sparse component under an L1 bound, on all columns or on a working set."""

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
    Component,
    Starts,
    fill_taken,
    new_record,
    new_trace,
    next_component,
)
from mrshc.core.sparse_pca.working_sets import MORE_COLUMNS, InitialPass

# Iterations of which a trace is kept, a byte for each feature. The default limit of iterations.
_TRACED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternationLimits:
    """When the alternation ends."""

    max_iter: int
    tol: float  # L1 norm of the change of v


class Solution(NamedTuple):
    """A component, and the certificate by which it holds for all columns if it needs one."""

    component: Component
    certificate: Certificate | None


class ComponentSolver(ABC):
    """Finds the component that follows some others under an L1 bound."""

    starts: Starts

    @abstractmethod
    def solve(self, earlier: list[Component], l1_bound: float) -> Solution:
        """Return the component that follows `earlier`; called from any thread."""


class FullSolver(ComponentSolver):
    """Uses all columns of a matrix in memory."""

    def __init__(self, matrix: CentredArray, starts: Starts, limits: AlternationLimits) -> None:
        self.starts = starts
        self._matrix = matrix
        self._limits = limits
        # For each component as many as there are threads; lists are safe to take from and add to.
        self._traces: list[list[Any]] = [[] for _ in starts.vectors]

    def solve(self, earlier: list[Component], l1_bound: float) -> Solution:
        """Find the next component, with a trace that no other thread is using meanwhile."""
        idle = self._traces[len(earlier)]
        trace = idle.pop() if idle else new_trace(self._matrix, _TRACED)
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
    """Uses the columns of a working set as if there were no others."""

    def __init__(
        self, matrix: CentredBlocks, initial: InitialPass, limits: AlternationLimits
    ) -> None:
        self.starts = initial.starts
        self._at_gaps = initial.at_gaps
        self._working_sets = initial.working_sets
        self._matrix = matrix
        self._limits = limits

    def solve(self, earlier: list[Component], l1_bound: float) -> Solution:
        """Find the next component, and what it implies for the columns left out."""
        columns = self._working_sets.columns_for(earlier, l1_bound)
        matrix = self._matrix.stored_columns(columns)
        before = [replace(c, indices=np.searchsorted(columns, c.indices)) for c in earlier]
        taken = fill_taken(matrix, before)
        record = new_record(matrix, self._limits.max_iter)
        component = next_component(
            matrix,
            before,
            starts=self._starts_on(matrix, columns, taken),
            l1_bound=l1_bound,
            max_iter=self._limits.max_iter,
            tol=self._limits.tol,
            record=record,
        )
        made = record.thresholds >= 0.0
        certificate = Certificate(
            working_set=columns,
            scores=record.scores[made],
            thresholds=record.thresholds[made],
            fill_change=taken,
            max_violations=int(l1_bound**2) + MORE_COLUMNS,
        )
        return Solution(replace(component, indices=columns[component.indices]), certificate)

    def _starts_on(self, matrix: CentredArray, columns: Index, taken: float) -> Starts:
        """Return the starts on the columns of a working set.

        The images stay those of all columns. The change that missing cells make to them is added
        later for the columns of the working set; that of the others is added here.
        """
        vectors, images = self.starts.vectors[:, columns], self.starts.images
        if matrix.missing is not None:
            images = images - taken * self._at_gaps
            self._add_change_at_gaps(images, vectors, matrix, taken)
        return replace(self.starts, vectors=vectors, images=images)

    @staticmethod
    def _add_change_at_gaps(
        images: Float, vectors: Float, matrix: CentredArray, taken: float
    ) -> None:
        rows, columns = matrix.missing_cells
        change = np.full(rows.size, taken)
        if matrix.fill_error is not None:  # images have none of it
            change -= matrix.fill_error
        for image, v in zip(images, vectors, strict=True):
            image += np.bincount(rows, change * v[columns], minlength=image.size)
