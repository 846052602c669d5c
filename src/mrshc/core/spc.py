"""Sparse principal components: maximise u'Xv with |u|_2 <= 1, |v|_2 <= 1, |v|_1 <= bound.

Witten, Tibshirani and Hastie (2009) alternate u = Xv / |Xv| and v = soft(X'u, delta) / |.|_2. Their
delta is found here exactly from the sorted |X'u|, so the answer does not depend on the scale of
X. Further components see X minus the components before, which is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy import sparse

from mrshc.core.arrays import Float, Index
from mrshc.core.matrix import Matrix


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """One sparse component: scale * u v', where v is `weights` at `indices`, zero elsewhere."""

    u: Float  # (n,), unit length
    indices: Index  # (m,), increasing
    weights: Float  # (m,), non-zero
    scale: float  # u'Xv
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Starts:
    """Where the alternation begins: component k starts from the k-th row of `vectors`."""

    vectors: Float  # (k, p)
    images: Float  # (k, n), X v for each of them
    noise: float  # length of X v that rounding alone may leave


def leading_starts(matrix: Matrix, n_components: int) -> Starts:
    """Start from the leading right singular vectors of X, found from its smaller Gram matrix.

    Sparse components leave more of X than full ones, so there can be more of them than X has
    rank: those start from the last singular vector that there is.
    """
    n, p = matrix.shape
    if p > n:
        left = _leading_eigenvectors(matrix.gram(), n_components)
        right = np.stack([matrix.transposed_times(u) for u in left])
    else:
        right = _leading_eigenvectors(matrix.cross_product(), n_components)
    lengths = np.linalg.norm(right, axis=1)
    starts = starts_at(matrix, right / np.where(lengths > 0, lengths, 1.0)[:, None])
    # The Gram matrix knows small singular values badly; the images know them well.
    exist = np.linalg.norm(starts.images, axis=1) > starts.noise
    order = np.minimum(np.arange(n_components), max(int(exist.sum()) - 1, 0))
    return Starts(vectors=starts.vectors[order], images=starts.images[order], noise=starts.noise)


def starts_at(matrix: Matrix, vectors: Float) -> Starts:
    """Start from given right vectors, one in each row."""
    every = np.arange(matrix.shape[1])
    images = np.stack([matrix.times(every, v) for v in vectors])
    longest = float(np.linalg.norm(images, axis=1).max())
    noise = longest * max(matrix.shape) * float(np.finfo(np.float64).eps)
    return Starts(vectors=vectors, images=images, noise=noise)


def _leading_eigenvectors(gram: Float, count: int) -> Float:
    """Return eigenvectors in rows, in decreasing order of their eigenvalues."""
    _, vectors = np.linalg.eigh(gram)
    return np.ascontiguousarray(vectors[:, ::-1][:, :count].T)


def next_component(
    matrix: Matrix,
    earlier: Sequence[Component],
    *,
    starts: Starts,
    l1_bound: float,
    orthogonal: bool = False,
    max_iter: int,
    tol: float,
) -> Component:
    """Find the component that follows `earlier`, by alternation from its start.

    The data are X minus the earlier components (deflation) or, if `orthogonal`, X itself with u
    kept orthogonal to the earlier u's. It has converged when v moves by at most `tol` in L1 norm.
    """
    k = len(earlier)
    residual = _Residual(matrix, () if orthogonal else earlier)
    fixed = np.stack([c.u for c in earlier]) if orthogonal and earlier else None
    v = starts.vectors[k].copy()
    image = residual.image(v, starts.images[k])
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        if fixed is not None:
            image = image - fixed.T @ (fixed @ image)
        length = float(np.linalg.norm(image))
        if length <= starts.noise:  # nothing is left of X: an empty component
            return _empty(image.size)
        u = image / length
        slopes = residual.transposed_times(u)
        indices, weights = sparse_direction(slopes, l1_bound)
        scale = float(slopes[indices] @ weights)
        v, moved = _moved(v, indices, weights)
        n_iter += 1
        converged = moved <= tol
        image = residual.times(indices, weights)
    sign = np.sign(weights[np.argmax(np.abs(weights))])
    return Component(
        u=sign * u,
        indices=indices,
        weights=sign * weights,
        scale=scale,
        n_iter=n_iter,
        converged=converged,
    )


def _empty(n: int) -> Component:
    return Component(
        u=np.zeros(n),
        indices=np.empty(0, np.intp),
        weights=np.empty(0),
        scale=0.0,
        n_iter=0,
        converged=True,
    )


