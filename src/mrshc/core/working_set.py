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

from mrshc.core.data.matrix import Centring, DataMatrix, namespace, to_device, to_host

# Features whose slope exceeds this share of a threshold are added with those that exceed it.
_NEAR = 0.97
# Iterates are checked by the product of a near one if the bound for the difference, which is the
# distance times the norm of a column, is at most this share of their threshold.
_SHARE = 0.35
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

    def products(block: Any, start: int) -> np.ndarray:
        return to_host(to_device(left, block) @ centring(block, start))

    return np.concatenate(list(matrix.map(products)), axis=1)


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
    all columns are multiplied with every iterate.
    """

    def __init__(
        self,
        iterates: Iterates,
        is_outside: np.ndarray,
        largest_norm: float,
        centring: Centring,
        matrix: DataMatrix,
    ) -> None:
        self._iterates, self._is_outside, self._centring = iterates, is_outside, centring
        self._n_components = iterates.owners.max(initial=-1) + 1
        if matrix.on_device:
            limits, changes = iterates.thresholds[:, None], iterates.fill_changes[:, None]
            self._parts = [
                [matrix.place(a[i : i + _PRODUCTS]) for a in (iterates.scores, limits, changes)]
                for i in range(0, len(limits), _PRODUCTS)
            ]
            self._find = self._find_on_device
        else:
            reach = _SHARE * iterates.thresholds / largest_norm
            self._groups = _group(iterates.scores, reach)
            self._find = self._find_by_groups

    def __call__(self, block: Any, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features that exceed or nearly exceed a threshold, and what does not hold."""
        xp, centred = namespace(block), self._centring(block, start)
        # A slope changes by at most this times the change of the filled value.
        margins = xp.zeros_like(centred[0, :])
        if self._centring.fill is not None:
            margins = xp.sqrt(xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0))
        is_near, is_exceeded = self._find(centred, margins, slice(start, start + block.shape[1]))
        failed = np.zeros(self._n_components, bool)
        failed[self._iterates.owners[is_exceeded]] = True
        return np.flatnonzero(is_near) + start, failed

    def _find_on_device(self, centred: Any, margins: Any, block: slice) -> tuple[Any, ...]:
        """Return which features are near or above a threshold, and which iterates are exceeded."""
        xp, near, exceeded = namespace(centred), [], []
        is_outside = to_device(self._is_outside[block], centred)
        for scores, limits, changes in self._parts:
            slopes = xp.abs(scores @ centred)
            if self._centring.fill is not None:
                slopes = slopes + changes * margins
            slopes = xp.where(is_outside, slopes, -1.0)
            near.append(xp.any(slopes > _NEAR * limits, axis=0))
            exceeded.append(xp.any(slopes > limits, axis=1))
        return to_host(xp.any(xp.stack(near), axis=0)), to_host(xp.concat(exceeded))

    def _find_by_groups(
        self, centred: np.ndarray, margins: np.ndarray, block: slice
    ) -> tuple[np.ndarray, ...]:
        """Return which features are near or above a threshold, and which iterates are exceeded."""
        scores, thresholds = self._iterates.scores, self._iterates.thresholds
        changes, is_outside = self._iterates.fill_changes, self._is_outside[block]
        is_near, is_exceeded = np.zeros(margins.size, bool), np.zeros(thresholds.size, bool)
        # Single precision is enough, and faster, where only bounds are needed: the rounding error
        # of an inner product is at most that of n + 2 operations times the norms, which have errors
        # themselves.
        narrowed, shifts = centred.astype(np.float32), margins.astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->j", narrowed, narrowed))
        rounding = 2 * (len(centred) + 2) * np.finfo(np.float32).eps
        for first in range(0, len(self._groups), _PRODUCTS):
            groups = self._groups[first : first + _PRODUCTS]
            centres = scores[[members[0] for members, _ in groups]].astype(np.float32)
            large = []
            for (members, radius), bounds in zip(groups, centres @ narrowed, strict=True):
                np.abs(bounds, out=bounds)
                bounds += np.float32(radius + rounding) * norms
                if shifts.any():
                    bounds += np.float32(changes[members].max()) * shifts
                may_exceed = bounds > _NEAR * thresholds[members].min()
                large.append(np.flatnonzero(may_exceed & is_outside))
            used = np.unique(np.concatenate(large))
            rows = np.ascontiguousarray(centred[:, used].T)
            for (members, _), columns in zip(groups, large, strict=True):
                slopes = np.abs(rows[np.searchsorted(used, columns)] @ scores[members].T)
                slopes += margins[columns, None] * changes[members]
                is_near[columns] |= (slopes > _NEAR * thresholds[members]).any(axis=1)
                is_exceeded[members] |= (slopes > thresholds[members]).any(axis=0)
        return is_near, is_exceeded


def _group(iterates: np.ndarray, reach: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return groups of near unit vectors: their positions, the centre first, and their radius."""
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
