"""Compiled loops. Loaded when first called (`core.compiled`): importing numba takes its time.

Sums run in one fixed order, whatever the layout of the data and however much of them is looked at,
so that a shortcut never changes a digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mrshc.core.arrays import Float, Index

# Columns that are summed up together: their running sums stay in the fastest cache.
_BLOCK = 512

# A screen is made for moves of u up to this many times the last one, and for thresholds that fall
# by no more than the second share; it pays if it keeps no more than the third share of the columns.
_REACH, _FALL, _WORTHWHILE = 3.0, 0.02, 0.25

# Dispersions below this share of the whole count as none: their logarithm must stay finite.
_NO_DISPERSION = 1e-16


@njit(cache=True, nogil=True)
def transposed_times(X: NDArray[Any], by_columns: bool, offsets: Float, u: Float) -> Float:
    """Return X'u, X minus its offsets; `by_columns`: X comes transposed."""
    if by_columns:
        return _transposed_columns_times(X, offsets, u)
    return _transposed_rows_times(X, offsets, u)


@njit(cache=True, nogil=True)
def _transposed_rows_times(X: NDArray[Any], offsets: Float, u: Float) -> Float:
    n, p = X.shape
    out = np.zeros(p)
    for start in range(0, p, _BLOCK):
        stop = min(start + _BLOCK, p)
        o, s = offsets[start:stop], out[start:stop]
        i = 0
        while i + 4 <= n:  # four rows at a time: a quarter of the traffic with the running sums
            a, b = X[i, start:stop], X[i + 1, start:stop]
            c, d = X[i + 2, start:stop], X[i + 3, start:stop]
            ua, ub, uc, ud = u[i], u[i + 1], u[i + 2], u[i + 3]
            for j in range(s.size):
                t = s[j] + (a[j] - o[j]) * ua
                t = t + (b[j] - o[j]) * ub
                t = t + (c[j] - o[j]) * uc
                s[j] = t + (d[j] - o[j]) * ud
            i += 4
        while i < n:
            a = X[i, start:stop]
            for j in range(s.size):
                s[j] += (a[j] - o[j]) * u[i]
            i += 1
    return out


@njit(cache=True, nogil=True)
def _transposed_columns_times(X: NDArray[Any], offsets: Float, u: Float) -> Float:
    p, n = X.shape
    out = np.empty(p)
    j = 0
    while j + 4 <= p:  # four sums at a time: none waits for the other
        a, b, c, d = X[j], X[j + 1], X[j + 2], X[j + 3]
        oa, ob, oc, od = offsets[j], offsets[j + 1], offsets[j + 2], offsets[j + 3]
        ta = tb = tc = td = 0.0
        for i in range(n):
            ta += (a[i] - oa) * u[i]
            tb += (b[i] - ob) * u[i]
            tc += (c[i] - oc) * u[i]
            td += (d[i] - od) * u[i]
        out[j], out[j + 1], out[j + 2], out[j + 3] = ta, tb, tc, td
        j += 4
    while j < p:
        total = 0.0
        for i in range(n):
            total += (X[j, i] - offsets[j]) * u[i]
        out[j] = total
        j += 1
    return out


@njit(cache=True, nogil=True)
def times(
    X: NDArray[Any], by_columns: bool, offsets: Float, indices: Index, weights: Float
) -> Float:
    """Return X v for the v that is `weights` at `indices`."""
    if by_columns:
        out = np.zeros(X.shape[1])
        for k in range(indices.size):
            column, offset, weight = X[indices[k]], offsets[indices[k]], weights[k]
            for i in range(out.size):
                out[i] += (column[i] - offset) * weight
        return out
    n = X.shape[0]
    out = np.empty(n)
    i = 0
    while i + 4 <= n:
        a, b, c, d = X[i], X[i + 1], X[i + 2], X[i + 3]
        ta = tb = tc = td = 0.0
        for k in range(indices.size):
            j = indices[k]
            offset, weight = offsets[j], weights[k]
            ta += (a[j] - offset) * weight
            tb += (b[j] - offset) * weight
            tc += (c[j] - offset) * weight
            td += (d[j] - offset) * weight
        out[i], out[i + 1], out[i + 2], out[i + 3] = ta, tb, tc, td
        i += 4
    while i < n:
        total = 0.0
        for k in range(indices.size):
            total += (X[i, indices[k]] - offsets[indices[k]]) * weights[k]
        out[i] = total
        i += 1
    return out


