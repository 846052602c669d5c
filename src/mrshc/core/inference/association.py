"""Which features a partition of the samples explains: tests on ranks, combined and corrected.

Ranks make the test indifferent to the distribution of a feature: under heavy tails the F test on
the values themselves finds what is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.kernels.association import explained_rank_variance

# A p-value near one has a quantile far below zero, which would outvote all others.
_LARGEST = 0.999


def rank_p_values(matrix: CentredMatrix, partitions: Sequence[Labels], indices: Index) -> Float:
    """Return the p-value of each of some features against each partition, (features, partitions).

    One-way analysis of variance on ranks, whose variance is taken to be that of ranks without
    ties: where many samples have the same value, few others would make it too small, and small
    clusters of them significant. Samples with a negative label and missing cells take no part; a
    feature in which nothing can be compared has a p-value of one.
    """
    shares = np.zeros((indices.size, len(partitions)))
    freedom = np.zeros((indices.size, len(partitions), 2), dtype=np.intp)
    groups = np.stack(partitions)
    for which, (some, degrees) in matrix.map_columns(indices, partial(_shares_of, groups=groups)):
        shares[which], freedom[which] = some, degrees
    between, within = np.maximum(freedom[..., 0], 1), np.maximum(freedom[..., 1], 1)
    p_values: Float = betainc(within / 2, between / 2, 1.0 - shares)
    return p_values


def _shares_of(columns: Float, groups: NDArray[np.intp]) -> tuple[Float, NDArray[np.intp]]:
    shares = np.zeros((columns.shape[1], groups.shape[0]))
    freedom = np.zeros((*shares.shape, 2), dtype=np.intp)
    explained_rank_variance(np.ascontiguousarray(columns.T), groups, shares, freedom)
    return shares, freedom


def cauchy_combination(p_values: Float) -> Float:
    """Combine the p-values of each row into one that holds however they depend on each other.

    Liu and Xie (2020): the mean of their Cauchy quantiles is again Cauchy, near enough in the tail
    that matters.
    """
    # Where nothing could be compared, the p-value is one: it has no quantile, and no vote.
    votes = p_values < 1.0
    with np.errstate(divide="ignore"):
        quantiles = np.where(votes, 1.0 / np.tan(np.pi * np.minimum(p_values, _LARGEST)), 0.0)
    mean = quantiles.sum(axis=1) / np.maximum(votes.sum(axis=1), 1)
    combined: Float = np.where(votes.any(axis=1), np.arctan2(1.0, mean) / np.pi, 1.0)
    return combined


def q_values(p_values: Float) -> Float:
    """Return Benjamini and Hochberg's q-values: the false discovery rate at which each passes."""
    # scipy.stats.false_discovery_control multiplies by m / rank where this divides p * m by the
    # rank: about a third of its results differ in the last bit, so that stored results would not
    # be reproduced exactly.
    order = np.argsort(p_values, kind="stable")
    m = p_values.size
    steps = p_values[order] * m / np.arange(1, m + 1)
    out = np.empty(m)
    out[order] = np.minimum(1.0, np.minimum.accumulate(steps[::-1])[::-1])
    return out
