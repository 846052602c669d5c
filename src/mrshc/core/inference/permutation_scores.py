"""Scores of partitions: the sum of squares between clusters, compared with permuted samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrshc.core.array_types import Float, Labels


def permutation_z_scores(partitions: Sequence[Labels], gram: Float) -> Float:
    """Return the standardised sum of squares between clusters for each of several partitions.

    Parameters
    ----------
    partitions : sequence of ndarray of shape (n_samples,)
        Partitions of the samples, each given by the cluster labels 0, ..., k - 1 of the samples,
        where k is the number of clusters.
    gram : ndarray of shape (n_samples, n_samples)
        Gram matrix of the samples, computed from the features in which the sum of squares is taken.

    Returns
    -------
    scores : ndarray of shape (n_partitions,)
        Score (T - m) / s of each partition. T is the sum of squares between clusters, and m and s
        are the mean and the standard deviation of T over all permutations of the samples. The score
        is zero if s is zero up to rounding errors or if there are fewer than four samples.

    Notes
    -----
    See `_permutation_moments` for the formulas. They were derived by Kazi-Aoual et al. [1]_.

    References
    ----------
    .. [1] Kazi-Aoual, F., Hitier, S., Sabatier, R. and Lebreton, J.-D. (1995). Refined
       approximations to permutation tests for multivariate inference. Computational Statistics &
       Data Analysis 20, 643-656. https://doi.org/10.1016/0167-9473(94)00064-2
    """
    n = len(gram)
    # Centring the rows and columns of the Gram matrix is equivalent to centring the features.
    centred = gram - gram.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    trace = float(np.trace(centred))
    scores = np.zeros(len(partitions))
    rounding = np.finfo(np.float64).eps
    # The formula for the variance divides by n - 3, so at least four samples are needed. A trace
    # of the size of rounding errors means that all features are constant; the scores are then zero.
    if n < 4 or trace <= rounding * n * float(np.trace(gram)):
        return scores
    # The variance contains products of four data values, which could overflow. The Gram matrix is
    # therefore scaled such that its trace is one. This does not change the scores.
    centred /= trace
    squares, squared_diagonal = float(np.sum(centred**2)), float(np.sum(np.diag(centred) ** 2))
    for i, labels in enumerate(partitions):
        sizes = np.bincount(labels)
        k = sizes.size
        membership = np.zeros((n, k))
        membership[np.arange(n), labels] = 1.0
        # The trace of PG is a sum over clusters (see `_permutation_moments` for P and G). The term
        # of a cluster is the sum of the entries of G within the cluster, divided by the size of the
        # cluster.
        between = float(np.sum((membership * (centred @ membership)).sum(axis=0) / sizes))
        mean, variance = _permutation_moments(
            n,
            freedom=k - 1,
            projection_diagonal=float(np.sum((1.0 / sizes[labels] - 1.0 / n) ** 2)),
            squares=squares,
            squared_diagonal=squared_diagonal,
        )
        # The terms of the variance may cancel, so a variance that is no larger than rounding errors
        # is treated as zero.
        if variance > rounding:
            scores[i] = (between - mean) / np.sqrt(variance)
    return scores


def _permutation_moments(
    n: int, *, freedom: int, projection_diagonal: float, squares: float, squared_diagonal: float
) -> tuple[float, float]:
    r"""Return the mean and the variance of :math:`\mathrm{tr}(PG)` over permutations of samples.

    :math:`\mathrm{tr}(PG)` is the sum of squares between clusters. The centred Gram matrix
    :math:`G` of the samples is scaled such that :math:`\mathrm{tr}(G) = 1`. The matrix :math:`P` is
    the orthogonal projection onto the space spanned by the centred indicator vectors of the k
    clusters.

    Parameters
    ----------
    n : int
        Number of samples, at least four.
    freedom : int
        Degrees of freedom between clusters, :math:`\mathrm{tr}(P) = \mathrm{tr}(P^2) = k - 1`.
    projection_diagonal : float
        The sum :math:`\sum_i P_{ii}^2`.
    squares : float
        The trace :math:`\mathrm{tr}(G^2)`.
    squared_diagonal : float
        The sum :math:`\sum_i G_{ii}^2`.

    Notes
    -----
    The formulas are those of Kazi-Aoual et al. (1995) with :math:`\mathrm{tr}(G) = 1`; see
    `permutation_z_scores` for the reference.
    """
    mean = freedom / (n - 1)
    variance = (
        2.0
        * ((n - 1) * freedom - freedom**2)
        * ((n - 1) * squares - 1.0)
        / ((n - 1) ** 2 * (n + 1) * (n - 2))
    ) + (
        (n * (n + 1) * projection_diagonal - (n - 1) * (freedom**2 + 2 * freedom))
        * (n * (n + 1) * squared_diagonal - (n - 1) * (1.0 + 2 * squares))
        / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    )
    return mean, variance
