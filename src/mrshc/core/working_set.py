"""Sparse components of many features, computed on a few thousand of them and then checked.

The features that components select are among those of large variance or of large inner product with
the leading singular vectors. All components are computed on such a working set in memory. One pass
over the data then shows whether another feature would have exceeded the threshold of an iteration;
if one does, it is added, and what it touches is computed again. The result is the same as with all
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mrshc.core import parallel
from mrshc.core.data.device import namespace, to_device, to_host
from mrshc.core.data.matrix import DataMatrix
from mrshc.core.sparse_components import ComponentPath, FeatureSet, Starts
from mrshc.core.statistics import Centring

# Data with no more values, 8 MB in double precision, are computed on with all features.
_ALL_VALUES = 1 << 20
# A component with q features is computed on this multiple of q, and these additional features. The
# numbers affect the number of passes and the time, but not the result.
_PER_FEATURE, _ADDITIONAL = 2, 500
# Eigenvectors of a larger matrix are computed by Lanczos iterations (11 to .5 s for 5,000 samples).
_MANY_SAMPLES = 2_000
# Iterates are checked by the product of a near one if the bound for the difference, which is the
# distance times the norm of a column, is at most this share of their threshold.
_SHARE = 0.2
# Number of products with a block that are computed at once, which limits the memory.
_PRODUCTS = 256


def component_path(
    matrix: DataMatrix, centring: Centring, *, rank: int, max_features: int, **options: Any
) -> ComponentPath:
    """Return the components of the data, for up to `rank` components and `max_features` features.

    `options` are the other parameters of :class:`ComponentPath`. The data are read in two passes,
    or once if all features are in the working set.
    """
    n, p = matrix.shape
    if n * p <= _ALL_VALUES or p <= n:
        index = np.arange(p)
        columns = centring.columns(matrix, index)
        starts = starts_in_memory(columns, centring, rank)
        return ComponentPath(columns, index, starts, centring, **options)
    gram = np.zeros((n, n))
    for part in matrix.map(lambda block, start: _gram(centring(block, start))):
        gram += part
    left = _leading_eigenvectors(gram, rank)
    count = _PER_FEATURE * max_features + _ADDITIONAL
    starts = _starts(matrix, centring, left)
    index = _largest(np.abs(starts.vectors), count)
    path = ComponentPath(centring.columns(matrix, index), index, starts, centring, **options)
    # Sparse components are not singular vectors, so features are chosen again by the products with
    # the scores of a few sparse components. Without this, most components fail the check.
    scores = [path.solve(np.sqrt(q), rank).scores for q in _pilot(max_features)]
    products = _multiply(matrix, centring, np.concatenate(scores))
    path.add_features(_largest(np.abs(products), count), matrix)
    return path


def _pilot(max_features: int) -> list[float]:
    return [max_features / 8, max_features / 2, max_features]


def _largest(sizes: np.ndarray, count: int) -> np.ndarray:
    """Return the features that are among the `count` largest in any row, in increasing order."""
    count = min(count, sizes.shape[1])
    return np.unique(np.argpartition(-sizes, count - 1, axis=1)[:, :count])


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
        if not (path.is_partial and _add_violators(path, matrix, centring)):
            return [found[i] for i in range(len(grid))]


def _add_violators(path: ComponentPath, matrix: DataMatrix, centring: Centring) -> bool:
    """Check all components that are not checked yet; return whether features had to be added.

    Outside the working set, the earlier components have no loadings, so the slope of a feature is
    its inner product with u, apart from the filling of missing values. It must not exceed the
    threshold of the iteration.
    """
    places, iterates, limits, changes = [], [], [], []
    for bound, found in path.bounds.items():
        for k in range(found.n_checked, found.n_known):
            used = found.thresholds[k] >= 0.0
            iterates.append(found.iterates[k][used])
            limits.append(found.thresholds[k][used])
            places += [(bound, k)] * int(used.sum())
            changes += [path.fill_change(found, k)] * int(used.sum())
    if not places:
        return False
    check = _Check(
        np.concatenate(iterates), np.concatenate(limits), np.array(changes), centring, path.norm
    )
    outside = np.ones(matrix.shape[1], dtype=bool)
    outside[path.index] = False
    added, failed = [], np.zeros(len(places), dtype=bool)
    for violators, violated in matrix.map(lambda block, start: check(block, start, outside)):
        added.append(violators)
        failed |= violated
    for found in path.bounds.values():
        found.n_checked = found.n_known
    for position in np.flatnonzero(failed)[::-1]:
        bound, k = places[position]
        found = path.bounds[bound]
        found.n_known = found.n_checked = min(k, found.n_known)
        found.thresholds[k:] = -1.0
        found.loadings[k:] = 0.0
    path.add_features(np.concatenate(added), matrix)
    return bool(failed.any())


class _Check:
    """Function that finds the columns of a block that exceed the threshold of an iterate.

    Neighbouring iterates share one product: a slope differs by at most the norm of the column times
    the distance from the centre of the group. Only columns that may exceed a threshold by this
    bound are multiplied with every iterate of the group.
    """

    def __init__(
        self,
        iterates: np.ndarray,
        thresholds: np.ndarray,
        changes: np.ndarray,
        centring: Centring,
        norm: float,
    ) -> None:
        self._iterates, self._thresholds, self._changes = iterates, thresholds, changes
        self._centring = centring
        self._groups = []
        # The last iterates are where a component has converged, so they come first.
        left, reach = np.arange(len(iterates))[::-1], _SHARE * thresholds / norm
        while left.size:
            centre = iterates[left[0]]
            distances = np.linalg.norm(iterates[left] - centre, axis=1)
            is_near = distances <= reach[left]
            is_near[0] = True
            members = left[is_near]
            self._groups.append((members, distances[is_near].max(), thresholds[members].min()))
            left = left[~is_near]

    def __call__(
        self, block: Any, start: int, outside: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the violating features, and a mask of the iterates that they violate."""
        xp, centred = namespace(block), self._centring(block, start)
        norms = xp.sqrt(xp.sum(centred * centred, axis=0))
        margins = 0.0
        if self._centring.fill is not None:
            n_missing = xp.sum(xp.astype(xp.isnan(block), xp.float64), axis=0)
            margins = float(np.abs(self._changes).max()) * xp.sqrt(n_missing)
        is_outside = to_device(outside[start : start + block.shape[1]], block)
        failed = np.zeros(len(self._iterates), dtype=bool)
        violating = np.zeros(block.shape[1], dtype=bool)
        for first in range(0, len(self._groups), _PRODUCTS):
            groups = self._groups[first : first + _PRODUCTS]
            centres = self._iterates[[members[0] for members, _, _ in groups]]
            radii, limits = (np.array([group[i] for group in groups])[:, None] for i in (1, 2))
            slopes = xp.abs(to_device(centres, block) @ centred) + margins
            slopes = slopes + to_device(radii, block) * norms
            may_exceed = to_host((slopes > to_device(limits, block)) & is_outside)
            columns = np.flatnonzero(may_exceed.any(axis=0))
            if not columns.size:
                continue
            index = to_device(columns, block)
            part = to_host(xp.take(centred, index, axis=1)).T
            gaps = to_host(xp.isnan(xp.take(block, index, axis=1))).T.astype(np.float64)
            for (members, _, _), flags in zip(groups, may_exceed[:, columns], strict=True):
                tested = np.flatnonzero(flags)
                slopes = part[tested] @ self._iterates[members].T
                if self._centring.fill is not None:
                    slopes -= gaps[tested] @ self._iterates[members].T * self._changes[members]
                exceeds = np.abs(slopes) > self._thresholds[members]
                failed[members] |= exceeds.any(axis=0)
                violating[columns[tested[exceeds.any(axis=1)]]] = True
        return np.flatnonzero(violating) + start, failed
