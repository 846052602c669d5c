"""Sparse hierarchical clustering: feature weights that maximise a weighted dissimilarity.

Witten and Tibshirani (2010) maximise u'Dw subject to |u|_2 <= 1, |w|_2 <= 1, |w|_1 <= bound and
w >= 0. Column j of D holds the distances of all pairs of samples in feature j. D is never formed:
for squared distances Dw is a weighted Gram matrix and D'u follows from the Laplacian of u.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mrshc.core import parallel
from mrshc.core.data.matrix import DataMatrix, Summary, namespace, to_device, to_host
from mrshc.core.kernels import add_cityblock_distances, cityblock_slopes
from mrshc.core.sparse_components import bisect_l1_bound, sparse_direction

# With weights for no more than this share of the features, only their columns are read.
_FEW = 1 / 8
# What is orthogonal to an earlier solution is zero if its norm is at most this share of the whole:
# far above rounding errors, far below any structure.
_RELATIVE_ZERO = 1e-10
# Distances that the threads together keep of permuted data, 2 GB; they are drawn anew otherwise.
_MAX_KEPT = 1 << 28
_BLOCK_CELLS = 1 << 19  # distances of a block of features; each has its own stream of permutations


class Dissimilarity(Protocol):
    """Dw and D'u of the data or of permuted distances; u is a matrix or a vector of pairs."""

    n_features: int
    unit: float  # distances are divided by it, so that their products do not overflow

    def of_weights(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return Dw, scaled to norm 1 over pairs, and its norm."""
        ...

    def slopes(self, u: np.ndarray) -> np.ndarray:
        """Return D'u."""
        ...


_SMALLEST_BOUND, _LARGEST_SHARE, _N_BOUNDS = 1.1, 0.7, 10


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """The weights under one penalty."""

    weights: np.ndarray  # (p,)
    criterion: float
    penalty: float  # the L1 bound, or the penalty of the spike
    n_iter: int
    converged: bool

    @property
    def features(self) -> np.ndarray:
        return np.flatnonzero(self.weights)


class DataDissimilarity:
    """Dissimilarity of n samples, as symmetric matrices.

    Parameters
    ----------
    matrix, summary
        The data.
    metric : {"sqeuclidean", "cityblock"}
        Distance in each feature. For two samples it is scaled up to all features if some are
        missing in one of them.
    orthogonal_to : ndarray of shape (n, n) or None
        Earlier solution that Dw is kept orthogonal to, for a complementary clustering.
    """

    def __init__(
        self,
        matrix: DataMatrix,
        summary: Summary,
        metric: str,
        orthogonal_to: np.ndarray | None = None,
    ) -> None:
        n, self.n_features = matrix.shape
        self.matrix, self._summary, self.metric = matrix, summary, metric
        self.unit = summary.unit if metric == "cityblock" else summary.unit**2
        self._rescale: np.ndarray | None = None
        if summary.has_missing:
            shared = sum(matrix.map(_shared_counts), np.zeros((n, n)))
            self._rescale = self.n_features / np.maximum(shared, 1.0)
            self.n_shared = shared
        self._earlier = orthogonal_to
        if orthogonal_to is not None:
            self._earlier = orthogonal_to / _pair_norm(orthogonal_to)
            ones = np.ones(self.n_features)
            norm, whole = self.of_weights(ones)[1], _pair_norm(self.distances(ones))
            if norm <= _RELATIVE_ZERO * whole:
                raise ValueError(
                    "The dissimilarity of X must not be a multiple of complement_of, but it is: "
                    "nothing is orthogonal to it. Pass other features or another complement_of."
                )

    def of_weights(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        u = self.distances(weights)
        if self._earlier is not None:
            u -= self._earlier * (np.sum(self._earlier * u) / 2)  # the sum counts each pair twice
        norm = _pair_norm(u)
        return (u / norm if norm > 0 else u), norm

    def distances(self, weights: np.ndarray) -> np.ndarray:
        """Return Dw as a matrix (n, n)."""
        n, p = self.matrix.shape
        total, used = np.zeros((n, n)), np.flatnonzero(weights)
        if used.size <= _FEW * p:
            step = max(_BLOCK_CELLS // n, 1)
            for start in range(0, used.size, step):
                some = used[start : start + step]
                total += self._distances(self.matrix.columns(some), some, weights[some])
        else:
            total += sum(
                self.matrix.map(lambda block, start: self._of_block(block, start, weights))
            )
        if self._rescale is not None:
            total *= self._rescale
            np.fill_diagonal(total, 0.0)
        return total

    def _of_block(self, block: Any, start: int, weights: np.ndarray) -> np.ndarray:
        features = slice(start, start + block.shape[1])
        return self._distances(block, features, weights[features])

    def _distances(self, block: Any, features: Any, weights: np.ndarray) -> np.ndarray:
        values, observed = self._centred(block, features)
        if self.metric == "cityblock":
            total = np.zeros((block.shape[0],) * 2)
            add_cityblock_distances(total, *_rows(values, observed), np.ascontiguousarray(weights))
            return total
        xp = namespace(values)
        rooted = values * to_device(np.sqrt(weights), block)
        products = rooted @ rooted.T
        if observed is None:
            squares = xp.linalg.diagonal(products)
            sums = squares[:, None] + squares[None, :]
        else:
            squares = (rooted * rooted) @ observed.T
            sums = squares + squares.T
        return np.maximum(to_host(sums - 2.0 * products), 0.0)

    def _centred(self, block: Any, features: Any) -> tuple[Any, Any]:
        """Return centred and scaled columns, and a mask of the observed values or None."""
        xp = namespace(block)
        means = to_device(self._summary.means[features], block)
        values = (xp.astype(block, xp.float64) - means) / self._summary.unit
        if self._rescale is None:
            return values, None
        missing = xp.isnan(values)
        return xp.where(missing, 0.0, values), xp.astype(~missing, xp.float64)

    def slopes(self, u: np.ndarray) -> np.ndarray:
        u = u if self._rescale is None else u * self._rescale

        def of_block(block: Any, start: int) -> np.ndarray:
            values, observed = self._centred(block, slice(start, start + block.shape[1]))
            if self.metric == "cityblock":
                return cityblock_slopes(u, *_rows(values, observed))
            xp, U = namespace(values), to_device(u, block)
            degrees = xp.sum(U, axis=1)[:, None] if observed is None else U @ observed
            return to_host(xp.sum(values * (degrees * values - U @ values), axis=0))

        return np.concatenate(list(self.matrix.map(of_block)))

    def permuted(self, entropy: int, permutation: int, n_workers: int) -> PermutedDissimilarity:
        """Return the dissimilarity after the distances in each feature are permuted."""
        return PermutedDissimilarity(self, (entropy, permutation), n_workers)

    def pair_distances(self, block: slice) -> np.ndarray:
        """Return the distances (b, n (n - 1) / 2) of all pairs in each feature of a block."""
        index = np.arange(block.start, block.stop)
        values, observed = self._centred(self.matrix.columns(index), index)
        i, j = np.triu_indices(len(values), 1)
        difference = values[i] - values[j]
        distances = np.abs(difference) if self.metric == "cityblock" else np.square(difference)
        if observed is not None and self._rescale is not None:
            distances *= observed[i] * observed[j] * self._rescale[i, j][:, None]
        return np.ascontiguousarray(distances.T)


def _shared_counts(block: Any, _: int) -> np.ndarray:
    """Return for how many features of a block both samples of each pair are observed."""
    xp = namespace(block)
    observed = xp.astype(~xp.isnan(block), xp.float64)
    return to_host(observed @ observed.T)


def _rows(values: Any, observed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return features in rows, and the mask of their values; it is empty if none is missing."""
    rows = np.ascontiguousarray(to_host(values).T)
    mask = np.empty((0, 0)) if observed is None else np.ascontiguousarray(to_host(observed).T)
    return rows, mask


def _pair_norm(u: np.ndarray) -> float:
    """Return the norm of the entries above the diagonal of a symmetric matrix."""
    return float(np.linalg.norm(u) / np.sqrt(2))


class PermutedDissimilarity:
    """Dissimilarity of pairs, after the distances in each feature are permuted on their own."""

    def __init__(self, data: DataDissimilarity, seed: tuple[int, int], n_workers: int) -> None:
        n = data.matrix.shape[0]
        self.n_features, self.unit = data.n_features, data.unit
        self._data, self._seed, self._n_pairs = data, seed, n * (n - 1) // 2
        is_small = self._n_pairs * self.n_features <= _MAX_KEPT // n_workers
        self._kept = list(self._draw()) if is_small else None

    def _draw(self) -> Iterator[tuple[slice, np.ndarray]]:
        entropy, permutation = self._seed
        step = max(_BLOCK_CELLS // self._n_pairs, 1)
        for k, start in enumerate(range(0, self.n_features, step)):
            block = slice(start, min(start + step, self.n_features))
            rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(permutation, k)))
            yield block, rng.permuted(self._data.pair_distances(block), axis=1)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        return self._draw() if self._kept is None else iter(self._kept)

    def of_weights(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        total = np.zeros(self._n_pairs)
        for block, distances in self._blocks():
            used = np.flatnonzero(weights[block])
            total += weights[block][used] @ distances[used]
        norm = float(np.linalg.norm(total))
        return (total / norm if norm > 0 else total), norm

    def slopes(self, u: np.ndarray) -> np.ndarray:
        return np.concatenate([distances @ u for _, distances in self._blocks()])


class L1Path:
    """The weights of a dissimilarity under any L1 bound.

    The alternation starts from equal weights, so its first step is shared by all bounds.
    """

    def __init__(self, dissimilarity: Dissimilarity, *, max_iter: int, tol: float) -> None:
        self._dissimilarity, self._max_iter, self._tol = dissimilarity, max_iter, tol
        self._solved: dict[float, FeatureWeights] = {}
        self._first_u = dissimilarity.of_weights(np.ones(dissimilarity.n_features))[0]
        self._first_slopes = dissimilarity.slopes(self._first_u)

    def solve(self, bound: float) -> FeatureWeights:
        if bound not in self._solved:
            self._solved[bound] = self._alternate(bound)
        return self._solved[bound]

    def search(self, q: int) -> FeatureWeights:
        """Return weights of which q are not zero, or a number close to q."""
        bound, _ = bisect_l1_bound(
            lambda bound, _: self.solve(bound).features,
            q,
            largest=float(np.sqrt(self._dissimilarity.n_features)),
        )
        return self.solve(bound)

    def _alternate(self, bound: float) -> FeatureWeights:
        u, slopes, n_iter = self._first_u, self._first_slopes, 0
        while True:
            # Slopes are negative only if u is kept orthogonal to an earlier solution.
            weights = sparse_direction(np.maximum(slopes, 0.0), bound)
            old = u
            u, criterion = self._dissimilarity.of_weights(weights)
            n_iter += 1
            converged = np.abs(u - old).sum() <= self._tol * np.abs(old).sum()
            if converged or n_iter == self._max_iter:
                break
            slopes = self._dissimilarity.slopes(u)
        criterion *= self._dissimilarity.unit
        return FeatureWeights(weights, criterion, bound, n_iter, bool(converged))


@dataclass(frozen=True, eq=False)
class PermutationGap:
    """For each candidate, the log of the criterion minus its mean over permuted data."""

    gap: np.ndarray
    sd: np.ndarray

    @property
    def best(self) -> int:
        return int(self.gap.argmax())


def permutation_gap(
    criteria: Sequence[float],
    permuted_criteria: Callable[[int], np.ndarray],
    n_permutations: int,
    progress: parallel.Progress,
) -> PermutationGap:
    """Return the permutation gap of several candidates.

    `permuted_criteria(m)` returns their criteria for permutation m of the data.
    """
    logs = []
    for criteria_of_permutation in parallel.run(permuted_criteria, range(n_permutations)):
        logs.append(np.log(criteria_of_permutation))
        progress(len(logs), n_permutations)
    return PermutationGap(np.log(criteria) - np.mean(logs, axis=0), np.std(logs, axis=0, ddof=1))


def default_bounds(largest: float) -> tuple[float, ...]:
    """Return candidates for the L1 bound, as in R's sparcl: ten from 1.1 to .7 of the largest."""
    end = max(_SMALLEST_BOUND, _LARGEST_SHARE * largest)
    return tuple(np.unique(np.linspace(_SMALLEST_BOUND, end, _N_BOUNDS)).tolist())


def candidate_table(
    name: str, solutions: Sequence[Any], targets: Any, gap: PermutationGap | None, best: int
) -> dict[str, np.ndarray]:
    """Return the table of the candidates for a penalty."""
    table = {
        name: np.array([s.penalty for s in solutions]),
        "n_features": np.array([s.features.size for s in solutions]),
        "criterion": np.array([s.criterion for s in solutions]),
        "chosen": np.arange(len(solutions)) == best,
    }
    if len(targets):
        table["n_features_target"] = np.array(targets)
        table["reached"] = table["n_features"] == table["n_features_target"]
    if gap is not None:
        table |= {"gap": gap.gap, "gap_sd": gap.sd}
    return table
