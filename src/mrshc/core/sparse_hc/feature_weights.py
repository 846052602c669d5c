"""Sparse hierarchical clustering of Witten and Tibshirani (2010), and its permutation gap.

Let D be the matrix with one row for each pair of samples and one column for each feature. Each
entry is the distance between the two samples in that feature; see the module `pair_distances`. The
method maximises u'Dw subject to |u|_2 <= 1, |w|_2 <= 1, |w|_1 <= bound and w >= 0, where bound is
the L1 bound. The vector w contains the weights of the features. The vector u has one entry for each
pair of samples and is used as the dissimilarity for hierarchical clustering.

References
----------
Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering. Journal of
the American Statistical Association 105(490), 713-726. https://doi.org/10.1198/jasa.2010.tm09415
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.statistics import column_blocks
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.parallel import ProgressCallback
from mrshc.core.permutations import PermutationGap, gap_over_permutations
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_pca.l1_path import bisect_l1_bound

# Largest number of permuted distances that a worker keeps in memory (256 MB in double precision). A
# larger matrix of permuted distances is not kept but computed again whenever it is needed. The
# value does not affect the result, since the permutations are drawn again with the same seeds.
_MAX_KEPT_DISTANCES = 1 << 25

# The part of the weighted distances that is orthogonal to an earlier solution is treated as zero if
# its norm is at most this fraction of the norm of the weighted distances. The fraction is far above
# the rounding errors of double precision and far below any structure of interest.
_RELATIVE_ZERO = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseWeights:
    """Feature weights w of sparse hierarchical clustering under one L1 bound.

    Attributes
    ----------
    indices : ndarray of shape (q,)
        Indices of the q features with a non-zero weight, in increasing order.
    weights : ndarray of shape (q,)
        Weights of these features, which are positive. The L2 norm of this vector is one, except
        that it can be smaller if several features are exactly tied.
    criterion : float
        Value of the criterion u'Dw, in which each pair of samples is counted once.
    l1_bound : float
        Upper bound on the L1 norm of the weights.
    n_iter : int
        Number of iterations of the alternating algorithm.
    converged : bool
        Whether the alternating algorithm converged.
    """

    indices: Index
    weights: Float
    criterion: float
    l1_bound: float
    n_iter: int
    converged: bool


class WeightPath:
    """Feature weights of sparse hierarchical clustering for one data set and any L1 bound.

    The weights w and the dissimilarity u maximise u'Dw, where D contains the distances between all
    pairs of samples in each feature. The weights for an L1 bound are computed once and stored. The
    dissimilarity is not stored; it is computed from the weights whenever it is needed.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    orthogonal_to : ndarray of shape (n_samples, n_samples) or None, default=None
        Dissimilarity matrix of an earlier solution. If it is given, u is kept orthogonal to this
        dissimilarity. The result is the complementary sparse clustering of Witten and Tibshirani
        (2010).
    max_iter : int
        Largest number of iterations of the alternating algorithm.
    tol : float
        The algorithm has converged when the L1 norm of the change of u is at most `tol` times the
        L1 norm of u.

    Attributes
    ----------
    is_exhausted : bool
        Whether the sum of the distances over all features has no part that is orthogonal to the
        earlier solution, up to rounding errors. False if `orthogonal_to` is None.
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
        self._orthogonal_to = (
            None if orthogonal_to is None else _scale_pairs_to_unit_norm(orthogonal_to)
        )
        self._max_iter = max_iter
        self._tol = tol
        self._solved: dict[float, SparseWeights] = {}
        # The algorithm starts from equal weights, so its first step is the same for all L1 bounds.
        p = pairs.shape[1]
        self._first_u, norm = self._unit_dissimilarity(np.arange(p), np.ones(p))
        self.is_exhausted = self._orthogonal_to is not None and (
            norm <= _RELATIVE_ZERO * _pair_norm(pairs.weighted_distances(np.arange(p), np.ones(p)))
        )
        self._first_slopes = pairs.slopes(self._first_u)

    def solve(self, l1_bound: float) -> SparseWeights:
        """Return the feature weights under the L1 bound `l1_bound`."""
        if l1_bound not in self._solved:
            self._solved[l1_bound] = self._alternate(l1_bound)
        return self._solved[l1_bound]

    def dissimilarity(self, solution: SparseWeights) -> Float:
        """Return the dissimilarity matrix of the samples for given feature weights.

        The matrix has the shape (n_samples, n_samples) and Frobenius norm one.
        """
        # The division by the square root of two is needed because the matrix contains each pair of
        # samples twice, whereas the unit vector u contains each pair once.
        return self._unit_dissimilarity(solution.indices, solution.weights)[0] / np.sqrt(2)

    def search(self, q: int) -> SparseWeights:
        """Return feature weights with q non-zero entries, or with a number close to q.

        The L1 bound is determined by bisection. If no bound that the bisection examines gives q
        non-zero entries, the weights with the number closest to q are returned.
        """
        max_bound = float(np.sqrt(self._pairs.shape[1]))
        bound, _ = bisect_l1_bound(
            lambda bound, _: self.solve(bound).indices, q, max_bound=max_bound, tolerance=0
        )
        return self.solve(bound)

    def _alternate(self, l1_bound: float) -> SparseWeights:
        """Return the feature weights under an L1 bound, computed by the alternating algorithm.

        The algorithm alternates between u = Dw / |Dw|_2 and w = s / |s|_2. Here s is the positive
        part of D'u - delta, and delta >= 0 is the smallest threshold for which w satisfies the L1
        bound.
        """
        u, slopes = self._first_u, self._first_slopes
        n_iter = 0
        while True:
            # Weights must not be negative, but the slopes D'u can be negative if u is kept
            # orthogonal to an earlier solution.
            indices, weights = sparse_direction(np.maximum(slopes, 0.0), l1_bound)
            old = u
            u, criterion = self._unit_dissimilarity(indices, weights)
            n_iter += 1
            converged = np.abs(u - old).sum() <= self._tol * np.abs(old).sum()
            # The loop ends here rather than after D'u is computed, since computing D'u takes a pass
            # over the data and the result would not be used.
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
        """Return Dw, scaled to unit norm, and the norm of Dw before scaling.

        Dw is represented as a symmetric matrix of shape (n_samples, n_samples). The norm is
        Euclidean and counts each pair of samples once. If u has to be orthogonal to an earlier
        solution, the component of Dw in the direction of that solution is subtracted from Dw first.
        If the norm is zero, Dw is returned without scaling.
        """
        u = self._pairs.weighted_distances(indices, weights)
        if self._orthogonal_to is not None:
            # The inner product is half of the sum, since the sum counts each pair twice.
            u -= self._orthogonal_to * (np.sum(self._orthogonal_to * u) / 2)
        norm = _pair_norm(u)
        return (u / norm if norm > 0 else u), norm


