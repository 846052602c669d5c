"""Sparse components of many features, computed on a few thousand of them and then checked.

The features that a component selects are among those of large inner product with a leading singular
vector or with the scores of similar components. The components under an L1 bound are computed on
such a working set in memory. One pass over the data then shows for all bounds whether another
feature would have exceeded the threshold of an iteration; if one does, it is added to the working
set of this bound, and what it touches is computed again. The result is the same as with all
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mrshc.core import parallel
from mrshc.core.data.device import DeviceMatrix, namespace, to_device, to_host
from mrshc.core.data.matrix import DataMatrix
from mrshc.core.sparse_components import Columns, ComponentPath, Components, FeatureSet, Starts
from mrshc.core.statistics import Centring

# Data with no more values are computed on with all features: 268 MB in double precision if they are
# in memory, and 8 MB if they are not.
_ALL_VALUES, _ALL_STORED = 1 << 25, 1 << 20
# Components under an L1 bound begin with this multiple of the squared bound, and these additional
# features, for each vector by which features are chosen. In noise, a component has about twice the
# squared bound. These numbers and the next affect the number of passes and the time, but not the
# result.
_PER_SQUARED_BOUND, _ADDITIONAL = 3, 200
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
        columns = centring.columns(matrix, features)
        starts = starts_in_memory(columns, centring, rank)
        F = Columns.fill(features, np.ascontiguousarray(columns.T), centring.fill)
        return ComponentPath(F, starts, centring, **options)
    gram = np.zeros((n, n))
    for part in matrix.map(lambda block, start: _gram(centring(block, start))):
        gram += part
    starts = _starts(matrix, centring, _leading_eigenvectors(gram, rank))
    return WorkingSetPath(matrix, starts, centring, max_features=max_features, **options)


class WorkingSetPath(ComponentPath):
    """Sparse components, those of each L1 bound computed on a few of the features.

    Outside the working set, the earlier components have no loadings, so the slope of a feature is
    its inner product with u, apart from the filling of missing values. It must not exceed the
    threshold of the iteration.
    """

    def __init__(
        self,
        matrix: DataMatrix,
        starts: Starts,
        centring: Centring,
        *,
        max_features: int,
        **options: Any,
    ) -> None:
        n, p = matrix.shape
        nothing = Columns.fill(np.empty(0, np.intp), np.empty((0, n)), None)
        super().__init__(nothing, starts, centring, **options)
        self.n_kept, self._matrix = self._max_iter, matrix
        self._features = np.empty(0, dtype=np.intp)  # those in memory, in increasing order
        self._values = np.empty((0, n))  # of these, centred, with NaN for missing values
        self._most = min(_PER_SQUARED_BOUND * max_features // 2 + _ADDITIONAL, p)
        self._guides: list[tuple[float, np.ndarray]] = []
        self._add_guide(0.0, starts.vectors)
        # Sparse components are not singular vectors, so features are chosen by the products with
        # the scores of a few sparse components, too. Without this, most components fail.
        pilots = [max(np.sqrt(max_features / share), 1.0) for share in (16, 4, 2)]
        rank = len(starts.vectors)
        scores = np.concatenate([self.solve(bound, rank).scores for bound in pilots])
        products = np.split(_multiply(matrix, centring, scores), len(pilots))
        self.bounds.clear()
        for bound, of_bound in zip(pilots, products, strict=True):
            self._add_guide(bound, of_bound)

    def _add_guide(self, l1_bound: float, products: np.ndarray) -> None:
        """Choose features near this bound by the largest products in each row (r, p)."""
        sizes = -np.abs(products)  # the largest come first
        largest = np.argpartition(sizes, self._most - 1, axis=1)[:, : self._most]
        order = np.argsort(np.take_along_axis(sizes, largest, axis=1), axis=1, kind="stable")
        self._guides.append((l1_bound, np.take_along_axis(largest, order, axis=1)))
        self._load(np.unique(largest))

    def _load(self, features: np.ndarray) -> None:
        """Read features that are not in memory yet."""
        new = np.setdiff1d(features, self._features)
        if new.size:
            every = np.concatenate([self._features, new])
            order = np.argsort(every)
            added = self._centring.columns(self._matrix, new).T
            self._values = np.concatenate([self._values, added])[order]
            self._features = every[order]

    def features_for(self, l1_bound: float) -> np.ndarray:
        count = int(_PER_SQUARED_BOUND * l1_bound**2) + _ADDITIONAL
        (_, by_starts), *others = self._guides
        parts = [by_starts[:, :count].ravel()]
        if others:
            parts.append(_nearest(dict(others), l1_bound)[:, :count].ravel())
        checked = {bound: found for bound, found in self.bounds.items() if found.n_checked}
        if checked:
            parts.append(_nearest(checked, l1_bound).features)
        return np.unique(np.concatenate(parts))

    def columns(self, features: np.ndarray) -> Columns:
        values = self._values[np.searchsorted(self._features, features)]
        return Columns.fill(features, values, self._centring.fill)

    def check(self, bounds: dict[float, Components]) -> bool:
        """Check the components that are not checked yet; return whether all hold.

        Those that do not hold are forgotten, and their bound gets further features.
        """
        # Neighbours in this order have similar iterates.
        unchecked = sorted(
            (k, bound) for bound, found in bounds.items() for k in range(found.n_checked, found.n_known)
        )
        if not unchecked:
            return True
        check = _Check(unchecked, bounds, self._matrix, self._centring)
        near, exceeded = zip(*self._matrix.map(check), strict=True)
        positions, features = np.divmod(np.unique(np.concatenate(near)), self._matrix.shape[1])
        failed = [unchecked[i] for i in np.flatnonzero(np.logical_or.reduce(exceeded))]
        for position, (bound, found) in enumerate(bounds.items()):
            found.n_checked = min([k for k, other in failed if other == bound], default=found.n_known)
            if found.n_checked < found.n_known:
                found.restart(found.n_checked, features[positions == position])
        self._load(np.concatenate([found.features for found in bounds.values()]))
        return not failed


def _nearest(of_bounds: dict[float, Any], l1_bound: float) -> Any:
    return of_bounds[min(of_bounds, key=lambda bound: (abs(bound - l1_bound), bound))]


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
        if path.check(path.bounds):
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
        unchecked: list[tuple[int, float]],
        bounds: dict[float, Components],
        matrix: DataMatrix,
        centring: Centring,
    ) -> None:
        self._centring, self._n_owners = centring, len(unchecked)
        components = [(bounds[bound], k) for k, bound in unchecked]
        used = [found.thresholds[k] >= 0.0 for found, k in components]
        parts = list(zip(components, used, strict=True))
        self._iterates = np.concatenate([found.iterates[k][mask] for (found, k), mask in parts])
        self._thresholds = np.concatenate([found.thresholds[k][mask] for (found, k), mask in parts])
        self._owners = np.repeat(np.arange(len(parts)), [mask.sum() for mask in used])
        self._changes = np.abs([found.fill_changes[k] for found, k in components])[self._owners]
        order = {bound: position for position, bound in enumerate(bounds)}
        self._bounds = np.array([order[bound] for _, bound in unchecked])[self._owners]
        # Whether a feature is in the working set of a bound; the last column is for all others.
        sets = [found.features for found in bounds.values()]
        every = np.unique(np.concatenate(sets))
        self._position = np.full(matrix.shape[1], every.size)
        self._position[every] = np.arange(every.size)
        self._is_member = np.zeros((len(sets), every.size + 1), dtype=bool)
        for row, features in zip(self._is_member, sets, strict=True):
            row[self._position[features]] = True
        is_grouped = not isinstance(matrix, DeviceMatrix)
        longest = max(found.longest for found in bounds.values())
        self._groups = _group(self._iterates, is_grouped * _SHARE * self._thresholds / longest)

    def __call__(self, block: Any, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what exceeds or nearly exceeds a threshold, and which components do not hold.

        The first array has position * p + feature for the bound at a position and a feature.
        """
        xp, centred = namespace(block), self._centring(block, start)
        norms = xp.sqrt(xp.sum(centred * centred, axis=0))
        margins = None  # a slope changes by at most this times the change of the filled value
        if self._centring.fill is not None:
            margins = xp.sqrt(xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0))
        near, failed = [np.empty(0, dtype=np.int64)], np.zeros(self._n_owners, dtype=bool)

        def record(iterates: np.ndarray, columns: np.ndarray, slopes: np.ndarray) -> None:
            bounds, features = self._bounds[iterates], start + columns
            is_new = ~self._is_member[bounds, self._position[features]]
            near.append(np.unique((bounds * self._position.size + features)[is_new]))
            failed[self._owners[iterates[is_new & (slopes > self._thresholds[iterates])]]] = True

        for first in range(0, len(self._groups), _PRODUCTS):
            groups = self._groups[first : first + _PRODUCTS]
            centres = np.array([members[0] for members, _ in groups])
            limits = np.array([self._thresholds[members].min() for members, _ in groups])
            slopes = xp.abs(to_device(self._iterates[centres], block) @ centred)
            if margins is not None:
                shifts = np.array([self._changes[members].max() for members, _ in groups])
                slopes = slopes + to_device(shifts[:, None], block) * margins
            radii = np.array([radius for _, radius in groups])
            may_exceed = slopes + to_device(radii[:, None], block) * norms > to_device(
                _NEAR * limits[:, None], block
            )
            group, column = (to_host(index) for index in xp.nonzero(may_exceed))
            if not radii.any():
                record(centres[group], column, to_host(slopes[may_exceed]))
                continue
            index = np.unique(column)
            part = np.ascontiguousarray(to_host(xp.take(centred, to_device(index, block), axis=1)).T)
            ends = np.searchsorted(group, np.arange(len(groups) + 1))
            for (members, _), low, high in zip(groups, ends[:-1], ends[1:], strict=True):
                columns = column[low:high]
                slopes = np.abs(part[np.searchsorted(index, columns)] @ self._iterates[members].T)
                if margins is not None:
                    slopes += to_host(margins)[columns, None] * self._changes[members]
                c, i = np.nonzero(slopes > _NEAR * self._thresholds[members])
                record(members[i], columns[c], slopes[c, i])
        return np.concatenate(near), failed


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
