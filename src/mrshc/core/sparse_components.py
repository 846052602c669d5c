"""Sparse principal components, and the L1 bound that selects q features (Algorithm 1).

A component maximises u'Xv subject to |u|_2 <= 1, |v|_2 <= 1 and |v|_1 <= bound (Witten, Tibshirani
and Hastie 2009). Component k starts from the k-th singular vector of the centred data; the earlier
components are subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mrshc.core import parallel
from mrshc.core.data.matrix import Centring, DataMatrix, namespace, to_device, to_host
from mrshc.core.kernels import alternate, soft_threshold
from mrshc.core.working_set import Iterates, ThresholdCheck, largest, multiply

# The bisection ends when its interval is no wider: converged loadings have changed by no more than
# this in their last iteration.
_SMALLEST_INTERVAL = 1e-7
# In more values, columns are left out by estimates of their slopes from what is known of the runs
# under other bounds; fewer are computed on anew in less time.
_MANY_VALUES = 1 << 17
# Number of vectors at which slopes are kept for each component, and their least distance from the
# combinations of others.
_MOST_KNOWN, _LEAST_DISTANCE = 64, 0.01
# A loading of the first singular vector is zero if it is no larger than this share of the largest.
_ZERO_LOADING = 1e-10
# Data with no more values are computed on with all features: 268 MB in double precision if they are
# in memory, and 8 MB if they are not.
_ALL_VALUES, _ALL_STORED = 1 << 25, 1 << 20
# The working set begins with this multiple of the largest number of features, and these additional
# ones, for each vector by which features are chosen. These numbers and the next affect the number
# of passes and the time, but not the result.
_PER_FEATURE, _ADDITIONAL = 2, 500
# Eigenvectors of a larger matrix are computed by Lanczos iterations (11 to .5 s for 5,000 samples),
# with so many vectors, if less than half as many are wanted.
_MANY_SAMPLES, _N_LANCZOS = 2_000, 60


@dataclass(frozen=True, eq=False)
class Starts:
    """The vectors v from which r components start."""

    vectors: np.ndarray  # (r, p)
    images: np.ndarray  # (r, n), their products with the centred data
    at_gaps: np.ndarray  # (r, n), for each sample the sum of v over its missing values

    @property
    def noise(self) -> float:
        """Norm of a product that is a rounding error: the usual tolerance of a numerical rank."""
        longest = np.linalg.norm(self.images, axis=1).max()
        size = max(self.vectors.shape[1], self.images.shape[1])
        return float(longest * size * np.finfo(np.float64).eps)

    def within_rank(self) -> Starts:
        """Return the starts; those beyond the rank of the data are replaced by the last within."""
        n_within = int((np.linalg.norm(self.images, axis=1) > self.noise).sum())
        order = np.minimum(np.arange(len(self.images)), max(n_within - 1, 0))
        return Starts(self.vectors[order], self.images[order], self.at_gaps[order])


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """The features that r components select under an L1 bound."""

    features: np.ndarray
    l1_bound: float
    rank: int
    reached: bool  # whether the number of features is the one wanted


@dataclass(frozen=True, eq=False)
class Columns:
    """Centred columns of some features, one in each row, with missing values filled."""

    features: np.ndarray  # (w,), in increasing order
    values: np.ndarray  # (w, n)
    norms: np.ndarray  # (w,)
    # Missing cells: those of column j are gap_samples[gap_starts[j]:gap_starts[j + 1]].
    gap_starts: np.ndarray
    gap_samples: np.ndarray
    gap_columns: np.ndarray

    @classmethod
    def fill(cls, features: np.ndarray, values: np.ndarray, fill: float | None) -> Columns:
        """Return the columns (w, n); missing values are replaced by `fill`, in place."""
        columns = samples = np.empty(0, dtype=np.intp)
        if fill is not None:
            columns, samples = np.nonzero(np.isnan(values))
            values[columns, samples] = fill
        gap_starts = np.searchsorted(columns, np.arange(len(values) + 1))
        norms = np.sqrt(np.einsum("ij,ij->i", values, values))
        return cls(features, values, norms, gap_starts, samples, columns)

    @classmethod
    def merge(cls, one: Columns, other: Columns) -> Columns:
        """Return the columns of two disjoint sets of features."""
        order = np.argsort(np.concatenate([one.features, other.features]))
        place = np.argsort(order)
        values = np.empty((order.size, one.values.shape[1]))
        values[place[: one.features.size]] = one.values
        values[place[one.features.size :]] = other.values
        columns = place[np.concatenate([one.gap_columns, other.gap_columns + one.features.size])]
        cells = np.argsort(columns, kind="stable")
        return cls(
            np.concatenate([one.features, other.features])[order],
            values,
            np.concatenate([one.norms, other.norms])[order],
            np.searchsorted(columns[cells], np.arange(order.size + 1)),
            np.concatenate([one.gap_samples, other.gap_samples])[cells],
            columns[cells],
        )


@dataclass(eq=False)
class Components:
    """Sparse components under one L1 bound, computed on w features."""

    features: np.ndarray  # (w,), in increasing order
    scores: np.ndarray  # (r, n), the vectors u
    loadings: np.ndarray  # (r, w), the vectors v
    scales: np.ndarray  # (r,), u'Rv
    n_iter: np.ndarray  # (r,)
    converged: np.ndarray  # (r,)
    iterates: np.ndarray  # (r, max_iter, n), u of each iteration; empty if not kept
    thresholds: np.ndarray  # (r, max_iter), the soft threshold of each iteration, or -1
    fill_changes: np.ndarray  # (r,), the mean of the earlier components at the observed cells
    n_known: int = 0
    n_checked: int = 0  # how many are known to need no other features
    lock: Lock = field(default_factory=Lock)

    def extend(self, features: np.ndarray) -> None:
        """Add features on which further components are computed; those known have no loadings."""
        loadings = np.zeros((len(self.loadings), features.size))
        loadings[:, np.searchsorted(features, self.features)] = self.loadings
        self.features, self.loadings = features, loadings

    def forget(self, k: int) -> None:
        """Forget component k and those after it."""
        self.n_known = self.n_checked = k
        self.loadings[k:] = 0.0
        self.thresholds[k:] = -1.0


class _KnownSlopes:
    """The slopes of the data at some vectors, from which those at others are estimated."""

    def __init__(self, n: int, n_features: int, capacity: int) -> None:
        self._vectors = np.empty((capacity, n))
        self._slopes = np.empty((capacity, n_features), dtype=np.float32)
        # An orthonormal basis of the vectors, and the matrix that gives it by multiplication.
        self._basis, self._combinations = np.empty((capacity, n)), np.zeros((capacity, capacity))
        self._count = 0

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of which the first rows are used, and their number."""
        return self._vectors, self._basis, self._combinations, self._slopes, self._count

    def add(self, u: np.ndarray, slopes: np.ndarray) -> None:
        """Add a vector unless it is near a combination of the others."""
        m = self._count
        factors = (self._basis[:m] @ u) @ self._combinations[:m, :m]
        rest = u - factors @ self._vectors[:m]
        distance = np.sqrt(rest @ rest)
        if distance >= _LEAST_DISTANCE and m < len(self._vectors):
            self._vectors[m], self._slopes[m], self._basis[m] = u, slopes, rest / distance
            self._combinations[m, :m] = -factors / distance
            self._combinations[m, m] = 1.0 / distance
            self._count = m + 1  # in the end: other threads may be reading


