"""Computation of components, in idle threads, at L1 bounds that a bisection may need next.

Each step of a bisection depends on the one before, so a search for q features occupies one thread,
and there may be fewer searches than threads. Idle threads compute components at those L1 bounds
that the searches are most likely to need. Components do not depend on when they are computed, so
the results of the searches do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import exp
from threading import Lock
from types import TracebackType
from typing import NamedTuple, Self

# Number of levels of the bisection that are considered: with four levels there are more bounds than
# idle threads of common computers. The number does not affect the result.
_N_LEVELS = 4
# The L1 bound is distributed as a mixture of a uniform distribution on the interval and a logistic
# distribution around the bound that is found by interpolation; the second number is its scale as a
# share of the interval. Both numbers were chosen by plausibility. They affect the computation time,
# but not the result.
_UNIFORM_SHARE, _SCALE = 0.5, 0.1


class Bracket(NamedTuple):
    """State of a bisection for the L1 bound that selects q features."""

    low: float  # L1 bound that selects at most q features
    high: float  # L1 bound that selects more than q features
    n_low: float  # number of features at `low`
    n_high: float | None  # lower limit for the number of features at `high`; None if not known
    current: float  # L1 bound at which the search computes components now
    limit: float  # sets with this number of features or more are not needed


class Candidate(NamedTuple):
    """An L1 bound that a search may need."""

    probability: float
    l1_bound: float


def likely_bounds(
    bracket: Bracket, q: int, is_too_large: Callable[[float], bool]
) -> list[Candidate]:
    """Return L1 bounds that a bisection may need next, the most likely first.

    A bound in the middle of an interval is needed if the bisection comes to this interval, that is,
    if the bound that is searched for is in it.

    Parameters
    ----------
    bracket : Bracket
        State of the bisection.
    q : int
        Target number of features.
    is_too_large : callable
        Function that returns whether an L1 bound is known to select too many features. No
        components are needed at such a bound, and its interval has no upper half.
    """
    low, high = bracket.low, bracket.high
    # The operations are those of the bisection, which would not use bounds that are rounded in
    # another way.
    while is_too_large(middle := (low + high) / 2):
        high = middle
    target = None
    if bracket.n_high is not None and high == bracket.high:
        target = (q - bracket.n_low) / max(bracket.n_high - bracket.n_low, 1.0)
    candidates = []
    intervals = [(low, high)]
    for _ in range(_N_LEVELS):
        halves = []
        for start, stop in intervals:
            middle = (start + stop) / 2
            halves += [(start, middle), (middle, stop)]
            below = (_distribution((x - low) / (high - low), target) for x in (stop, start))
            if middle != bracket.current and not is_too_large(middle):
                candidates.append(Candidate(next(below) - next(below), middle))
        intervals = halves
    return sorted(candidates, reverse=True)


def _distribution(x: float, target: float | None) -> float:
    """Return the probability that the bound is below a share x of the interval.

    `target` is the share that is found by interpolation, or None if it is not known.
    """
    if target is None:
        return x
    start, here, end = (1.0 / (1.0 + exp((target - y) / _SCALE)) for y in (0.0, x, 1.0))
    return _UNIFORM_SHARE * x + (1.0 - _UNIFORM_SHARE) * (here - start) / (end - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """Components that a search may need."""

    value: float  # probability, times an estimate of the time that the search takes
    search: int  # number of the search
    l1_bound: float
    rank: int
    limit: float  # no components are needed once they select this number of features


class Speculation:
    """Executes computations that running searches may need, in threads that are idle.

    The object is a context manager. At the end of the context, requests are dropped, and
    computations in progress end after the present component. Errors of computations are ignored: a
    search that needs the same components repeats the computation, and raises the error.

    Parameters
    ----------
    solve : callable
        Function that is called as ``solve(l1_bound, rank, limit, should_stop)``. It computes
        components until they select `limit` features or `should_stop()` is True.
    n_threads : int
        Number of threads, including those of the searches.
    """

    def __init__(
        self, solve: Callable[[float, int, float, Callable[[], bool]], None], *, n_threads: int
    ) -> None:
        self._solve = solve
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads)
        self._lock = Lock()
        self._requests: dict[int, list[_Request]] = {}  # of each running search, the best one last
        self._brackets: dict[int, tuple[float, float]] = {}  # present interval of each search
        self._started = set[tuple[float, int]]()  # bounds and ranks that have been requested before
        self._n_running = 0
        self._is_stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._pool.shutdown(cancel_futures=True)

    def stop(self) -> None:
        """Drop all requests; computations in progress end after the present component."""
        with self._lock:
            self._is_stopped = True
            self._requests.clear()

    @contextmanager
    def search(self) -> Iterator[int]:
        """Context in which a search runs in the calling thread; return the number of the search."""
        with self._lock:
            number = len(self._brackets)
            self._brackets[number] = (0.0, float("inf"))
            self._requests[number] = []
        try:
            yield number
        finally:
            with self._lock:
                self._brackets[number] = (0.0, 0.0)  # makes all computations for it obsolete
                self._requests.pop(number, None)
                self._start_requests()

    def request(
        self,
        search: int,
        bracket: Bracket,
        is_too_large: Callable[[float], bool],
        *,
        q: int,
        rank: int,
    ) -> None:
        """Replace the requests of a search.

        Parameters
        ----------
        search : int
            Number of the search.
        bracket, is_too_large, q
            Parameters of `likely_bounds`.
        rank : int
            Number of components.
        """
        requests = [
            _Request(
                # A search takes more time the more features and components there are.
                value=candidate.probability * q * rank,
                search=search,
                l1_bound=candidate.l1_bound,
                rank=rank,
                limit=bracket.limit,
            )
            for candidate in reversed(likely_bounds(bracket, q, is_too_large))
        ]
        with self._lock:
            self._brackets[search] = (bracket.low, bracket.high)
            if not self._is_stopped:
                self._requests[search] = requests
                self._start_requests()

    def _start_requests(self) -> None:
        """Submit the best requests, as many as there are idle threads. The lock must be held."""
        while self._n_running + len(self._requests) < self._n_threads:
            best = max((r for r in self._requests.values() if r), key=_last_value, default=None)
            if best is None:
                return
            request = best.pop()
            if (request.l1_bound, request.rank) not in self._started:
                self._started.add((request.l1_bound, request.rank))
                self._n_running += 1
                self._pool.submit(self._execute, request)

    def _execute(self, request: _Request) -> None:
        """Compute the components of a request, and start further requests."""
        # A search that needs the components meets the same error.
        with suppress(Exception):
            self._solve(
                request.l1_bound, request.rank, request.limit, lambda: self._is_obsolete(request)
            )
        with self._lock:
            self._n_running -= 1
            if not self._is_stopped:
                self._start_requests()

    def _is_obsolete(self, request: _Request) -> bool:
        low, high = self._brackets[request.search]
        return self._is_stopped or not low < request.l1_bound < high


def _last_value(requests: list[_Request]) -> float:
    return requests[-1].value
