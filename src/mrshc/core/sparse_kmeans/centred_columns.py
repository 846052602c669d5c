"""Sums of squares and inner products of centred columns, for sparse K-means clustering.

The columns are read in blocks, so the data need not be in memory. The columns can be permuted, each
independently of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.statistics import column_blocks

# Largest number of values that are kept in memory (256 MB in double precision). Centred columns of
# larger data are not kept but computed again whenever they are needed. The number does not affect
# the result, since permutations are drawn again with the same seeds.
_MAX_KEPT_VALUES = 1 << 25


class CentredColumns:
    """Columns of a data matrix, centred at their means and divided by a common unit.

    Parameters
    ----------
    data : DataMatrix
        The data, with n samples in rows and p features in columns, without missing values.
    permutation : tuple of int or None, default=None
        Seed and index of a permutation. If it is given, the values of each column are permuted at
        random, independently of the other columns.

    Attributes
    ----------
    shape : tuple of int
        Number of samples n, and number of features p.
    in_memory : bool
        Whether the data are an array in memory.
    length : float
        Unit by which the values are divided. Sums of squares have to be multiplied by its square to
        obtain values on the original scale of the data.
    """

    def __init__(self, data: DataMatrix, *, permutation: tuple[int, int] | None = None) -> None:
        summary = data.summary()
        n, p = data.shape
        self.shape = (n, p)
        self.in_memory = data.in_memory
        self.length = summary.length_unit
        self._data = data
        self._means = summary.means
        self._permutation = permutation
        is_small = n * p <= _MAX_KEPT_VALUES
        self._kept_blocks = list(self._read_blocks()) if is_small else None

    def permute(self, entropy: int, index: int) -> CentredColumns:
        """Return the columns after an independent random permutation of each column.

        `entropy` is the seed of all permutations, and `index` is the index of this permutation.
        """
        return CentredColumns(self._data, permutation=(entropy, index))

    def inner_products(self, indices: Index, weights: Float) -> Float:
        """Return the weighted inner products of the samples, as an array of shape (n, n).

        Parameters
        ----------
        indices : ndarray of shape (q,)
            Indices of the features with a non-zero weight, in increasing order.
        weights : ndarray of shape (q,)
            Weights of these features, which are positive. An inner product is the sum over features
            of the weight times the product of the two values.
        """
        n = self.shape[0]
        total = np.zeros((n, n))
        for block, values in self.blocks():
            first, last = np.searchsorted(indices, (block.start, block.stop))
            if first < last:
                chosen = values[:, indices[first:last] - block.start]
                rooted = chosen * np.sqrt(weights[first:last])
                total += rooted @ rooted.T
        return total

    def between_sums_of_squares(self, labels: Labels, n_clusters: int) -> Float:
        """Return the sum of squares between clusters of each feature, as an array of shape (p,).

        The sum of squares between clusters is the sum, over clusters, of the number of samples
        times the squared difference between the mean of the cluster and the mean of all samples.
        """
        members = (labels == np.arange(n_clusters)[:, None]).astype(np.float64)
        # Scaling the rows makes the squared products the terms of the sum of squares. The means of
        # all samples are zero.
        members /= np.sqrt(members.sum(axis=1, keepdims=True))
        return np.concatenate(
            [np.square(members @ values).sum(axis=0) for _, values in self.blocks()]
        )

    def cluster_means(self, labels: Labels, n_clusters: int) -> Float:
        """Return the means of the features in each cluster, as an array of shape (n_clusters, p).

        The means are on the original scale of the data. The columns must not be permuted.
        """
        members = (labels == np.arange(n_clusters)[:, None]).astype(np.float64)
        members /= members.sum(axis=1, keepdims=True)
        means = np.hstack([members @ values for _, values in self.blocks()])
        return means * self.length + self._means

    def blocks(self) -> Iterator[tuple[slice, Float]]:
        """Yield the slice of each block of b features, and its values, of shape (n, b)."""
        return self._read_blocks() if self._kept_blocks is None else iter(self._kept_blocks)

    def _read_blocks(self) -> Iterator[tuple[slice, Float]]:
        """Yield the slice of each block of features and its values, computed from the data."""
        for k, block in enumerate(column_blocks(*self.shape)):
            columns = self._data.columns(np.arange(block.start, block.stop))
            values = (columns.astype(np.float64) - self._means[block]) / self.length
            if self._permutation is not None:
                # Each block has its own stream of random numbers, so the permutations of a block
                # are the same each time they are drawn and in every worker.
                entropy, index = self._permutation
                seed = np.random.SeedSequence(entropy, spawn_key=(index, k))
                values = np.random.default_rng(seed).permuted(values, axis=0)
            yield block, values