@njit(cache=True, nogil=True)
def column_lengths(X: NDArray[Any], by_columns: bool, offsets: Float) -> Float:
    """Return the length of each column of X minus its offsets."""
    out = np.zeros(offsets.size)
    if by_columns:
        for j in range(X.shape[0]):
            for i in range(X.shape[1]):
                out[j] += (X[j, i] - offsets[j]) ** 2
    else:
        for i in range(X.shape[0]):
            row = X[i]
            for j in range(out.size):
                out[j] += (row[j] - offsets[j]) ** 2
    return np.sqrt(out)


@njit(cache=True, nogil=True)
def sparse_direction(slopes: Float, l1_bound: float) -> tuple[Index, Float]:
    """Return the v that maximises slopes'v with |v|_2 <= 1 and |v|_1 <= bound, as a sparse vector.

    If features tie for the steepest slope and the bound is too small for all of them at unit
    length, they share the bound equally.
    """
    steepest = _steepest(slopes)
    if steepest == 0.0:
        return np.empty(0, np.intp), np.empty(0)
    level = _level(slopes, steepest, l1_bound, -1.0, steepest)
    return _above(slopes, steepest, level, l1_bound)


@njit(cache=True, nogil=True, fastmath={"nnan"})  # without NaN a maximum needs no order
def _steepest(slopes: Float) -> float:
    steepest = 0.0
    for slope in slopes:
        steepest = max(steepest, abs(slope))
    return steepest


@njit(cache=True, nogil=True)
def _above(slopes: Float, steepest: float, level: float, l1_bound: float) -> tuple[Index, Float]:
    """Return the slopes less than `level` below the steepest, soft-thresholded, at unit length."""
    count = 0
    for slope in slopes:
        depth = steepest - abs(slope)
        if depth < level or depth == 0.0:
            count += 1
    indices, weights = np.empty(count, np.intp), np.empty(count)
    k = 0
    squares = 0.0
    for j in range(slopes.size):
        depth = steepest - abs(slopes[j])
        if depth < level or depth == 0.0:
            indices[k] = j
            weights[k] = level - depth
            squares += weights[k] * weights[k]
            k += 1
    length = np.sqrt(squares)
    for k in range(count):
        weights[k] = weights[k] / length if level > 0.0 else l1_bound / count
        if slopes[indices[k]] < 0.0:
            weights[k] = -weights[k]
    return indices, weights


@njit(cache=True, nogil=True)
def _level(slopes: Float, steepest: float, l1_bound: float, guess: float, deepest: float) -> float:
    """Return steepest - delta, for the delta at which |soft|_1 / |soft|_2 equals the bound.

    Only slopes near the top matter: those down to a `guess` of the level are looked at, twice as
    deep if they do not suffice, down to `deepest` at most; -1 if that does not suffice either.
    """
    n_tied, second = 0, steepest
    for slope in slopes:
        depth = steepest - abs(slope)
        n_tied += depth == 0.0
        if 0.0 < depth < second:
            second = depth
    if n_tied >= l1_bound * l1_bound:
        return second if n_tied == l1_bound * l1_bound else 0.0
    depth = min(guess if guess > 0.0 else _first_guess(slopes, steepest, l1_bound), deepest)
    while True:
        level = _level_within(_depths(slopes, steepest, depth), l1_bound, depth)
        if level >= 0.0:
            return level
        if depth >= deepest:
            return steepest if deepest >= steepest else -1.0
        depth = min(2.0 * depth, deepest)


