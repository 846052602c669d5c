"""Sparse hierarchical clustering of Witten and Tibshirani (2010), and its permutation gap.

Let D hold the distance of each pair of samples in each feature (`pair_distances`). The method
maximises u'Dw subject to |u|_2 <= 1, |w|_2 <= 1, |w|_1 <= bound and w >= 0, and clusters the
samples on the dissimilarity u.

References
----------
Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering. Journal of
the American Statistical Association 105(490), 713-726. https://doi.org/10.1198/jasa.2010.tm09415
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.statistics import column_blocks
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.parallel import ProgressCallback, StepCounter, run_in_parallel
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_pca.l1_path import bisect_l1_bound

# Largest number of permuted distances that a worker keeps in memory (256 MB in double precision);
# larger matrices are computed again in each pass. Results do not depend on it, since the
# permutations are drawn again from the same seeds.
_MAX_KEPT_DISTANCES = 1 << 25

# The part of the weighted distances that is orthogonal to an earlier solution counts as rounding
# errors if its norm is below this fraction of the whole: far above the precision of double, far
# below any structure of interest.
_RELATIVE_ZERO = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseWeights:
    """Weights of features under one L1 bound.

    Attributes
    ----------
    indices : ndarray of shape (q,)
        Features with a non-zero weight, increasing.
    weights : ndarray of shape (q,)
        Their weights: positive, of unit length.
    criterion : float
        u'Dw, each pair of samples counted once.
    l1_bound : float
        Bound on the L1 norm of the weights.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the alternation converged.
    """

    indices: Index
    weights: Float
    criterion: float
    l1_bound: float
    n_iter: int
    converged: bool


class WeightPath:
    """Sparse weights of one data set for any L1 bound, each computed at most once.

    Only the weights are kept. The dissimilarity matrix of a solution is computed again when it is
    asked for.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    orthogonal_to : ndarray of shape (n_samples, n_samples) or None, default=None
        Dissimilarity of an earlier solution, to which u is kept orthogonal: the complementary
        clustering of Witten and Tibshirani.
    max_iter : int
        Largest number of iterations.
    tol : float
        The alternation has converged when the L1 norm of the change of u, relative to that of u,
        is at most `tol`.

    Attributes
    ----------
    exhausted : bool
        Whether the part of the distances that is orthogonal to the earlier solution consists of
        rounding errors only.
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
        self._orthogonal_to = None if orthogonal_to is None else _normalise(orthogonal_to)
        self._max_iter = max_iter
        self._tol = tol
        self._solved: dict[float, SparseWeights] = {}
        # Every bound starts from equal weights, so the first step is common to all of them.
        p = pairs.shape[1]
        self._first_u, norm = self._unit_dissimilarity(np.arange(p), np.ones(p))
        self.is_exhausted = self._orthogonal_to is not None and (
            norm <= _RELATIVE_ZERO * _pair_norm(pairs.weighted_distances(np.arange(p), np.ones(p)))
        )
        self._first_slopes = pairs.slopes(self._first_u)

    def solve(self, l1_bound: float) -> SparseWeights:
        """Return the weights under an L1 bound."""
        if l1_bound not in self._solved:
            self._solved[l1_bound] = self._alternate(l1_bound)
        return self._solved[l1_bound]

    def dissimilarity(self, solution: SparseWeights) -> Float:
        """Return the dissimilarity of samples for given weights, (n, n), of Frobenius norm one."""
        # The matrix holds each pair twice, the unit vector u once.
        return self._unit_dissimilarity(solution.indices, solution.weights)[0] / np.sqrt(2)

    def search(self, q: int) -> SparseWeights:
        """Return the weights of the L1 bound with q non-zero weights, or the closest number."""
        max_bound = float(np.sqrt(self._pairs.shape[1]))
        bound, _ = bisect_l1_bound(
            lambda bound, _: self.solve(bound).indices, q, max_bound=max_bound, tolerance=0
        )
        return self.solve(bound)

    def _alternate(self, l1_bound: float) -> SparseWeights:
        """Alternate u = Dw / |Dw|_2 and w = soft(D'u, delta) / |.|_2 under an L1 bound."""
        u, slopes = self._first_u, self._first_slopes
        n_iter, converged = 0, False
        while True:
            # Weights are non-negative, but slopes may be negative if u is kept orthogonal.
            indices, weights = sparse_direction(np.maximum(slopes, 0.0), l1_bound)
            old = u
            u, criterion = self._unit_dissimilarity(indices, weights)
            n_iter += 1
            converged = np.abs(u - old).sum() <= self._tol * np.abs(old).sum()
            # Tested before D'u, which takes a pass over the data and would not be used any more.
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

    def _unit_dissimilarity(self, indices: Index, weights: Float) -> tuple[Float, float]:
        """Return Dw as an (n, n) matrix at unit length, each pair counted once, and its length."""
        u = self._pairs.weighted_distances(indices, weights)
        if self._orthogonal_to is not None:
            # The sum counts each pair twice.
            u -= self._orthogonal_to * (np.sum(self._orthogonal_to * u) / 2)
        norm = _pair_norm(u)
        return (u / norm if norm > 0 else u), norm


