"""Lower bounds of combined p-values, by which most features need no exact test.

A feature is associated with the clusters of a tree only if its combined p-value is small. The
bounds of this module take much less time than the p-values, and exclude most of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import pi, tan

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Labels, Mask
from mrshc.core.kernels.p_value_bounds import BoundTable, mark_small_p_values
from mrshc.core.kernels.p_values import LARGEST_COMBINED, write_f_tail_probabilities

# Bounds of Cauchy quantiles are tabulated for shares of explained variance up to this multiple of
# 1 / n, with so many steps for each multiple. P-values of larger shares are below 1e-10, and are
# not bounded. More steps give tighter bounds. The numbers do not affect the result.
_LARGEST_MULTIPLE, _N_STEPS = 64, 32

# If the share is at most this multiple of 1 / n, the p-value may be rounded to 1. With seven
# clusters, a p-value differs from 1 by about the cube of half of the multiple.
_SMALLEST_MULTIPLE = 1e-4

# Up to this number of samples, sums of ranks are computed in single precision, which takes half of
# the time. For more samples, the bounds of rounding errors would not be small compared with 1 / n.
_MAX_SINGLE_SAMPLES = 1000


class PValueBounds:
    """Bounds of the combined p-values of features for the cuts of several trees.

    Parameters
    ----------
    partitions : ndarray of int of shape (n_trees, n_cuts, n)
        Cluster labels of the n samples for each cut of each tree, numbered from 0. The first cut of
        a tree has two clusters, and each further cut divides one of the clusters into two.
    alpha : float
        Largest p-value that is of interest.
    """

    def __init__(self, partitions: NDArray[np.intp], *, alpha: float) -> None:
        n_trees, n_cuts, n = partitions.shape
        dtype = np.float32 if n <= _MAX_SINGLE_SAMPLES else np.float64
        contrasts = np.concatenate([split_contrasts(cuts) for cuts in partitions], axis=1)
        # Ranks 1, ..., n have this sum of squares. It is not reduced for ties.
        total = (n**3 - n) / 12.0
        self._contrasts = (contrasts / np.sqrt(total)).astype(dtype)
        self._shape = n_trees, n_cuts
        # The sum of n rounding errors is at most n eps times the product of the norms of the ranks
        # and of the contrast. That of the ranks is at most 2.7 times the root of `total` for three
        # samples or more.
        error = 2.7 * (n + 4) * float(np.finfo(dtype).eps)
        self._table = BoundTable(
            bounds=_quantile_bounds(n, n_cuts),
            n_steps_per_unit=float(_N_STEPS * n),
            # The small number exceeds the rounding errors of the quantiles and of their mean.
            smallest_mean=1.0 / tan(pi * alpha) - 1e-6,
            error=error,
            smallest_coordinate=error + (_SMALLEST_MULTIPLE / n) ** 0.5,
        )

    def may_be_small(self, ranks: Float) -> Mask:
        """Return for which features and trees the combined p-value may be at most alpha.

        Parameters
        ----------
        ranks : ndarray of shape (m, n)
            Midranks of the n samples in each of m features without missing values.

        Returns
        -------
        ndarray of bool of shape (m, n_trees)
            The value is also True if the p-value of a cut may be 1, as for a constant feature.
        """
        coordinates = ranks.astype(self._contrasts.dtype) @ self._contrasts
        marked = np.empty((len(ranks), self._shape[0]), np.uint8)
        mark_small_p_values(coordinates.astype(np.float64, copy=False), self._table, marked)
        return marked.astype(bool)


def split_contrasts(cuts: Sequence[Labels] | NDArray[np.intp]) -> Float:
    r"""Return one vector for each cut of a tree, whose squared inner products add up to variances.

    Parameters
    ----------
    cuts : sequence of ndarray of int of shape (n,)
        Cluster labels for cuts into 2, 3, ... clusters, each of which divides one cluster of the
        previous cut.

    Returns
    -------
    ndarray of shape (n, n_cuts)
        Orthonormal vectors, each with a sum of zero. The sum of squares of a vector x between the
        clusters of cut k is the sum over the first k columns :math:`c_j` of :math:`(c_j'x)^2`.

    Notes
    -----
    If a cluster is divided into parts with :math:`n_a` and :math:`n_b` samples and means
    :math:`m_a` and :math:`m_b`, the sum of squares between clusters increases by
    :math:`(m_a - m_b)^2 / (1 / n_a + 1 / n_b)`.
    """
    previous = np.zeros(len(cuts[0]), np.intp)
    contrasts = np.zeros((previous.size, len(cuts)))
    for k, labels in enumerate(cuts):
        for cluster in np.unique(previous):
            members = np.flatnonzero(previous == cluster)
            is_first = labels[members] == labels[members[0]]
            if not is_first.all():
                n_first = np.count_nonzero(is_first)
                n_second = members.size - n_first
                contrasts[members, k] = np.where(is_first, 1.0 / n_first, -1.0 / n_second)
                contrasts[members, k] /= np.sqrt(1.0 / n_first + 1.0 / n_second)
        previous = labels
    return contrasts


# Each pass of a fit needs the same table.
@lru_cache(maxsize=4)
def _quantile_bounds(n: int, n_cuts: int) -> Float:
    """Return upper bounds of the Cauchy quantiles of p-values, as an array of shape (n_cuts, m).

    Row k belongs to a cut into k + 2 clusters, and column i to shares of explained variance from
    i / (32 n) to (i + 1) / (32 n), where n is the number of samples.
    """
    n_bounds = min(_LARGEST_MULTIPLE, n) * _N_STEPS
    shares = np.repeat(np.arange(1, n_bounds + 1)[:, None] / (_N_STEPS * n), n_cuts, axis=1)
    freedom = np.empty((*shares.shape, 2), np.intp)
    freedom[:, :, 0] = np.arange(1, n_cuts + 1)
    freedom[:, :, 1] = n - 1 - freedom[:, :, 0]
    p_values = np.empty_like(shares)
    write_f_tail_probabilities(shares, freedom, p_values)
    with np.errstate(divide="ignore"):
        quantiles = 1.0 / np.tan(pi * np.minimum(p_values, LARGEST_COMBINED))
    return np.ascontiguousarray(quantiles.T)
