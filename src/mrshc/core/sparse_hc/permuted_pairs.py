"""The matrix D of pairwise distances in each feature, after a permutation of each column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.data.statistics import column_blocks
from mrshc.core.sparse_hc.pair_distances import PairDistances

# Largest number of permuted distances that all workers together keep in memory (2 GB in double
# precision). A larger matrix of permuted distances is not kept but computed again whenever it is
# needed, which takes several times as long. The value does not affect the result, since the
# permutations are drawn again with the same seeds.
_MAX_KEPT_DISTANCES = 1 << 28
# If at most this proportion of the features of a block have a weight, only these features are
# multiplied. Otherwise copying them could take longer than multiplying by zeros. The value is not
# tuned: up to rounding, it does not affect the result.
_SPARSE_PROPORTION = 0.3


class PermutedPairs:
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
    n_workers : int, default=1
        Number of workers that compute permutations at the same time and share the memory.

    Attributes
    ----------
    n_features : int
        Number of features.
    unit : float
        Value by which all distances in D are divided; see :class:`PairDistances`.
    """

    def __init__(
        self, pairs: PairDistances, *, entropy: int, permutation: int, n_workers: int = 1
    ) -> None:
        n, p = pairs.shape
        self._pairs = pairs
        self._seed = (entropy, permutation)
        self.n_features = p
        self.unit = pairs.unit
        self._n_pairs = n * (n - 1) // 2
        is_small = self._n_pairs * p <= _MAX_KEPT_DISTANCES // n_workers
        self._kept_blocks = list(self._permute_blocks()) if is_small else None

    def multiply(self, weights: Float) -> Float:
        """Return the product of the permuted matrix with an array of feature weights.

        The array `weights` has the shape (n_features, n_bounds), and the result has the shape
        (n_pairs, n_bounds).
        """
        total = np.zeros((self._n_pairs, weights.shape[1]))
        for block, distances in self._blocks():
            used = np.flatnonzero(weights[block].any(axis=1))
            if used.size <= _SPARSE_PROPORTION * len(distances):
                total += distances[used].T @ weights[block][used]
            else:
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
