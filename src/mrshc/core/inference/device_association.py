"""Tests of association on a device, such as a GPU, for data without missing values.

The tests are those of :mod:`mrshc.core.inference.association`, written with the operations of the
array API standard, so that they run where the data are. Sums of ranks are exact. Other sums are
added in another order than on the CPU, so p-values may differ in the last digits.

References
----------
Python array API standard, https://data-apis.org/array-api/
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lgamma, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.host_transfer import to_device_of, to_host
from mrshc.core.kernels.p_values import CONVERGED, LARGEST_COMBINED

# Number of values that are processed at once: 256 MB in double precision. Several temporary arrays
# of this size are needed. The number has not been tuned.
_PART_CELLS = 1 << 25
# Number of p-values that are computed at once: 128 MB in double precision. With more of them, a
# device needs fewer calls. The number has not been tuned.
_PART_P_VALUES = 1 << 24
# Number of steps of the continued fraction after which convergence is checked, since a check waits
# for the device.
_CHECK_INTERVAL = 8


class DeviceRanks:
    """Ranks of the samples in each feature, stored on the device.

    The ranks are computed once for each block of columns, since sorting takes most of the time of
    the tests. They need 2 bytes for each value, or 4 bytes if there are more than 32,767 samples.

    Attributes
    ----------
    is_complete : bool
        Whether the ranks of all features are known to be stored.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self._stored: dict[int, Any] = {}

    def __call__(self, block: Any, start: int, xp: Any) -> list[tuple[int, None]]:
        """Compute and store the ranks of a block of columns.

        The arguments are those of a function that is applied to blocks of a pass over the data. The
        result contains the number of columns, without further results.
        """
        width = int(block.shape[1])
        for first, stop in _ranges(0, width, _part_width(block)):
            self._store(block[:, first:stop].T, start + first, xp)
        return [(width, None)]

    def centred(self, part: Any, first: int, xp: Any) -> Any:
        """Return twice the ranks of a part of the data, minus their mean, one row per feature.

        Equal values receive the mean of their ranks (midranks).

        Parameters
        ----------
        part : array of shape (b, n)
            The data, with the features in rows.
        first : int
            Index of the first of these features in the data, by which the ranks are stored.
        xp : module
            Array namespace of the data.
        """
        self._store(part, first, xp)
        return xp.astype(self._stored[first], xp.float64)

    def _store(self, part: Any, first: int, xp: Any) -> None:
        """Compute and store the ranks of a part, unless they are stored."""
        if first not in self._stored:
            n = part.shape[1]
            ranks = _centred_doubled_ranks(part, xp)
            self._stored[first] = xp.astype(ranks, xp.int16 if n <= 1 << 15 else xp.int32)


def _centred_doubled_ranks(values: Any, xp: Any) -> Any:
    """Return twice the midranks of each row, minus twice their mean, as integers."""
    order = xp.argsort(values, axis=1, stable=True)
    # The position in the order, counted from 0, is the number of smaller values and of equal values
    # further to the left.
    positions = _inverse_permutations(order, xp)
    ordered = xp.take_along_axis(values, order, axis=1)
    has_ties = xp.any(ordered[:, 1:] == ordered[:, :-1], axis=1)
    return positions + _positions_from_right(values, positions, has_ties, xp) - values.shape[1] + 1


def _positions_from_right(values: Any, positions: Any, has_ties: Any, xp: Any) -> Any:
    """Return for each value the number of smaller values and of equal values further to the right.

    `positions` are the numbers with equal values further to the left. The two differ only in rows
    with ties, for which `has_ties` is True; sorting takes most of the time, and few rows of
    continuous data have ties.
    """
    [rows] = xp.nonzero(has_ties)
    if rows.shape[0] == 0:
        return positions
    tied = xp.flip(xp.take(values, rows, axis=0), axis=1)
    flipped = xp.argsort(tied, axis=1, stable=True)
    from_right = xp.flip(_inverse_permutations(flipped, xp), axis=1)
    # The standard has no function that writes to rows, so each row is taken from one of two arrays.
    numbers = xp.cumulative_sum(xp.astype(has_ties, xp.int64)) - 1
    here = xp.arange(has_ties.shape[0], dtype=xp.int64, device=values.device)
    sources = xp.where(has_ties, values.shape[0] + numbers, here)
    return xp.take(xp.concat([positions, from_right]), sources, axis=0)


