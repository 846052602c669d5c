"""Algorithm 1: the feature set of an L1 bound, and the bound that selects q features."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import cast

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.kernels.vectors import sorted_union
from mrshc.core.parallel import run_in_parallel
from mrshc.core.sparse_pca.certificate_checking import (
    Certifier,
    DeferredCertifier,
    ImmediateCertifier,
    NullCertifier,
)
from mrshc.core.sparse_pca.next_component import Component, leading_starts
from mrshc.core.sparse_pca.solvers import (
    AlternationLimits,
    ComponentSolver,
    FullSolver,
    WorkingSetSolver,
)
from mrshc.core.sparse_pca.working_sets import initial_pass

# Bisection ends at this width of the bracket. The direction v is solved to an L1 change of 1e-7, so
# that feature sets of closer bounds would differ by rounding only.
_MIN_BRACKET_WIDTH = 1e-7

# Loadings of the first singular vector below this fraction of the largest count as zero: well above
# rounding errors of double precision. Too large a value only costs time, since a feature set that
# is not recognised as too large is computed.
_ZERO_LOADING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureSet:
    """Features selected with one rank, and the L1 bound that selects them (Algorithm 1).

    Attributes
    ----------
    indices : ndarray of shape (q,)
        Selected features, increasing.
    l1_bound : float
        Bound on the L1 norm of each component.
    rank : int
        Number of components.
    reached : bool
        Whether the wanted number of features was reached; if not, this set is the closest one
        that the bisection found.
    """

    indices: Index
    l1_bound: float
    rank: int
    reached: bool


@dataclass(slots=True)
class _SolvedBound:
    """The components that have been computed at one L1 bound."""

    components: list[Component] = field(default_factory=list)
    features: list[Index] = field(default_factory=list)  # of the first 1, 2, ... components
    lock: Lock = field(default_factory=Lock)


class ComponentPath:
    """The sparse components of one data set for any L1 bound, each computed at most once.

    Components 1, ..., r at one bound do not depend on how many follow. Searches for all numbers of
    features and all ranks therefore share the computed components. Methods can be called from any
    thread, except `certify` and those that call it.

    Parameters
    ----------
    solver : ComponentSolver
        Computes components.
    certifier : Certifier
        Certifies that they are those of all features.
    """

    def __init__(self, solver: ComponentSolver, certifier: Certifier) -> None:
        self._solver = solver
        self._certifier = certifier
        self._bounds: dict[float, _SolvedBound] = {}
        # Number of components that were known at a bound before some of them failed to certify.
        self._dropped_ranks: dict[float, int] = {}
        self._lock = Lock()

    def components(self, l1_bound: float, rank: int) -> list[Component]:
        """Return the first `rank` sparse components under an L1 bound, certified."""
        while True:
            components = self._solve_up_to(l1_bound, rank).components[:rank]
            if self.certify():
                return components

    def features(self, l1_bound: float, rank: int, *, stop_at: float = np.inf) -> Index | None:
        """Return the features with a non-zero loading on any of the first `rank` components.

        Parameters
        ----------
        l1_bound : float
            Bound on the L1 norm of each component.
        rank : int
            Number of components.
        stop_at : float, default=inf
            Size at which a set is too large to be of interest.

        Returns
        -------
        features : ndarray of shape (m,) or None
            Increasing; None if there are `stop_at` features or more. In that case further
            components need not be computed.

        Notes
        -----
        A unit vector with m non-zero entries has an L1 norm of at most the square root of m. Where
        the bound is active, at least its square many features thus have a loading.
        """
        if min(l1_bound**2, self._n_unbounded_features) > stop_at:
            return None
        for r in range(1, rank + 1):
            loaded = self._solve_up_to(l1_bound, r).features[r - 1]
            if loaded.size >= stop_at:
                return None
        return loaded

    @cached_property
    def _n_unbounded_features(self) -> int:
        """A lower bound of the number of features with a loading where the L1 bound is inactive."""
        loadings = np.abs(self._solver.starts.vectors[0])
        return int(np.count_nonzero(loadings > _ZERO_LOADING * loadings.max()))

    def _solve_up_to(self, l1_bound: float, rank: int) -> _SolvedBound:
        """Return the components at an L1 bound, after computing the first `rank` if necessary."""
        with self._lock:
            bound = self._bounds.setdefault(l1_bound, _SolvedBound())
        # Other threads at the same bound wait, so that no component is computed twice; threads at
        # other bounds do not.
        with bound.lock:
            while len(bound.components) < rank:
                new = self._solve_next(bound.components, l1_bound)
                earlier = bound.features[-1] if bound.features else np.empty(0, np.intp)
                bound.features.append(sorted_union(earlier, new.indices))
                bound.components.append(new)
        return bound

    def _solve_next(self, earlier: list[Component], l1_bound: float) -> Component:
        """Return the component that follows `earlier`, on working sets that grow as needed."""
        while True:
            component, certificate = self._solver.solve(earlier, l1_bound)
            if self._certifier.accept((l1_bound, len(earlier)), certificate):
                return component

    def certify(self) -> bool:
        """Certify all provisional components, drop those that fail, and return whether none did."""
        self._dropped_ranks.clear()
        failed = self._certifier.check_pending()
        # Later components depend on earlier ones and are dropped with them. The keys are in
        # increasing order, so the first failure at a bound removes all that is to be removed.
        for l1_bound, position in failed:
            bound = self._bounds[l1_bound]
            self._dropped_ranks.setdefault(l1_bound, len(bound.components))
            del bound.components[position:], bound.features[position:]
        return not failed

    def search(self, q: int, *, rank: int, tolerance: int = 0) -> FeatureSet:
        """Return the feature set whose size is closest to q (Algorithm 1).

        Parameters
        ----------
        q : int
            Wanted number of features.
        rank : int
            Number of components.
        tolerance : int, default=0
            Accepted deviation from q.
        """
        l1_bound, indices = bisect_l1_bound(
            lambda bound, stop_at: self.features(bound, rank, stop_at=stop_at),
            q,
            # A unit vector with p entries has an L1 norm of at most the square root of p.
            max_bound=float(np.sqrt(self._solver.starts.vectors.shape[1])),
            tolerance=tolerance,
        )
        reached = abs(indices.size - q) <= tolerance
        return FeatureSet(indices=indices, l1_bound=l1_bound, rank=rank, reached=reached)

    def search_grid(
        self, grid: Sequence[tuple[int, int]], *, tolerance: int, n_jobs: int | None
    ) -> Iterator[tuple[tuple[int, int], FeatureSet]]:
        """Yield each (q, rank) of a grid with its feature set, certified."""
        if not self._certifier.is_deferred:
            yield from self._search_all(grid, tolerance, n_jobs)
            return
        # All searches use provisional components, which are certified together in one pass. If some
        # fail, the searches are repeated; components that did not fail are not computed again.
        is_certified = False
        while not is_certified:
            results = list(self._search_all(grid, tolerance, n_jobs))
            is_certified = self.certify()
        yield from results

    def _search_all(
        self, grid: Sequence[tuple[int, int]], tolerance: int, n_jobs: int | None
    ) -> Iterator[tuple[tuple[int, int], FeatureSet]]:
        """Yield each (q, rank) of a grid with its feature set, perhaps provisional."""
        # Bounds of dropped components are likely to be needed again. Searches would wait for each
        # other at such a bound; computing them first, one bound per task, avoids that.
        dropped = ({"l1_bound": bound, "rank": rank} for bound, rank in self._dropped_ranks.items())
        tasks = run_in_parallel(self.features, list(dropped), n_jobs=n_jobs, share_memory=True)
        with closing(tasks) as solved:
            deque(solved, maxlen=0)
        arguments = ({"q": q, "rank": rank, "tolerance": tolerance} for q, rank in grid)
        with closing(
            run_in_parallel(self.search, arguments, n_jobs=n_jobs, share_memory=True)
        ) as sets:
            yield from zip(grid, sets, strict=True)


def component_path(
    matrix: CentredMatrix, *, n_components: int, max_features: int, limits: AlternationLimits
) -> ComponentPath:
    """Return the path of the sparse components of a matrix, for any storage backend.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    n_components : int
        Largest rank that will be asked for.
    max_features : int
        About the largest number of features that will be asked for. It affects the time, not the
        result.
    limits : AlternationLimits
        When the alternation for a component ends.
    """
    if matrix.certification == "not needed":
        array = cast(CentredArray, matrix)
        starts = leading_starts(array, n_components)
        return ComponentPath(FullSolver(array, starts, limits), NullCertifier())
    blocks = cast(CentredBlocks, matrix)
    initial = initial_pass(blocks, n_components=n_components, max_features=max_features)
    is_deferred = matrix.certification == "deferred"
    certifier_class = DeferredCertifier if is_deferred else ImmediateCertifier
    certifier = certifier_class(blocks, initial.working_sets)
    return ComponentPath(WorkingSetSolver(blocks, initial, limits), certifier)


def bisect_l1_bound(
    features: Callable[[float, float], Index | None], q: int, *, max_bound: float, tolerance: int
) -> tuple[float, Index]:
    """Find by bisection the L1 bound that selects q features.

    The number of features is a step function of the bound, so some q cannot be reached. Then the
    closest set that the bisection visited is returned, the smaller one of two equally close sets.

    Parameters
    ----------
    features : callable
        Called with an L1 bound and a size at which a set is too large to be the closest one.
        Returns the selected features, or None for a set that is too large.
    q : int
        Wanted number of features.
    max_bound : float
        Upper end of the bracket; the lower end is 1.
    tolerance : int
        Accepted deviation from q.

    Returns
    -------
    l1_bound : float
        The bound.
    indices : ndarray of shape (m,)
        The features that it selects.
    """
    low, high = 1.0, max_bound
    closest = features(low, np.inf)
    assert closest is not None
    best = low
    # At a bound of 1 each component loads on a single feature, or on several that tie.
    if closest.size >= q:
        return best, closest
    # A set of this size or more is further from q than the smallest set is.
    selected = features(high, 2 * q - closest.size)
    if selected is not None and selected.size <= q:
        return high, selected
    while True:
        if selected is not None and _is_closer(selected, closest, q):
            best, closest = high if selected.size > q else low, selected
        if abs(closest.size - q) <= tolerance or high - low <= _MIN_BRACKET_WIDTH:
            return best, closest
        middle = (low + high) / 2
        selected = features(middle, q + abs(closest.size - q))
        if selected is None or selected.size > q:
            high = middle
        else:
            low = middle


def _is_closer(indices: Index, closest: Index, q: int) -> bool:
    """Return whether a set is closer to q features than the closest so far, or smaller in a tie."""
    return (abs(indices.size - q), indices.size) < (abs(closest.size - q), closest.size)
