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

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.device_association import DeviceRanks, DeviceTests
from mrshc.core.inference.p_value_bounds import PValueBounds
from mrshc.core.kernels.association import (
    MAX_COMPARED,
    MIN_DIGIT_RANKED,
    analyse_variance,
    rank_by_comparison,
    rank_by_keys,
    rank_rows,
    write_explained_rank_variance,
    write_sortable_keys,
)
from mrshc.core.kernels.p_values import write_cauchy_combinations, write_f_tail_probabilities


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CombinedTests:
    """Tests of all p features for association with trees, combined over the cuts of each tree.

    Attributes
    ----------
    p_values : ndarray of shape (p, n_trees)
        P-values of the rank tests, combined over the cuts (:func:`cauchy_combination`). NaN for
        p-values that were not computed since they are above a limit.
    strengths : ndarray of shape (p, n_trees)
        Sums of squares between clusters, mean over the cuts. Zero if the p-value was not computed.
    """

    p_values: Float
    strengths: Float


def combined_tests(
    matrix: CentredMatrix,
    partitions: NDArray[np.intp],
    ranks: DeviceRanks,
    *,
    alpha: float = 1.0,
    n_jobs: int | None = None,
) -> CombinedTests:
    """Return tests of the association between all features and the cuts of several trees.

    All tests need only one pass over the data. Data on a device are tested there, unless values are
    missing.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, with n samples and p features.
    partitions : ndarray of int of shape (n_trees, n_cuts, n)
        Cluster labels of the samples, for each cut of each tree, in increasing order of the number
        of clusters.
    ranks : DeviceRanks
        Ranks of data on a device, which are computed in the first call.
    alpha : float, default=1.0
        Limit above which p-values need not be computed, except those that equal 1. With 1, all
        p-values are computed.
    n_jobs : int or None, default=None
        Number of threads that test data in memory. The result does not depend on it.
    """
    # The values of each tree are next to each other, so that they need not be copied later.
    shape = len(partitions), matrix.shape[1]
    p_values, strengths = np.empty(shape).T, np.empty(shape).T
    bounds = PValueBounds(partitions, alpha=alpha) if alpha < 1.0 else None
    compute = partial(_combined_column_tests, partitions=partitions, bounds=bounds)
    on_device = DeviceTests(partitions, ranks)
    for positions, of_block in matrix.map_all_columns(compute, on_device, n_jobs=n_jobs):
        p_values[positions], strengths[positions] = of_block
    return CombinedTests(p_values=p_values, strengths=strengths)


def _combined_column_tests(
    columns: Float, partitions: NDArray[np.intp], bounds: PValueBounds | None
) -> tuple[Float, Float]:
    """Return combined p-values and strengths of m columns, each of shape (m, n_trees).

    The parameters are those of `column_tests` and of `combined_tests`. `bounds` excludes tests
    whose p-values need not be computed; None if all are needed.
    """
    features = np.ascontiguousarray(columns.T)
    ranks = rank_features(features)
    if bounds is None:
        return _combine_cuts(features, ranks, partitions)
    is_needed = bounds.may_be_small(ranks)
    # The bounds are for features without missing values.
    is_needed |= np.isnan(features.sum(axis=1))[:, None]
    p_values, strengths = np.full(is_needed.shape, np.nan), np.zeros(is_needed.shape)
    for tree in range(len(partitions)):
        rows = np.flatnonzero(is_needed[:, tree])
        tested, of_tree = features[rows], slice(tree, tree + 1)
        p_values[rows, of_tree], strengths[rows, of_tree] = _combine_cuts(
            tested, ranks[rows], partitions[of_tree]
        )
    return p_values, strengths


def _combine_cuts(
    features: Float, ranks: Float, partitions: NDArray[np.intp]
) -> tuple[Float, Float]:
    """Return combined p-values and strengths of the rows of `features`, of shape (m, n_trees).

    `ranks` is the output of `rank_features`.
    """
    n_trees, n_cuts, n = partitions.shape
    p_values, between = analyse_variance(features, ranks, partitions.reshape(-1, n))
    combined = cauchy_combination(p_values.reshape(-1, n_cuts)).reshape(-1, n_trees)
    return combined, between.reshape(-1, n_trees, n_cuts).mean(axis=2)


def column_tests(columns: Float, partitions: NDArray[np.intp]) -> AssociationTests:
    """Return tests of the association between columns in memory and several partitions.

    Parameters
    ----------
    columns : ndarray of shape (n, m)
        Values of m features, with NaN for missing values.
    partitions : ndarray of int of shape (n_partitions, n)
        Cluster labels of the n samples, one row for each partition.
    """
    features = np.ascontiguousarray(columns.T)
    p_values, between = analyse_variance(features, rank_features(features), partitions)
    return AssociationTests(p_values=p_values, between=between)


def rank_features(features: Float) -> Float:
    """Return the midranks of the n samples in each row of `features`, of shape (m, n).

    The ranks of missing values (NaN) are not defined.
    """
    n = features.shape[1]
    if n <= MAX_COMPARED:
        return rank_by_comparison(features)
    if n >= MIN_DIGIT_RANKED:
        return rank_rows(features)
    # Numpy sorts integers several times faster than a compiled loop does, as it uses vector
    # instructions.
    keys = np.empty(features.shape, np.uint64)
    write_sortable_keys(features, keys)
    keys.sort(axis=1)
    return rank_by_keys(features, keys)


def _block_p_values(columns: Float, groups: NDArray[np.intp]) -> Float:
    """Return the p-values of rank tests of m columns, as an array of shape (m, n_partitions).

    The parameters are those of `_explained_shares`.
    """
    shares, freedom = _explained_shares(columns, groups)
    p_values = np.empty_like(shares)
    write_f_tail_probabilities(shares, freedom, p_values)
    return p_values


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
    combined = np.empty(len(p_values))
    write_cauchy_combinations(np.ascontiguousarray(p_values), combined)
    return combined


def benjamini_hochberg(p_values: Float, *, n_hypotheses: int | None = None) -> Float:
    """Return q-values, computed by the procedure of Benjamini and Hochberg [1]_.

    The q-value of a hypothesis is the smallest false discovery rate at which the hypothesis is
    rejected.

    Parameters
    ----------
    p_values : ndarray of shape (m,)
        P-values of m hypotheses.
    n_hypotheses : int or None, default=None
        Number of all tested hypotheses, if `p_values` are only the m smallest p-values. None means
        m.

    Returns
    -------
    ndarray of shape (m,)
        Q-values in the order of the p-values. If `p_values` are only the smallest ones, q-values
        that exceed the largest of them are upper limits.

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
    scaled = p_values[order] * (n_hypotheses or m) / np.arange(1, m + 1)
    out = np.empty(m)
    out[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return out
