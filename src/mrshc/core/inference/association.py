"""Rank tests of the association between features and partitions of the samples.

Because the values are replaced by ranks, the null distribution of the test does not depend on the
distribution of the feature, apart from ties. The p-values of an F test on the values themselves
would not be reliable for heavy-tailed features. In the docstrings, n is the number of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.kernels.association import write_association, write_explained_rank_variance

# Larger p-values are replaced by this value before p-values are combined. The Cauchy quantile of a
# p-value tends to minus infinity as the p-value approaches 1, and could cancel the quantiles of all
# other p-values. The quantile of 0.999 is -318, which cancels the quantile of only one p-value of
# 0.001.
_LARGEST_COMBINED = 0.999

# Largest number of degrees of freedom between clusters for which the F distribution is computed as
# a finite sum. The sum then has at most four terms and is faster than the incomplete beta function.
_MAX_FREEDOM_OF_SUM = 8


def rank_p_values(matrix: CentredMatrix, partitions: Sequence[Labels], *, indices: Index) -> Float:
    """Return p-values for the association of features with each partition of the samples.

    The test is a one-way analysis of variance on ranks. The total variance of the ranks is computed
    as if there were no ties. If the variance were reduced for ties, a few samples that differ from
    many samples with equal values would appear to be significant.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    partitions : sequence of ndarray of shape (n,)
        Cluster labels of the samples, one array for each partition. Samples with a negative label
        are excluded from the test, and so are samples in which the feature is missing.
    indices : ndarray of shape (m,)
        Indices of the features to test.

    Returns
    -------
    ndarray of shape (m, n_partitions)
        The p-values. A p-value is 1 if the feature has non-missing values in fewer than two
        clusters, if it has fewer than two different values, or if no cluster contains more than one
        of its non-missing values.
    """
    p_values = np.empty((indices.size, len(partitions)))
    compute = partial(_block_p_values, groups=np.stack(partitions))
    for positions, block in matrix.map_columns(indices, compute):
        p_values[positions] = block
    return p_values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssociationTests:
    """Tests of m features for association with several partitions of the samples.

    Attributes
    ----------
    p_values : ndarray of shape (m, n_partitions)
        P-values of the rank tests, as returned by `rank_p_values`.
    between : ndarray of shape (m, n_partitions)
        Sums of squares between clusters, in the squared units of the features.
    """

    p_values: Float
    between: Float


def association_tests(
    matrix: CentredMatrix, partitions: NDArray[np.intp], *, indices: Index
) -> AssociationTests:
    """Return tests of the association between features and each partition of the samples.

    All tests need only one pass over the data.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    partitions : ndarray of int of shape (n_partitions, n)
        Cluster labels of the n samples, one row for each partition.
    indices : ndarray of shape (m,)
        Indices of the features to test.
    """
    shape = indices.size, len(partitions)
    p_values, between = np.empty(shape), np.empty(shape)
    compute = partial(column_tests, partitions=partitions)
    for positions, block in matrix.map_columns(indices, compute):
        p_values[positions], between[positions] = block.p_values, block.between
    return AssociationTests(p_values=p_values, between=between)


def column_tests(columns: Float, partitions: NDArray[np.intp]) -> AssociationTests:
    """Return tests of the association between columns in memory and several partitions.

    Parameters
    ----------
    columns : ndarray of shape (n, m)
        Values of m features, with NaN for missing values.
    partitions : ndarray of int of shape (n_partitions, n)
        Cluster labels of the n samples, one row for each partition.
    """
    m, n_partitions = columns.shape[1], len(partitions)
    shares, between = np.empty((m, n_partitions)), np.empty((m, n_partitions))
    freedom = np.empty((m, n_partitions, 2), dtype=np.intp)
    first_groups = np.zeros(n_partitions + 1, dtype=np.intp)
    np.cumsum(partitions.max(axis=1) + 1, out=first_groups[1:])
    write_association(
        np.ascontiguousarray(columns.T),
        np.ascontiguousarray((partitions + first_groups[:-1, None]).T),
        first_groups,
        shares,
        freedom,
        between,
    )
    return AssociationTests(p_values=_p_values(shares, freedom), between=between)


def _block_p_values(columns: Float, groups: NDArray[np.intp]) -> Float:
    """Return the p-values of rank tests of m columns, as an array of shape (m, n_partitions).

    The parameters are those of `_explained_shares`.
    """
    return _p_values(*_explained_shares(columns, groups))


def _p_values(shares: Float, freedom: NDArray[np.intp]) -> Float:
    """Return the p-values for shares of explained rank variance and their degrees of freedom."""
    # Degrees of freedom below one are replaced by one, because the incomplete beta function is not
    # defined for them. The explained share is zero in these cases, so the p-value is 1.
    between, within = np.maximum(freedom[..., 0], 1), np.maximum(freedom[..., 1], 1)
    return f_tail_probabilities(shares, between=between, within=within)


def f_tail_probabilities(
    shares: Float, *, between: NDArray[np.intp], within: NDArray[np.intp]
) -> Float:
    r"""Return upper tail probabilities of F distributions, given shares of explained variance.

    Parameters
    ----------
    shares : ndarray
        Sums of squares between clusters, divided by the total sums of squares.
    between, within : ndarray of int
        Degrees of freedom between and within clusters, at least one, with the shape of `shares`.

    Notes
    -----
    For the share s and the degrees of freedom a between and b within clusters, the probability is
    the incomplete beta function :math:`I_{1 - s}(b / 2, a / 2)`. If a is even, this is the finite
    sum :math:`(1 - s)^{b / 2} \sum_{i < a / 2} (b / 2)_i s^i / i!`, where :math:`(x)_i` is the
    rising factorial. The sum needs much less time.
    """
    is_sum = (between % 2 == 0) & (between <= _MAX_FREEDOM_OF_SUM)
    probabilities = np.empty_like(shares)
    odd = ~is_sum
    probabilities[odd] = betainc(within[odd] / 2, between[odd] / 2, 1.0 - shares[odd])
    s, half = shares[is_sum], within[is_sum] / 2
    n_terms = between[is_sum] // 2
    term, total = np.ones_like(s), np.zeros_like(s)
    for i in range(n_terms.max(initial=0)):
        total += np.where(i < n_terms, term, 0.0)
        term = term * s * ((half + i) / (i + 1))
    # All terms are positive, so there is no cancellation. Rounding may exceed 1 slightly.
    probabilities[is_sum] = np.minimum((1.0 - s) ** half * total, 1.0)
    return probabilities


def _explained_shares(columns: Float, groups: NDArray[np.intp]) -> tuple[Float, NDArray[np.intp]]:
    """Return the share of rank variance that each partition explains, and the degrees of freedom.

    Parameters
    ----------
    columns : ndarray of shape (n, m)
        Values of m features, with NaN for missing values.
    groups : ndarray of int of shape (n_partitions, n)
        Cluster labels of the n samples, one row for each partition.

    Returns
    -------
    shares : ndarray of shape (m, n_partitions)
        Sum of squares of the ranks between clusters, divided by the total sum of squares. The share
        is zero if no test is possible.
    freedom : ndarray of int of shape (m, n_partitions, 2)
        Degrees of freedom between and within clusters.
    """
    shares = np.zeros((columns.shape[1], groups.shape[0]))
    freedom = np.zeros((*shares.shape, 2), dtype=np.intp)
    write_explained_rank_variance(np.ascontiguousarray(columns.T), groups, shares, freedom)
    return shares, freedom


def cauchy_combination(p_values: Float) -> Float:
    """Return one p-value for each row of `p_values`, by the Cauchy combination test [1]_.

    The test statistic is the mean of the Cauchy quantiles of the p-values. Under the null
    hypothesis, its upper tail is approximately that of a Cauchy distribution, whatever the
    dependence between the p-values.

    Parameters
    ----------
    p_values : ndarray of shape (m, k)
        In each of m rows, the k p-values to combine. Values equal to 1 are ignored, since they
        indicate that no test was possible.

    Returns
    -------
    ndarray of shape (m,)
        The combined p-values; 1 for a row in which all p-values are 1.

    References
    ----------
    .. [1] Liu, Y. and Xie, J. (2020). Cauchy combination test: a powerful test with analytic
       p-value calculation under arbitrary dependency structures. Journal of the American
       Statistical Association 115(529), 393-402. doi:10.1080/01621459.2018.1554485
    """
    is_used = p_values < 1.0
    # At a p-value of zero, the tangent is zero and the quantile is infinite, which is correct.
    with np.errstate(divide="ignore"):
        quantiles = np.where(
            is_used, 1.0 / np.tan(np.pi * np.minimum(p_values, _LARGEST_COMBINED)), 0.0
        )
    mean = quantiles.sum(axis=1) / np.maximum(is_used.sum(axis=1), 1)
    # arctan2(1, x) / pi equals 1/2 - arctan(x) / pi, but avoids cancellation for large x, that is,
    # for small p-values.
    combined: Float = np.where(is_used.any(axis=1), np.arctan2(1.0, mean) / np.pi, 1.0)
    return combined


def benjamini_hochberg(p_values: Float) -> Float:
    """Return q-values, computed by the procedure of Benjamini and Hochberg [1]_.

    The q-value of a hypothesis is the smallest false discovery rate at which the hypothesis is
    rejected.

    Parameters
    ----------
    p_values : ndarray of shape (m,)
        P-values of m hypotheses.

    Returns
    -------
    ndarray of shape (m,)
        Q-values in the order of the p-values.

    References
    ----------
    .. [1] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical
       and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1),
       289-300. doi:10.1111/j.2517-6161.1995.tb02031.x
    """
    # scipy.stats.false_discovery_control is not used. It multiplies p by m / rank, whereas this
    # function divides p * m by the rank. About a third of the results would differ in the last bit,
    # so stored results would not be reproduced exactly.
    order = np.argsort(p_values, kind="stable")
    m = p_values.size
    scaled = p_values[order] * m / np.arange(1, m + 1)
    out = np.empty(m)
    out[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return out