def _pair_norm(u: Float) -> float:
    """Return the Euclidean norm of the entries above the diagonal of a symmetric matrix.

    The diagonal of the matrix must be zero.
    """
    return float(np.linalg.norm(u) / np.sqrt(2))


def _scale_pairs_to_unit_norm(u: Float) -> Float:
    """Return a symmetric matrix, scaled such that its entries above the diagonal have unit L2 norm.

    The diagonal of the matrix must be zero.
    """
    return u / _pair_norm(u)


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
    """Return the permutation gap of sparse hierarchical clustering for several L1 bounds.

    The matrix D has one row for each pair of samples and one column for each feature, and contains
    the distances between the two samples in that feature. In each permutation, the entries of every
    column of D are permuted independently of the other columns. Feature weights are then computed
    for all L1 bounds.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    solutions : sequence of SparseWeights
        Feature weights computed from D (without permutation), one solution for each L1 bound.
    n_permutations : int
        Number of permutations, at least two.
    entropy : int
        Seed of the random permutations.
    max_iter : int
        Largest number of iterations of the alternating algorithm.
    tol : float
        The algorithm has converged when the L1 norm of the change of the dissimilarity u is at
        most `tol` times the L1 norm of u.
    n_jobs : int or None
        Number of parallel workers, as in joblib.
    progress : callable
        Function that is called as ``progress(n_finished, n_permutations)`` after each permutation.

    Returns
    -------
    gap : PermutationGap
        Permutation gap and standard deviation for the L1 bound of each solution.
    """
    arguments = {
        "pairs": pairs,
        "l1_bounds": [s.l1_bound for s in solutions],
        "entropy": entropy,
        "max_iter": max_iter,
        "tol": tol,
    }
    return gap_over_permutations(
        permuted_criteria,
        arguments,
        criteria=[s.criterion for s in solutions],
        n_permutations=n_permutations,
        n_jobs=n_jobs,
        # Out-of-core data are read from an open file, which cannot be sent to another process. For
        # such data, the tasks run in threads.
        share_memory=not pairs.in_memory,
        progress=progress,
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
    """Return the criterion u'Dw for each L1 bound, computed from one permutation of the matrix D.

    The matrix D has one row for each pair of samples and one column for each feature, and contains
    the distances between the two samples in that feature. The entries of each column are permuted
    independently of the other columns. All L1 bounds are processed in the same iterations, so the
    permuted distances are read once for all bounds rather than once for each bound.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    l1_bounds : sequence of float
        Upper bounds on the L1 norm of the feature weights w.
    entropy : int
        Seed of the random permutations.
    permutation : int
        Index of the permutation, starting at zero.
    max_iter : int
        Largest number of iterations of the alternating algorithm.
    tol : float
        The algorithm has converged when the L1 norm of the change of u is at most `tol` times the
        L1 norm of u.

    Returns
    -------
    criteria : ndarray of shape (n_bounds,)
        Value of the criterion for each L1 bound.
    """
    permuted = _PermutedPairs(pairs, entropy, permutation)
    p = pairs.shape[1]
    u = permuted.multiply(np.ones((p, 1)))
    u = np.repeat(u / np.linalg.norm(u), len(l1_bounds), axis=1)
    slopes = np.repeat(permuted.multiply_transposed(u[:, :1]), len(l1_bounds), axis=1)
    bounds = np.asarray(l1_bounds, dtype=np.float64)
    criteria = np.empty(bounds.size)
    # `active` contains the positions of the bounds for which the algorithm has not yet converged.
    # Each column of `u` and of `slopes` belongs to one of these bounds.
    active = np.arange(bounds.size)
    for _ in range(max_iter):
        weights = np.zeros((p, active.size))
        for k, bound in enumerate(active):
            # Negative slopes need not be set to zero: distances and u are not negative, so the
            # slopes D'u are not negative either.
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
    """The matrix D after an independent random permutation of the entries of each column.

    D has one row for each pair of samples and one column for each feature, and contains the
    distances between the two samples in that feature.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    entropy : int
        Seed of the random permutations.
    permutation : int
        Index of the permutation, starting at zero.
    """

    def __init__(self, pairs: PairDistances, entropy: int, permutation: int) -> None:
        n, p = pairs.shape
        self._pairs = pairs
        self._seed = (entropy, permutation)
        self._n_pairs = n * (n - 1) // 2
        is_small = self._n_pairs * p <= _MAX_KEPT_DISTANCES
        self._kept_blocks = list(self._permute_blocks()) if is_small else None

    def multiply(self, weights: Float) -> Float:
        """Return the product of the permuted matrix with an array of feature weights.

        The array `weights` has the shape (n_features, n_bounds), and the result has the shape
        (n_pairs, n_bounds).
        """
        total = np.zeros((self._n_pairs, weights.shape[1]))
        for block, distances in self._blocks():
            total += distances.T @ weights[block]
        return total

    def multiply_transposed(self, u: Float) -> Float:
        """Return the product of the transposed permuted matrix with an array u.

        The array `u` has the shape (n_pairs, n_bounds), and the result has the shape (n_features,
        n_bounds).
        """
        return np.concatenate([distances @ u for _, distances in self._blocks()])

    def _blocks(self) -> Iterator[tuple[slice, Float]]:
        """Yield the slice of each block of features, and the permuted distances in these features.

        The distances of a block are an array of shape (n_features_in_block, n_pairs). Distances
        that are not kept in memory are computed again.
        """
        return self._permute_blocks() if self._kept_blocks is None else iter(self._kept_blocks)

    def _permute_blocks(self) -> Iterator[tuple[slice, Float]]:
        """Yield the slice of each block of features, and its permuted distances.

        The distances are computed from the data.
        """
        entropy, permutation = self._seed
        for k, block in enumerate(column_blocks(self._n_pairs, self._pairs.shape[1])):
            # Each block has its own stream of random numbers, so the permutations of a block are
            # the same each time they are drawn and in every worker.
            rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(permutation, k)))
            yield block, rng.permuted(self._pairs.feature_distances(block), axis=1)