@njit(cache=True, nogil=True)
def _depths(slopes: Float, steepest: float, deepest: float) -> Float:
    """Return how far below the steepest the slopes lie that are less than `deepest` below it.

    Depths, unlike the slopes themselves, lose no digits when the best features are nearly tied.
    """
    out = np.empty(slopes.size + 1)
    count = 0
    for slope in slopes:
        depth = steepest - abs(slope)
        out[count] = depth
        count += depth < deepest
    return out[:count]


@njit(cache=True, nogil=True)
def _first_guess(slopes: Float, steepest: float, l1_bound: float) -> float:
    """Return a depth that holds about twice as many slopes as a bound needs at least."""
    wanted = 2.0 * l1_bound * l1_bound + 8.0
    low, high = 0.0, steepest
    for _ in range(12):
        middle = (low + high) / 2
        count = 0
        for slope in slopes:
            count += steepest - abs(slope) < middle
        if count < wanted:
            low = middle
        else:
            high = middle
            if count < 2.0 * wanted:
                break
    return high


@njit(cache=True, nogil=True)
def _level_within(depths: Float, l1_bound: float, deepest: float) -> float:
    """Return the level if it is at most `deepest`, else -1.

    With m active features, S1 and S2 the sums of their depths and squared depths, the ratio of the
    norms at level c is (m c - S1) / sqrt(m c^2 - 2 c S1 + S2): it grows with c, and equals the
    bound where m c = S1 + bound * sqrt((m S2 - S1^2) / (m - bound^2)). That root is the level if
    the same features are active there; else it is closer, and the root from there closer still.
    """
    bound2 = l1_bound * l1_bound
    low, high, c, known = 0.0, deepest, deepest, -1
    while True:
        m = 0
        s1 = s2 = 0.0
        for depth in depths:
            if depth < c:
                m += 1
                s1 += depth
                s2 += depth * depth
        if m == known:
            return c
        l1, l2_squared = m * c - s1, m * c * c - 2.0 * c * s1 + s2
        if l2_squared > 0.0 and l1 * l1 >= bound2 * l2_squared:
            high = c
        elif c == deepest:
            return -1.0
        else:
            low = c
        root, known = -1.0, m
        if m > bound2:
            root = (s1 + l1_bound * np.sqrt(max(m * s2 - s1 * s1, 0.0) / (m - bound2))) / m
        if not low < root < high:
            root, known = (low + high) / 2, -1
            if root in (low, high):  # neighbouring numbers: nothing lies between
                return high
        c = root