def _inverse_permutations(order: Any, xp: Any) -> Any:
    """Return the inverse of the permutation in each row."""
    if hasattr(order, "scatter"):  # torch: the standard has no function that writes to positions
        places = xp.arange(order.shape[1], dtype=order.dtype, device=order.device)
        return xp.empty_like(order).scatter(1, order, places.expand_as(order))
    return xp.argsort(order, axis=1)


class DeviceTests:
    """Tests of all features for association with the cuts of several trees.

    Parameters
    ----------
    partitions : ndarray of int of shape (n_trees, n_cuts, n)
        Cluster labels of the n samples, numbered from 0, for each cut of each tree.
    ranks : DeviceRanks
        Ranks that have been computed before; those of other features are added.
    """

    def __init__(self, partitions: NDArray[np.intp], ranks: DeviceRanks) -> None:
        n_trees, n_cuts, n = partitions.shape
        self._shape = n_trees, n_cuts
        self._ranks = ranks
        flat = partitions.reshape(-1, n)
        self._n_clusters: Index = flat.max(axis=1) + 1
        # Column g indicates the samples of group g, of the groups of all partitions together.
        self._is_member = np.concatenate(
            [row[:, None] == np.arange(k) for row, k in zip(flat, self._n_clusters, strict=True)],
            axis=1,
        ).astype(np.float64)
        # Row g has an entry in the column of its partition: the reciprocal of the group size.
        self._weights = np.zeros((self._is_member.shape[1], len(flat)))
        partition_of_group = np.repeat(np.arange(len(flat)), self._n_clusters)
        self._weights[np.arange(len(partition_of_group)), partition_of_group] = (
            1.0 / self._is_member.sum(axis=0)
        )

    def __call__(self, block: Any, start: int, xp: Any) -> list[tuple[int, tuple[Float, Float]]]:
        """Return combined p-values and strengths of a block of columns, in parts.

        The arguments are those of a function that is applied to blocks of a pass over the data.
        Each entry is the number b of columns of a part, and two arrays of shape (b, n_trees).
        """
        n = block.shape[0]
        is_member = to_device_of(block, self._is_member, xp)
        weights = to_device_of(block, self._weights, xp)
        n_trees, n_cuts = self._shape
        step = _part_width(block)
        # Ranks are stored by the first column of a part, so all passes have the same parts.
        n_parts = max(_PART_P_VALUES // (step * n_trees * n_cuts), 1)
        out = []
        for first, stop in _ranges(0, block.shape[1], n_parts * step):
            parts = [
                self._explain(block[:, a:b], start + a, xp, is_member=is_member, weights=weights)
                for a, b in _ranges(first, stop, step)
            ]
            shares, between = (xp.concat(arrays) for arrays in zip(*parts, strict=True))
            p_values = _tail_probabilities(shares, self._n_clusters, n, xp)
            combined = _cauchy_combinations(xp.reshape(p_values, (-1, n_trees, n_cuts)), xp)
            strengths = xp.mean(xp.reshape(between, (-1, n_trees, n_cuts)), axis=2)
            out.append(
                (stop - first, (_columns_to_host(combined, xp), _columns_to_host(strengths, xp)))
            )
        return out

    def _explain(
        self, columns: Any, start: int, xp: Any, *, is_member: Any, weights: Any
    ) -> tuple[Any, Any]:
        """Return the shares of the variance of ranks that partitions explain, and sums of squares.

        Parameters
        ----------
        columns : array of shape (n, b)
            Some columns of the data, of which the first one has the index `start`.
        start, xp : int, module
            Index of the first column, and array namespace.
        is_member, weights : array
            The arrays `_is_member` and `_weights` on the device.

        Returns
        -------
        shares : array of shape (b, n_trees * n_cuts)
            Shares of the variance of the ranks.
        between : array of shape (b, n_trees * n_cuts)
            Sums of squares between the clusters.
        """
        n = columns.shape[0]
        # Values in single precision are sorted in less time.
        rank_sums = self._ranks.centred(columns.T, start, xp) @ is_member
        values = xp.astype(columns.T, xp.float64, copy=True)
        values = values - xp.mean(values, axis=1, keepdims=True)
        between = (values @ is_member) ** 2 @ weights
        # The ranks are doubled, so squares are divided by four. The total sum of squares is not
        # reduced for ties, as in the compiled function.
        return rank_sums**2 @ weights / (n * (n * n - 1.0) / 3.0), between


def _part_width(block: Any) -> int:
    """Return the number of columns of a block that are processed at once."""
    return max(_PART_CELLS // int(block.shape[0]), 1)


def _columns_to_host(array: Any, xp: Any) -> Float:
    """Return an array of shape (m, k) in main memory, with contiguous columns.

    The columns are those of different trees, which are used one after another.
    """
    m, k = (int(size) for size in array.shape)
    return to_host(xp.reshape(array.T, (-1,))).reshape(k, m).T


def _ranges(first: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of consecutive ranges of at most `step` numbers, from `first` to `stop`."""
    for start in range(first, stop, step):
        yield start, min(start + step, stop)


def _tail_probabilities(shares: Any, n_clusters: Index, n: int, xp: Any) -> Any:
    """Return tail probabilities of F distributions, given shares of explained variance.

    Partitions with the same formula are processed together, since a device needs about as much time
    for one of them as for all.

    Parameters
    ----------
    shares : array of shape (b, m)
        Shares of the variance of each feature that each of m partitions explains.
    n_clusters : ndarray of int of shape (m,)
        Number of clusters of each partition.
    n : int
        Number of samples.
    xp : module
        Array namespace of `shares`.
    """
    is_inside = (shares > 0.0) & (shares < 1.0)
    inside = xp.where(is_inside, shares, 0.5)  # any value that the functions are defined for
    between = n_clusters - 1
    is_odd = between % 2 == 1
    pieces, places = [], []
    for freedom in np.unique(between[~is_odd]).tolist():
        places.append(np.flatnonzero(between == freedom))
        of_places = xp.take(inside, to_device_of(shares, places[-1], xp), axis=1)
        pieces.append(_finite_sum(of_places, freedom, n - 1 - freedom, xp))
    if is_odd.any():
        places.append(np.flatnonzero(is_odd))
        of_places = xp.take(inside, to_device_of(shares, places[-1], xp), axis=1)
        pieces.append(_incomplete_beta(of_places, between[is_odd], n, xp))
    positions = np.argsort(np.concatenate(places))
    tails = xp.take(xp.concat(pieces, axis=1), to_device_of(shares, positions, xp), axis=1)
    tails = xp.where(tails < 1.0, tails, 1.0)
    at_ends = xp.astype(shares <= 0.0, xp.float64)
    return xp.where(is_inside, tails, at_ends)


def _finite_sum(share: Any, between: int, within: int, xp: Any) -> Any:
    """Return tail probabilities for an even number of degrees of freedom between groups.

    The compiled function of :mod:`mrshc.core.kernels.p_values` has the formula.
    """
    b = 0.5 * within
    term, total = xp.ones_like(share), xp.zeros_like(share)
    for i in range(between // 2):
        total = total + term
        term = term * share * ((b + i) / (i + 1))
    return (1.0 - share) ** b * total


def _incomplete_beta(share: Any, between: Index, n: int, xp: Any) -> Any:
    """Return I_{1 - s}(b, a) for shares s between 0 and 1, and halves a, b of degrees of freedom.

    Each column of `share` has its own degrees of freedom: `between`, and n - 1 - `between`. The
    compiled function of :mod:`mrshc.core.kernels.p_values` has the formulas.
    """
    halves = [(0.5 * k, 0.5 * (n - 1 - k)) for k in between.tolist()]
    log_betas = [lgamma(a) + lgamma(b) - lgamma(a + b) for a, b in halves]
    a, b = (to_device_of(share, np.array(column), xp) for column in zip(*halves, strict=True))
    log_beta = to_device_of(share, np.array(log_betas), xp)
    power = xp.exp(a * xp.log(share) + b * xp.log1p(-share) - log_beta)
    # Below the mean of the beta distribution, the fraction of one argument converges fast, and
    # above the mean, the other one does.
    is_small = 1.0 - share < (b + 1.0) / (a + b + 2.0)
    x = xp.where(is_small, 1.0 - share, share)
    first, second = xp.where(is_small, b, a), xp.where(is_small, a, b)
    tail = power * _beta_fraction(x, first, second, xp) / first
    return xp.where(is_small, tail, xp.where(tail < 1.0, 1.0 - tail, 0.0))


def _beta_fraction(x: Any, p: Any, q: Any, xp: Any) -> Any:
    """Return the continued fraction of the incomplete beta function, as in the compiled function.

    All arrays have the same shape.
    """
    shape = x.shape
    x, p, q = (xp.reshape(array, (-1,)) for array in (x, p, q))
    scale = 1.0 / (1.0 - (p + q) * x / (p + 1.0))
    terms = _FractionTerms(x, p, q, scale, scale, scale)
    return xp.reshape(_continue_fraction(terms, 0, xp), shape)


class _FractionTerms(NamedTuple):
    """Arguments x, p and q of continued fractions, and the state after some of their steps.

    Each field is an array of shape (m,), for m fractions.
    """

    x: Any
    p: Any
    q: Any
    value: Any
    last_numerator: Any
    last_denominator: Any

    def advance(self, m: int) -> _FractionTerms:
        """Return the state after step m, counted from 1."""
        x, p, q, value, last_numerator, last_denominator = self
        even = m * (q - m) * x / ((p + 2 * m - 1.0) * (p + 2 * m))
        odd = -(p + m) * (p + q + m) * x / ((p + 2 * m) * (p + 2 * m + 1.0))
        numerator = value + even * last_numerator
        denominator = 1.0 + even * last_denominator
        scale = 1.0 / (denominator + odd)
        new_value = (numerator + odd * value) * scale
        return _FractionTerms(x, p, q, new_value, numerator * scale, denominator * scale)


def _continue_fraction(terms: _FractionTerms, m: int, xp: Any) -> Any:
    """Return the values of continued fractions, given their state after step m.

    A value stays as it is once it has converged, since rounding could change its last digits for
    ever. Most values converge in a few steps, and a few need many. If at most half of the values
    are left, the further steps are computed for these values only.
    """
    result, is_moving = terms.value, xp.ones_like(terms.x) > 0.0
    while (n_moving := int(xp.sum(xp.astype(is_moving, xp.int64)))) > terms.x.shape[0] // 2:
        for _ in range(_CHECK_INTERVAL):
            m, previous = m + 1, terms.value
            terms = terms.advance(m)
            result = xp.where(is_moving, terms.value, result)
            change = xp.abs(terms.value - previous)
            is_moving = is_moving & (change > CONVERGED * xp.abs(terms.value))
    if n_moving == 0:
        return result
    [moving] = xp.nonzero(is_moving)
    left = _FractionTerms._make(xp.take(array, moving) for array in terms)
    # The standard has no function that writes to positions, so each position is given the number of
    # the value that it receives.
    numbers = xp.cumulative_sum(xp.astype(is_moving, xp.int64)) - 1
    numbers = xp.where(is_moving, numbers, 0)
    return xp.where(is_moving, xp.take(_continue_fraction(left, m, xp), numbers), result)


def _cauchy_combinations(p_values: Any, xp: Any) -> Any:
    """Return the combination of the p-values along the last axis by the Cauchy combination test."""
    is_used = p_values < 1.0
    limited = xp.where(p_values < LARGEST_COMBINED, p_values, LARGEST_COMBINED)
    quantiles = xp.where(limited > 0.0, 1.0 / xp.tan(pi * limited), xp.inf)
    n_used = xp.sum(xp.astype(is_used, xp.float64), axis=-1)
    total = xp.sum(xp.where(is_used, quantiles, 0.0), axis=-1)
    mean = total / xp.where(n_used > 0.0, n_used, 1.0)
    combined = xp.atan2(xp.ones_like(mean), mean) / pi
    return xp.where(n_used > 0.0, combined, 1.0)
