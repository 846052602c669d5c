"""Statistics that measure how clearly the two branches of a split are separated."""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Mask


def separation(X: Float, is_first: Mask) -> float:
    """Return how clearly two groups of samples are separated, as a number between -1 and 1.

    Parameters
    ----------
    X : ndarray of shape (n, q)
        Selected features of n samples, without missing values.
    is_first : ndarray of bool of shape (n,)
        Mask of the samples of the first group. Both groups have at least two samples.

    Notes
    -----
    Each sample :math:`x_i` is projected on the difference of the means of the two groups, where the
    mean of its own group is computed without :math:`x_i`. Without this correction, samples would be
    separated by noise alone if there are many features, because each sample contributes to the mean
    of its group. The statistic is one minus the ratio of the mean standard deviation of the
    projections within the two groups and the standard deviation of all projections. It is 1 if
    there is no variation within the groups. It has the opposite sign if the mean projection of the
    first group is not the larger one, so that the groups are not separated at all.

    The two standard deviations have equal weights, because the larger group often contains several
    clusters. For data without clusters, the distribution of the statistic is close to a normal
    distribution. Distances in standard deviations, by contrast, have a long upper tail.
    """
    projections = leave_one_out_projections(X, is_first)
    total = float(projections.std(ddof=1))
    if total == 0.0:
        return 0.0
    first, second = projections[is_first], projections[~is_first]
    within = float(first.std(ddof=1) + second.std(ddof=1)) / 2.0
    return (1.0 - within / total) * float(np.sign(first.mean() - second.mean()))


def leave_one_out_projections(X: Float, is_first: Mask) -> Float:
    """Return the projection of each sample on the difference of the means of two groups.

    The mean of the group of a sample is computed from the other samples of the group. The
    parameters are those of `separation`.
    """
    centred = X - X.mean(axis=0)
    n_first, n_second = int(is_first.sum()), int((~is_first).sum())
    # The inner products of each sample with the means of both groups are sufficient.
    first = centred @ centred[is_first].mean(axis=0)
    second = centred @ centred[~is_first].mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    own_first = (n_first * first - squares) / (n_first - 1)
    own_second = (n_second * second - squares) / (n_second - 1)
    return np.where(is_first, own_first - second, first - own_second)


def cluster_index(X: Float, is_first: Mask) -> float:
    """Return the sum of squares within two groups, divided by the total sum of squares.

    This is the statistic of SigClust [1]_. The parameters are those of `separation`.

    References
    ----------
    .. [1] Liu, Y., Hayes, D. N., Nobel, A. and Marron, J. S. (2008). Statistical significance of
       clustering for high-dimension, low-sample size data. Journal of the American Statistical
       Association 103(483), 1281-1293. doi:10.1198/016214508000000454
    """
    total = float(((X - X.mean(axis=0)) ** 2).sum())
    within = sum(
        float(((X[group] - X[group].mean(axis=0)) ** 2).sum()) for group in (is_first, ~is_first)
    )
    return within / total if total > 0.0 else 1.0