@njit(cache=True, nogil=True)
def alternate(
    X: NDArray[Any],
    by_columns: bool,
    offsets: Float,
    lengths: Float,
    scores: Float,
    loadings: Float,
    orthogonal: bool,
    patch_rows: Index,
    patch_columns: Index,
    patch: Float,
    v: Float,
    image: Float,
    l1_bound: float,
    max_iter: int,
    tol: float,
    noise: float,
) -> tuple[Float, Index, Float, float, int, bool]:
    """Alternate between u and v until v moves by no more than `tol`; u, v, u'Xv and how it ended.

    X is seen minus scores' loadings, plus a sparse patch; or, if `orthogonal`, u is kept orthogonal
    to the scores. It begins at a dense v with its image Xv, and ends with nothing where no more
    than `noise` is left of X. `lengths` holds those of the columns of X.

    Most columns never come near the threshold. As u moves by d, the slope of a column moves by no
    more than d times the column's length: a screen keeps the columns that can matter for a while,
    packed together, and all columns are looked at again when that while is over.
    """
    n, p = image.size, v.size
    u, anchor = np.zeros(n), np.empty(n)
    kept = np.empty(0, np.intp)  # columns of the screen
    packed, packed_loadings = np.empty((n, 0)), np.empty((0, 0))
    no_offsets = np.zeros(0)
    reach, floor, level = -1.0, 0.0, -1.0
    old_indices, old_weights = np.arange(p), v
    n_iter, converged, scale = 0, False, 0.0
    indices, weights = np.empty(0, np.intp), np.empty(0)
    while n_iter < max_iter and not converged:
        if orthogonal:
            for k in range(scores.shape[0]):
                image = image - _dot(scores[k], image) * scores[k]
        length = np.sqrt(_dot(image, image))
        if length <= noise:
            return np.zeros(n), np.empty(0, np.intp), np.empty(0), 0.0, 0, True
        step = 0.0
        for i in range(n):
            new = image[i] / length
            step += (new - u[i]) ** 2
            u[i] = new
        step = np.sqrt(step)
        screened = False
        if reach >= 0.0 and _distance(u, anchor) <= reach:
            slopes = _transposed_rows_times(packed, no_offsets, u)
            if not orthogonal:
                _deflate(slopes, scores, packed_loadings, u)
            steepest = _steepest(slopes)
            if steepest > floor:
                new_level = _level(slopes, steepest, l1_bound, 1.25 * level, steepest - floor)
                if new_level >= 0.0:
                    screened, level = True, new_level
        if not screened:
            slopes = transposed_times(X, by_columns, offsets, u)
            if not orthogonal:
                _deflate(slopes, scores, loadings, u)
            for k in range(patch.size):
                slopes[patch_columns[k]] += patch[k] * u[patch_rows[k]]
            steepest = _steepest(slopes)
            if steepest == 0.0:
                return np.zeros(n), np.empty(0, np.intp), np.empty(0), 0.0, 0, True
            level = _level(slopes, steepest, l1_bound, 1.25 * level, steepest)
            reach = -1.0
            if n_iter > 0 and patch.size == 0:
                floor = (1.0 - _FALL) * (steepest - level)
                kept = _near(slopes, lengths, loadings, _REACH * step, floor)
                if kept.size <= _WORTHWHILE * p:
                    reach = _REACH * step
                    anchor[:] = u
                    packed = _packed(X, by_columns, offsets, kept)
                    packed_loadings = loadings[:, kept]
                    no_offsets = np.zeros(kept.size)
        positions, weights = _above(slopes, steepest, level, l1_bound)
        scale = 0.0
        for k in range(positions.size):
            scale += slopes[positions[k]] * weights[k]
        if screened:
            indices = kept[positions]
            image = times(packed, False, no_offsets, positions, weights)
        else:
            indices = positions
            image = times(X, by_columns, offsets, indices, weights)
        if not orthogonal:
            for k in range(scores.shape[0]):
                overlap = 0.0
                for m in range(indices.size):
                    overlap += loadings[k, indices[m]] * weights[m]
                for i in range(n):
                    image[i] -= overlap * scores[k, i]
        if patch.size > 0:
            dense = np.zeros(p)
            dense[indices] = weights
            for k in range(patch.size):
                image[patch_rows[k]] += patch[k] * dense[patch_columns[k]]
        n_iter += 1
        converged = _l1_distance(old_indices, old_weights, indices, weights) <= tol
        old_indices, old_weights = indices, weights
    return u, indices, weights, scale, n_iter, converged


@njit(cache=True, nogil=True)
def _dot(a: Float, b: Float) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def _distance(a: Float, b: Float) -> float:
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) ** 2
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def _deflate(slopes: Float, scores: Float, loadings: Float, u: Float) -> None:
    for k in range(scores.shape[0]):
        overlap = _dot(scores[k], u)
        row = loadings[k]
        for j in range(slopes.size):
            slopes[j] -= overlap * row[j]


@njit(cache=True, nogil=True)
def _near(slopes: Float, lengths: Float, loadings: Float, reach: float, floor: float) -> Index:
    """Return the columns whose slope may exceed `floor` once u has moved by up to `reach`."""
    near = np.empty(slopes.size, np.intp)
    count = 0
    for j in range(slopes.size):
        length = lengths[j]
        for k in range(loadings.shape[0]):
            length += abs(loadings[k, j])
        near[count] = j
        count += abs(slopes[j]) + length * reach >= floor
    return near[:count].copy()


