"""One-way analysis of variance, for many features and several partitions of the samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.p_values import write_f_tail_probabilities
from mrshc.core.kernels.partitions import count_groups
from mrshc.core.kernels.sorting import stable_order

# Up to this number of samples, ranks are computed by comparing all pairs of samples, which is then
# faster than sorting.
MAX_COMPARED = 128

# From this number of samples on, ranks are computed by a sort of the digits. For fewer samples, the
# index of a sample fits into ten bits, and numpy sorts integers of leading bits and index faster.
# It is a power of two, from which the mask of these bits is derived.
MIN_DIGIT_RANKED = 1024

# Number of features that are analysed together, so that the compiler can use vector instructions.
# The number affects only the time.
_STRIP = 32


@jit()
def write_explained_rank_variance(
    features: Float,
    partitions: NDArray[np.intp],
    fractions: Float,
    degrees_of_freedom: NDArray[np.intp],
) -> None:
    """Write the proportion of the rank variance of each feature that each partition explains.

    The proportion is the sum of squares between groups divided by the total sum of squares. Both
    sums are computed from the ranks of the samples in the feature.

    Parameters
    ----------
    features : array of shape (p, n)
        Data with the p features in rows; NaN for missing values.
    partitions : array of shape (m, n)
        The m partitions, in rows: the group of each sample, numbered from 0, or a negative number
        for samples that are excluded from the partition.
    fractions : array of shape (p, m)
        Output. The proportion for each feature and partition. Samples that are excluded from the
        partition, or whose value is missing, are not used. The proportion is set to zero if the
        samples used belong to fewer than two groups, if they have fewer than two distinct values,
        or if each group contains only one sample.
    degrees_of_freedom : array of shape (p, m, 2)
        Output. Degrees of freedom between groups and within groups.

    Notes
    -----
    The total sum of squares is always that of N distinct ranks, (N^3 - N) / 12, where N is the
    number of samples used. The sum is not reduced for ties. With a reduced sum, a feature could
    appear significant if most of its values are equal and only a few values differ.
    """
    p, n = features.shape
    n_groups = 0
    for m in range(partitions.shape[0]):
        n_groups = max(n_groups, count_groups(partitions[m]))
    sums, counts = np.empty(n_groups), np.empty(n_groups)
    for j in range(p):
        order = stable_order(features[j])
        n_observed = n  # NaN come last, so the first n_observed values are not missing
        while n_observed > 0 and np.isnan(features[j, order[n_observed - 1]]):
            n_observed -= 1
        for m in range(partitions.shape[0]):
            groups = partitions[m]
            sums[:] = 0.0
            counts[:] = 0.0
            n_used, start, n_values = 0, 0, 0
            while start < n_observed:
                # Samples with the same value receive the mean of their ranks (midranks). Only
                # samples that are not excluded from this partition are ranked.
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
            mean = 0.5 * (n_used + 1)  # mean of the ranks 1, ..., n_used
            between, n_present = 0.0, 0
            for group in range(n_groups):
                if counts[group] > 0:
                    n_present += 1
                    between += counts[group] * (sums[group] / counts[group] - mean) ** 2
            total = n_used * (n_used * n_used - 1.0) / 12.0  # not reduced for ties, see Notes
            degrees_of_freedom[j, m, 0] = n_present - 1
            degrees_of_freedom[j, m, 1] = n_used - n_present
            is_testable = n_present > 1 and n_used > n_present and n_values > 1
            # Rounding may make the ratio larger than one, for which no p-value is defined.
            fractions[j, m] = min(between / total, 1.0) if is_testable else 0.0


@jit()
def analyse_variance(features: Float, ranks: Float, partitions: Index) -> tuple[Float, Float]:
    """Return an analysis of variance of each feature, on ranks and on values.

    Parameters
    ----------
    features : array of shape (p, n)
        Data with the p features in rows; NaN for missing values.
    ranks : array of shape (p, n)
        The ranks of the values of each feature, as `rank_rows` returns them.
    partitions : array of int of shape (m, n)
        The group of each sample, numbered from 0, in each of the m partitions. The function is
        fastest if successive partitions are cuts of a tree into increasing numbers of groups.

    Returns
    -------
    p_values : array of shape (p, m)
        P-values of the F tests on ranks; 1 if no test is possible.
    between : array of shape (p, m)
        Sums of squares of the values between groups, as in `write_association`.
    """
    p, (m, n) = features.shape[0], partitions.shape
    groups, first_groups = np.empty((n, m), np.intp), np.empty(m + 1, np.intp)
    first_groups[0] = 0
    for k in range(m):
        for i in range(n):
            groups[i, k] = partitions[k, i] + first_groups[k]
        first_groups[k + 1] = first_groups[k] + count_groups(partitions[k])
    fractions, freedom = np.empty((p, m)), np.empty((p, m, 2), np.intp)
    p_values, between = np.empty((p, m)), np.empty((p, m))
    write_association(features, ranks, groups, first_groups, fractions, freedom, between)
    write_f_tail_probabilities(fractions, freedom, p_values)
    return p_values, between


@jit()
def write_association(
    features: Float,
    ranks: Float,
    groups: NDArray[np.intp],
    first_groups: NDArray[np.intp],
    fractions: Float,
    degrees_of_freedom: NDArray[np.intp],
    between: Float,
) -> None:
    """Write an analysis of variance of each feature, on ranks and on values, for many partitions.

    The function is faster than `write_explained_rank_variance`, but no samples can be excluded from
    a partition. Each feature is ranked once for all partitions. If each group of a partition is the
    union of groups of the next partition, as for successive cuts of a tree, its sums are computed
    from those of the next partition.

    Parameters
    ----------
    features, ranks : arrays of shape (p, n)
        Data as in `analyse_variance`.
    groups : array of shape (n, m)
        The group of each sample in each of the m partitions. The groups of all partitions together
        are numbered 0, 1, ..., in the order of the partitions.
    first_groups : array of shape (m + 1,)
        Number of the first group of each partition, followed by the number of all groups.
    fractions : array of shape (p, m)
        Output. Proportion of the rank variance between groups, as in
        `write_explained_rank_variance`.
    degrees_of_freedom : array of shape (p, m, 2)
        Output. Degrees of freedom between groups and within groups.
    between : array of shape (p, m)
        Output. Sum of squares of the values between groups, in the squared unit of the feature. The
        sum over the n_observed values that are not missing is multiplied by n / n_observed, so that
        features with many and with few missing values are comparable. The output is zero if all
        values are missing.
    """
    p, n = features.shape
    n_groups = first_groups[-1]
    is_union, containing = _find_unions(groups, first_groups)
    summed_groups = _groups_without_unions(groups, is_union)
    # Values, ranks, and whether the value is not missing. One loop adds all three, so that the code
    # of the sums is compiled once.
    summands, sums = np.empty((3, n, _STRIP)), np.empty((3, n_groups, _STRIP))
    n_observed, has_counts = np.empty(_STRIP), False
    for start in range(0, p, _STRIP):
        strip = slice(start, min(start + _STRIP, p))
        _read_strip(features[strip], summands[0])
        _read_strip(ranks[strip], summands[1])
        is_complete = _centre_strip(summands[0], summands[1], summands[2], n_observed)
        # The numbers of samples are the same for all strips without missing values.
        for k in range(2 if is_complete and has_counts else 3):
            _write_sums(summands[k], summed_groups, containing, sums[k])
        has_counts = is_complete
        for m in range(first_groups.size - 1):
            _write_strip(
                sums[:, first_groups[m] : first_groups[m + 1]],
                n_observed,
                n,
                fractions[strip, m],
                degrees_of_freedom[strip, m],
                between[strip, m],
            )


@jit()
def _read_strip(rows: Float, strip: Float) -> None:
    """Write at most `_STRIP` rows to the columns of `strip`, and zeros to further columns."""
    if rows.shape[0] < _STRIP:
        strip[:] = 0.0
    for k in range(rows.shape[0]):
        row = rows[k]
        for i in range(row.size):
            strip[i, k] = row[i]


@jit(error_model="numpy")
def _centre_strip(values: Float, ranked: Float, observed: Float, n_observed: Float) -> bool:
    """Subtract the means from values and ranks of the features of a strip, in place.

    Sums of deviations from the mean are exact for ranks. For values, a large mean would otherwise
    cancel the digits of the differences.

    Parameters
    ----------
    values, ranked : arrays of shape (n, _STRIP)
        The values, with NaN for missing values, and the ranks. Missing values become zero.
    observed : array of shape (n, _STRIP)
        Output. One if the value is not missing, and zero otherwise.
    n_observed : array of shape (_STRIP,)
        Output. Number of values that are not missing.

    Returns
    -------
    bool
        Whether no value is missing.
    """
    n = values.shape[0]
    means, mean_ranks = np.zeros(_STRIP), np.empty(_STRIP)
    n_observed[:] = 0.0
    for i in range(n):
        for k in range(n_observed.size):
            is_missing = np.isnan(values[i, k])
            observed[i, k] = 0.0 if is_missing else 1.0
            n_observed[k] += observed[i, k]
            means[k] += 0.0 if is_missing else values[i, k]
    is_complete = True
    for k in range(_STRIP):
        means[k] = means[k] / n_observed[k] if n_observed[k] > 0.0 else 0.0
        mean_ranks[k] = 0.5 * (n_observed[k] + 1.0)
        is_complete &= n_observed[k] == n
    for i in range(n):
        for k in range(n_observed.size):
            values[i, k] = values[i, k] - means[k] if observed[i, k] > 0.0 else 0.0
            ranked[i, k] = ranked[i, k] - mean_ranks[k] if observed[i, k] > 0.0 else 0.0
    return is_complete


@jit()
def _write_sums(values: Float, summed_groups: Index, containing: Index, sums: Float) -> None:
    """Write the sums of the values of each group, for the features of a strip.

    Parameters
    ----------
    values : array of shape (n, _STRIP)
        The values that are added.
    summed_groups, containing : arrays
        Results of `_groups_without_unions` and `_find_unions`.
    sums : array of shape (n_groups, _STRIP)
        Output.
    """
    sums[:] = 0.0
    for i in range(values.shape[0]):
        row = values[i]
        for group in summed_groups[i]:
            of_group = sums[group]
            for k in range(row.size):
                of_group[k] += row[k]
    # The groups of later partitions are added first, so the sums that are added are complete.
    for part in range(sums.shape[0] - 1, -1, -1):
        if containing[part] >= 0:
            union, of_part = sums[containing[part]], sums[part]
            for k in range(union.size):
                union[k] += of_part[k]


@jit(error_model="numpy")
def _write_strip(
    sums: Float,
    n_observed: Float,
    n: int,
    fractions: Float,
    degrees_of_freedom: NDArray[np.intp],
    between: Float,
) -> None:
    """Write the analysis of variance of the features of a strip for one partition.

    Parameters
    ----------
    sums : array of shape (3, n_groups, _STRIP)
        For each group, sums of values and of ranks, minus their means, and numbers of samples.
    n_observed : array of shape (_STRIP,)
        Numbers of samples without missing values.
    n : int
        Number of samples.
    fractions, degrees_of_freedom, between : arrays
        Output, as in `write_association`, with one row for each feature of the strip.
    """
    squares, n_present = np.zeros((2, _STRIP)), np.zeros(_STRIP)
    for group in range(sums.shape[1]):
        counts = sums[2, group]
        for kind in range(2):
            _add_squares(sums[kind, group], counts, squares[kind])
        for k in range(n_present.size):
            n_present[k] += min(counts[k], 1.0)
    for k in range(fractions.size):
        n_used = n_observed[k]
        degrees_of_freedom[k, 0] = np.intp(n_present[k]) - 1
        degrees_of_freedom[k, 1] = np.intp(n_used - n_present[k])
        # If all values are equal, the sum of squares of the ranks is zero.
        is_testable = n_present[k] > 1.0 and n_used > n_present[k]
        # The sum is not reduced for ties, see `write_explained_rank_variance`.
        total = n_used * (n_used * n_used - 1.0) / 12.0
        # Rounding may make the ratio larger than one, for which no p-value is defined.
        fractions[k] = min(squares[1, k] / total, 1.0) if is_testable else 0.0
        between[k] = squares[0, k] * n / n_used if n_used > 0.0 else 0.0


@jit(error_model="numpy")
def _add_squares(sums: Float, counts: Float, squares: Float) -> None:
    """Add the squares of the sums of a group, divided by the numbers of samples, to `squares`."""
    for k in range(squares.size):
        # The sum of a group without samples is zero.
        squares[k] += sums[k] * sums[k] / max(counts[k], 1.0)


@jit()
def _groups_without_unions(groups: Index, is_union: Mask) -> Index:
    """Return the columns of `groups` of the partitions that do not consist of unions."""
    out = np.empty((groups.shape[0], is_union.size), np.intp)
    n_kept = 0
    for m in range(is_union.size):
        if not is_union[m]:
            for i in range(groups.shape[0]):
                out[i, n_kept] = groups[i, m]
            n_kept += 1
    return out[:, :n_kept].copy()


@jit()
def _find_unions(groups: Index, first_groups: Index) -> tuple[Mask, Index]:
    """Return which partitions consist of unions of the groups of the next partition.

    The parameters are those of `write_association`.

    Returns
    -------
    is_union : array of bool of shape (m,)
        Whether each group of the partition is the union of groups of the next partition.
    containing : array of int of shape (first_groups[-1],)
        For each group, the union in the previous partition that contains the group; -1 if the
        previous partition does not consist of such unions, or if the group is empty.
    """
    n, n_partitions = groups.shape
    is_union, containing = np.empty(n_partitions, np.bool_), np.empty(first_groups[-1], np.intp)
    is_union[:] = False
    containing[:] = -1
    for m in range(n_partitions - 1):
        is_union[m] = True
        for i in range(n):
            group, union = groups[i, m + 1], groups[i, m]
            if containing[group] < 0:
                containing[group] = union
            is_union[m] &= containing[group] == union
        if not is_union[m]:
            containing[first_groups[m + 1] : first_groups[m + 2]] = -1
    return is_union, containing


@jit()
def rank_rows(features: Float) -> Float:
    """Return the ranks 1, 2, ... of the values of many samples, as an array of shape (p, n).

    The ranks are computed for each row of `features`, of shape (p, n). Equal values receive the
    mean of their ranks (midranks). The ranks of missing values (NaN) are not defined.
    """
    ranks = np.empty(features.shape)
    for j in range(features.shape[0]):
        order = stable_order(features[j])
        _write_midranks(features[j][order], order, ranks[j])
    return ranks


@jit()
def write_sortable_keys(features: Float, keys: NDArray[np.uint64]) -> None:
    """Write integers from whose order the ranks of the values of each feature follow.

    A key consists of the leading bits of a value, as an integer that increases with the value, and
    of the index of the sample in the last bits. All keys of a feature are different, and keys of
    missing values (NaN) are the largest.

    Parameters
    ----------
    features : array of shape (p, n)
        Data with the p features in rows. There are fewer than `MIN_DIGIT_RANKED` samples.
    keys : array of shape (p, n)
        Output. The keys, in the order of the samples.
    """
    sign, index_bits = np.uint64(1) << np.uint64(63), np.uint64(MIN_DIGIT_RANKED - 1)
    ones = ~np.uint64(0)
    for j in range(features.shape[0]):
        values, of_feature = features[j], keys[j]
        for i in range(values.size):
            # Adding zero turns a negative zero, which equals zero, into zero.
            key = np.float64(values[i] + 0.0).view(np.uint64)
            # The bits of a positive number increase with the number, those of a negative one
            # decrease. There are no branches, so that the compiler can vectorise the loop.
            key ^= ones if key & sign else sign
            key = ones if np.isnan(values[i]) else key
            of_feature[i] = (key & ~index_bits) | np.uint64(i)


@jit()
def rank_by_keys(features: Float, keys: NDArray[np.uint64]) -> Float:
    """Return the ranks of `rank_rows`, given the keys of each feature in increasing order.

    The parameters are those of `write_sortable_keys`.
    """
    n, index_bits = features.shape[1], np.uint64(MIN_DIGIT_RANKED - 1)
    ranks, order, ordered = np.empty(features.shape), np.empty(n, np.intp), np.empty(n)
    for j in range(features.shape[0]):
        values = features[j]
        n_steps = 0
        for k in range(n):
            order[k] = np.intp(keys[j, k] & index_bits)
            ordered[k] = values[order[k]]
            n_steps += k == 0 or ordered[k - 1] < ordered[k]
        if n_steps == n:
            for k in range(n):
                ranks[j, order[k]] = k + 1.0
        else:
            _complete_order(ordered, order)
            _write_midranks(ordered, order, ranks[j])
    return ranks


@jit()
def _complete_order(ordered: Float, order: Index) -> None:
    """Sort values that are in the order of their leading bits, and their indices, in place."""
    for k in range(1, ordered.size):
        value, index, place = ordered[k], order[k], k
        # Values that agree in the leading bits are rare and next to each other.
        while place > 0 and ordered[place - 1] > value:
            ordered[place], order[place] = ordered[place - 1], order[place - 1]
            place -= 1
        ordered[place], order[place] = value, index


@jit()
def _write_midranks(ordered: Float, order: Index, ranks: Float) -> None:
    """Write the rank of each sample, given the values in increasing order and their indices."""
    start = 0
    while start < order.size:
        end = start + 1
        while end < order.size and ordered[end] == ordered[start]:
            end += 1
        for k in range(start, end):
            ranks[order[k]] = 0.5 * (start + end + 1)
        start = end


@jit()
def rank_by_comparison(features: Float) -> Float:
    """Return the ranks of `rank_rows` by comparing all pairs of samples.

    This takes less time than sorting if there are at most `MAX_COMPARED` samples.
    """
    p, n = features.shape
    ranks = np.empty((p, n))
    for j in range(p):
        values = features[j]
        for i in range(n):
            # Twice the number of smaller values, plus the number of equal values.
            doubled = 0
            for k in range(n):
                doubled += int(values[k] < values[i]) + int(values[k] <= values[i])
            ranks[j, i] = 0.5 * (doubled + 1)
    return ranks
