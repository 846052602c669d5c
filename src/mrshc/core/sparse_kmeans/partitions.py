"""Sparse K-means clustering of Witten and Tibshirani (2010), and its permutation gap.

Let b_j be the sum of squares between clusters of feature j. The method maximises the sum of w_j b_j
over all partitions of the samples into K clusters and over all weights w with |w|_2 <= 1,
|w|_1 <= bound and w >= 0, where bound is the L1 bound.

References
----------
Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering. Journal of
the American Statistical Association 105(490), 713-726. https://doi.org/10.1198/jasa.2010.tm09415
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.kernels.kmeans import best_partition
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.kernels.vectors import l1_distance
from mrshc.core.parallel import ProgressCallback
from mrshc.core.permutations import PermutationGap, gap_over_permutations
from mrshc.core.sparse_kmeans.centred_columns import CentredColumns
from mrshc.core.sparse_pca.l1_path import bisect_l1_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """Settings of the alternating algorithm.

    Attributes
    ----------
    n_clusters : int
        Number of clusters K, at least 2 and at most the number of samples.
    n_init : int
        Number of random starts of K-means in each iteration.
    max_iter : int
        Largest number of iterations. The default is the default of sparse hierarchical clustering.
    tol : float
        The algorithm has converged when the L1 norm of the change of the weights is at most `tol`
        times their L1 norm. The default is that of Witten and Tibshirani.
    """

    n_clusters: int
    n_init: int
    max_iter: int = 15
    tol: float = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparsePartition:
    """Clusters and feature weights of sparse K-means under one L1 bound.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Cluster of each sample. Clusters are numbered 0, 1, ..., K - 1 in the order of their first
        samples.
    indices : ndarray of shape (q,)
        Indices of the q features with a non-zero weight, in increasing order.
    weights : ndarray of shape (q,)
        Weights of these features, which are positive. The L2 norm of this vector is one, except
        that it can be smaller if several features are exactly tied.
    criterion : float
        Sum over features of the weight times the sum of squares between clusters.
    l1_bound : float
        Upper bound on the L1 norm of the weights.
    n_iter : int
        Number of iterations of the alternating algorithm.
    converged : bool
        Whether the alternating algorithm converged.
    """

    labels: Labels
    indices: Index
    weights: Float
    criterion: float
    l1_bound: float
    n_iter: int
    converged: bool


class PartitionPath:
    """Partitions and feature weights of sparse K-means for one data set and any L1 bound.

    Parameters
    ----------
    columns : CentredColumns
        The data, in which at least one column is not constant.
    settings : PartitionSettings
        Settings of the alternating algorithm.
    seed : SeedSequence
        Seed of the random starts. The starts are the same for all L1 bounds, so the solution for a
        bound does not depend on the bounds that were solved before.
    """

    def __init__(
        self,
        columns: CentredColumns,
        settings: PartitionSettings,
        *,
        seed: np.random.SeedSequence,
    ) -> None:
        self._columns = columns
        self._settings = settings
        self._solved: dict[float, SparsePartition] = {}
        shape = (settings.max_iter, settings.n_init, settings.n_clusters)
        self._uniforms = np.random.default_rng(seed).random(shape)
        # The algorithm starts from equal weights, so its first partition is the same for all L1
        # bounds. A common factor of the weights does not change the partition.
        p = columns.shape[1]
        products = columns.inner_products(np.arange(p), np.ones(p))
        self._first_labels, _ = best_partition(products, self._uniforms[0], np.empty(0, np.intp))
        self._first_squares = self._between(self._first_labels)

    def solve(self, l1_bound: float) -> SparsePartition:
        """Return the partition and the feature weights under the L1 bound `l1_bound`."""
        if l1_bound not in self._solved:
            self._solved[l1_bound] = self._alternate(l1_bound)
        return self._solved[l1_bound]

    def search(self, q: int) -> SparsePartition:
        """Return a solution with q non-zero weights, or with a number close to q.

        The L1 bound is determined by bisection. If no bound that the bisection examines gives q
        non-zero weights, the solution with the number closest to q is returned.
        """
        max_bound = float(np.sqrt(self._columns.shape[1]))
        bound, _ = bisect_l1_bound(
            lambda bound, _: self.solve(bound).indices, q, max_bound=max_bound, tolerance=0
        )
        return self.solve(bound)

    def _alternate(self, l1_bound: float) -> SparsePartition:
        """Return the solution under an L1 bound, computed by the alternating algorithm.

        The algorithm alternates between K-means clustering of the weighted features and
        w = s / |s|_2. Here s is the positive part of b - delta, b contains the sums of squares
        between clusters, and delta >= 0 is the smallest threshold for which w satisfies the bound.
        """
        labels, squares = self._first_labels, self._first_squares
        indices, weights = sparse_direction(squares, l1_bound)
        n_iter, converged = 1, False
        while n_iter < self._settings.max_iter and not converged:
            products = self._columns.inner_products(indices, weights)
            # The present labels are one of the starts, so the criterion never decreases.
            labels, _ = best_partition(products, self._uniforms[n_iter], labels)
            squares = self._between(labels)
            old_indices, old_weights = indices, weights
            indices, weights = sparse_direction(squares, l1_bound)
            n_iter += 1
            change = l1_distance(indices, weights, old_indices, old_weights)
            converged = bool(change <= self._settings.tol * old_weights.sum())
        return SparsePartition(
            labels=_number_by_first_sample(labels),
            indices=indices,
            weights=weights,
            criterion=float(squares[indices] @ weights) * self._columns.length**2,
            l1_bound=l1_bound,
            n_iter=n_iter,
            converged=converged,
        )

    def _between(self, labels: Labels) -> Float:
        return self._columns.between_sums_of_squares(labels, self._settings.n_clusters)


def _number_by_first_sample(labels: Labels) -> Labels:
    """Return the labels after numbering the clusters in the order of their first samples."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def permutation_gap(
    columns: CentredColumns,
    solutions: Sequence[SparsePartition],
    settings: PartitionSettings,
    *,
    n_permutations: int,
    entropy: int,
    n_jobs: int | None,
    progress: ProgressCallback,
) -> PermutationGap:
    """Return the permutation gap of sparse K-means for several L1 bounds.

    In each permutation, the values of every feature are permuted independently of the other
    features. Partitions and weights are then computed for all L1 bounds.

    Parameters
    ----------
    columns : CentredColumns
        The data.
    solutions : sequence of SparsePartition
        Solutions for the data without permutation, one for each L1 bound.
    settings : PartitionSettings
        Settings with which the solutions were computed. The permuted data are treated with the same
        settings; otherwise the gap would be biased.
    n_permutations : int
        Number of permutations, at least two.
    entropy : int
        Seed of the permutations and of the random starts for permuted data.
    n_jobs : int or None
        Number of parallel workers, as in joblib.
    progress : callable
        Function that is called as ``progress(n_finished, n_permutations)`` after each permutation.
    """
    arguments = {
        "columns": columns,
        "l1_bounds": [s.l1_bound for s in solutions],
        "settings": settings,
        "entropy": entropy,
    }
    return gap_over_permutations(
        permuted_criteria,
        arguments,
        criteria=[s.criterion for s in solutions],
        n_permutations=n_permutations,
        n_jobs=n_jobs,
        # Out-of-core data are read from an open file, which cannot be sent to another process. For
        # such data, the tasks run in threads.
        share_memory=not columns.in_memory,
        progress=progress,
    )


def permuted_criteria(
    *,
    columns: CentredColumns,
    l1_bounds: Sequence[float],
    settings: PartitionSettings,
    entropy: int,
    permutation: int,
) -> Float:
    """Return the criterion of sparse K-means for each L1 bound, computed from one permutation.

    Parameters
    ----------
    columns : CentredColumns
        The data.
    l1_bounds : sequence of float
        Upper bounds on the L1 norm of the feature weights.
    settings : PartitionSettings
        Settings of the alternating algorithm.
    entropy : int
        Seed of the permutations and of the random starts.
    permutation : int
        Index of the permutation, starting at zero.

    Returns
    -------
    criteria : ndarray of shape (n_bounds,)
        Criterion for each L1 bound.
    """
    # The keys of the permuted blocks have two entries. With one entry, the random starts have a
    # stream of their own.
    seed = np.random.SeedSequence(entropy, spawn_key=(permutation,))
    path = PartitionPath(columns.permute(entropy, permutation), settings, seed=seed)
    return np.array([path.solve(bound).criterion for bound in l1_bounds])