class ComponentPath:
    """The sparse components of the data for any L1 bound, each computed once.

    Parameters
    ----------
    columns : Columns
        The features on which components are computed.
    starts : Starts
        Where the components start.
    centring : Centring
        How the columns were centred.
    max_iter, tol
        When the alternation ends.
    is_orthogonal : bool
        Whether scores are kept orthogonal instead of subtracting earlier components.
    matrix : DataMatrix or None
        Where the other features are; None if there are none.
    """

    def __init__(
        self,
        columns: Columns,
        starts: Starts,
        centring: Centring,
        *,
        max_iter: int = 20,
        tol: float = 1e-7,
        is_orthogonal: bool = False,
        matrix: DataMatrix | None = None,
    ) -> None:
        self.starts = starts
        self._max_iter = max_iter
        self._limits = (max_iter, float(tol), starts.noise)
        self._is_orthogonal = is_orthogonal
        self.bounds: dict[float, Components] = {}
        self._lock = Lock()
        loadings = np.abs(starts.vectors[0])
        self._n_unbounded = int((loadings > _ZERO_LOADING * loadings.max()).sum())
        self._centring, self._matrix = centring, matrix
        self._set_columns(columns)

    def _set_columns(self, columns: Columns) -> None:
        self._columns = columns
        (r, n), w = self.starts.images.shape, columns.features.size
        self._is_large = columns.values.size > _MANY_VALUES
        # The slopes need at most half the memory of the columns.
        capacity = min(n // r, _MOST_KNOWN) if self._is_large else 0
        # Slopes of all columns are estimates, for which single precision is enough.
        narrowed = columns.values.astype(np.float32) if self._is_large else np.empty((0, n))
        self._narrowed = self._matrix.place(narrowed) if self._matrix else narrowed
        self._known = [_KnownSlopes(n, w, capacity) for _ in range(r)]

    def add(self, features: np.ndarray) -> None:
        """Compute on further features, too."""
        assert self._matrix is not None
        new = np.setdiff1d(features, self._columns.features)
        added = _read_columns(self._matrix, self._centring, new)
        self._set_columns(Columns.merge(self._columns, added))

    def check(self) -> bool:
        """Return whether no other feature exceeds the threshold of an iterate, in one pass.

        Otherwise, the components to which this happens are forgotten, and the features are added.
        """
        # Neighbours in this order have similar iterates.
        unchecked = sorted(
            (k, bound)
            for bound, found in self.bounds.items()
            for k in range(found.n_checked, found.n_known)
        )
        if self._matrix is None or not unchecked:
            return True
        is_outside = np.ones(self._matrix.shape[1], dtype=bool)
        is_outside[self._columns.features] = False
        check = ThresholdCheck(
            self._iterates(unchecked),
            is_outside,
            self._columns.norms.max(),
            self._centring,
            self._matrix,
        )
        near, exceeded = zip(*self._matrix.map(check), strict=True)
        for found in self.bounds.values():
            found.n_checked = found.n_known
        failed = [unchecked[i] for i in np.flatnonzero(np.logical_or.reduce(exceeded))]
        for k, bound in failed[::-1]:
            if k < self.bounds[bound].n_known:
                self.bounds[bound].forget(k)
        if failed:
            self.add(np.concatenate(near))
        return not failed

    def _iterates(self, components: list[tuple[int, float]]) -> Iterates:
        """Return the iterates of components (k, bound)."""
        parts = [(self.bounds[bound], k) for k, bound in components]
        used = [found.thresholds[k] >= 0.0 for found, k in parts]
        owners = np.repeat(np.arange(len(parts)), [mask.sum() for mask in used])
        kept = list(zip(parts, used, strict=True))
        return Iterates(
            scores=np.concatenate([found.iterates[k][mask] for (found, k), mask in kept]),
            thresholds=np.concatenate([found.thresholds[k][mask] for (found, k), mask in kept]),
            owners=owners,
            fill_changes=np.abs([found.fill_changes[k] for found, k in parts])[owners],
        )

    def solve(self, l1_bound: float, rank: int, *, stop_at: float = np.inf) -> Components:
        """Return the components under an L1 bound, of which the first `rank` are known.

        There may be fewer if these already have `stop_at` features.
        """
        with self._lock:
            found = self.bounds.get(l1_bound) or self._empty()
            self.bounds[l1_bound] = found
        with found.lock:  # searches that need the same bound wait for each other
            if found.features.size < self._columns.features.size:
                found.extend(self._columns.features)
            selected = found.loadings[: found.n_known].any(axis=0)
            while found.n_known < rank and np.count_nonzero(selected) < stop_at:
                k = found.n_known
                self._solve_next(found, k, float(l1_bound))
                found.n_known += 1
                selected |= found.loadings[k] != 0.0
        return found

    def _solve_next(self, found: Components, k: int, l1_bound: float) -> None:
        """Compute component k, given those before it."""
        m = 0 if self._is_orthogonal else k  # number of components that are subtracted
        scores, loadings, scales = found.scores[:m], found.loadings[:m], found.scales[:m]
        earlier = (scores, loadings, scales, found.scores[: k - m])
        columns = self._columns
        v, image = found.loadings[k], self.starts.images[k].copy()
        margins = np.zeros(v.size)  # by how much a slope may exceed that of the data
        v[:] = self.starts.vectors[k, columns.features]
        fills = np.zeros(columns.gap_samples.size)
        if m:
            image -= scales * (loadings @ v) @ scores
            margins += np.abs(scales) @ np.abs(loadings)
        if m and self._centring.fill is not None:
            # Missing cells of the residual have the mean of its observed cells.
            at_gaps, found.fill_changes[k] = self._components_at_gaps(found, m)
            fills = at_gaps - found.fill_changes[k]
            np.add.at(image, columns.gap_samples, at_gaps * v[columns.gap_columns])
            margins += np.sqrt(np.bincount(columns.gap_columns, fills**2, v.size))
            image -= found.fill_changes[k] * self.starts.at_gaps[k]
        u, known, slopes = found.scores[k], self._known[k], np.empty(0, dtype=np.float32)
        work = np.empty((3, v.size)), np.empty((2, v.size), dtype=np.int64)
        is_finished, n_iter = False, 0
        while not is_finished:
            is_finished, scale, n_iter, converged = alternate(
                (columns.values, columns.gap_starts, columns.gap_samples, fills),
                (columns.norms, margins),
                earlier,
                (v, image, u),
                l1_bound,
                (*self._limits, self._is_large),
                (*known.arrays, slopes),
                (n_iter, found.iterates[k], found.thresholds[k]),
                work,
            )
            if not is_finished:
                slopes = to_host(self._narrowed @ to_device(u.astype(np.float32), self._narrowed))
                with self._lock:
                    known.add(u, slopes)
        found.scales[k], found.n_iter[k], found.converged[k] = scale, n_iter, converged
        if v[np.abs(v).argmax()] < 0.0:
            found.loadings[k] = 0.0 - found.loadings[k]  # zeros keep their sign
            found.scores[k] *= -1.0

    def _components_at_gaps(self, found: Components, m: int) -> tuple[np.ndarray, float]:
        """Return the sum of m components at the missing cells, and its mean at the others."""
        columns = self._columns
        at_gaps = np.zeros(columns.gap_columns.size)
        total = 0.0
        for u, v, scale in zip(found.scores[:m], found.loadings[:m], found.scales, strict=False):
            at_gaps += scale * u[columns.gap_samples] * v[columns.gap_columns]
            total += scale * u.sum() * v.sum()
        return at_gaps, float(total - at_gaps.sum()) / self._centring.n_observed

    def _empty(self) -> Components:
        (r, n), features = self.starts.images.shape, self._columns.features
        return Components(
            features=features,
            scores=np.zeros((r, n)),
            loadings=np.zeros((r, features.size)),
            scales=np.zeros(r),
            n_iter=np.zeros(r, dtype=np.int64),
            converged=np.zeros(r, dtype=bool),
            iterates=np.zeros((r, self._max_iter if self._matrix else 0, n)),
            thresholds=np.full((r, self._max_iter), -1.0),
            fill_changes=np.zeros(r),
        )

    def features(self, l1_bound: float, rank: int, stop_at: float = np.inf) -> np.ndarray | None:
        """Return the features of the first `rank` components; None if they are `stop_at` or more.

        The first component has at least bound^2 features where the bound is active.
        """
        if min(l1_bound**2, self._n_unbounded) > stop_at:
            return None
        found = self.solve(l1_bound, rank, stop_at=stop_at)
        selected = np.flatnonzero(found.loadings[: min(rank, found.n_known)].any(axis=0))
        return None if selected.size >= stop_at else found.features[selected]

    def search(self, q: int, rank: int, *, tolerance: int, smallest: int) -> FeatureSet:
        """Return the set whose size is closest to q; see `bisect_l1_bound`."""
        bound, features = bisect_l1_bound(
            lambda bound, stop_at: self.features(bound, rank, stop_at),
            q,
            largest=float(np.sqrt(self.starts.vectors.shape[1])),
            tolerance=tolerance,
            smallest=smallest,
        )
        return FeatureSet(features, bound, rank, abs(features.size - q) <= tolerance)

    def loadings(self, l1_bound: float, rank: int) -> np.ndarray:
        """Return the loadings of `rank` components for all p features."""
        loadings = np.zeros((rank, self.starts.vectors.shape[1]))
        found = self.solve(l1_bound, rank)
        loadings[:, found.features] = found.loadings[:rank]
        return loadings


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


def bisect_l1_bound(
    select: Callable[[float, float], Any],
    q: int,
    *,
    largest: float,
    tolerance: int = 0,
    smallest: int = 1,
) -> tuple[float, Any]:
    """Return an L1 bound that selects q features, found by bisection, and the features.

    Algorithm 1. If q is not reached, the closest of the sets that were seen is returned, the
    smaller of two. Sets grow with the bound in general, but not always.

    Parameters
    ----------
    select : callable
        select(bound, stop_at) returns the features, or None if they are `stop_at` or more.
    q : int
        Number of features.
    largest : float
        Largest bound, the square root of the number of features.
    tolerance : int
        Accepted difference from q.
    smallest : int
        Smallest number of features that is returned.
    """
    low, high = 1.0, largest
    best, closest = low, select(low, np.inf)
    if closest.size >= q:
        return best, closest
    # A set of 2 q - closest.size features or more is not closer to q.
    selected = select(high, 2 * q - closest.size)
    if selected is not None and selected.size <= q:
        return high, selected
    while True:
        if selected is not None and (abs(selected.size - q), selected.size) < (
            abs(closest.size - q),
            closest.size,
        ):
            best, closest = high if selected.size > q else low, selected
        is_large_enough = closest.size >= smallest
        if is_large_enough and abs(closest.size - q) <= tolerance:
            return best, closest
        if high - low <= _SMALLEST_INTERVAL:
            return (best, closest) if is_large_enough else (high, select(high, np.inf))
        middle = (low + high) / 2
        selected = select(middle, q + abs(closest.size - q))
        if selected is None or selected.size > q:
            high = middle
        else:
            low = middle


def sparse_direction(slopes: np.ndarray, l1_bound: float) -> np.ndarray:
    """Return the unit vector v with |v|_1 <= bound that maximises slopes'v; zero for no slopes."""
    slopes = np.ascontiguousarray(slopes)
    weights = np.zeros(slopes.size)
    soft_threshold(slopes, slopes.size, float(l1_bound), weights, np.empty(slopes.size))
    return weights


# ---------------------------------------------------------------------- Starts and working set


def component_path(
    matrix: DataMatrix, centring: Centring, *, rank: int, max_features: int
) -> ComponentPath:
    """Return the components of the data, of which up to `rank` are wanted.

    Large data are computed on with a few features, whose number follows from `max_features`, that
    of the largest set that is wanted. The data are then read in four passes, and otherwise once.
    """
    n, p = matrix.shape
    if n * p <= (_ALL_VALUES if matrix.in_memory else _ALL_STORED) or p <= n:
        X = centring.columns(matrix, np.arange(p))
        starts = starts_in_memory(X, centring, rank)
        rows = np.ascontiguousarray(X.T)
        return ComponentPath(Columns.fill(np.arange(p), rows, centring.fill), starts, centring)
    gram = np.zeros((n, n))
    for part in matrix.map(lambda block, start: _gram(centring(block, start))):
        gram += part
    starts = _starts(matrix, centring, _leading_eigenvectors(gram, rank))
    count = min(_PER_FEATURE * max_features + _ADDITIONAL, p)
    columns = _read_columns(matrix, centring, largest(starts.vectors, count))
    path = ComponentPath(columns, starts, centring, matrix=matrix)
    # Sparse components are not singular vectors, so features are chosen by the products with the
    # scores of a few sparse components, too. Without this, most components fail the check.
    pilots = [max(np.sqrt(max_features / share), 1.0) for share in (16, 4, 2)]
    scores = np.concatenate([path.solve(bound, rank).scores for bound in pilots])
    path.bounds.clear()
    path.add(largest(multiply(matrix, centring, scores), count))
    return path


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
    at_gaps = np.zeros((rank, len(X))) if centring.fill is None else vectors @ missing.T
    return Starts(vectors, vectors @ X.T, at_gaps).within_rank()


def _leading_eigenvectors(symmetric: np.ndarray, count: int) -> np.ndarray:
    """Return the eigenvectors of the `count` largest eigenvalues, one in each row."""
    n = len(symmetric)
    if n >= _MANY_SAMPLES and count < _N_LANCZOS // 2:
        # A fixed start with different entries, so that the result is reproducible and the start is
        # not orthogonal to the eigenvectors of symmetric designs.
        start = np.random.default_rng(0).standard_normal(n)
        try:
            vectors = eigsh(symmetric, count, which="LA", v0=start, ncv=_N_LANCZOS)[1]
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


def _gram(centred: Any) -> np.ndarray:
    return to_host(centred @ centred.T)


def _read_columns(matrix: DataMatrix, centring: Centring, features: np.ndarray) -> Columns:
    """Return centred columns in memory."""
    values = np.ascontiguousarray(centring.columns(matrix, features).T)
    return Columns.fill(features, values, centring.fill)
