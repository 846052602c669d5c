"""From an L1 bound to a set of features, and back: Algorithm 1, the bisection that hits q."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from mrshc.core.arrays import Index
from mrshc.core.data.centred import Matrix
from mrshc.core.kernels.vectors import sorted_union
from mrshc.core.sparse_pca.components import Component, Starts, new_trace, next_component

# v is solved to an L1 change of 1e-7: a narrower bracket on the bound would chase rounding noise.
_NARROWEST_BRACKET = 1e-7

# Loadings of the first singular vector that are a smaller part of the largest may be zero.
_ROUNDING = 1e-10

# Iterations of which a trace is kept, a byte for each feature.
_TRACED = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureSet:
    """Features picked for one rank, and the L1 bound that picked them (Algorithm 1)."""

    indices: Index  # (q,), increasing
    l1_bound: float
    rank: int
    reached: bool  # False: no bound gives the wanted number; this is the closest


@dataclass(slots=True)
class _Bound:
    """What is known of one L1 bound."""

    components: list[Component] = field(default_factory=list)
    features: list[Index] = field(default_factory=list)  # of the first 1, 2, ... components
    lock: Lock = field(default_factory=Lock)


class ComponentPath(ABC):
    """The sparse components of one data set for any L1 bound, each solved at most once.

    Components 1..r at one bound do not depend on how many follow, so every search for every
    number of features and every rank draws on the same memo, from any thread.
    """

    needs_proof = False

    def __init__(self, starts: Starts, *, max_iter: int, tol: float) -> None:
        self._starts = starts
        self._max_iter = max_iter
        self._tol = tol
        self._bounds: dict[float, _Bound] = {}
        self._lock = Lock()

    @abstractmethod
    def _next(self, earlier: list[Component], l1_bound: float) -> Component:
        """Find the component that follows some others."""

    @property
    def to_solve(self) -> list[dict[str, Any]]:
        """Bounds and ranks that searches are likely to ask for."""
        return []

    def prove(self) -> bool:
        """Return whether what was found so far holds for the data; if not, ask again."""
        return True

    def components(self, l1_bound: float, rank: int) -> list[Component]:
        """Return the first `rank` sparse components under an L1 bound."""
        return self._solved(l1_bound, rank).components[:rank]

    def features(self, l1_bound: float, rank: int, *, enough: float = np.inf) -> Index | None:
        """Return the features that load on any of the first `rank` components.

        None if there are `enough` of them: then further components are left unsolved. A vector of
        unit length with few entries has a small L1 norm: at least the square of the bound load.
        """
        if min(l1_bound**2, self._n_loaded) > enough:
            return None
        for r in range(1, rank + 1):
            loaded = self._solved(l1_bound, r).features[r - 1]
            if loaded.size >= enough:
                return None
        return loaded

    @cached_property
    def _n_loaded(self) -> int:
        """The number of features that load where the bound does not bind, at least."""
        loadings = np.abs(self._starts.vectors[0])
        return int(np.count_nonzero(loadings > _ROUNDING * loadings.max()))

    def _solved(self, l1_bound: float, rank: int) -> _Bound:
        with self._lock:
            bound = self._bounds.setdefault(l1_bound, _Bound())
        with bound.lock:  # who comes to the same bound meanwhile waits for what is solved here
            while len(bound.components) < rank:
                new = self._next(bound.components, l1_bound)
                earlier = bound.features[-1] if bound.features else np.empty(0, np.intp)
                bound.features.append(sorted_union(earlier, new.indices))
                bound.components.append(new)
        return bound

    def search(self, q: int, *, rank: int, tolerance: int = 0) -> FeatureSet:
        """Find the bound that selects q features, within `tolerance` (Algorithm 1)."""
        l1_bound, indices = bisected_bound(
            lambda bound, enough: self.features(bound, rank, enough=enough),
            q,
            largest=float(np.sqrt(self._starts.vectors.shape[1])),
            tolerance=tolerance,
        )
        reached = abs(indices.size - q) <= tolerance
        return FeatureSet(indices=indices, l1_bound=l1_bound, rank=rank, reached=reached)


class SparsityPath(ComponentPath):
    """The sparse components of a matrix in memory."""

    def __init__(self, matrix: Matrix, starts: Starts, *, max_iter: int, tol: float) -> None:
        super().__init__(starts, max_iter=max_iter, tol=tol)
        self._matrix = matrix
        # For each component as many as there are threads; lists are safe to take from and add to.
        self._traces: list[list[Any]] = [[] for _ in starts.vectors]

    def _next(self, earlier: list[Component], l1_bound: float) -> Component:
        """Find the next component, with a trace that nobody else is using meanwhile."""
        idle = self._traces[len(earlier)]
        trace = idle.pop() if idle else new_trace(self._matrix, _TRACED)
        try:
            return next_component(
                self._matrix,
                earlier,
                starts=self._starts,
                l1_bound=l1_bound,
                max_iter=self._max_iter,
                tol=self._tol,
                trace=trace,
            )
        finally:
            idle.append(trace)


def bisected_bound(
    features: Callable[[float, float], Index | None], q: int, *, largest: float, tolerance: int
) -> tuple[float, Index]:
    """Return the bound in [1, largest] that selects q features, within `tolerance`, and them.

    The number of features is a step function of the bound, so some q cannot be hit: then the
    closest set met on the way is returned, the smaller one of two that are equally close.

    `features` is called with a bound and a number that makes a set too large to be the closest: of
    such a set it need not say more than None.
    """
    low, high = 1.0, largest
    closest = features(low, np.inf)
    assert closest is not None
    best = low
    if closest.size >= q:
        return best, closest
    found = features(high, 2 * q - closest.size)
    if found is not None and found.size <= q:
        return high, found
    while True:
        if found is not None and _is_closer(found, closest, q):
            best, closest = high if found.size > q else low, found
        if abs(closest.size - q) <= tolerance or high - low <= _NARROWEST_BRACKET:
            return best, closest
        middle = (low + high) / 2
        found = features(middle, q + abs(closest.size - q))
        if found is None or found.size > q:
            high = middle
        else:
            low = middle


def _is_closer(found: Index, closest: Index, q: int) -> bool:
    return (abs(found.size - q), found.size) < (abs(closest.size - q), closest.size)
