"""One-way analysis of variance on ranks: the variance of features that partitions explain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def write_explained_rank_variance(
    features: Float,
    partitions: NDArray[np.intp],
    fractions: Float,
    degrees_of_freedom: NDArray[np.intp],
) -> None:
    """Write the fraction of the sum of squares of ranks between the groups of each partition.

    Parameters
    ----------
    features : array of shape (p, n)
        Features in rows; NaN for missing cells.
    partitions : array of shape (m, n)
        Partitions in rows: the group of each sample, negative for samples to leave out.
    fractions : array of shape (p, m)
        Output. The fraction is zero if there are too few groups, samples or distinct values.
    degrees_of_freedom : array of shape (p, m, 2)
        Output. Degrees of freedom between and within groups.

    Notes
    -----
    The total sum of squares is that of ranks without ties, (n^3 - n) / 12, even where there are
    ties. Ties would reduce it, and a few samples that differ from many equal ones would appear
    significant.
    """
    p, n = features.shape
    n_groups = partitions.max() + 1
    sums, counts = np.empty(n_groups), np.empty(n_groups)
    for j in range(p):
        order = np.argsort(features[j])
        n_observed = n  # argsort puts NaN last, so that observed cells come first
        while n_observed > 0 and np.isnan(features[j, order[n_observed - 1]]):
            n_observed -= 1
        for m in range(partitions.shape[0]):
            groups = partitions[m]
            sums[:] = 0.0
            counts[:] = 0.0
            n_used, start, n_values = 0, 0, 0
            while start < n_observed:
                # Samples with the same value receive the mean of their ranks (midranks). Only the
                # samples of this partition are counted.
                end, n_tied = start, 0
                while end < n_observed and features[j, order[end]] == features[j, order[start]]:
                    n_tied += groups[order[end]] >= 0
                    end += 1
                rank = n_used + 0.5 * (n_tied + 1)
                for i in range(start, end):
                    group = groups[order[i]]
                    if group >= 0:
                        sums[group] += rank
                        counts[group] += 1.0
                n_used += n_tied
                n_values += n_tied > 0
                start = end
            mean = 0.5 * (n_used + 1)  # of the ranks 1, ..., n_used
            between, n_present = 0.0, 0
            for group in range(n_groups):
                if counts[group] > 0:
                    n_present += 1
                    between += counts[group] * (sums[group] / counts[group] - mean) ** 2
            total = n_used * (n_used * n_used - 1.0) / 12.0  # without ties, see Notes
            degrees_of_freedom[j, m, 0] = n_present - 1
            degrees_of_freedom[j, m, 1] = n_used - n_present
            is_testable = n_present > 1 and n_used > n_present and n_values > 1
            # Rounding may raise the ratio above one, where the p-value is not defined.
            fractions[j, m] = min(between / total, 1.0) if is_testable else 0.0
