"""Which features outside a working set would have changed the sparse components of its features.

The features that components select are among those of large inner product with the leading singular
vectors or with the scores of similar components. All components are computed on such a working set
in memory. One pass over the data then shows whether another feature would have exceeded the
threshold of an iteration; if one does, it is added, and what it touches is computed again. The
result is the same as with all features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.data.matrix import DataMatrix, namespace, to_device, to_host
from mrshc.core.statistics import Centring

# Features whose slope exceeds this share of a threshold are added with those that exceed it.
_NEAR = 0.97
# Iterates are checked by the product of a near one if the bound for the difference, which is the
# distance times the norm of a column, is at most this share of their threshold.
_SHARE = 0.2
# Iterates are grouped among so many of similar bounds. Their distances, computed from inner
# products, have larger rounding errors than others.
_WINDOW, _ROUNDING = 1_024, 1e-7
# Number of products with a block that are computed at once, which limits the memory.
_PRODUCTS = 256


def largest(products: np.ndarray, count: int) -> np.ndarray:
    """Return the features that are among the `count` largest in any row."""
    return np.unique(np.argpartition(-np.abs(products), count - 1, axis=1)[:, :count])


def multiply(matrix: DataMatrix, centring: Centring, left: np.ndarray) -> np.ndarray:
    """Return the products of all features with the rows of `left`, in one pass."""

    def multiply(block: Any, start: int) -> np.ndarray:
        return to_host(to_device(left, block) @ centring(block, start))

    return np.concatenate(list(matrix.map(multiply)), axis=1)


@dataclass(frozen=True, eq=False)
class Iterates:
    """The iterates of several components, one in each row."""

    scores: np.ndarray  # (m, n), the vectors u
    thresholds: np.ndarray  # (m,), their soft thresholds
    owners: np.ndarray  # (m,), the positions of their components, in increasing order
    fill_changes: np.ndarray  # (m,), by how much the filled value has changed since the start


class ThresholdCheck:
    """Function that finds the features of a block that exceed the threshold of an iterate.

    Outside the working set, the earlier components have no loadings, so the slope of a feature is
    its inner product with u, apart from the filling of missing values.

    Neighbouring iterates share one product: a slope differs by at most the norm of the column times
    the distance from the centre of the group. Only columns that may exceed a threshold by this
    bound are multiplied with every iterate of the group. On a device, where products are cheap,
    each iterate is a group.
    """

    def __init__(
        self,
        iterates: Iterates,
        is_outside: np.ndarray,
        largest_norm: float,
        centring: Centring,
        *,
        is_grouped: bool,
    ) -> None:
        self._iterates, self._thresholds = iterates.scores, iterates.thresholds
        self._owners, self._changes = iterates.owners, iterates.fill_changes
        self._is_outside, self._centring, self._is_grouped = is_outside, centring, is_grouped
        reach = is_grouped * _SHARE * self._thresholds / largest_norm
        self._groups = _group(self._iterates, reach)

    def __call__(self, block: Any, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features that exceed or nearly exceed a threshold, and what does not hold."""
        xp, centred = namespace(block), self._centring(block, start)
        # Single precision is enough, and faster, where only bounds are needed: the rounding error
        # of an inner product is at most that of n + 2 operations times the norms.
        narrow: Any = np.float32 if self._is_grouped else np.float64
        rounding = (len(self._iterates[0]) + 2) * np.finfo(np.float32).eps * self._is_grouped
        narrowed = xp.astype(centred, getattr(xp, narrow.__name__), copy=False)
        norms = xp.sqrt(xp.sum(narrowed * narrowed, axis=0))
        margins = None  # a slope changes by at most this times the change of the filled value
        if self._centring.fill is not None:
            margins = xp.sqrt(xp.sum(xp.astype(xp.isnan(block), narrowed.dtype), axis=0))
        is_outside = to_device(self._is_outside[start : start + block.shape[1]], block)
        near, failed = np.zeros(block.shape[1], dtype=bool), np.zeros(self._owners[-1] + 1, bool)

        def record(iterates: np.ndarray, columns: np.ndarray, slopes: np.ndarray) -> None:
            near[columns] = True
            failed[self._owners[iterates[slopes > self._thresholds[iterates]]]] = True

        for first in range(0, len(self._groups), _PRODUCTS):
            groups = self._groups[first : first + _PRODUCTS]
            centres = np.array([members[0] for members, _ in groups])
            limits = np.array([self._thresholds[members].min() for members, _ in groups])
            slopes = xp.abs(to_device(self._iterates[centres].astype(narrow), block) @ narrowed)
            if margins is not None:
                shifts = np.array([self._changes[members].max() for members, _ in groups])
                slopes += to_device(shifts[:, None].astype(narrow), block) * margins
            radii = np.array([radius for _, radius in groups]) + rounding
            slopes += to_device(radii[:, None].astype(narrow), block) * norms
            limits = to_device(_NEAR * limits[:, None].astype(narrow), block)
            may_exceed = (slopes > limits) & is_outside
            group, column = (to_host(index) for index in xp.nonzero(may_exceed))
            if not self._is_grouped:
                record(centres[group], column, to_host(slopes[may_exceed]))
                continue
            index = np.unique(column)
            part = np.ascontiguousarray(
                to_host(xp.take(centred, to_device(index, block), axis=1)).T
            )
            ends = np.searchsorted(group, np.arange(len(groups) + 1))
            for (members, _), low, high in zip(groups, ends[:-1], ends[1:], strict=True):
                columns = column[low:high]
                slopes = np.abs(part[np.searchsorted(index, columns)] @ self._iterates[members].T)
                if margins is not None:
                    slopes += to_host(margins)[columns, None] * self._changes[members]
                c, i = np.nonzero(slopes > _NEAR * self._thresholds[members])
                record(members[i], columns[c], slopes[c, i])
        return np.flatnonzero(near) + start, failed


def _group(iterates: np.ndarray, reach: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return groups of near unit vectors: their positions, the centre first, and their radius."""
    if not reach.any():
        return [(np.array([i]), 0.0) for i in range(len(iterates))]
    groups = []
    for start in range(0, len(iterates), _WINDOW):
        window = iterates[start : start + _WINDOW]
        squares = np.maximum(2.0 - 2.0 * window @ window.T, 0.0)
        distances = np.sqrt(squares) + _ROUNDING
        np.fill_diagonal(distances, 0.0)
        # The last iterates of a component are where it has converged, so they come first.
        left = np.arange(len(window))[::-1]
        while left.size:
            is_near = distances[left[0], left] <= reach[start + left[0]]
            is_near[0] = True
            members = left[is_near]
            groups.append((start + members, float(distances[left[0], members].max())))
            left = left[~is_near]
    return groups
