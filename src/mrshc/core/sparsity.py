"""From an L1 bound to a set of features, and back: Algorithm 1, the bisection that hits q."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mrshc.core.arrays import Index
from mrshc.core.matrix import Matrix
from mrshc.core.spc import Component, Starts, leading_starts, next_component

# v is solved to an L1 change of 1e-7: a narrower bracket on the bound would chase rounding noise.
_NARROWEST_BRACKET = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureSet:
    """Features picked for one rank, and the L1 bound that picked them (Algorithm 1)."""

    indices: Index  # (q,), increasing
    l1_bound: float
    rank: int
    reached: bool  # False: no bound gives the wanted number; this is the closest


class SparsityPath:
    """The sparse components of one data set for any L1 bound, each solved at most once.

    Components 1..r at one bound do not depend on how many follow, so every search for every
    number of features and every rank draws on the same memo.
    """

    def __init__(self, matrix: Matrix, *, max_rank: int, max_iter: int, tol: float) -> None:
        self._matrix = matrix
        self._starts: Starts = leading_starts(matrix, max_rank)
        self._max_iter = max_iter
        self._tol = tol
        self._solved: dict[float, list[Component]] = {}

    def components(self, l1_bound: float, rank: int) -> list[Component]:
        """Return the first `rank` sparse components under an L1 bound."""
        solved = self._solved.setdefault(l1_bound, [])
        while len(solved) < rank:
            solved.append(
                next_component(
                    self._matrix,
                    solved,
                    starts=self._starts,
                    l1_bound=l1_bound,
                    max_iter=self._max_iter,
                    tol=self._tol,
                )
            )
        return solved[:rank]

    def features(self, l1_bound: float, rank: int) -> Index:
        """Return the features that load on any of the first `rank` components."""
        loaded = [c.indices for c in self.components(l1_bound, rank)]
        return np.unique(np.concatenate(loaded))

    def search(self, q: int, *, rank: int, tolerance: int = 0) -> FeatureSet:
        """Find the bound that selects q features, within `tolerance` (Algorithm 1)."""
        largest = float(np.sqrt(self._matrix.shape[1]))
        l1_bound, indices = bisected_bound(
            lambda bound: self.features(bound, rank), q, largest=largest, tolerance=tolerance
        )
        reached = abs(indices.size - q) <= tolerance
        return FeatureSet(indices=indices, l1_bound=l1_bound, rank=rank, reached=reached)


def bisected_bound(
    features: Callable[[float], Index], q: int, *, largest: float, tolerance: int
) -> tuple[float, Index]:
    """Return the bound in [1, largest] that selects q features, within `tolerance`, and them.

    The number of features is a step function of the bound, so some q cannot be hit: then the
    closest set met on the way is returned, the smaller one of two that are equally close.
    """
    low, high = 1.0, largest
    tried = {low: features(low)}
    if tried[low].size >= q:
        return low, tried[low]
    tried[high] = features(high)
    if tried[high].size <= q:
        return high, tried[high]

    def distance(bound: float) -> tuple[int, int]:
        return abs(tried[bound].size - q), tried[bound].size

    best = min(tried, key=distance)
    while distance(best)[0] > tolerance and high - low > _NARROWEST_BRACKET:
        middle = (low + high) / 2
        tried[middle] = features(middle)
        if tried[middle].size > q:
            high = middle
        else:
            low = middle
        best = min(best, middle, key=distance)
    return best, tried[best]