@njit(cache=True, nogil=True)
def _packed(X: NDArray[Any], by_columns: bool, offsets: Float, columns: Index) -> Float:
    n = X.shape[1] if by_columns else X.shape[0]
    out = np.empty((n, columns.size))
    if by_columns:
        for k in range(columns.size):
            j = columns[k]
            for i in range(n):
                out[i, k] = X[j, i] - offsets[j]
    else:
        for i in range(n):
            row, packed = X[i], out[i]
            for k in range(columns.size):
                packed[k] = row[columns[k]] - offsets[columns[k]]
    return out


@njit(cache=True, nogil=True)
def union(a: Index, b: Index) -> Index:
    """Return what is in one or the other of two increasing arrays, increasing."""
    out = np.empty(a.size + b.size, np.intp)
    i = j = count = 0
    while i < a.size or j < b.size:
        if j == b.size or (i < a.size and a[i] <= b[j]):
            j += j < b.size and a[i] == b[j]
            out[count] = a[i]
            i += 1
        else:
            out[count] = b[j]
            j += 1
        count += 1
    return out[:count].copy()


@njit(cache=True, nogil=True)
def _l1_distance(indices_a: Index, weights_a: Float, indices_b: Index, weights_b: Float) -> float:
    total = 0.0
    a = b = 0
    while a < indices_a.size or b < indices_b.size:
        if b == indices_b.size or (a < indices_a.size and indices_a[a] < indices_b[b]):
            total += abs(weights_a[a])
            a += 1
        elif a == indices_a.size or indices_b[b] < indices_a[a]:
            total += abs(weights_b[b])
            b += 1
        else:
            total += abs(weights_a[a] - weights_b[b])
            a += 1
            b += 1
    return total


@njit(cache=True, nogil=True)
def gap_test(
    X: Float,
    distances: Float,
    partitions: Index,
    rng: np.random.Generator,
    linkage: int,
    power: int,
    n_references: int,
    first_look: int,
    between_looks: int,
    certain: float,
) -> tuple[Float, Float]:
    """Return log W_k of a group, and of samples without clusters in its place, (samples, k).

    W_k belongs to the k-th row of `partitions` or, in the other samples, to their topmost k
    clusters. These samples are uniform in a box along the principal axes of X. Power 2: clusters
    are made on squared Euclidean distances and dispersions measured on plain ones; power 1: both
    on absolute distances. A look tells when the verdict on a split is certain; no more are drawn.
    """
    n, max_clusters = X.shape[0], partitions.shape[0]
    dispersions = np.empty(max_clusters)
    for k in range(max_clusters):
        dispersions[k] = dispersion(distances, partitions[k], power)
    observed = _log_of_dispersions(dispersions)
    if power == 2:  # rotation keeps Euclidean distances: no need to leave the principal axes
        box, axes = _principal_ranges(X), np.empty((0, 0))
    else:
        box, axes = _principal_box(X)
    reference = np.empty((n_references, max_clusters))
    for b in range(n_references):
        look = b >= first_look and (b - first_look) % between_looks == 0
        if look and _is_certain(reference[:b], observed, n_references, certain):
            return observed, reference[:b].copy()
        sample = rng.random((n, box.size))
        for i in range(n):
            for k in range(box.size):
                sample[i, k] = (sample[i, k] - 0.5) * box[k]
        if power == 2:
            within = np.dot(sample, sample.T)
            _squared_from_gram(within)
        else:
            within = _absolute_distances(np.dot(sample, axes))
        reference[b] = _log_of_dispersions(top_dispersions(within, linkage, power, max_clusters))
    return observed, reference


@njit(cache=True, nogil=True)
def _is_certain(reference: Float, observed: Float, n_references: int, certain: float) -> bool:
    """Tell whether the samples still to come could hardly change the verdict on a split.

    It rests on the sign of gap(2) - se(2) - gap(1). From what has been drawn to all that would be
    drawn, that moves by a mean and by a standard deviation: their standard errors, for samples
    from a normal distribution, tell by how much.
    """
    drawn = reference.shape[0]
    falls = reference[:, 1] - reference[:, 0]
    spread = reference[:, 1].var() * drawn / (drawn - 1) * (1 + 1 / n_references)
    margin = falls.mean() - np.sqrt(spread) - (observed[1] - observed[0])
    move_of_mean = falls.var() * drawn / (drawn - 1) * (1 / drawn - 1 / n_references)
    move_of_error = spread * (1 / (drawn - 1) - 1 / (n_references - 1)) / 2
    return abs(margin) > certain * np.sqrt(move_of_mean + move_of_error)


