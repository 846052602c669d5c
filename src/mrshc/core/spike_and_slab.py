"""Sparse hierarchical clustering with the spike-and-slab lasso in place of an L1 bound (SHC-SSL).

Each weight is soft-thresholded with a penalty of its own, between that of the slab and that of the
spike, according to the probability that it belongs to the slab (Rockova and George 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mrshc.core.sparse_dissimilarity import DataDissimilarity, Dissimilarity, FeatureWeights

# The share of features in the slab has the prior Beta(1, p), and starts at 1/2.
_BETA_A, _FIRST_SLAB_SHARE = 1.0, 0.5
# A path of spike penalties ends at this multiple of the largest slope for equal dissimilarities.
_N_PENALTIES, _LARGEST_SPIKE = 100, 3.0
# Mean squared distance of two samples in a feature of variance one, to which features are scaled.
_STANDARD_DISTANCE = 2.0


@dataclass(frozen=True, eq=False)
class SpikeAndSlab:
    """The scale of the slopes and the path of penalties; the same for permuted data."""

    path: tuple[float, ...]
    slab_penalty: float
    scale: float
    max_iter: int
    tol: float

    def solve(
        self, dissimilarity: Dissimilarity, penalties: Sequence[float]
    ) -> list[FeatureWeights]:
        """Return the weights for each spike penalty.

        The penalties of the path are solved in increasing order, each from the solution before.
        """
        p = dissimilarity.n_features
        weights = np.full(p, 1.0 / np.sqrt(p))
        u = dissimilarity.of_weights(weights)[0]
        state = (weights, u, dissimilarity.slopes(u) / self.scale, _FIRST_SLAB_SHARE)
        on_path = {value for value in self.path if value <= max(penalties)}
        solved: dict[float, FeatureWeights] = {}
        for penalty in sorted(on_path | set(penalties)):
            solved[penalty], following = self._alternate(dissimilarity, penalty, state)
            if penalty in on_path:
                state = following
        return [solved[penalty] for penalty in penalties]

    def _alternate(
        self,
        dissimilarity: Dissimilarity,
        penalty: float,
        state: tuple[np.ndarray, np.ndarray, np.ndarray, float],
    ) -> tuple[FeatureWeights, tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
        weights, u, slopes, share = state
        n_iter, converged = 0, False
        while not converged and n_iter < self.max_iter:
            weights = _unit_positive_part(slopes - self._thresholds(weights, penalty, share))
            n_slab = np.count_nonzero(weights)
            share = (_BETA_A + n_slab) / (_BETA_A + 2 * dissimilarity.n_features)
            old = u
            u, criterion = dissimilarity.of_weights(weights)
            slopes = dissimilarity.slopes(u) / self.scale
            n_iter += 1
            converged = bool(np.abs(u - old).sum() <= self.tol * np.abs(old).sum())
        criterion *= dissimilarity.unit
        solution = FeatureWeights(weights, criterion, penalty, n_iter, converged)
        return solution, (weights, u, slopes, share)

    def _thresholds(self, weights: np.ndarray, spike: float, share: float) -> np.ndarray:
        """Return the derivative of the penalty at each weight."""
        slab = self.slab_penalty
        log_odds = weights * (spike - slab) + np.log(slab / spike) + np.log(share / (1.0 - share))
        in_slab = expit(log_odds)
        return slab * in_slab + spike * (1.0 - in_slab)


def _unit_positive_part(differences: np.ndarray) -> np.ndarray:
    """Return the positive part, scaled to norm 1; if there is none, the largest is kept."""
    positive = np.maximum(differences, 0.0)
    if not positive.any():
        positive[differences.argmax()] = 1.0
    return positive / np.linalg.norm(positive)


def spike_and_slab(
    dissimilarity: DataDissimilarity, *, slab_penalty: float, max_iter: int, tol: float
) -> SpikeAndSlab:
    """Return the settings that suit the data: a scale, and a path of 100 spike penalties."""
    n = dissimilarity.matrix.shape[0]
    n_pairs = n * (n - 1) / 2
    mean_distances = dissimilarity.slopes(np.ones((n, n)) - np.eye(n)) / n_pairs
    varying = mean_distances[mean_distances > 0]
    scale = float(np.median(varying)) / _STANDARD_DISTANCE
    end = _LARGEST_SPIKE * float(varying.max()) / scale * np.sqrt(n_pairs)
    path = (slab_penalty,)
    if end > slab_penalty:
        path = tuple(np.geomspace(slab_penalty, end, _N_PENALTIES).tolist())
    return SpikeAndSlab(path, slab_penalty, scale, max_iter, tol)