def _pair_norm(u: Float) -> float:
    """Return the Euclidean norm of a symmetric (n, n) matrix, each pair counted once."""
    return float(np.linalg.norm(u) / np.sqrt(2))


def _normalise(u: Float) -> Float:
    """Return a symmetric (n, n) matrix at unit length, each pair counted once."""
    return u / _pair_norm(u)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PermutationGap:
    """The criterion on the data compared with that on permuted distances, for each L1 bound.

    Attributes
    ----------
    gap : ndarray of shape (n_bounds,)
        Logarithm of the criterion minus its mean over permutations.
    standard_deviation : ndarray of shape (n_bounds,)
        Of the logarithm of the criterion over permutations.
    """

    gap: Float
    standard_deviation: Float

    @property
    def best_position(self) -> int:
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
    progress: ProgressCallback,
) -> PermutationGap:
    """Compare solutions with those on permuted D, each of whose columns is permuted on its own.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    solutions : sequence of SparseWeights
        Solutions on D, one for each L1 bound to compare.
    n_permutations : int
        Number of permuted matrices.
    entropy : int
        Seed of all permutations.
    max_iter : int
        Largest number of iterations of each alternation.
    tol : float
        Relative change of u at which an alternation has converged.
    n_jobs : int or None
        Number of workers.
    progress : callable
        Called with the numbers of finished and of all permutations.

    Returns
    -------
    gap : PermutationGap
        One entry for each solution.
    """
    steps = StepCounter(total=n_permutations, report=progress)
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
    # An open file cannot be pickled: out-of-core data are shared between threads instead.
    tasks = run_in_parallel(
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
    """Return the criterion for each L1 bound on one permutation of D.

    The alternations for all bounds advance together, so that each pass over the permuted distances
    serves all of them.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    l1_bounds : sequence of float
        Bounds on the L1 norm of the weights.
    entropy : int
        Seed of all permutations.
    permutation : int
        Number of the permutation, from zero.
    max_iter : int
        Largest number of iterations.
    tol : float
        Relative change of u at which an alternation has converged.

    Returns
    -------
    criteria : ndarray of shape (n_bounds,)
    """
    permuted = _PermutedPairs(pairs, entropy, permutation)
    p = pairs.shape[1]
    u = permuted.multiply(np.ones((p, 1)))
    u = np.repeat(u / np.linalg.norm(u), len(l1_bounds), axis=1)
    slopes = np.repeat(permuted.multiply_transposed(u[:, :1]), len(l1_bounds), axis=1)
    bounds = np.asarray(l1_bounds, dtype=np.float64)
    criteria = np.empty(bounds.size)
    # Columns of u and of the slopes belong to the bounds that have not converged yet.
    active = np.arange(bounds.size)
    for _ in range(max_iter):
        weights = np.zeros((p, active.size))
        for k, bound in enumerate(active):
            # Distances and u are not negative, so the slopes need no clipping at zero.
            indices, values = sparse_direction(slopes[:, k], bounds[bound])
            weights[indices, k] = values
        old, u = u, permuted.multiply(weights)
        criteria[active] = np.linalg.norm(u, axis=0)
        u /= criteria[active]
        has_moved = np.abs(u - old).sum(axis=0) > tol * np.abs(old).sum(axis=0)
        u, active = u[:, has_moved], active[has_moved]
        if active.size == 0:
            break
        slopes = permuted.multiply_transposed(u)
    return criteria * pairs.unit


class _PermutedPairs:
    """D with the entries of each column in a random order of their own.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    entropy : int
        Seed of all permutations.
    permutation : int
        Number of the permutation.
    """

    def __init__(self, pairs: PairDistances, entropy: int, permutation: int) -> None:
        n, p = pairs.shape
        self._pairs = pairs
        self._seed = (entropy, permutation)
        self._n_pairs = n * (n - 1) // 2
        is_small = self._n_pairs * p <= _MAX_KEPT_DISTANCES
        self._kept_blocks = list(self._permute_blocks()) if is_small else None

    def multiply(self, weights: Float) -> Float:
        """Return the product with weights, (features, bounds), as (pairs, bounds)."""
        total = np.zeros((self._n_pairs, weights.shape[1]))
        for block, distances in self._blocks():
            total += distances.T @ weights[block]
        return total

    def multiply_transposed(self, u: Float) -> Float:
        """Return the transposed product with u, (pairs, bounds), as (features, bounds)."""
        return np.concatenate([distances @ u for _, distances in self._blocks()])

    def _blocks(self) -> Iterator[tuple[slice, Float]]:
        """Yield blocks of features with their permuted distances, (features, pairs)."""
        return self._permute_blocks() if self._kept_blocks is None else iter(self._kept_blocks)

    def _permute_blocks(self) -> Iterator[tuple[slice, Float]]:
        """Yield blocks of features with their permuted distances, computed from the data."""
        entropy, permutation = self._seed
        for k, block in enumerate(column_blocks(self._n_pairs, self._pairs.shape[1])):
            # A stream for each block: it is the same in every pass and in every worker.
            rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(permutation, k)))
            yield block, rng.permuted(self._pairs.feature_distances(block), axis=1)
