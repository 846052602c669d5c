"""Sparse components of many features, computed on a few thousand of them and then checked.

The features that a component selects are among those of large inner product with a leading singular
vector or with the scores of similar components. The components under an L1 bound are computed on
such a working set in memory. One pass over the data then shows for all bounds whether another
feature would have exceeded the threshold of an iteration; if one does, it is added to the working
set of this bound, and what it touches is computed again. The result is the same as with all
features.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mrshc.core import parallel
from mrshc.core.data.device import DeviceMatrix, namespace, to_device, to_host
from mrshc.core.data.matrix import DataMatrix
from mrshc.core.sparse_components import Columns, ComponentPath, Components, FeatureSet, Starts
from mrshc.core.statistics import Centring

# Data with no more values, 8 MB in double precision, are computed on with all features.
_ALL_VALUES = 1 << 20
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

_Key = tuple[float, int, Components]  # L1 bound, and the number of the component


def component_path(
    matrix: DataMatrix, centring: Centring, *, rank: int, max_features: int, **options: Any
) -> ComponentPath:
    """Return the components of the data, for up to `rank` components and `max_features` features.

    `options` are the other parameters of :class:`ComponentPath`. The data are read in three passes,
    or once if all features are in memory anyway.
    """
    n, p = matrix.shape
    if n * p <= _ALL_VALUES or p <= n:
        features = np.arange(p)
        columns = centring.columns(matrix, features)
        starts = starts_in_memory(columns, centring, rank)
        F = Columns.fill(features, np.ascontiguousarray(columns.T), centring.fill)
        return ComponentPath(F, starts, centring, **options)
    gram = np.zeros((n, n))
    for part in matrix.map(lambda block, start: _gram(centring(block, start))):
        gram += part
    starts = _starts(matrix, centring, _leading_eigenvectors(gram, rank))
    path = WorkingSetPath(matrix, starts, centring, max_features=max_features, **options)
    # Sparse components are not singular vectors, so features are chosen by the products with the
    # scores of a few sparse components, too. Without this, most components fail the check.
    pilots = [np.sqrt(max_features / share) for share in (16, 4, 2)]
    scores = [path.solve(max(bound, 1.0), rank).scores for bound in pilots]
    products = np.split(_multiply(matrix, centring, np.concatenate(scores)), len(pilots))
    path.forget()
    for bound, of_bound in zip(pilots, products, strict=True):
        path.add_guide(bound, of_bound, matrix)
    return path


class WorkingSetPath(ComponentPath):
    """Sparse components, those of each L1 bound computed on a few of the features."""

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
        self.n_kept = self._max_iter
        self.norm = 0.0  # largest norm of a column in memory
        self.in_memory = np.empty(0, dtype=np.intp)  # features, in increasing order
        self._values = np.empty((0, n))  # of these, centred, with NaN for missing values
        self._most = min(_PER_SQUARED_BOUND * max_features // 2 + _ADDITIONAL, p)
        self._guides: list[tuple[float, np.ndarray]] = []
        self.add_guide(0.0, starts.vectors, matrix)

    def add_guide(self, l1_bound: float, products: np.ndarray, matrix: DataMatrix) -> None:
        """Choose features near this bound by the largest products in each row (r, p)."""
        sizes = -np.abs(products)
        largest = np.argpartition(sizes, self._most - 1, axis=1)[:, : self._most]
        order = np.argsort(np.take_along_axis(sizes, largest, axis=1), axis=1, kind="stable")
        self._guides.append((l1_bound, np.take_along_axis(largest, order, axis=1)))
        self.load(np.unique(largest), matrix)

    def load(self, features: np.ndarray, matrix: DataMatrix) -> None:
        """Read features that are not in memory yet."""
        new = np.setdiff1d(features, self.in_memory)
        if new.size:
            every = np.concatenate([self.in_memory, new])
            order = np.argsort(every)
            added = self._centring.columns(matrix, new).T
            self.norm = max(self.norm, np.sqrt(np.nansum(np.square(added), axis=1).max()))
            self._values = np.concatenate([self._values, added])[order]
            self.in_memory = every[order]

    def forget(self) -> None:
        """Drop all components."""
        self.bounds.clear()

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
        values = self._values[np.searchsorted(self.in_memory, features)]
        return Columns.fill(features, values, self._centring.fill)

    def unchecked(self) -> Iterator[_Key]:
        """Yield the bound and the number of each component that is not checked."""
        for bound, found in self.bounds.items():
            for k in range(found.n_checked, found.n_known):
                yield bound, k, found

    def replace(self, l1_bound: float, n_valid: int, violators: np.ndarray) -> None:
        """Keep the first components under a bound, and compute the others on further features."""
        old = self.bounds[l1_bound]
        found = self.empty(np.union1d(old.features, violators))
        positions = np.searchsorted(found.features, old.features)
        found.loadings[:n_valid, positions] = old.loadings[:n_valid]
        for name in ("scores", "scales", "n_iter", "converged", "fill_changes"):
            getattr(found, name)[:n_valid] = getattr(old, name)[:n_valid]
        found.n_known = found.n_checked = n_valid
        self.bounds[l1_bound] = found


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
    path: ComponentPath,
    grid: list[tuple[int, int]],
    matrix: DataMatrix,
    centring: Centring,
    *,
    tolerance: int,
    smallest: int,
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
        if not isinstance(path, WorkingSetPath) or _all_hold(path, matrix, centring):
            return [found[i] for i in range(len(grid))]


def _all_hold(path: WorkingSetPath, matrix: DataMatrix, centring: Centring) -> bool:
    """Check all components that are not checked yet; drop those that do not hold.

    Outside the working set, the earlier components have no loadings, so the slope of a feature is
    its inner product with u, apart from the filling of missing values. It must not exceed the
    threshold of the iteration.
    """
    unchecked = sorted(path.unchecked(), key=lambda key: (key[1], key[0]))
    if not unchecked:
        return True
    check = _Check(path, unchecked, centring, is_grouped=not isinstance(matrix, DeviceMatrix))
    near, exceeded = zip(*matrix.map(check), strict=True)
    codes, failed = np.unique(np.concatenate(near)), np.logical_or.reduce(exceeded)
    bounds, features = np.divmod(codes, matrix.shape[1])
    for found in path.bounds.values():
        found.n_checked = found.n_known
    added = []
    for position, l1_bound in enumerate(path.bounds):
        ks = [unchecked[i][1] for i in np.flatnonzero(failed) if unchecked[i][0] == l1_bound]
        if ks:
            added.append(features[bounds == position])
            path.replace(l1_bound, min(ks), added[-1])
    if added:
        path.load(np.unique(np.concatenate(added)), matrix)
    return not added


class _Check:
    """Function that finds the features of a block that exceed the threshold of an iterate.

    Neighbouring iterates share one product: a slope differs by at most the norm of the column times
    the distance from the centre of the group. Only columns that may exceed a threshold by this
    bound are multiplied with every iterate of the group. On a device, where products are cheap,
    each iterate is a group.
    """

    def __init__(
        self, path: WorkingSetPath, unchecked: list[_Key], centring: Centring, *, is_grouped: bool
    ) -> None:
        used = [found.thresholds[k] >= 0.0 for _, k, found in unchecked]
        parts = list(zip(unchecked, used, strict=True))
        self._iterates = np.concatenate([f.iterates[k][mask] for (_, k, f), mask in parts])
        self._thresholds = np.concatenate([f.thresholds[k][mask] for (_, k, f), mask in parts])
        self._owners = np.repeat(np.arange(len(parts)), [mask.sum() for mask in used])
        positions = {bound: position for position, bound in enumerate(path.bounds)}
        self._bounds = np.array([positions[bound] for bound, _, _ in unchecked])[self._owners]
        self._changes = np.abs([f.fill_changes[k] for _, k, f in unchecked])[self._owners]
        self._n_owners, self._centring = len(parts), centring
        # Whether a feature is in the working set of a bound; the last column is for all others.
        n_in_memory = path.in_memory.size
        self._position = np.full(path.starts.vectors.shape[1], n_in_memory)
        self._position[path.in_memory] = np.arange(n_in_memory)
        self._is_member = np.zeros((len(path.bounds), n_in_memory + 1), dtype=bool)
        for row, found in zip(self._is_member, path.bounds.values(), strict=True):
            row[self._position[found.features]] = True
        reach = (_SHARE if is_grouped else 0.0) * self._thresholds / path.norm
        self._groups = _group(self._iterates, reach)

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
