"""Algorithm 1 of Zhang and Zamar (2014): find the L1 bound that selects q features.

The features that an L1 bound selects are those with a non-zero loading on at least one of the first
r sparse components under this bound, where r is the rank.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import cast

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.kernels.component_sequence import SequenceEnd
from mrshc.core.kernels.vectors import sorted_union
from mrshc.core.parallel import effective_n_threads, run_in_parallel
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
from mrshc.core.sparse_pca.speculation import Bracket, Speculation
from mrshc.core.sparse_pca.working_sets import initial_pass

# The bisection ends when the interval that contains the L1 bound is no wider than this. By default,
# the loading vectors are computed to a tolerance of 1e-7 in L1 norm. The feature sets of two bounds
# that are closer than this tolerance would therefore differ only by numerical errors.
_MIN_BRACKET_WIDTH = 1e-7

# An entry of the first right singular vector is treated as zero if its absolute value is at most
# this fraction of the largest absolute entry. The fraction is well above the rounding errors of
# double precision. Too large a value would increase the computation time but not change the result:
# some feature sets would not be recognised in advance as too large, and would have to be computed.
_ZERO_LOADING = 1e-10

# Components are computed in advance by at most this share of the threads, minus the searches. Two
# threads may share a core, and all share the memory bandwidth, so that more threads would delay the
# searches. The share was chosen on a computer with 16 cores; it does not affect the result.
_SHARE_OF_THREADS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureSet:
    """The features that are selected by the sparse components under an L1 bound (Algorithm 1).

    Attributes
    ----------
    indices : ndarray of shape (n_selected,)
        Indices of the selected features, in increasing order.
    l1_bound : float
        Upper bound on the L1 norm of the loading vector of each component.
    rank : int
        Number of sparse components.
    reached : bool
        Whether the number of features differs from the target number by no more than the accepted
        tolerance. If False, the feature set is the one whose size is closest to the target number
        among the sets that the bisection examined.
    """

    indices: Index
    l1_bound: float
    rank: int
    reached: bool


def _ignore_bracket(_: Bracket) -> None:
    """Do nothing. The function is used if no components are computed in advance."""


@dataclass(slots=True)
class _SolvedBound:
    """The components that have been computed at one L1 bound."""

    components: list[Component] = field(default_factory=list)
    # Entry r contains the features with a non-zero loading on at least one of the first r + 1
    # components.
    features: list[Index] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)  # held while components are computed
    n_searches: int = 0  # number of searches that compute components or wait for the lock


class ComponentPath:
    """The sparse components of one data set for any L1 bound.

    Components are computed when they are first needed, and are then stored. The first r components
    at a bound do not depend on how many components follow. The searches for all numbers of features
    and all ranks therefore use the same stored components. A component may be computed from a
    subset of the features. In this case it is certified: a check ensures that it equals the
    component computed from all features.

    The methods `features` and `search` may be called from several threads at the same time. The
    other public methods must not be called while another thread uses the object.

    Parameters
    ----------
    solver : ComponentSolver
        Object that computes components.
    certifier : Certifier
        Object that checks whether components equal those computed from all features.
    """

    def __init__(self, solver: ComponentSolver, certifier: Certifier) -> None:
        self._solver = solver
        self._certifier = certifier
        self._bounds: dict[float, _SolvedBound] = {}
        self._speculation: Speculation | None = None  # used during `search_grid`
        # Maps each L1 bound at which the last check removed components to the number of components
        # before the removal.
        self._dropped_ranks: dict[float, int] = {}
        self._lock = Lock()

    def components(self, l1_bound: float, rank: int) -> list[Component]:
        """Return the first `rank` sparse components under an L1 bound, all of which are certified.

        Components that fail the certification are computed again.
        """
        while True:
            components = self._solve_up_to(l1_bound, rank).components[:rank]
            if self.certify():
                return components

    def features(self, l1_bound: float, rank: int, *, stop_at: float = np.inf) -> Index | None:
        """Return the features that are selected by the first `rank` components under an L1 bound.

        These are the features with a non-zero loading on at least one of the components. They may
        depend on components that are not yet certified.

        Parameters
        ----------
        l1_bound : float
            Upper bound on the L1 norm of the loading vector of each component.
        rank : int
            Number of components.
        stop_at : float, default=inf
            The computation stops as soon as the set is known to contain `stop_at` or more features.

        Returns
        -------
        features : ndarray of shape (m,) or None
            Indices of the features, in increasing order; None if there are `stop_at` or more
            features.

        Notes
        -----
        A unit vector with m non-zero entries has an L1 norm of at most the square root of m. If the
        L1 bound is active, the number of non-zero loadings is therefore at least the square of the
        bound. If the bound is not active, the loadings of the first component are the first right
        singular vector, whose non-zero entries can be counted. The number of features is therefore
        at least the smaller of these two numbers. This lower limit is used to recognise large sets
        without computing them.
        """
        if self._is_too_large(l1_bound, stop_at):
            return None
        # The sets grow with the number of components.
        sets = self._solve_up_to(l1_bound, rank, stop_at=stop_at).features[:rank]
        return None if sets[-1].size >= stop_at else sets[-1]

    def _is_too_large(self, l1_bound: float, stop_at: float) -> bool:
        """Return whether an L1 bound is known to select more than `stop_at` features."""
        return min(l1_bound**2, self._n_unbounded_features) > stop_at

    @cached_property
    def _n_unbounded_features(self) -> int:
        """Number of features with a non-zero loading on the first component without an L1 bound.

        Without an L1 bound, the loadings of the first component are the first right singular
        vector, so the non-zero entries of this vector are counted.
        """
        loadings = np.abs(self._solver.starts.vectors[0])
        return int(np.count_nonzero(loadings > _ZERO_LOADING * loadings.max()))

    def _solve_up_to(self, l1_bound: float, rank: int, *, stop_at: float = np.inf) -> _SolvedBound:
        """Return the object that stores the components at an L1 bound.

        The first `rank` components are computed if they are not yet stored. If the components with
        the smallest numbers select `stop_at` or more features, the others are not computed.
        """
        with self._lock:
            bound = self._bounds.setdefault(l1_bound, _SolvedBound())
            bound.n_searches += 1
        try:
            # Threads that need the same bound wait here, so that no component is computed twice.
            # Threads that need other bounds do not wait.
            with bound.lock:
                self._extend(bound, l1_bound, rank, stop_at=stop_at)
        finally:
            with self._lock:
                bound.n_searches -= 1
        return bound

    def _solve_in_advance(
        self, l1_bound: float, rank: int, stop_at: float, should_stop: Callable[[], bool]
    ) -> None:
        """Compute components that a search may need, until a search needs the same bound.

        Nothing is computed if another thread computes components at this bound. The other
        parameters are those of `_solve_up_to` and of `Speculation`.
        """
        with self._lock:
            bound = self._bounds.setdefault(l1_bound, _SolvedBound())
        if bound.lock.acquire(blocking=False):
            try:
                self._extend(
                    bound,
                    l1_bound,
                    rank,
                    stop_at=stop_at,
                    should_stop=lambda: bound.n_searches > 0 or should_stop(),
                )
            finally:
                bound.lock.release()

    def _extend(
        self,
        bound: _SolvedBound,
        l1_bound: float,
        rank: int,
        *,
        stop_at: float,
        should_stop: Callable[[], bool] = bool,
    ) -> None:
        """Compute components at an L1 bound, whose lock must be held, as `_solve_up_to` requires.

        The computation ends earlier if `should_stop()` is True after a component.
        """
        # A number of type float in all calls: the loops would be compiled again for integers.
        end = SequenceEnd(rank, float(stop_at))
        while len(bound.components) < rank and not should_stop():
            earlier = bound.features[-1] if bound.features else np.empty(0, np.intp)
            if earlier.size >= stop_at:
                break
            for component, certificate in self._solver.solve(bound.components, l1_bound, end=end):
                # A component that is not accepted is computed again, on a larger working set.
                key = (l1_bound, len(bound.components))
                if not self._certifier.accept(key, certificate):
                    break
                earlier = sorted_union(earlier, component.indices)
                bound.features.append(earlier)
                bound.components.append(component)

    def certify(self) -> bool:
        """Check all components that are not yet certified, and remove those that fail the check.

        Later components at the same L1 bound are removed too. Return True if no component failed,
        and False otherwise.
        """
        self._dropped_ranks.clear()
        failed = self._certifier.check_pending()
        # A component depends on the earlier components at the same bound, so it is removed if one
        # of the earlier components fails. The keys are in increasing order, so the first failure at
        # a bound removes all components at this bound that are affected.
        for l1_bound, position in failed:
            bound = self._bounds[l1_bound]
            self._dropped_ranks.setdefault(l1_bound, len(bound.components))
            del bound.components[position:], bound.features[position:]
        return not failed

    def search(self, q: int, *, rank: int, tolerance: int = 0, min_features: int = 1) -> FeatureSet:
        """Return a feature set with q features, or with a number close to q (Algorithm 1).

        See `bisect_l1_bound` for the set that is returned if no set with q features is found. The
        set may depend on components that are not yet certified.

        Parameters
        ----------
        q : int
            Target number of features.
        rank : int
            Number of components.
        tolerance : int, default=0
            Largest accepted difference between the number of features and q.
        min_features : int, default=1
            Smallest number of features that is accepted, at most q.
        """
        with self._requests_in_advance(q, rank) as on_bracket:
            l1_bound, indices = bisect_l1_bound(
                lambda bound, stop_at: self.features(bound, rank, stop_at=stop_at),
                q,
                # The L1 norm of a unit vector is at most the square root of its number of entries.
                max_bound=float(np.sqrt(self._solver.starts.vectors.shape[1])),
                tolerance=tolerance,
                min_features=min_features,
                on_bracket=on_bracket,
            )
        reached = abs(indices.size - q) <= tolerance
        return FeatureSet(indices=indices, l1_bound=l1_bound, rank=rank, reached=reached)

    @contextmanager
    def _requests_in_advance(self, q: int, rank: int) -> Iterator[Callable[[Bracket], None]]:
        """Context of a search; return a function that requests components in advance, if possible.

        The function is called with each state of the bisection.
        """
        speculation = self._speculation
        if speculation is None:
            yield _ignore_bracket
            return
        with speculation.search() as number:

            def request(bracket: Bracket) -> None:
                speculation.request(
                    number,
                    bracket,
                    lambda l1_bound: self._is_too_large(l1_bound, bracket.limit),
                    q=q,
                    rank=rank,
                )

            yield request

    def search_grid(
        self,
        grid: Sequence[tuple[int, int]],
        *,
        tolerance: int,
        n_jobs: int | None,
        min_features: int = 1,
    ) -> Generator[tuple[tuple[int, int], FeatureSet]]:
        """Yield each pair (q, rank) of a grid with its feature set.

        The feature sets depend only on certified components. `tolerance` is the largest accepted
        difference between the number of features and q. `n_jobs` is the number of threads.
        `min_features` is the smallest number of features that is accepted, at most the smallest q.
        """
        search = partial(self.search, tolerance=tolerance, min_features=min_features)
        if not self._certifier.is_deferred:
            yield from self._search_all(grid, search, n_jobs)
            self._solver.release_memory()
            self._certifier.discard_copies()
            return
        # The searches use components that are not yet certified. All of these components are then
        # checked in one pass over the data. If some components fail, the searches are repeated;
        # the components that passed the check are not computed again.
        is_certified = False
        while not is_certified:
            results = list(self._search_all(grid, search, n_jobs))
            is_certified = self.certify()
        yield from results

    def _search_all(
        self,
        grid: Sequence[tuple[int, int]],
        search: Callable[..., FeatureSet],
        n_jobs: int | None,
    ) -> Iterator[tuple[tuple[int, int], FeatureSet]]:
        """Yield each pair (q, rank) of a grid with its feature set.

        The feature sets may depend on components that are not yet certified. `search` is the method
        `search` with fixed values of all arguments but q and `rank`. The other parameters are those
        of `search_grid`.
        """
        # Components that failed certification are likely to be needed again. These components are
        # computed first, with one task for each L1 bound. Otherwise several searches would have to
        # wait for the components at the same bound.
        dropped = ({"l1_bound": bound, "rank": rank} for bound, rank in self._dropped_ranks.items())
        tasks = run_in_parallel(self.features, list(dropped), n_jobs=n_jobs, share_memory=True)
        with closing(tasks) as solved:
            deque(solved, maxlen=0)
        arguments = ({"q": q, "rank": rank} for q, rank in grid)
        searches = run_in_parallel(search, arguments, n_jobs=n_jobs, share_memory=True)
        with self._speculate(n_jobs) as speculation, closing(searches) as sets:
            try:
                yield from zip(grid, sets, strict=True)
            finally:
                # After an error or an interruption, running searches need nothing in advance.
                if speculation is not None:
                    speculation.stop()

    @contextmanager
    def _speculate(self, n_jobs: int | None) -> Iterator[Speculation | None]:
        """Context in which idle threads compute components that searches may need.

        On data in memory, the searches alone use the memory bandwidth, and components that are
        certified in a later pass may fail. There is then no computation in advance.
        """
        n_threads = int(_SHARE_OF_THREADS * effective_n_threads(n_jobs))
        if n_threads < 2 or not self._certifier.is_shared:
            yield None
            return
        with Speculation(self._solve_in_advance, n_threads=n_threads) as speculation:
            self._speculation = speculation
            try:
                yield speculation
            finally:
                self._speculation = None


def component_path(
    matrix: CentredMatrix, *, n_components: int, max_features: int, limits: AlternationLimits
) -> ComponentPath:
    """Return an object that computes the sparse components of a matrix for any L1 bound.

    Parameters
    ----------
    matrix : CentredMatrix
        The centred data, which may be in memory, out of core or on a device.
    n_components : int
        Largest number of components that will be needed.
    max_features : int
        Approximate largest number of features that will be selected. The value affects the
        computation time, but not the result.
    limits : AlternationLimits
        Convergence tolerance and largest number of iterations for each component.
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
    features: Callable[[float, float], Index | None],
    q: int,
    *,
    max_bound: float,
    tolerance: int,
    min_features: int = 1,
    on_bracket: Callable[[Bracket], None] = _ignore_bracket,
) -> tuple[float, Index]:
    """Return an L1 bound that selects q features, found by bisection, and these features.

    The number of selected features is a step function of the L1 bound, so it may skip q. The
    bisection ends at the first set whose size differs from q by at most `tolerance`. If there is no
    such set, the result is the set whose size is closest to q among all sets that were examined. If
    two sizes are equally close to q, the smaller set is returned. If this set has fewer than
    `min_features` features, the smallest set with more than q features is returned instead.

    Parameters
    ----------
    features : callable
        Function that takes an L1 bound and a limit. It returns the features that the bound selects;
        it may return None if their number is equal to or above the limit.
    q : int
        Target number of features.
    max_bound : float
        Largest L1 bound of the search. The smallest L1 bound is 1.
    tolerance : int
        Largest accepted difference between the number of features and q.
    min_features : int, default=1
        Smallest number of features that is accepted, at most q. A smaller set is returned only if
        the largest L1 bound does not select more features.
    on_bracket : callable, default=_ignore_bracket
        Function that is called with the state of the bisection before each call of `features`.

    Returns
    -------
    l1_bound : float
        The L1 bound.
    indices : ndarray of shape (m,)
        Indices of the features that the L1 bound selects.
    """
    low, high = 1.0, max_bound
    on_bracket(Bracket(low, high, 0, None, low, 2.0 * q))
    closest, best = _all_features(features, low), low
    # At a bound of 1, each component has a single non-zero loading, or several non-zero loadings if
    # features are tied. The bisection assumes that no larger bound selects fewer features.
    if closest.size >= q:
        return best, closest
    # A set with 2 * q - closest.size features or more is not closer to q than `closest`.
    selected = features(high, 2 * q - closest.size)
    if selected is not None and selected.size <= q:
        return high, selected
    n_low, n_high = closest.size, None
    while True:
        if selected is not None and _is_closer(selected, closest, q):
            best, closest = high if selected.size > q else low, selected
        is_large_enough = closest.size >= min_features
        if is_large_enough and abs(closest.size - q) <= tolerance:
            return best, closest
        if high - low <= _MIN_BRACKET_WIDTH:
            return (best, closest) if is_large_enough else (high, _all_features(features, high))
        middle, limit = (low + high) / 2, q + abs(closest.size - q)
        on_bracket(Bracket(low, high, n_low, n_high, middle, limit))
        selected = features(middle, limit)
        if selected is None or selected.size > q:
            high, n_high = middle, limit if selected is None else selected.size
        else:
            low, n_low = middle, selected.size


def _all_features(features: Callable[[float, float], Index | None], l1_bound: float) -> Index:
    """Return the features that an L1 bound selects, however many there are."""
    selected = features(l1_bound, np.inf)
    assert selected is not None  # without a limit, `features` returns a set
    return selected


def _is_closer(indices: Index, closest: Index, q: int) -> bool:
    """Return whether the size of `indices` is closer to q than the size of `closest`.

    If both sizes are equally close, return whether `indices` is the smaller set.
    """
    return (abs(indices.size - q), indices.size) < (abs(closest.size - q), closest.size)
