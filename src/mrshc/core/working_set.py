"""Sparse components of many features, computed on a few thousand of them and then checked.

The features that components select are among those of large inner product with the leading singular
vectors or with the scores of similar components. All components are computed on such a working set
in memory. One pass over the data then shows whether another feature would have exceeded the
threshold of an iteration; if one does, it is added, and what it touches is computed again. The
result is the same as with all features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mrshc.core import parallel
from mrshc.core.data.device import namespace, to_device, to_host
from mrshc.core.data.matrix import DataMatrix
from mrshc.core.sparse_components import Columns, ComponentPath, Components, FeatureSet, Starts
from mrshc.core.statistics import Centring

# Data with no more values are computed on with all features: 268 MB in double precision if they are
# in memory, and 8 MB if they are not.
_ALL_VALUES, _ALL_STORED = 1 << 25, 1 << 20
# The working set begins with this multiple of the largest number of features, and these additional
# ones, for each vector by which features are chosen. These numbers and the next affect the number
# of passes and the time, but not the result.
_PER_FEATURE, _ADDITIONAL = 2, 500
# Features whose slope exceeds this share of a threshold are added with those that exceed it.
_NEAR = 0.97
# Eigenvectors of a larger matrix are computed by Lanczos iterations (11 to .5 s for 5,000 samples).
_MANY_SAMPLES = 2_000
# Iterates are checked by the product of a near one if the bound for the difference, which is the
# distance times the norm of a column, is at most this share of their threshold.
_SHARE = 0.2
# Iterates are grouped among so many of similar bounds. Their distances, computed from inner
# products, have larger rounding errors than others.
_WINDOW, _ROUNDING = 1_024, 1e-7
# Number of products with a block that are computed at once, which limits the memory.
_PRODUCTS = 256


def component_path(
    matrix: DataMatrix, centring: Centring, *, rank: int, max_features: int, **options: Any
) -> ComponentPath:
    """Return the components of the data, for up to `rank` components and `max_features` features.

    `options` are the other parameters of :class:`ComponentPath`. The data are read in three passes,
    or once if all features are in memory anyway.
    """
    n, p = matrix.shape
    if n * p <= (_ALL_VALUES if matrix.in_memory else _ALL_STORED) or p <= n:
        features = np.arange(p)
        starts = starts_in_memory(centring.columns(matrix, features), centring, rank)
        return ComponentPath(_columns(matrix, centring, features), starts, centring, **options)
    gram = np.zeros((n, n))
    for part in matrix.map(lambda block, start: _gram(centring(block, start))):
        gram += part
    starts = _starts(matrix, centring, _leading_eigenvectors(gram, rank))
    return WorkingSetPath(matrix, starts, centring, max_features=max_features, **options)


class WorkingSetPath(ComponentPath):
    """Sparse components of all features, computed on a few of them in memory."""

    def __init__(
        self,
        matrix: DataMatrix,
        starts: Starts,
        centring: Centring,
        *,
        max_features: int,
        **options: Any,
    ) -> None:
        count = min(_PER_FEATURE * max_features + _ADDITIONAL, matrix.shape[1])
        self._matrix = matrix
        features = _largest(starts.vectors, count)
        super().__init__(_columns(matrix, centring, features), starts, centring, **options)
        self.n_kept = self._max_iter
        # Sparse components are not singular vectors, so features are chosen by the products with
        # the scores of a few sparse components, too. Without this, most components fail.
        pilots = [max(np.sqrt(max_features / share), 1.0) for share in (16, 4, 2)]
        rank = len(starts.vectors)
        scores = np.concatenate([self.solve(bound, rank).scores for bound in pilots])
        self.bounds.clear()
        self._add(_largest(_multiply(matrix, centring, scores), count))

    def _add(self, features: np.ndarray) -> None:
        """Compute on further features, too."""
        old = self._columns
        new = np.setdiff1d(features, old.features)
        added = _columns(self._matrix, self._centring, new)
        self.set_columns(Columns.merge(old, added))

    def check(self) -> bool:
        # Outside the working set, the earlier components have no loadings, so the slope of a
        # feature is its inner product with u, apart from the filling of missing values.
        # Neighbours in this order have similar iterates.
        unchecked = sorted(
            (k, bound)
            for bound, found in self.bounds.items()
            for k in range(found.n_checked, found.n_known)
        )
        if not unchecked:
            return True
        components = [(self.bounds[bound], k) for k, bound in unchecked]
        check = _Check(components, self._columns, self._matrix, self._centring)
        near, exceeded = zip(*self._matrix.map(check), strict=True)
        failed = [unchecked[i] for i in np.flatnonzero(np.logical_or.reduce(exceeded))]
        for found in self.bounds.values():
            found.n_checked = found.n_known
        for k, bound in failed[::-1]:
            if k < self.bounds[bound].n_known:
                self.bounds[bound].forget(k)
        if failed:
            self._add(np.concatenate(near))
        return not failed


def _largest(products: np.ndarray, count: int) -> np.ndarray:
    """Return the features that are among the `count` largest in any row."""
    largest = np.argpartition(-np.abs(products), count - 1, axis=1)[:, :count]
    return np.unique(largest)


def _columns(matrix: DataMatrix, centring: Centring, features: np.ndarray) -> Columns:
    """Return centred columns in memory."""
    values = np.ascontiguousarray(centring.columns(matrix, features).T)
    return Columns.fill(features, values, centring.fill)


def _multiply(matrix: DataMatrix, centring: Centring, left: np.ndarray) -> np.ndarray:
    """Return the products of all features with the rows of `left`, in one pass."""

    def multiply(block: Any, start: int) -> np.ndarray:
        return to_host(to_device(left, block) @ centring(block, start))

    return np.concatenate(list(matrix.map(multiply)), axis=1)


def _gram(centred: Any) -> np.ndarray:
    return to_host(centred @ centred.T)


def starts_in_memory(columns: np.ndarray, centring: Centring, rank: int) -> Starts:
    """Return the leading right singular vectors of columns in memory."""
    missing = np.isnan(columns)
    X = np.where(missing, centring.fill, columns) if centring.fill is not None else columns
    if X.shape[1] > X.shape[0]:
        vectors = _leading_eigenvectors(X @ X.T, rank) @ X
    else:
        vectors = _leading_eigenvectors(X.T @ X, rank)
    lengths = np.linalg.norm(vectors, axis=1)
    vectors /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return Starts(vectors, vectors @ X.T, vectors @ missing.T).within_rank()


def _leading_eigenvectors(symmetric: np.ndarray, count: int) -> np.ndarray:
    """Return the eigenvectors of the `count` largest eigenvalues, one in each row."""
    n = len(symmetric)
    if n >= _MANY_SAMPLES:
        # A fixed start with different entries, so that the result is reproducible and the start is
        # not orthogonal to the eigenvectors of symmetric designs.
        start = np.random.default_rng(0).standard_normal(n)
        try:
            vectors = eigsh(symmetric, count, which="LA", v0=start, ncv=60, tol=0.0)[1]
            return np.ascontiguousarray(vectors[:, ::-1].T)
        except ArpackError:
            pass
    return np.ascontiguousarray(np.linalg.eigh(symmetric)[1][:, : -count - 1 : -1].T)


def _starts(matrix: DataMatrix, centring: Centring, left: np.ndarray) -> Starts:
    """Return the right singular vectors, given the left ones, in one pass."""

    def multiply(block: Any, start: int) -> tuple[np.ndarray, ...]:
        xp, centred = namespace(block), centring(block, start)
        products = to_device(left, block) @ centred
        at_gaps: Any = np.zeros(left.shape)
        if centring.fill is not None:
            at_gaps = to_host(products @ xp.astype(xp.isnan(block), xp.float64).T)
        return to_host(products), to_host(products @ centred.T), at_gaps

    products, images, at_gaps = zip(*matrix.map(multiply), strict=True)
    vectors = np.concatenate(products, axis=1)
    lengths = np.linalg.norm(vectors, axis=1)
    unit = np.where(lengths > 0, lengths, 1.0)[:, None]
    starts = Starts(vectors / unit, np.sum(images, axis=0) / unit, np.sum(at_gaps, axis=0) / unit)
    return starts.within_rank()


def search_grid(
    path: ComponentPath, grid: list[tuple[int, int]], *, tolerance: int, smallest: int
) -> list[FeatureSet]:
    """Return the feature set of each pair (q, rank), by Algorithm 1.

    Searches are repeated until no feature outside the working set has to be added; the components
    that passed the check are not computed again.
    """
    # Neighbours in the grid need the same bounds, and would wait for each other in two threads.
    half = (len(grid) + 1) // 2
    order = sorted(range(len(grid)), key=lambda i: i % half)

    def search(i: int) -> FeatureSet:
        q, rank = grid[i]
        return path.search(q, rank, tolerance=tolerance, smallest=smallest)

    while True:
        found = dict(zip(order, parallel.run(search, order), strict=True))
        if path.check():
            return [found[i] for i in range(len(grid))]


class _Check:
    """Function that finds the features of a block that exceed the threshold of an iterate.

    Neighbouring iterates share one product: a slope differs by at most the norm of the column times
    the distance from the centre of the group. Only columns that may exceed a threshold by this
    bound are multiplied with every iterate of the group. On a device, where products are cheap,
    each iterate is a group.
    """

    def __init__(
        self,
        components: list[tuple[Components, int]],
        columns: Columns,
        matrix: DataMatrix,
        centring: Centring,
    ) -> None:
        self._centring, self._n_owners = centring, len(components)
        used = [found.thresholds[k] >= 0.0 for found, k in components]
        parts = list(zip(components, used, strict=True))
        self._iterates = np.concatenate([found.iterates[k][mask] for (found, k), mask in parts])
        self._thresholds = np.concatenate([found.thresholds[k][mask] for (found, k), mask in parts])
        self._owners = np.repeat(np.arange(len(parts)), [mask.sum() for mask in used])
        self._changes = np.abs([found.fill_changes[k] for found, k in components])[self._owners]
        self._is_outside = np.ones(matrix.shape[1], dtype=bool)
        self._is_outside[columns.features] = False
        self._is_grouped = not matrix.on_device
        reach = self._is_grouped * _SHARE * self._thresholds / columns.norms.max()
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
        near, failed = np.zeros(block.shape[1], dtype=bool), np.zeros(self._n_owners, dtype=bool)

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
