"""Sparse hierarchical clustering with the spike-and-slab lasso, and its permutation gap.

D is the matrix with one row for each pair of samples and one column for each feature; see the
module `pair_distances`. Sparse hierarchical clustering maximises u'Dw subject to |u|_2 <= 1, |w|_2
<= 1 and w >= 0. Here, the L1 bound on the weights w is replaced by the penalty of the
spike-and-slab lasso [1]_, as proposed in [2]_. The penalty of a weight is the negative logarithm of
a mixture of two exponential densities: a spike with a large rate lambda0, and a slab with a small
rate lambda1. Small weights belong to the spike; they are reduced by lambda0 and become zero. Large
weights belong to the slab and are reduced by lambda1 only.

References
----------
.. [1] Ročková, V. and George, E. I. (2018). The spike-and-slab lasso. Journal of the American
   Statistical Association 113(521), 431-444. https://doi.org/10.1080/01621459.2016.1260469
.. [2] Li, X., Korkut, A. and others (2026). RECOMBINE identifies recurrent composite markers of
   cell types and states. Genome Research 36(6), 1221-1237. https://doi.org/10.1101/gr.280817.125
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mrshc.core.array_types import Float, Index
from mrshc.core.parallel import ProgressCallback, effective_n_threads
from mrshc.core.permutations import PermutationGap, gap_over_permutations
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.permuted_pairs import PermutedPairs
from mrshc.core.sparse_hc.weighted_dissimilarity import PermutedDissimilarity, WeightedDissimilarity

# The share of features in the slab has the prior distribution Beta(1, p), as in the R package of
# the authors, and 1/2 is its value at the start.
_BETA_A, _FIRST_SLAB_SHARE = 1.0, 0.5
# The sequence of spike penalties has this many values, and its last value is this many times the
# largest slope of a feature for equal dissimilarities. Larger values change little.
_N_PENALTIES, _LARGEST_SPIKE = 100, 3.0
# Mean distance of two samples to which a typical feature is scaled. It is that of a feature with
# variance one, if the distances are squared differences.
_STANDARD_DISTANCE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpikeAndSlabWeights:
    """Feature weights w of sparse hierarchical clustering with one spike penalty.

    Attributes
    ----------
    indices : ndarray of shape (q,)
        Indices of the q features with a non-zero weight, in increasing order.
    weights : ndarray of shape (q,)
        Weights of these features, which are positive. The L2 norm of this vector is one.
    criterion : float
        Value of u'Dw, without the penalty. Each pair of samples is counted once.
    spike_penalty : float
        The penalty lambda0 of the spike.
    n_iter : int
        Number of iterations for this penalty. They start from the solution for a smaller one.
    converged : bool
        Whether the algorithm converged.
    """

    indices: Index
    weights: Float
    criterion: float
    spike_penalty: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpikeAndSlabSettings:
    """Settings of the spike-and-slab lasso, which are the same for the data and permuted data.

    Attributes
    ----------
    path_penalties : tuple of float
        Increasing spike penalties. The solution for each of them starts from the solution for the
        previous one.
    slab_penalty : float
        The penalty lambda1 of the slab.
    scale : float
        Value by which the slopes are divided before the penalties are subtracted. It makes the
        penalties independent of the unit of the data.
    max_iter : int
        Largest number of iterations for each penalty.
    tol : float
        The algorithm has converged when the L1 norm of the change of u is at most `tol` times the
        L1 norm of u.
    """

    path_penalties: tuple[float, ...]
    slab_penalty: float
    scale: float
    max_iter: int
    tol: float


def spike_and_slab_settings(
    pairs: PairDistances, *, slab_penalty: float, max_iter: int, tol: float
) -> SpikeAndSlabSettings:
    """Return settings with a scale and a sequence of spike penalties that suit the data.

    The slopes are scaled such that the median, over features that are not constant, of the mean
    distance between two samples is 2. This is the mean squared difference in a feature with
    variance one; for other metrics, the value is the same. The penalties are a geometric sequence
    from the slab penalty to three times the largest slope for equal dissimilarities.
    """
    n, _ = pairs.shape
    n_pairs = n * (n - 1) / 2
    equal = np.ones((n, n))
    np.fill_diagonal(equal, 0.0)
    mean_distances = pairs.slopes(equal) / n_pairs
    varying = mean_distances[mean_distances > 0]
    scale = float(np.median(varying)) / _STANDARD_DISTANCE
    # A unit vector of equal dissimilarities has the entries 1 / sqrt(n_pairs).
    largest_slope = float(varying.max()) / scale * np.sqrt(n_pairs)
    end = _LARGEST_SPIKE * largest_slope
    penalties = (slab_penalty,)
    if end > slab_penalty:
        penalties = tuple(np.geomspace(slab_penalty, end, _N_PENALTIES).tolist())
    return SpikeAndSlabSettings(
        path_penalties=penalties,
        slab_penalty=slab_penalty,
        scale=scale,
        max_iter=max_iter,
        tol=tol,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _State:
    """Weights of all features, the slopes of their dissimilarity, and the share in the slab."""

    weights: Float
    u: Float
    slopes: Float
    slab_share: float


def spike_and_slab_path(
    dissimilarity: WeightedDissimilarity,
    spike_penalties: Sequence[float],
    *,
    settings: SpikeAndSlabSettings,
) -> list[SpikeAndSlabWeights]:
    """Return the feature weights for several spike penalties, in the order of the penalties.

    The criterion has many local maxima. Therefore the path of solutions is computed for the
    penalties of the settings, with warm starts: the first solution starts from equal weights, and
    each solution is the start for the next penalty. A penalty that is not one of them starts from
    the last solution for a smaller one, so its solution does not depend on the other penalties in
    `spike_penalties`.
    """
    p = dissimilarity.n_features
    equal = np.full(p, 1.0 / np.sqrt(p))
    u, _ = dissimilarity.of_weights(np.arange(p), equal)
    slopes = dissimilarity.slopes(u) / settings.scale
    state = _State(weights=equal, u=u, slopes=slopes, slab_share=_FIRST_SLAB_SHARE)
    solved: dict[float, SpikeAndSlabWeights] = {}
    on_path = {value for value in settings.path_penalties if value <= max(spike_penalties)}
    for penalty in sorted(on_path | set(spike_penalties)):
        solved[penalty], next_state = _alternate(
            dissimilarity, penalty, state=state, settings=settings
        )
        if penalty in on_path:
            state = next_state
    return [solved[penalty] for penalty in spike_penalties]


def _alternate(
    dissimilarity: WeightedDissimilarity,
    spike_penalty: float,
    *,
    state: _State,
    settings: SpikeAndSlabSettings,
) -> tuple[SpikeAndSlabWeights, _State]:
    """Return the feature weights for one spike penalty, and the state at the end.

    The algorithm alternates between u = Dw / |Dw|_2 and w = s / |s|_2. Here s is the positive part
    of D'u - delta, where delta contains a threshold for each feature; see :func:`_thresholds`. The
    share of features in the slab is then estimated from the number of non-zero weights.
    """
    p = dissimilarity.n_features
    weights, u, slopes = state.weights, state.u, state.slopes
    slab_share = state.slab_share
    n_iter, converged = 0, False
    while not converged and n_iter < settings.max_iter:
        thresholds = _thresholds(
            weights, spike_penalty, slab_share=slab_share, slab_penalty=settings.slab_penalty
        )
        weights = _unit_positive_part(slopes, thresholds)
        indices = np.flatnonzero(weights)
        slab_share = (_BETA_A + indices.size) / (_BETA_A + 2 * p)
        old = u
        u, criterion = dissimilarity.of_weights(indices, weights[indices])
        # After the last iteration, the slopes are needed for the next penalty.
        slopes = dissimilarity.slopes(u) / settings.scale
        n_iter += 1
        converged = bool(np.abs(u - old).sum() <= settings.tol * np.abs(old).sum())
    solution = SpikeAndSlabWeights(
        indices=indices,
        weights=weights[indices],
        criterion=criterion * dissimilarity.distance_unit,
        spike_penalty=spike_penalty,
        n_iter=n_iter,
        converged=converged,
    )
    return solution, _State(weights=weights, u=u, slopes=slopes, slab_share=slab_share)


def _thresholds(
    weights: Float, spike_penalty: float, *, slab_share: float, slab_penalty: float
) -> Float:
    """Return the derivative of the penalty at each weight, between the slab and spike penalties.

    It is the mean of both penalties, weighted by the posterior probability that the weight belongs
    to the slab.
    """
    log_odds = (
        weights * (spike_penalty - slab_penalty)
        + np.log(slab_penalty / spike_penalty)
        + np.log(slab_share / (1.0 - slab_share))
    )
    in_slab = expit(log_odds)
    thresholds: Float = slab_penalty * in_slab + spike_penalty * (1.0 - in_slab)
    return thresholds


def _unit_positive_part(slopes: Float, thresholds: Float) -> Float:
    """Return the positive part of the slopes minus their thresholds, scaled to unit norm.

    If no slope exceeds its threshold, the feature with the largest difference has the weight one.
    """
    differences = slopes - thresholds
    positive = np.maximum(differences, 0.0)
    norm = float(np.linalg.norm(positive))
    if norm == 0.0:
        positive[int(np.argmax(differences))] = 1.0
        return positive
    return positive / norm


def spike_and_slab_gap(
    pairs: PairDistances,
    solutions: Sequence[SpikeAndSlabWeights],
    *,
    settings: SpikeAndSlabSettings,
    n_permutations: int,
    entropy: int,
    n_jobs: int | None,
    progress: ProgressCallback,
) -> PermutationGap:
    """Return the permutation gap for the spike penalty of each solution.

    In each permutation, the entries of every column of D are permuted independently of the other
    columns, and the feature weights are computed for all penalties. The gap compares the criterion
    u'Dw without the penalty. The parameters are those of
    :func:`~mrshc.core.sparse_hc.feature_weights.permutation_gap`.
    """
    return gap_over_permutations(
        permuted_spike_and_slab_criteria,
        {
            "pairs": pairs,
            "spike_penalties": [s.spike_penalty for s in solutions],
            "settings": settings,
            "entropy": entropy,
            "n_workers": effective_n_threads(n_jobs),
        },
        criteria=[s.criterion for s in solutions],
        n_permutations=n_permutations,
        n_jobs=n_jobs,
        # Out-of-core data are read from an open file, which cannot be sent to another process.
        share_memory=not pairs.in_memory,
        progress=progress,
    )


def permuted_spike_and_slab_criteria(
    *,
    pairs: PairDistances,
    spike_penalties: Sequence[float],
    settings: SpikeAndSlabSettings,
    entropy: int,
    permutation: int,
    n_workers: int = 1,
) -> Float:
    """Return the criterion u'Dw for each spike penalty, computed from one permutation of D.

    `n_workers` is the number of workers that compute permutations at the same time.
    """
    permuted = PermutedPairs(pairs, entropy=entropy, permutation=permutation, n_workers=n_workers)
    path = spike_and_slab_path(PermutedDissimilarity(permuted), spike_penalties, settings=settings)
    return np.array([solution.criterion for solution in path])