@njit(cache=True, nogil=True)
def _log_of_dispersions(dispersions: Float) -> Float:
    """Return log W_1, log W_2, ..., finite even where nothing is left within the clusters."""
    return np.log(np.maximum(dispersions, _NO_DISPERSION * dispersions[0]))


@njit(cache=True, nogil=True)
def dispersion(distances: Float, labels: Index, power: int) -> float:
    """Return W_k: over clusters, the sum of distances between pairs over twice the size.

    It adds up the distances themselves if they are of power 1, their roots if of power 2.
    """
    k = labels.max() + 1
    sizes, sums = np.zeros(k), np.zeros(k)
    for i in range(labels.size):
        sizes[labels[i]] += 1
        for j in range(i):
            if labels[i] == labels[j]:
                sums[labels[i]] += np.sqrt(distances[i, j]) if power == 2 else distances[i, j]
    return (sums / (2 * sizes)).sum()


@njit(cache=True, nogil=True)
def _centred(X: Float) -> Float:
    out = X.copy()
    for j in range(X.shape[1]):
        out[:, j] -= X[:, j].mean()
    return out


@njit(cache=True, nogil=True)
def _principal_ranges(X: Float) -> Float:
    """Return the range of X along each of its principal axes, in decreasing order of variance."""
    centred = _centred(X)
    n, p = X.shape
    if n > p:
        axes = np.linalg.eigh(np.dot(centred.T, centred))[1]
        scores = np.dot(centred, axes)
        lengths = np.ones(p)
    else:
        squares, scores = np.linalg.eigh(np.dot(centred, centred.T))
        lengths = np.sqrt(np.maximum(squares, 0.0))
    ranges = np.empty(min(n - 1, p))
    for k in range(ranges.size):  # the largest comes last; centring takes the first of n
        column = scores[:, scores.shape[1] - 1 - k]
        ranges[k] = (column.max() - column.min()) * lengths[lengths.size - 1 - k]
    return ranges


@njit(cache=True, nogil=True)
def _principal_box(X: Float) -> tuple[Float, Float]:
    """Return the range of X along each of its principal axes, and the axes in rows."""
    centred = _centred(X)
    n_axes = min(X.shape[0] - 1, X.shape[1])
    axes = np.ascontiguousarray(np.linalg.svd(centred, False)[2][:n_axes])
    ranges = np.empty(n_axes)
    for k in range(n_axes):
        scores = np.dot(centred, axes[k])
        ranges[k] = scores.max() - scores.min()
    return ranges, axes


@njit(cache=True, nogil=True)
def _absolute_distances(X: Float) -> Float:
    n = X.shape[0]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            total = 0.0
            for k in range(X.shape[1]):
                total += abs(X[i, k] - X[j, k])
            out[i, j] = out[j, i] = total
    return out


@njit(cache=True, nogil=True)
def _squared_from_gram(gram: Float) -> None:
    """Turn inner products of samples into squared distances, in place."""
    n = gram.shape[0]
    squares = np.empty(n)
    for i in range(n):
        squares[i] = gram[i, i]
    for i in range(n):
        row, own = gram[i], squares[i]
        for j in range(n):
            row[j] = max(own + squares[j] - 2.0 * row[j], 0.0)
        row[i] = 0.0


