"""Rank tests of the association between features and partitions of the samples.

Ranks make the test independent of the distribution of a feature: for heavy tails, the F test on the
values themselves would have too many false positives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.kernels.association import write_explained_rank_variance

# Larger p-values are set to this one before they are combined. The quantile of a p-value near one
# tends to minus infinity and would cancel all others; that of 0.999 is -318 and cancels a single
# p-value of 0.001.
_LARGEST_COMBINED = 0.999


def rank_p_values(matrix: CentredMatrix, partitions: Sequence[Labels], *, indices: Index) -> Float:
    """Return the p-values of some features against each partition, (m, n_partitions).

    The test is a one-way analysis of variance on ranks. The variance of the ranks is that without
    ties: if most samples have the same value, the actual variance would be small, and small
    clusters of the other samples would be significant.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    partitions : sequence of ndarray of shape (n,)
        Labels of the samples. Samples with a negative label are left out, as are missing cells.
    indices : ndarray of shape (m,)
        The features to test.

    Returns
    -------
    ndarray of shape (m, n_partitions)
        The p-values; one for a feature without two groups or two different values to compare.
    """
    shares = np.zeros((indices.size, len(partitions)))
    freedom = np.zeros((indices.size, len(partitions), 2), dtype=np.intp)
    groups = np.stack(partitions)
    for positions, (block_shares, block_freedom) in matrix.map_columns(
        indices, partial(_explained_shares, groups=groups)
    ):
        shares[positions], freedom[positions] = block_shares, block_freedom
    # At least one degree of freedom avoids a division by zero; the share is zero there.
    between, within = np.maximum(freedom[..., 0], 1), np.maximum(freedom[..., 1], 1)
    # The upper tail of the F distribution, as an incomplete beta function of the share.
    p_values: Float = betainc(within / 2, between / 2, 1.0 - shares)
    return p_values


def _explained_shares(columns: Float, groups: NDArray[np.intp]) -> tuple[Float, NDArray[np.intp]]:
    """Return the shares of the rank variance that partitions explain, and degrees of freedom.

    Parameters
    ----------
    columns : ndarray of shape (n, m)
        Features, NaN where missing.
    groups : ndarray of int of shape (n_partitions, n)
        Labels of the samples.

    Returns
    -------
    shares : ndarray of shape (m, n_partitions)
        Sum of squares between groups divided by the total sum of squares.
    freedom : ndarray of int of shape (m, n_partitions, 2)
        Degrees of freedom between and within groups.
    """
    shares = np.zeros((columns.shape[1], groups.shape[0]))
    freedom = np.zeros((*shares.shape, 2), dtype=np.intp)
    write_explained_rank_variance(np.ascontiguousarray(columns.T), groups, shares, freedom)
    return shares, freedom


def cauchy_combination(p_values: Float) -> Float:
    """Combine the p-values of each row by the Cauchy combination test [1]_.

    The mean of the Cauchy quantiles of the p-values has approximately a Cauchy distribution in the
    upper tail, whatever the dependence between the p-values.

    Parameters
    ----------
    p_values : ndarray of shape (m, k)
        P-values. Those equal to one, for which no comparison was possible, are ignored.

    Returns
    -------
    ndarray of shape (m,)
        The combined p-values; one for a row without comparisons.

    References
    ----------
    .. [1] Liu, Y. and Xie, J. (2020). Cauchy combination test: a powerful test with analytic
       p-value calculation under arbitrary dependency structures. Journal of the American
       Statistical Association 115(529), 393-402. doi:10.1080/01621459.2018.1554485
    """
    is_used = p_values < 1.0
    # The tangent is zero at a p-value of zero, whose quantile is infinite.
    with np.errstate(divide="ignore"):
        quantiles = np.where(
            is_used, 1.0 / np.tan(np.pi * np.minimum(p_values, _LARGEST_COMBINED)), 0.0
        )
    mean = quantiles.sum(axis=1) / np.maximum(is_used.sum(axis=1), 1)
    # arctan2(1, x) keeps the digits of small p-values, which 1/2 - arctan(x) / pi would lose.
    combined: Float = np.where(is_used.any(axis=1), np.arctan2(1.0, mean) / np.pi, 1.0)
    return combined


def benjamini_hochberg(p_values: Float) -> Float:
    """Return the q-values of p-values, (m,), by the procedure of Benjamini and Hochberg [1]_.

    The q-value of a hypothesis is the smallest false discovery rate at which it is rejected.

    References
    ----------
    .. [1] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical
       and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1),
       289-300. doi:10.1111/j.2517-6161.1995.tb02031.x
    """
    # scipy.stats.false_discovery_control multiplies by m / rank where this divides p * m by the
    # rank: about a third of its results differ in the last bit, so that stored results would not
    # be reproduced exactly.
    order = np.argsort(p_values, kind="stable")
    m = p_values.size
    scaled = p_values[order] * m / np.arange(1, m + 1)
    out = np.empty(m)
    out[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return out
