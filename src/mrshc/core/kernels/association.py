"""Analysis of variance on ranks: the variance of features that partitions explain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit


@jit()
def explained_rank_variance(
    features: Float, partitions: NDArray[np.intp], shares: Float, freedom: NDArray[np.intp]
) -> None:
    """Write the fraction of the sum of squares of ranks that lies between groups.

    `features` holds features in rows, NaN for missing cells; `partitions` the group of each sample
    in rows, negative for samples to leave out. `shares` is (features, partitions); `freedom` has
    the degrees of freedom between and within groups in its last axis. The share is zero where
    there are too few groups, samples or different values. The total sum of squares is that of ranks
    without ties.
    """
    p, n = features.shape
    n_groups = partitions.max() + 1
    sums, counts = np.empty(n_groups), np.empty(n_groups)
    for j in range(p):
        order = np.argsort(features[j])
        n_observed = n
        while n_observed > 0 and np.isnan(features[j, order[n_observed - 1]]):  # NaN come last
            n_observed -= 1
        for m in range(partitions.shape[0]):
            groups = partitions[m]
            sums[:] = 0.0
            counts[:] = 0.0
            n_used, start, n_values = 0, 0, 0
            while start < n_observed:
                # Samples with the same value share the mean of their ranks.
                end, tied = start, 0
                while end < n_observed and features[j, order[end]] == features[j, order[start]]:
                    tied += groups[order[end]] >= 0
                    end += 1
                rank = n_used + 0.5 * (tied + 1)
                for i in range(start, end):
                    group = groups[order[i]]
                    if group >= 0:
                        sums[group] += rank
                        counts[group] += 1.0
                n_used += tied
                n_values += tied > 0
                start = end
            mean = 0.5 * (n_used + 1)
            between, n_present = 0.0, 0
            for group in range(n_groups):
                if counts[group] > 0:
                    n_present += 1
                    between += counts[group] * (sums[group] / counts[group] - mean) ** 2
            total = n_used * (n_used * n_used - 1.0) / 12.0  # without ties
            freedom[j, m, 0] = n_present - 1
            freedom[j, m, 1] = n_used - n_present
            comparable = n_present > 1 and n_used > n_present and n_values > 1
            shares[j, m] = min(between / total, 1.0) if comparable else 0.0