@njit(cache=True, nogil=True)
def top_dispersions(distances: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Return W_k of the topmost 1..max_clusters clusters of samples.

    W_k adds up the distances themselves if they are of power 1, their roots if of power 2.
    """
    if max_clusters == 2 and linkage < _N_REDUCIBLE:
        one = _top_split(distances.copy(), linkage)
        return _dispersions_of_split(distances, one, power)
    return _top_clusters(distances, linkage, power, max_clusters)


# The first linkages of core.tree.LINKAGES: a merge brings no third cluster closer than it was.
_N_REDUCIBLE = 5


@njit(cache=True, nogil=True)
def _top_split(distances: Float, linkage: int) -> Float:
    """Agglomerate, and mark the samples on one side of the last merge. Overwrites `distances`.

    A chain of nearest neighbours ends in two clusters that are nearest to each other; for the
    linkages that allow it these may be merged at once, in whatever order they are met, and the last
    merge is the top of the tree. Clusters fill the first m rows and columns.
    """
    n = distances.shape[0]
    sizes = np.ones(n)
    head, tail, following = np.arange(n), np.arange(n), np.full(n, -1)  # members, chained
    chain, length, m = np.empty(n, np.intp), 0, n
    for i in range(n):
        distances[i, i] = np.inf
    while m > 2:
        if length == 0:
            chain[0], length = 0, 1
        a = chain[length - 1]
        row = distances[a, :m]
        closest = _smallest(row)
        if length > 1 and row[chain[length - 2]] == closest:
            b = chain[length - 2]
            length -= 2
        else:
            b = 0
            while row[b] != closest:
                b += 1
            chain[length] = b
            length += 1
            continue
        i, j, last = min(a, b), max(a, b), m - 1
        _merge_rows(distances[i, :m], distances[j, :m], sizes[:m], i, j, linkage)
        for k in range(m):
            distances[k, i] = distances[i, k]
        distances[i, i] = np.inf
        sizes[i] += sizes[j]
        following[tail[i]] = head[j]
        tail[i] = tail[j]
        if j != last:  # the last cluster takes the place that has become free
            distances[j, :m] = distances[last, :m]
            for k in range(m):
                distances[k, j] = distances[k, last]
            distances[j, j] = np.inf
            sizes[j], head[j], tail[j] = sizes[last], head[last], tail[last]
            for k in range(length):
                if chain[k] == last:
                    chain[k] = j
        m -= 1
    one = np.zeros(n)
    member = head[0]
    while member >= 0:
        one[member] = 1.0
        member = following[member]
    return one


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})  # a minimum needs no order
def _smallest(row: Float) -> float:
    smallest = np.inf
    for k in range(row.size):
        smallest = min(smallest, row[k])
    return smallest


@njit(cache=True, nogil=True)
def _merge_rows(row_i: Float, row_j: Float, sizes: Float, i: int, j: int, linkage: int) -> None:
    """Put the distances of the union of clusters i and j in the row of i (Lance and Williams).

    Linkages are numbered by their position in core.tree.LINKAGES.
    """
    d_ij, n_i, n_j = row_i[j], sizes[i], sizes[j]
    total = n_i + n_j
    for k in range(row_i.size):
        d_ik, d_jk = row_i[k], row_j[k]
        if linkage == 0:  # single
            row_i[k] = min(d_ik, d_jk)
        elif linkage == 1:  # complete
            row_i[k] = max(d_ik, d_jk)
        elif linkage == 2:  # average
            row_i[k] = (n_i * d_ik + n_j * d_jk) / total
        elif linkage == 3:  # weighted
            row_i[k] = (d_ik + d_jk) / 2
        elif linkage == 4:  # ward
            n_k = sizes[k]
            row_i[k] = ((n_i + n_k) * d_ik + (n_j + n_k) * d_jk - n_k * d_ij) / (total + n_k)
        elif linkage == 5:  # centroid
            row_i[k] = (n_i * d_ik + n_j * d_jk - n_i * n_j * d_ij / total) / total
        else:  # median
            row_i[k] = (d_ik + d_jk) / 2 - d_ij / 4


@njit(cache=True, nogil=True)
def _dispersions_of_split(distances: Float, one: Float, power: int) -> Float:
    """Return W_1 of all samples, and W_2 of those marked `one` and the others."""
    n = one.size
    n_one = one.sum()
    everywhere = inside = outside = 0.0
    for i in range(n):
        row = distances[i]
        for j in range(i):
            distance = np.sqrt(row[j]) if power == 2 else row[j]
            everywhere += distance
            inside += distance * (one[i] * one[j])
            outside += distance * ((1.0 - one[i]) * (1.0 - one[j]))
    return np.array([everywhere / (2 * n), inside / (2 * n_one) + outside / (2 * (n - n_one))])


@njit(cache=True, nogil=True)
def _top_clusters(original: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Agglomerate to 1..max_clusters clusters and return W_k of each.

    Every cluster remembers its nearest neighbour, and the closest pair is merged: this order of
    merges holds for all linkages, also those that are not monotone.
    """
    distances = original.copy()
    n = distances.shape[0]
    sizes = np.ones(n)
    parent = np.arange(n)  # the cluster that absorbed this one; itself while alive
    nearest = np.empty(n, dtype=np.intp)
    nearest_distance = np.empty(n)
    for i in range(n):
        distances[i, i] = np.inf
    for i in range(n):
        nearest[i] = np.argmin(distances[i])
        nearest_distance[i] = distances[i, nearest[i]]
    out = np.zeros(max_clusters)
    for n_clusters in range(n, 0, -1):
        if n_clusters <= max_clusters:
            out[n_clusters - 1] = dispersion(original, _owners(parent), power)
        if n_clusters == 1:
            break
        i = int(np.argmin(nearest_distance))
        j = int(nearest[i])
        _merge_rows(distances[i], distances[j], sizes, i, j, linkage)
        parent[j] = i
        sizes[i] += sizes[j]
        for k in range(n):
            if parent[k] != k or k == i:
                distances[i, k] = np.inf
            distances[k, i] = distances[i, k]
            distances[k, j] = np.inf
            distances[j, k] = np.inf
        nearest_distance[j] = np.inf
        nearest[i] = np.argmin(distances[i])
        nearest_distance[i] = distances[i, nearest[i]]
        for k in range(n):
            if parent[k] != k or k == i:
                continue
            if nearest[k] == i or nearest[k] == j:
                nearest[k] = np.argmin(distances[k])
                nearest_distance[k] = distances[k, nearest[k]]
            elif distances[k, i] < nearest_distance[k]:
                nearest[k] = i
                nearest_distance[k] = distances[k, i]
    return out


@njit(cache=True, nogil=True)
def _owners(parent: Index) -> Index:
    """Return the clusters that samples were merged into, numbered 0, 1, ..."""
    number, owners, count = np.full(parent.size, -1), np.empty(parent.size, np.intp), 0
    for i in range(parent.size):
        owner = i
        while parent[owner] != owner:
            owner = parent[owner]
        if number[owner] < 0:
            number[owner] = count
            count += 1
        owners[i] = number[owner]
    return owners


@njit(cache=True, nogil=True)
def add_absolute(total: Float, features: Float, observed: Float, weights: Float) -> None:
    """Add weighted absolute differences of samples; `features` in rows, `observed` 0 or 1."""
    n = total.shape[0]
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            for j in range(n):
                distance = weights[k] * abs(x[i] - x[j])
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                total[i, j] += distance


@njit(cache=True, nogil=True)
def absolute_forms(u: Float, features: Float, observed: Float) -> Float:
    """Return for each feature the sum over pairs of u times their absolute difference."""
    n = u.shape[0]
    out = np.zeros(features.shape[0])
    for k in range(features.shape[0]):
        x = features[k]
        for i in range(n):
            row = 0.0
            for j in range(i):
                distance = u[i, j] * abs(x[i] - x[j])
                if observed.size:
                    distance *= observed[k, i] * observed[k, j]
                row += distance
            out[k] += row
    return out


@njit(cache=True, nogil=True)
def starts_of_nodes(children: Index, sizes: Index) -> Index:
    """Return where the samples of each node of a tree begin, when laid out from left to right."""
    n = children.shape[0] + 1
    starts = np.zeros(2 * n - 1, np.intp)
    for merge in range(n - 2, -1, -1):  # parents come before their children
        left, right = children[merge, 0], children[merge, 1]
        starts[left] = starts[n + merge]
        starts[right] = starts[n + merge] + sizes[left]
    return starts
