"""From an L1 bound to a set of features, and back: Algorithm 1, the bisection that hits q."""

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
from mrshc.core.parallel import results_of
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

# v is solved to an L1 change of 1e-7: a narrower bracket on the bound would chase rounding noise.
_NARROWEST_BRACKET = 1e-7

# Loadings of the first singular vector that are a smaller part of the largest may be zero.
_ROUNDING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureSet:
    """Features picked for one rank, and the L1 bound that picked them (Algorithm 1)."""

    indices: Index  # (q,), increasing
    l1_bound: float
    rank: int
    reached: bool  # False: no bound gives the wanted number; this is the closest


@dataclass(slots=True)
class _SolvedBound:
    """The components that are known at one L1 bound."""

    components: list[Component] = field(default_factory=list)
    features: list[Index] = field(default_factory=list)  # of the first 1, 2, ... components
    lock: Lock = field(default_factory=Lock)


class ComponentPath:
    """The sparse components of one data set for any L1 bound, each solved at most once.

    Components 1..r at one bound do not depend on how many follow, so every search for every
    number of features and every rank uses the same memo, from any thread.

    Parameters
    ----------
    solver : ComponentSolver
        Finds components.
    certifier : Certifier
        Certifies that they are those of all features.
    """

    def __init__(self, solver: ComponentSolver, certifier: Certifier) -> None:
        self._solver = solver
        self._certifier = certifier
        self._bounds: dict[float, _SolvedBound] = {}
        self._dropped: dict[float, int] = {}  # components that were known at a bound, and failed
        self._lock = Lock()

    def components(self, l1_bound: float, rank: int) -> list[Component]:
        """Return the first `rank` sparse components under an L1 bound, certified."""
        while True:
            components = self._solved(l1_bound, rank).components[:rank]
            if self.certify():
                return components

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
        loadings = np.abs(self._solver.starts.vectors[0])
        return int(np.count_nonzero(loadings > _ROUNDING * loadings.max()))

    def _solved(self, l1_bound: float, rank: int) -> _SolvedBound:
        with self._lock:
            bound = self._bounds.setdefault(l1_bound, _SolvedBound())
        with bound.lock:  # other threads at the same bound wait for what is solved here
            while len(bound.components) < rank:
                new = self._next(bound.components, l1_bound)
                earlier = bound.features[-1] if bound.features else np.empty(0, np.intp)
                bound.features.append(sorted_union(earlier, new.indices))
                bound.components.append(new)
        return bound

    def _next(self, earlier: list[Component], l1_bound: float) -> Component:
        """Find the component that follows some others."""
        while True:
            component, certificate = self._solver.solve(earlier, l1_bound)
            if self._certifier.accept((l1_bound, len(earlier)), certificate):
                return component

    def certify(self) -> bool:
        """Certify all that is known; drop the components that fail, and return whether none did."""
        self._dropped.clear()
        failed = self._certifier.check_pending()
        for l1_bound, position in failed:  # in increasing order: later ones go with earlier ones
            bound = self._bounds[l1_bound]
            self._dropped.setdefault(l1_bound, len(bound.components))
            del bound.components[position:], bound.features[position:]
        return not failed

    def search(self, q: int, *, rank: int, tolerance: int = 0) -> FeatureSet:
        """Find the bound that selects q features, within `tolerance` (Algorithm 1)."""
        l1_bound, indices = bisected_bound(
            lambda bound, enough: self.features(bound, rank, enough=enough),
            q,
            largest=float(np.sqrt(self._solver.starts.vectors.shape[1])),
            tolerance=tolerance,
        )
        reached = abs(indices.size - q) <= tolerance
        return FeatureSet(indices=indices, l1_bound=l1_bound, rank=rank, reached=reached)

    def search_grid(
        self, grid: Sequence[tuple[int, int]], *, tolerance: int, n_jobs: int | None
    ) -> Iterator[tuple[tuple[int, int], FeatureSet]]:
        """Yield each (q, rank) of a grid with its features, certified."""
        if not self._certifier.is_deferred:
            yield from self._searched(grid, tolerance, n_jobs)
            return
        certified = False
        while not certified:
            found = list(self._searched(grid, tolerance, n_jobs))
            certified = self.certify()
        yield from found

    def _searched(
        self, grid: Sequence[tuple[int, int]], tolerance: int, n_jobs: int | None
    ) -> Iterator[tuple[tuple[int, int], FeatureSet]]:
        # Bounds of dropped components are likely to be needed again. Searches would wait for each
        # other at such a bound; solving them first does not.
        dropped = ({"l1_bound": bound, "rank": rank} for bound, rank in self._dropped.items())
        again = results_of(self.features, list(dropped), n_jobs=n_jobs, share_memory=True)
        with closing(again) as solved:
            deque(solved, maxlen=0)
        wanted = ({"q": q, "rank": rank, "tolerance": tolerance} for q, rank in grid)
        with closing(results_of(self.search, wanted, n_jobs=n_jobs, share_memory=True)) as sets:
            yield from zip(grid, sets, strict=True)


def component_path(
    matrix: CentredMatrix, *, n_components: int, max_features: int, limits: AlternationLimits
) -> ComponentPath:
    """Return the path of the sparse components of a matrix, wherever it is stored.

    At most `n_components` are asked for, and features up to about `max_features`.
    """
    if matrix.certification == "not needed":
        array = cast(CentredArray, matrix)
        starts = leading_starts(array, n_components)
        return ComponentPath(FullSolver(array, starts, limits), NullCertifier())
    blocks = cast(CentredBlocks, matrix)
    initial = initial_pass(blocks, n_components=n_components, max_features=max_features)
    kind = DeferredCertifier if matrix.certification == "deferred" else ImmediateCertifier
    certifier = kind(blocks, initial.working_sets)
    return ComponentPath(WorkingSetSolver(blocks, initial, limits), certifier)


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