def sparse_direction(slopes: Float, l1_bound: float) -> tuple[Index, Float]:
    """Return the v that maximises slopes'v with |v|_2 <= 1 and |v|_1 <= bound, as a sparse vector.

    If features tie for the steepest slope and the bound is too small for all of them at unit
    length, they share the bound equally.
    """
    magnitudes = np.abs(slopes)
    steepest = magnitudes.max()
    if steepest == 0.0:
        return np.empty(0, np.intp), np.empty(0)
    # Depths below the steepest slope: unlike the slopes themselves, they lose no digits when the
    # best features are nearly tied.
    depths = steepest - magnitudes
    level = _level(np.sort(depths), steepest, l1_bound)
    if level == 0.0:
        indices = np.flatnonzero(depths == 0.0)
        return indices, np.sign(slopes[indices]) * (l1_bound / indices.size)
    indices = np.flatnonzero(depths < level)
    weights = np.sign(slopes[indices]) * (level - depths[indices])
    return indices, weights / np.linalg.norm(weights)


@njit(cache=True, nogil=True)
def _level(depths: Float, steepest: float, l1_bound: float) -> float:
    """Return steepest - delta, for the delta at which |soft|_1 / |soft|_2 equals the bound.

    With m active features, S1 and S2 the sums of their depths and squared depths, the ratio at
    depth c is (m c - S1) / sqrt(m c^2 - 2 c S1 + S2): it grows with c, and equals the bound where
    m c = S1 + bound * sqrt((m S2 - S1^2) / (m - bound^2)).
    """
    bound2 = l1_bound * l1_bound
    s1 = 0.0
    s2 = 0.0
    for m in range(1, depths.size + 1):
        s1 += depths[m - 1]
        s2 += depths[m - 1] * depths[m - 1]
        c = depths[m] if m < depths.size else steepest
        l1 = m * c - s1
        l2_squared = m * c * c - 2.0 * c * s1 + s2
        if l2_squared > 0.0 and l1 * l1 >= bound2 * l2_squared:
            if m <= bound2:  # only a feature alone at the top under a bound of one
                return c
            spread = max(m * s2 - s1 * s1, 0.0)
            return min(c, (s1 + l1_bound * np.sqrt(spread / (m - bound2))) / m)
    return steepest


@njit(cache=True, nogil=True)
def _moved(v: Float, indices: Index, weights: Float) -> tuple[Float, float]:
    """Return the new v, dense, and its L1 distance from the old."""
    new = np.zeros(v.size)
    for k in range(indices.size):
        new[indices[k]] = weights[k]
    distance = 0.0
    for j in range(v.size):
        distance += abs(new[j] - v[j])
    return new, distance


class _Residual:
    """X minus earlier components, its missing cells filled with the mean of its observed ones."""

    def __init__(self, matrix: Matrix, earlier: Sequence[Component]) -> None:
        self._matrix = matrix
        self._earlier = earlier
        self._patch = _missing_patch(matrix, earlier)

    def image(self, v: Float, full_image: Float) -> Float:
        """Return the residual's product with a dense v whose product with X is known."""
        image = full_image.copy()
        for c in self._earlier:
            image -= (c.scale * (c.weights @ v[c.indices])) * c.u
        return image if self._patch is None else image + self._patch @ v

    def times(self, indices: Index, weights: Float) -> Float:
        v = np.zeros(self._matrix.shape[1])
        v[indices] = weights
        return self.image(v, self._matrix.times(indices, weights))

    def transposed_times(self, u: Float) -> Float:
        slopes = self._matrix.transposed_times(u)
        for c in self._earlier:
            slopes[c.indices] -= (c.scale * (c.u @ u)) * c.weights
        return slopes if self._patch is None else slopes + self._patch.T @ u


def _missing_patch(matrix: Matrix, earlier: Sequence[Component]) -> sparse.csr_array | None:
    """Return what the missing cells need on top of X - L, L being the earlier components.

    There the cell must hold the mean of the observed cells of X - L, while X - L itself holds X's
    own fill minus L.
    """
    if matrix.missing is None or not earlier:
        return None
    n, p = matrix.shape
    rows, cols = matrix.missing.coords
    fill = matrix.fill
    observed_sum = matrix.total() - fill * rows.size
    low_rank = np.zeros(rows.size)
    for c in earlier:
        v = np.zeros(p)
        v[c.indices] = c.weights
        low_rank += c.scale * c.u[rows] * v[cols]
        observed_sum -= c.scale * c.u.sum() * v.sum()
    mean = (observed_sum + low_rank.sum()) / (n * p - rows.size)
    return sparse.csr_array((low_rank + mean - fill, (rows, cols)), shape=(n, p))
