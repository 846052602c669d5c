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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.parallel import ProgressCallback, effective_n_threads
from mrshc.core.permutations import PermutationGap, gap_over_permutations
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.permuted_pairs import PermutedPairs
from mrshc.core.sparse_hc.weighted_dissimilarity import WeightedDissimilarity
from mrshc.core.sparse_pca.l1_path import bisect_l1_bound


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
    pairs of samples in each feature. The weights for an L1 bound are computed once and stored.

    Parameters
    ----------
    dissimilarity : WeightedDissimilarity
        Dissimilarity u as a function of the weights. If it is kept orthogonal to an earlier
        solution, the result is the complementary sparse clustering of Witten and Tibshirani (2010).
    max_iter : int
        Largest number of iterations of the alternating algorithm.
    tol : float
        The algorithm has converged when the L1 norm of the change of u is at most `tol` times the
        L1 norm of u.
    """

    def __init__(
        self,
        dissimilarity: WeightedDissimilarity,
        *,
        max_iter: int,
        tol: float,
    ) -> None:
        self._dissimilarity = dissimilarity
        self._max_iter = max_iter
        self._tol = tol
        self._solved: dict[float, SparseWeights] = {}
        # The algorithm starts from equal weights, so its first step is the same for all L1 bounds.
        p = dissimilarity.n_features
        self._first_u, _ = dissimilarity.of_weights(np.arange(p), np.ones(p))
        self._first_slopes = dissimilarity.slopes(self._first_u)

    def solve(self, l1_bound: float) -> SparseWeights:
        """Return the feature weights under the L1 bound `l1_bound`."""
        if l1_bound not in self._solved:
            self._solved[l1_bound] = self._alternate(l1_bound)
        return self._solved[l1_bound]

    def search(self, q: int) -> SparseWeights:
        """Return feature weights with q non-zero entries, or with a number close to q.

        The L1 bound is determined by bisection. If no bound that the bisection examines gives q
        non-zero entries, the weights with the number closest to q are returned.
        """
        max_bound = float(np.sqrt(self._dissimilarity.n_features))
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
            indices, weights = sparse_direction(np.maximum(slopes, 0.0), float(l1_bound))
            old = u
            u, criterion = self._dissimilarity.of_weights(indices, weights)
            n_iter += 1
            converged = np.abs(u - old).sum() <= self._tol * np.abs(old).sum()
            # The loop ends here rather than after D'u is computed, since computing D'u takes a pass
            # over the data and the result would not be used.
            if converged or n_iter == self._max_iter:
                break
            slopes = self._dissimilarity.slopes(u)
        return SparseWeights(
            indices=indices,
            weights=weights,
            criterion=criterion * self._dissimilarity.distance_unit,
            l1_bound=l1_bound,
            n_iter=n_iter,
            converged=bool(converged),
        )


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
        "n_workers": effective_n_threads(n_jobs),
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
    n_workers: int = 1,
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
    n_workers : int, default=1
        Number of workers that compute permutations at the same time.

    Returns
    -------
    criteria : ndarray of shape (n_bounds,)
        Value of the criterion for each L1 bound.
    """
    permuted = PermutedPairs(pairs, entropy=entropy, permutation=permutation, n_workers=n_workers)
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
            of_bound = np.ascontiguousarray(slopes[:, k])
            indices, values = sparse_direction(of_bound, float(bounds[bound]))
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
