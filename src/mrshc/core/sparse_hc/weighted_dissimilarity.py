"""The dissimilarity of the samples for given feature weights, and the slope of each feature.

D is the matrix with one row for each pair of samples and one column for each feature; see the
module `pair_distances`. The dissimilarity u for the weights w is Dw, scaled to unit norm. The
slopes D'u are the derivatives of the criterion u'Dw with respect to the weights. Algorithms for
feature weights need only these two functions, of the data or of permuted data.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.permuted_pairs import PermutedPairs

# The part of the weighted distances that is orthogonal to an earlier solution is treated as zero if
# its norm is at most this fraction of the norm of the weighted distances. The fraction is far above
# the rounding errors of double precision and far below any structure of interest.
_RELATIVE_ZERO = 1e-10


class WeightedDissimilarity(Protocol):
    """Dissimilarity of the samples as a function of the feature weights, and its slopes.

    Attributes
    ----------
    n_features : int
        Number of features.
    distance_unit : float
        Value by which all distances in D are divided; see :class:`PairDistances`.
    """

    n_features: int
    distance_unit: float

    def of_weights(self, indices: Index, weights: Float) -> tuple[Float, float]:
        """Return Dw, scaled to unit norm, and the norm of Dw before scaling.

        Parameters
        ----------
        indices : ndarray of shape (q,)
            Indices of the q features with a non-zero weight.
        weights : ndarray of shape (q,)
            Weights of these features. They must not be negative.
        """

    def slopes(self, u: Float) -> Float:
        """Return D'u, an array with one value for each feature."""


class DataDissimilarity:
    """Dissimilarity of the samples of a data set, as a symmetric matrix.

    The norm of a dissimilarity counts each pair of samples once.

    Parameters
    ----------
    pairs : PairDistances
        The matrix D.
    orthogonal_to : ndarray of shape (n_samples, n_samples) or None, default=None
        Dissimilarity matrix of an earlier solution. If it is given, its component is subtracted
        from all dissimilarities.

    Attributes
    ----------
    n_features : int
        Number of features.
    distance_unit : float
        Value by which all distances in D are divided; see :class:`PairDistances`.
    """

    def __init__(self, pairs: PairDistances, *, orthogonal_to: Float | None = None) -> None:
        self.n_features = pairs.shape[1]
        self.distance_unit = pairs.unit
        self._pairs = pairs
        self._orthogonal_to = (
            None if orthogonal_to is None else orthogonal_to / _pair_norm(orthogonal_to)
        )

    def of_weights(self, indices: Index, weights: Float) -> tuple[Float, float]:
        """Return Dw, scaled to unit norm, and the norm of Dw before scaling.

        Dw is represented as a matrix of shape (n_samples, n_samples). If the norm is zero, Dw is
        returned without scaling. The parameters are those of
        :meth:`WeightedDissimilarity.of_weights`.
        """
        u = self._pairs.weighted_distances(indices, weights)
        if self._orthogonal_to is not None:
            # The inner product is half of the sum, since the sum counts each pair twice.
            u -= self._orthogonal_to * (np.sum(self._orthogonal_to * u) / 2)
        norm = _pair_norm(u)
        return (u / norm if norm > 0 else u), norm

    def matrix(self, indices: Index, weights: Float) -> Float:
        """Return Dw as a matrix of shape (n_samples, n_samples) with Frobenius norm one."""
        # The division by the square root of two is needed because the matrix contains each pair of
        # samples twice, whereas the unit vector u contains each pair once.
        return self.of_weights(indices, weights)[0] / np.sqrt(2)

    def slopes(self, u: Float) -> Float:
        """Return D'u, an array with one value for each feature."""
        return self._pairs.slopes(u)

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing of the sum of the distances over all features is left.

        This is the case if the sum is a multiple of the earlier solution, up to rounding errors.
        """
        if self._orthogonal_to is None:
            return False
        features, ones = np.arange(self.n_features), np.ones(self.n_features)
        _, norm = self.of_weights(features, ones)
        whole = _pair_norm(self._pairs.weighted_distances(features, ones))
        return norm <= _RELATIVE_ZERO * whole


class PermutedDissimilarity:
    """Dissimilarity of the pairs after a permutation of the distances in each feature.

    Parameters
    ----------
    permuted : PermutedPairs
        The permuted matrix D.

    Attributes
    ----------
    n_features : int
        Number of features.
    distance_unit : float
        Value by which all distances in D are divided; see :class:`PairDistances`.
    """

    def __init__(self, permuted: PermutedPairs) -> None:
        self.n_features = permuted.n_features
        self.distance_unit = permuted.unit
        self._permuted = permuted

    def of_weights(self, indices: Index, weights: Float) -> tuple[Float, float]:
        """Return Dw, scaled to unit norm, and the norm of Dw before scaling.

        Dw has one entry for each pair of samples. The parameters are those of
        :meth:`WeightedDissimilarity.of_weights`.
        """
        all_weights = np.zeros((self.n_features, 1))
        all_weights[indices, 0] = weights
        u = self._permuted.multiply(all_weights)[:, 0]
        norm = float(np.linalg.norm(u))
        return (u / norm if norm > 0 else u), norm

    def slopes(self, u: Float) -> Float:
        """Return D'u, an array with one value for each feature."""
        return self._permuted.multiply_transposed(u[:, None])[:, 0]


def _pair_norm(u: Float) -> float:
    """Return the Euclidean norm of the entries above the diagonal of a symmetric matrix.

    The diagonal of the matrix must be zero.
    """
    return float(np.linalg.norm(u) / np.sqrt(2))
