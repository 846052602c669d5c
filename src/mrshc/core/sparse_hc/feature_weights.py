"""Sparse hierarchical clustering of Witten and Tibshirani (2010), and its permutation gap.

With D the distances of pairs of samples in each feature (`pairs`), they maximise u'Dw with
|u|_2 <= 1, |w|_2 <= 1, |w|_1 <= bound, and cluster the samples on u.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.statistics import column_blocks
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.parallel import Progress, Steps, results_of
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_pca.l1_path import bisected_bound

# Each worker keeps its permuted distances, rather than making them again in each pass, up to this
# many (256 MB).
_KEPT_CELLS = 1 << 25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseWeights:
    """Weights of features, and how they were found."""

    indices: Index  # (q,), features with a weight, increasing
    weights: Float  # (q,), positive, of unit length
    criterion: float  # u'Dw, each pair counted once
    l1_bound: float
    n_iter: int
    converged: bool


class WeightPath:
    """Sparse weights of one data set for any bound, each solved at most once.

    Only the weights are remembered: the dissimilarity of samples that they make is made again.

    With `orthogonal_to`, the dissimilarity of an earlier solution, u is kept orthogonal to it: the
    complementary clustering of Witten and Tibshirani.
    """

    def __init__(
        self,
        pairs: PairDistances,
        *,
        orthogonal_to: Float | None = None,
        max_iter: int,
        tol: float,
    ) -> None:
        self._pairs = pairs
        self._fixed = None if orthogonal_to is None else _unit(orthogonal_to)
        self._max_iter = max_iter
        self._tol = tol
        self._solved: dict[float, SparseWeights] = {}
        # Every bound starts from equal weights, so the first step is common to all.
        p = pairs.shape[1]
        self._first_u, left = self._u(np.arange(p), np.ones(p))
        # Whether nothing but rounding errors is orthogonal to the earlier solution.
        self.exhausted = self._fixed is not None and (
            left <= 1e-10 * _length(pairs.weighted(np.arange(p), np.ones(p)))
        )
        self._first_slopes = pairs.slopes(self._first_u)

    def solve(self, l1_bound: float) -> SparseWeights:
        """Alternate u = Dw / |Dw| and w = soft(D'u) / |.| under an L1 bound."""
        if l1_bound not in self._solved:
            self._solved[l1_bound] = self._alternate(l1_bound)
        return self._solved[l1_bound]

    def dissimilarity(self, found: SparseWeights) -> Float:
        """Return the dissimilarity of samples that weights make, (n, n), Frobenius norm one."""
        return self._u(found.indices, found.weights)[0] / np.sqrt(2)

    def search(self, q: int) -> SparseWeights:
        """Find the bound that gives q features a weight, or the closest number to it."""
        largest = float(np.sqrt(self._pairs.shape[1]))
        bound, _ = bisected_bound(
            lambda bound, _: self.solve(bound).indices, q, largest=largest, tolerance=0
        )
        return self.solve(bound)

    def _alternate(self, l1_bound: float) -> SparseWeights:
        u, slopes = self._first_u, self._first_slopes
        n_iter, converged = 0, False
        while True:
            indices, weights = sparse_direction(np.maximum(slopes, 0.0), l1_bound)
            old = u
            u, criterion = self._u(indices, weights)
            n_iter += 1
            converged = np.abs(u - old).sum() <= self._tol * np.abs(old).sum()
            if converged or n_iter == self._max_iter:
                break
            slopes = self._pairs.slopes(u)
        return SparseWeights(
            indices=indices,
            weights=weights,
            criterion=criterion * self._pairs.unit,
            l1_bound=l1_bound,
            n_iter=n_iter,
            converged=bool(converged),
        )

    def _u(self, indices: Index, weights: Float) -> tuple[Float, float]:
        """Return Dw at unit length, each pair counted once, and that length."""
        u = self._pairs.weighted(indices, weights)
        if self._fixed is not None:
            u -= self._fixed * (np.sum(self._fixed * u) / 2)
        length = _length(u)
        return (u / length if length > 0 else u), length


def _length(u: Float) -> float:
    return float(np.linalg.norm(u) / np.sqrt(2))


def _unit(u: Float) -> Float:
    return u / _length(u)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PermutationGap:
    """How far the criterion exceeds what it reaches on permuted distances, for each bound."""

    gap: Float  # (bounds,), log criterion minus its mean over permutations
    standard_deviation: Float  # (bounds,), of the log criterion over permutations

    @property
    def best(self) -> int:
        """Position of the bound with the largest gap."""
        return int(np.argmax(self.gap))


def permutation_gap(
    pairs: PairDistances,
    solutions: Sequence[SparseWeights],
    *,
    n_permutations: int,
    entropy: int,
    max_iter: int,
    tol: float,
    n_jobs: int | None,
    progress: Progress,
) -> PermutationGap:
    """Compare solutions with those for D whose columns are permuted, each on its own."""
    steps = Steps(total=n_permutations, report=progress)
    arguments = (
        {
            "pairs": pairs,
            "l1_bounds": [s.l1_bound for s in solutions],
            "entropy": entropy,
            "permutation": permutation,
            "max_iter": max_iter,
            "tol": tol,
        }
        for permutation in range(n_permutations)
    )
    logs = []
    # What reads X from a file cannot go to another process.
    tasks = results_of(
        permuted_criteria, arguments, n_jobs=n_jobs, share_memory=not pairs.in_memory
    )
    with closing(tasks) as results:
        for criteria in results:
            logs.append(np.log(criteria))
            steps.advance(1)
    observed = np.log([s.criterion for s in solutions])
    return PermutationGap(
        gap=observed - np.mean(logs, axis=0), standard_deviation=np.std(logs, axis=0, ddof=1)
    )


def permuted_criteria(
    *,
    pairs: PairDistances,
    l1_bounds: Sequence[float],
    entropy: int,
    permutation: int,
    max_iter: int,
    tol: float,
) -> Float:
    """Return the criterion for each bound on one permutation of D.

    All bounds advance together: permuted columns are made once for all of them.
    """
    permuted = _PermutedPairs(pairs, entropy, permutation)
    p = pairs.shape[1]
    u = permuted.times(np.ones((p, 1)))
    u = np.repeat(u / np.linalg.norm(u), len(l1_bounds), axis=1)
    slopes = np.repeat(permuted.transposed_times(u[:, :1]), len(l1_bounds), axis=1)
    bounds = np.asarray(l1_bounds, dtype=np.float64)
    criteria = np.empty(bounds.size)
    running = np.arange(bounds.size)
    for _ in range(max_iter):
        weights = np.zeros((p, running.size))
        for k, bound in enumerate(running):
            indices, values = sparse_direction(slopes[:, k], bounds[bound])
            weights[indices, k] = values
        old, u = u, permuted.times(weights)
        criteria[running] = np.linalg.norm(u, axis=0)
        u /= criteria[running]
        moved = np.abs(u - old).sum(axis=0) > tol * np.abs(old).sum(axis=0)
        u, running = u[:, moved], running[moved]
        if running.size == 0:
            break
        slopes = permuted.transposed_times(u)
    return criteria * pairs.unit


class _PermutedPairs:
    """D with the rows of each column in an order of its own, made again for each pass if large."""

    def __init__(self, pairs: PairDistances, entropy: int, permutation: int) -> None:
        n, p = pairs.shape
        self._pairs = pairs
        self._key = (entropy, permutation)
        self._n_pairs = n * (n - 1) // 2
        self._kept = list(self._made()) if self._n_pairs * p <= _KEPT_CELLS else None

    def times(self, weights: Float) -> Float:
        """Return the product with (features, bounds) weights, (pairs, bounds)."""
        total = np.zeros((self._n_pairs, weights.shape[1]))
        for block, distances in self._blocks():
            total += distances.T @ weights[block]
        return total

    def transposed_times(self, u: Float) -> Float:
        """Return the transposed product with (pairs, bounds) u, (features, bounds)."""
        return np.concatenate([distances @ u for _, distances in self._blocks()])

    def _blocks(self) -> Iterator[tuple[slice, Float]]:
        return self._made() if self._kept is None else iter(self._kept)

    def _made(self) -> Iterator[tuple[slice, Float]]:
        entropy, permutation = self._key
        for k, block in enumerate(column_blocks(self._n_pairs, self._pairs.shape[1])):
            seed = np.random.SeedSequence(entropy, spawn_key=(permutation, k))
            yield block, np.random.default_rng(seed).permuted(self._pairs.columns(block), axis=1)
