"""Sparse components of data that are far away, each sought in a few columns.

Components are sparse: few of a million columns ever come near a threshold of one. A component is
sought in a few columns as if there were no others, and what it takes for granted about these is
noted. When all searches are through, one sweep tests all that was noted. Columns that would have
been taken join those that their component is shown, and what rests on their absence is sought
again, until everything holds: then each component is that of all columns.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.arrays import Float, Index, Mask
from mrshc.core.data.centred import Matrix
from mrshc.core.data.interface import beside, to_host
from mrshc.core.data.out_of_core import Centring, FarMatrix
from mrshc.core.kernels.vectors import sorted_union
from mrshc.core.sparse_pca.certificates import Claims, Course, Near
from mrshc.core.sparse_pca.components import (
    Component,
    Starts,
    existing,
    existing_order,
    fill_taken,
    leading_eigenvectors,
    new_record,
    next_component,
    starts_with,
)
from mrshc.core.sparse_pca.l1_path import ComponentPath

# Columns that a component is shown at first: the steepest, in multiples of the squared bound, which
# is the least number that load, and some more.
_SHOWN, _ADDED, _MORE = 4.0, 1.0, 500

# A block may have more than its share of the steepest of all: it sends a few more.
_SPARE = 1.5


class FarPath(ComponentPath):
    """The sparse components of a far matrix for any L1 bound, to be proved in the end."""

    needs_proof = True

    def __init__(
        self, far: FarMatrix, *, n_components: int, most: int, max_iter: int, tol: float
    ) -> None:
        self._far = far
        # Where nothing is selected, bounds up to the root of twice the number wanted are tried.
        count = int(_SHOWN * 2 * most) + _MORE
        left = leading_eigenvectors(far.gram, n_components)
        starts, self._at_gaps, self._steepest = _first_sweep(far, left, count)
        super().__init__(starts, max_iter=max_iter, tol=tol)
        # What components rest on, and what is proved, by bound and position.
        self._courses: dict[tuple[float, int], Course] = {}
        self._shown: dict[tuple[float, int], Index] = {}
        self._known: list[list[float]] = [[] for _ in starts.vectors]  # bounds of these, sorted
        self._proved = set[tuple[float, int]]()
        self._forgotten: dict[float, int] = {}  # number of components that are wanted again

    def _next(self, earlier: list[Component], l1_bound: float) -> Component:
        """Find the next component in a few columns, and note what it rests on."""
        found, course = self._sought(earlier, l1_bound, self._to_show(earlier, l1_bound))
        self._courses[l1_bound, len(earlier)] = course
        return found

    def _sought(
        self, earlier: list[Component], l1_bound: float, shown: Index
    ) -> tuple[Component, Course]:
        """Return the next component in some columns, and what it rests on."""
        matrix = self._far.part(shown)
        before = [replace(c, indices=np.searchsorted(shown, c.indices)) for c in earlier]
        taken = fill_taken(matrix, before)
        record = new_record(matrix, self._max_iter)
        found = next_component(
            matrix,
            before,
            starts=self._starts_in(matrix, shown, taken),
            l1_bound=l1_bound,
            max_iter=self._max_iter,
            tol=self._tol,
            record=record,
        )
        made = record.thresholds >= 0.0
        course = Course(
            shown=shown,
            scores=record.scores[made],
            thresholds=record.thresholds[made],
            fill_taken=taken,
            enough=int(_ADDED * l1_bound**2) + _MORE,
        )
        return replace(found, indices=shown[found.indices]), course

    def _starts_in(self, matrix: Matrix, shown: Index, taken: float) -> Starts:
        """Return the starts in the columns that are shown.

        The images stay those of all columns. What missing cells change about them is added to each
        as for a matrix of shown columns only: the others are dealt with here.
        """
        vectors, images = self._starts.vectors[:, shown], self._starts.images
        if matrix.missing is not None:
            rows, columns = matrix.missing_cells
            change = np.full(rows.size, taken)
            if matrix.fill_error is not None:  # images have none of it
                change -= matrix.fill_error
            images = images - taken * self._at_gaps
            for image, v in zip(images, vectors, strict=True):
                image += np.bincount(rows, change * v[columns], minlength=image.size)
        return replace(self._starts, vectors=vectors, images=images)

    def components(self, l1_bound: float, rank: int) -> list[Component]:
        """Return the first `rank` sparse components under an L1 bound, proved."""
        while True:
            found = super().components(l1_bound, rank)
            if self.prove():
                return found

    def _to_show(self, earlier: list[Component], l1_bound: float) -> Index:
        """Return what was enough at the bounds on either side, and what is loaded already."""
        position = len(earlier)
        if known := self._known[position]:
            above = int(np.searchsorted(known, l1_bound))
            sides = {known[max(above - 1, 0)], known[min(above, len(known) - 1)]}
            shown = [self._shown[bound, position] for bound in sorted(sides)]
        else:
            count = int(_SHOWN * l1_bound**2) + _MORE
            shown = [np.sort(self._steepest[position][:count])]
        together = np.empty(0, np.intp)
        for some in (*shown, *(c.indices for c in earlier)):
            together = sorted_union(together, some)
        return together

    @property
    def to_solve(self) -> list[dict[str, Any]]:
        """What was found to be wrong, and is likely to be asked for again."""
        return [{"l1_bound": b, "rank": rank} for b, rank in self._forgotten.items()]

    def prove(self) -> bool:
        """Sweep once for all that is not proved; False if some of it must be sought again."""
        self._forgotten.clear()
        keys = [key for key in self._courses if key not in self._proved]
        results = self._tested([self._courses[key] for key in keys])
        wrong = list[tuple[float, int]]()
        for key, (shown, holds) in zip(keys, results, strict=True):
            self._shown[key] = shown
            if not holds:
                wrong.append(key)
        for position in range(len(self._known)):
            self._known[position] = sorted(b for b, k in self._shown if k == position)
        for bound, position in sorted(wrong):
            self._forget(bound, position)
        self._proved.update(key for key in keys if key in self._courses)
        return not wrong

    def _forget(self, l1_bound: float, position: int) -> None:
        """Forget a component and all that follow it."""
        bound = self._bounds[l1_bound]
        wanted = max(len(bound.components), self._forgotten.get(l1_bound, 0))
        self._forgotten[l1_bound] = wanted
        for k in range(position, len(bound.components)):
            del self._courses[l1_bound, k]
            self._proved.discard((l1_bound, k))
        del bound.components[position:], bound.features[position:]

    def _tested(self, courses: Sequence[Course]) -> list[tuple[Index, bool]]:
        """Return for each course the columns to show another time, and whether it holds.

        One sweep for all of them.
        """
        results = [(course.shown, True) for course in courses]
        stepped = [i for i, course in enumerate(courses) if course.thresholds.size]
        if not stepped:
            return results
        near = self._swept([courses[i] for i in stepped])
        order = np.argsort(near.courses, kind="stable")
        ends = np.searchsorted(near.courses[order], np.arange(len(stepped) + 1))
        for k, i in enumerate(stepped):
            mine = order[ends[k] : ends[k + 1]]
            columns, products = near.columns[mine], near.products[mine]
            # The farther above, the surer: on a wrong way, many seem to be needed.
            best = np.argsort(-products, kind="stable")[: courses[i].enough]
            holds = bool(products.max(initial=0.0) <= 1.0)
            results[i] = np.union1d(courses[i].shown, columns[best]), holds
        return results

    def _swept(self, courses: Sequence[Course]) -> Near:
        far = self._far
        claims = Claims.of(courses, n_columns=far.shape[1], unit=far.unit)
        if not far.source.on_device:
            claims.groups  # noqa: B018 - made here, once, not where the blocks are
        sweep = partial(_test_block, centring=far.centring, kept=far.is_kept, claims=claims)
        found = list[Near]()
        for near, indices, columns in far.sweep(sweep):
            far.keep(indices, columns)
            found.append(near)
        return Near(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class DevicePath(FarPath):
    """The same on a device, where sweeps cost little: each component is proved as it is found.

    Searches that wait for a proof share a sweep, so how many there are depends on threads; what is
    found does not.
    """

    needs_proof = False

    def __init__(self, far: FarMatrix, **settings: Any) -> None:
        super().__init__(far, **settings)
        self._waiting: list[_Ticket] = []
        self._queue, self._sweeping, self._noting = Lock(), Lock(), Lock()

    def _next(self, earlier: list[Component], l1_bound: float) -> Component:
        """Find the next component, and prove it."""
        position, holds = len(earlier), False
        shown = self._to_show(earlier, l1_bound)
        while not holds:
            found, course = self._sought(earlier, l1_bound, shown)
            shown, holds = self._tested_with_others(course)
        with self._noting:
            self._shown[l1_bound, position] = shown
            insort(self._known[position], l1_bound)
        return found

    def prove(self) -> bool:
        """Return that all is proved."""
        return True

    def _tested_with_others(self, course: Course) -> tuple[Index, bool]:
        """Test a course, in one sweep with all that wait meanwhile."""
        ticket = _Ticket(course)
        with self._queue:
            self._waiting.append(ticket)
        with self._sweeping:
            if ticket.result is None:
                with self._queue:
                    together, self._waiting = self._waiting, []
                try:
                    results = self._tested([t.course for t in together])
                except BaseException as error:
                    for other in together:
                        other.result = error
                    raise
                for other, result in zip(together, results, strict=True):
                    other.result = result
        if isinstance(ticket.result, BaseException):
            raise ticket.result
        assert ticket.result is not None
        return ticket.result


@dataclass(slots=True)
class _Ticket:
    """A course that waits for its proof."""

    course: Course
    result: tuple[Index, bool] | BaseException | None = None


def _first_sweep(far: FarMatrix, left: Float, count: int) -> tuple[Starts, Float, Index]:
    """Find right singular vectors, keep the columns where they are largest; and say which.

    Also, for each of them and each sample, the sum of its entries where the sample has gaps.
    """
    slopes, near = [], []
    images, at_gaps = np.zeros(left.shape), np.zeros(left.shape)
    share = count / far.shape[1]
    sweep = partial(_start_block, centring=far.centring, left=left, share=share)
    for part, image, at_gap, indices, columns in far.sweep(sweep):
        slopes.append(part)
        images += image
        at_gaps += at_gap
        near.append((indices, columns))
    right = np.concatenate(slopes, axis=1)
    for indices, columns in near:
        far.keep(indices, columns)
    kept = np.flatnonzero(far.is_kept)
    steepest = kept[_largest(right[:, kept], count)]
    lengths = np.linalg.norm(right, axis=1)
    unit = np.where(lengths > 0, lengths, 1.0)[:, None]
    starts = starts_with(right / unit, images / unit)
    return existing(starts), (at_gaps / unit)[existing_order(starts)], steepest


def _largest(slopes: Float, count: int) -> Index:
    """Return where each row has its largest entries, in absolute value, the largest first."""
    size = np.abs(slopes)
    count = min(count, slopes.shape[1])
    some = np.argpartition(-size, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(size, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _start_block(
    block: Any, start: int, xp: Any, *, centring: Centring, left: Float, share: float
) -> tuple[Float, Float, Float | float, Index, NDArray[Any]]:
    """Return the block's part of X'u, of XX'u and of the gaps' part of that, and some columns.

    Those are the columns with the largest products.
    """
    part = centring(block, start, xp)
    products = beside(block, left, xp) @ part
    images = to_host(products @ part.T)
    at_gaps: Float | float = 0.0
    if centring.fill is not None:
        at_gaps = to_host(products @ xp.astype(xp.isnan(block), xp.float64).T)
    slopes = to_host(products)
    near = np.unique(_largest(slopes, int(_SPARE * share * block.shape[1]) + _MORE))
    return slopes, images, at_gaps, near + start, _some_columns(block, near, xp)


def _test_block(
    block: Any, start: int, xp: Any, *, centring: Centring, kept: Mask, claims: Claims
) -> tuple[Near, Index, NDArray[Any]]:
    """Test a block, and return those of its columns that matter and are not kept yet."""
    part = centring(block, start, xp)
    gaps = None
    if centring.fill is not None:
        gaps = xp.sqrt(xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0))
    near = claims.test(part, gaps, start, xp)
    new = np.unique(near.columns)
    new = new[~kept[new]]
    return near, new, _some_columns(block, new - start, xp)


def _some_columns(block: Any, indices: Index, xp: Any) -> NDArray[Any]:
    if xp is np:
        return block[:, indices]
    return to_host(xp.take(block, beside(block, indices, xp), axis=1))
