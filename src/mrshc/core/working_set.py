"""Which features outside a working set would have changed the sparse components of its features.

The features that components select are among those of large inner product with the leading singular
vectors or with the scores of similar components. All components are computed on such a working set
in memory. One pass over the data then shows whether another feature would have exceeded the
threshold of an iteration; if one does, it is added, and what it touches is computed again. The
result is the same as with all features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.data.matrix import DataMatrix, namespace, to_device, to_host
from mrshc.core.statistics import Centring

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
        *,
        on_device: bool,
    ) -> None:
        self._iterates, self._is_outside, self._centring = iterates, is_outside, centring
        self._n_components = iterates.owners.max(initial=-1) + 1
        self._find = self._find_on_device if on_device else self._find_by_groups
        if not on_device:
            reach = _SHARE * iterates.thresholds / largest_norm
            self._groups = _group(iterates.scores, reach)

    def __call__(self, block: Any, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features that exceed or nearly exceed a threshold, and what does not hold."""
        xp, centred = namespace(block), self._centring(block, start)
        # A slope changes by at most this times the change of the filled value.
        margins = np.zeros(block.shape[1])
        if self._centring.fill is not None:
            margins = to_host(xp.sqrt(xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0)))
        is_outside = self._is_outside[start : start + block.shape[1]]
        near, failed = np.zeros(block.shape[1], bool), np.zeros(self._n_components, bool)
        for iterates, columns, slopes in self._find(centred, margins):
            used = is_outside[columns]
            iterates, columns, slopes = iterates[used], columns[used], slopes[used]
            near[columns] = True
            exceeds = slopes > self._iterates.thresholds[iterates]
            failed[self._iterates.owners[iterates[exceeds]]] = True
        return np.flatnonzero(near) + start, failed

    def _find_on_device(self, centred: Any, margins: np.ndarray) -> Iterator[Any]:
        """Yield iterates, columns and the slopes that are near or above the thresholds."""
        xp, all_iterates = namespace(centred), self._iterates
        for first in range(0, len(all_iterates.scores), _PRODUCTS):
            part = slice(first, first + _PRODUCTS)
            slopes = xp.abs(to_device(all_iterates.scores[part], centred) @ centred)
            if margins.any():
                changes = to_device(all_iterates.fill_changes[part, None], centred)
                slopes += changes * to_device(margins, centred)
            limits = _NEAR * all_iterates.thresholds[part, None]
            is_near = slopes > to_device(limits, centred)
            iterates, columns = (to_host(index) for index in xp.nonzero(is_near))
            yield first + iterates, columns, to_host(slopes[is_near])

    def _find_by_groups(self, centred: np.ndarray, margins: np.ndarray) -> Iterator[Any]:
        """Yield iterates, columns and the slopes that are near or above the thresholds."""
        scores, thresholds = self._iterates.scores, self._iterates.thresholds
        changes = self._iterates.fill_changes
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
                large.append(np.flatnonzero(bounds > _NEAR * thresholds[members].min()))
            used = np.unique(np.concatenate(large))
            rows = np.ascontiguousarray(centred[:, used].T)
            for (members, _), columns in zip(groups, large, strict=True):
                slopes = np.abs(rows[np.searchsorted(used, columns)] @ scores[members].T)
                slopes += margins[columns, None] * changes[members]
                c, i = np.nonzero(slopes > _NEAR * thresholds[members])
                yield members[i], columns[c], slopes[c, i]


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
