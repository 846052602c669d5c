"""Sparse K-means: clusters and feature weights that maximise the sum of squares between clusters.

Witten and Tibshirani (2010) maximise sum_j w_j b_j, b_j the sum of squares of feature j between the
clusters, subject to |w|_2 <= 1, |w|_1 <= bound and w >= 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mrshc.core.data.matrix import DataMatrix, Summary
from mrshc.core.kernels import best_partition
from mrshc.core.sparse_components import bisect_l1_bound, sparse_direction

_MAX_ITER, _TOL = 15, 1e-4  # of the authors, with some more iterations
# Centred columns of larger data (256 MB) are computed anew in each pass.
_MAX_KEPT = 1 << 25
_BLOCK_CELLS = 1 << 19  # each block has its own stream of permutations


class CentredColumns:
    """The columns after centring and division by a common unit, on request permuted."""

    def __init__(
        self, matrix: DataMatrix, summary: Summary, permutation: tuple[int, int] | None = None
    ) -> None:
        self.shape, self.unit = matrix.shape, summary.unit
        self._matrix, self._summary, self._permutation = matrix, summary, permutation
        is_small = self.shape[0] * self.shape[1] <= _MAX_KEPT
        self._kept = list(self._read()) if is_small else None

    def permuted(self, entropy: int, permutation: int) -> CentredColumns:
        return CentredColumns(self._matrix, self._summary, (entropy, permutation))

    def _read(self) -> Iterator[tuple[slice, np.ndarray]]:
        n, p = self.shape
        step = max(_BLOCK_CELLS // n, 1)
        for k, start in enumerate(range(0, p, step)):
            block = slice(start, min(start + step, p))
            columns = self._matrix.columns(np.arange(block.start, block.stop))
            values = (columns - self._summary.means[block]) / self.unit
            if self._permutation is not None:
                entropy, permutation = self._permutation
                seed = np.random.SeedSequence(entropy, spawn_key=(permutation, k))
                values = np.random.default_rng(seed).permuted(values, axis=0)
            yield block, values

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        return self._read() if self._kept is None else iter(self._kept)

    def inner_products(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted inner products of the samples, as an array (n, n)."""
        total = np.zeros((self.shape[0],) * 2)
        for block, values in self._blocks():
            used = np.flatnonzero(weights[block])
            rooted = values[:, used] * np.sqrt(weights[block][used])
            total += rooted @ rooted.T
        return total

    def between(self, labels: np.ndarray, k: int) -> np.ndarray:
        """Return the sum of squares of each feature between k clusters."""
        members = (labels == np.arange(k)[:, None]).astype(np.float64)
        members /= np.sqrt(members.sum(axis=1, keepdims=True))
        return np.concatenate([np.square(members @ v).sum(axis=0) for _, v in self._blocks()])

    def centres(self, labels: np.ndarray, k: int) -> np.ndarray:
        """Return the means of the features in each cluster."""
        members = (labels == np.arange(k)[:, None]).astype(np.float64)
        members /= members.sum(axis=1, keepdims=True)
        means = np.hstack([members @ values for _, values in self._blocks()])
        return means * self.unit + self._summary.means


@dataclass(frozen=True, eq=False)
class SparsePartition:
    """Clusters and weights under one L1 bound."""

    labels: np.ndarray
    weights: np.ndarray  # (p,)
    criterion: float
    penalty: float
    n_iter: int
    converged: bool

    @property
    def features(self) -> np.ndarray:
        return np.flatnonzero(self.weights)


class PartitionPath:
    """Partitions and weights for any L1 bound, all from the same random starts."""

    def __init__(
        self, columns: CentredColumns, k: int, n_init: int, seed: np.random.SeedSequence
    ) -> None:
        self._columns, self._k = columns, k
        self._uniforms = np.random.default_rng(seed).random((_MAX_ITER, n_init, k))
        self._solved: dict[float, SparsePartition] = {}
        # The first partition is that of equal weights, whatever the bound.
        products = columns.inner_products(np.ones(columns.shape[1]))
        none = np.empty(0, np.int64)
        self._first_labels, _ = best_partition(products, self._uniforms[0], none)

    def solve(self, bound: float) -> SparsePartition:
        if bound not in self._solved:
            self._solved[bound] = self._alternate(bound)
        return self._solved[bound]

    def search(self, q: int) -> SparsePartition:
        """Return a solution with q non-zero weights, or a number close to q."""
        bound, _ = bisect_l1_bound(
            lambda bound, _: self.solve(bound).features,
            q,
            largest=float(np.sqrt(self._columns.shape[1])),
        )
        return self.solve(bound)

    def _alternate(self, bound: float) -> SparsePartition:
        labels = self._first_labels
        between = self._columns.between(labels, self._k)
        weights, n_iter, converged = sparse_direction(between, bound), 1, False
        while n_iter < _MAX_ITER and not converged:
            # The present labels are one of the starts, so the criterion does not decrease.
            products = self._columns.inner_products(weights)
            labels, _ = best_partition(products, self._uniforms[n_iter], labels)
            between, old = self._columns.between(labels, self._k), weights
            weights = sparse_direction(between, bound)
            n_iter += 1
            converged = bool(np.abs(weights - old).sum() <= _TOL * old.sum())
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        return SparsePartition(
            labels=np.argsort(np.argsort(first))[inverse],  # numbered by their first samples
            weights=weights,
            criterion=float(between @ weights) * self._columns.unit**2,
            penalty=bound,
            n_iter=n_iter,
            converged=converged,
        )
