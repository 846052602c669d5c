"""Products with X, the sparse direction under an L1 bound, and the alternation between the two.

Sums run in one fixed order, whatever the layout of the data and however much of them is looked at,
so that a shortcut never changes a digit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.arrays import Float, Index
from mrshc.core.kernels.jit import jit

# Columns that are summed up together: their running sums stay in the fastest cache.
_BLOCK = 512

# A screen is made for moves of u up to this many times the last one, and for thresholds that fall
# by no more than the second share; it pays if it keeps no more than the third share of the columns.
_REACH, _FALL, _WORTHWHILE = 3.0, 0.05, 0.125


@jit()
def transposed_times(X: NDArray[Any], by_columns: bool, offsets: Float, u: Float) -> Float:
    """Return X'u, X minus its offsets; `by_columns`: X comes transposed."""
    if by_columns:
        return _transposed_columns_times(X, offsets, u)
    return _transposed_rows_times(X, offsets, u)


@jit()
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


@jit()
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


@jit()
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


@jit()
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


@jit()
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


@jit(fastmath={"nnan"})  # without NaN a maximum needs no order
def _steepest(slopes: Float) -> float:
    steepest = 0.0
    for slope in slopes:
        steepest = max(steepest, abs(slope))
    return steepest


@jit()
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


@jit()
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


@jit()
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


@jit()
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


@jit()
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


class Patch(NamedTuple):
    """What single cells have on top."""

    rows: Index
    columns: Index
    values: Float


class Residual(NamedTuple):
    """X minus its offsets, minus scores' loadings, plus a patch of single cells."""

    X: NDArray[Any]  # (n, p), or (p, n) if `by_columns`
    by_columns: bool
    offsets: Float  # (p,)
    scores: Float  # (k, n), of earlier components
    loadings: Float  # (k, p), times their scales
    orthogonal: bool  # the scores are not subtracted: u is kept orthogonal to them
    patch: Patch


class Screen(NamedTuple):
    """The columns that can come near the threshold while u stays within `reach` of an anchor."""

    columns: Index  # (m,), increasing
    packed: NDArray[Any]  # (n, m), these columns of X
    offsets: Float  # (m,)
    loadings: Float  # (k, m)
    patch: Patch  # of these columns
    anchor: Float  # (n,)
    reach: float  # negative: no screen
    floor: float  # no other column has a slope above it


class Trace(NamedTuple):
    """Where an earlier alternation looked at all columns: of use if the next one passes nearby.

    After t iterations u was `scores[t]` and no slope of X exceeded `ceilings[t]` times `units[t]`.
    """

    scores: Float  # (T, n)
    ceilings: NDArray[np.uint8]  # (T, p)
    units: Float  # (T,)
    thresholds: Float  # (T,), of the soft threshold then; negative: nothing is known


class Record(NamedTuple):
    """What an alternation rests on: where u was, and the slope above which columns were taken."""

    scores: Float  # (T, n)
    thresholds: Float  # (T,), negative: it did not come so far


@jit()
def alternate(
    residual: Residual,
    lengths: Float,
    trace: Trace,
    record: Record,
    v: Float,
    image: Float,
    l1_bound: float,
    max_iter: int,
    tol: float,
    noise: float,
) -> tuple[Float, Index, Float, float, int, bool]:
    """Alternate between u and v until v moves by no more than `tol`; u, v, u'Xv and how it ended.

    It begins at a dense v with its image Xv, yet without the patch, and ends with nothing where no
    more than `noise` is left of X. `lengths` holds those of the columns of X.

    Most columns never come near the threshold. As u moves by d, the slope of a column moves by no
    more than d times the column's length: a screen keeps the columns that can matter for a while,
    packed together, and all columns are looked at again when that while is over. A trace of an
    earlier alternation, at a bound nearby, serves as a screen too; this one leaves its own.
    """
    u = np.zeros(image.size)
    screen = _no_screen(residual.X)
    indices, weights, scale, level = np.arange(v.size), v, 0.0, -1.0
    image = _with_patched_image(residual.patch, image, v)
    patch_lengths = _patch_lengths(residual.patch, v.size)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        if residual.orthogonal:
            for k in range(residual.scores.shape[0]):
                image = image - _dot(residual.scores[k], image) * residual.scores[k]
        length = np.sqrt(_dot(image, image))
        if length <= noise:
            return np.zeros(u.size), np.empty(0, np.intp), np.empty(0), 0.0, 0, True
        old_u, old_indices, old_weights = u, indices, weights
        u = image / length
        slopes, steepest, new_level = _screened_slopes(residual, screen, u, l1_bound, level)
        screened = new_level >= 0.0
        traced = n_iter < trace.units.size and trace.thresholds[n_iter] > 0.0
        if not screened and traced:
            screen = _screen_of_trace(residual, lengths, patch_lengths, trace, n_iter, u)
            slopes, steepest, new_level = _screened_slopes(residual, screen, u, l1_bound, level)
            screened = new_level >= 0.0
        if not screened:
            slopes = _slopes(residual, u, trace, n_iter)
            steepest = _steepest(slopes)
            if steepest == 0.0:
                _note(record, n_iter, u, 0.0)
                return np.zeros(u.size), np.empty(0, np.intp), np.empty(0), 0.0, 0, True
            new_level = _level(slopes, steepest, l1_bound, 1.25 * level, steepest)
            if n_iter < trace.units.size:
                trace.thresholds[n_iter] = steepest - new_level
            screen = _no_screen(residual.X)
            if n_iter > 0:
                reach = _REACH * _distance(u, old_u)
                floor = (1.0 - _FALL) * (steepest - new_level)
                screen = _screen(residual, lengths + patch_lengths, slopes, u, reach, floor)
        level = new_level
        _note(record, n_iter, u, steepest - level)
        positions, weights = _above(slopes, steepest, level, l1_bound)
        scale = 0.0
        for k in range(positions.size):
            scale += slopes[positions[k]] * weights[k]
        if screened:
            indices = screen.columns[positions]
            image = times(screen.packed, False, screen.offsets, positions, weights)
            _take_from_image(residual, screen.loadings, screen.patch, image, positions, weights)
        else:
            indices = positions
            image = times(residual.X, residual.by_columns, residual.offsets, indices, weights)
            _take_from_image(residual, residual.loadings, residual.patch, image, indices, weights)
        n_iter += 1
        converged = _l1_distance(old_indices, old_weights, indices, weights) <= tol
    return u, indices, weights, scale, n_iter, converged


@jit()
def _note(record: Record, t: int, u: Float, threshold: float) -> None:
    if t < record.thresholds.size:
        record.scores[t] = u
        record.thresholds[t] = threshold


@jit()
def _no_screen(X: NDArray[Any]) -> Screen:
    packed = np.empty((0, 0), X.dtype)
    nowhere, none = np.empty(0, np.intp), np.empty(0)
    patch = Patch(nowhere, nowhere, none)
    return Screen(nowhere, packed, none, np.empty((0, 0)), patch, none, -1.0, 0.0)


@jit()
def _screen(
    residual: Residual, lengths: Float, slopes: Float, u: Float, reach: float, floor: float
) -> Screen:
    """Keep the columns whose slope may exceed `floor` while u moves by up to `reach`, if few."""
    columns = _near(slopes, lengths, residual.loadings, reach, floor)
    if columns.size > _WORTHWHILE * slopes.size:
        return _no_screen(residual.X)
    return _screen_on(residual, columns, u, reach, floor)


@jit()
def _screen_on(
    residual: Residual, columns: Index, anchor: Float, reach: float, floor: float
) -> Screen:
    packed = _packed(residual.X, residual.by_columns, columns)
    loadings = residual.loadings[:, columns]
    patch = _patch_of(residual.patch, columns, residual.offsets.size)
    return Screen(columns, packed, residual.offsets[columns], loadings, patch, anchor, reach, floor)


@jit()
def _patch_of(patch: Patch, columns: Index, p: int) -> Patch:
    """Return the patch of some of p columns, in the same order."""
    if patch.values.size == 0:
        return patch
    position = np.full(p, -1)
    position[columns] = np.arange(columns.size)
    kept = np.empty(patch.values.size, np.intp)
    count = 0
    for k in range(patch.values.size):
        kept[count] = k
        count += position[patch.columns[k]] >= 0
    kept = kept[:count]
    return Patch(patch.rows[kept], position[patch.columns[kept]], patch.values[kept])


@jit()
def _screened_slopes(
    residual: Residual, screen: Screen, u: Float, l1_bound: float, level: float
) -> tuple[Float, float, float]:
    """Return slopes of the screen's columns, the steepest, and the level; -1 if it may be wrong."""
    if screen.reach < 0.0 or _distance(u, screen.anchor) > screen.reach:
        return np.empty(0), 0.0, -1.0
    slopes = _transposed_rows_times(screen.packed, screen.offsets, u)
    if not residual.orthogonal:
        _deflate(slopes, residual.scores, screen.loadings, u)
    _patch_slopes(screen.patch, slopes, u)
    steepest = _steepest(slopes)
    if steepest <= screen.floor:
        return slopes, steepest, -1.0
    deepest = steepest - screen.floor
    return slopes, steepest, _level(slopes, steepest, l1_bound, 1.25 * level, deepest)


@jit()
def _screen_of_trace(
    residual: Residual, lengths: Float, patch_lengths: Float, trace: Trace, t: int, u: Float
) -> Screen:
    """Keep the columns that can come near the threshold of an earlier alternation, if few."""
    reach = _distance(u, trace.scores[t])
    floor = (1.0 - _FALL) * trace.thresholds[t]
    ceilings, unit = trace.ceilings[t], trace.units[t]
    most = int(_WORTHWHILE * lengths.size)
    columns = np.empty(most + 1, np.intp)
    count = 0
    for j in range(lengths.size):
        near = ceilings[j] * unit + lengths[j] * reach + patch_lengths[j] >= floor
        if near or _is_loaded(residual.loadings, j):
            if count == most:
                return _no_screen(residual.X)
            columns[count] = j
            count += 1
    return _screen_on(residual, columns[:count].copy(), trace.scores[t].copy(), reach, floor)


@jit()
def _is_loaded(loadings: Float, j: int) -> bool:
    for k in range(loadings.shape[0]):  # noqa: SIM110
        if loadings[k, j] != 0.0:
            return True
    return False


@jit()
def _leave_trace(trace: Trace, t: int, u: Float, slopes: Float) -> None:
    """Note u and, rounded up to a byte each, how steep X is there."""
    unit = max(_steepest(slopes) / 254.0, 1e-300)
    trace.scores[t] = u
    trace.units[t] = unit
    trace.thresholds[t] = -1.0
    ceilings = trace.ceilings[t]
    for j in range(slopes.size):
        ceilings[j] = np.uint8(abs(slopes[j]) / unit + 1.0)


@jit()
def _slopes(residual: Residual, u: Float, trace: Trace, t: int) -> Float:
    """Return the residual's transposed product with u, and leave a trace of that of X."""
    slopes = transposed_times(residual.X, residual.by_columns, residual.offsets, u)
    if t < trace.units.size:
        _leave_trace(trace, t, u, slopes)
    if not residual.orthogonal:
        _deflate(slopes, residual.scores, residual.loadings, u)
    _patch_slopes(residual.patch, slopes, u)
    return slopes


@jit()
def _patch_slopes(patch: Patch, slopes: Float, u: Float) -> None:
    for k in range(patch.values.size):
        slopes[patch.columns[k]] += patch.values[k] * u[patch.rows[k]]


@jit()
def _take_from_image(
    residual: Residual,
    loadings: Float,
    patch: Patch,
    image: Float,
    indices: Index,
    weights: Float,
) -> None:
    """Turn X v into the residual's product, in place; loadings and patch of the columns in v."""
    if not residual.orthogonal:
        for k in range(residual.scores.shape[0]):
            overlap = 0.0
            for m in range(indices.size):
                overlap += loadings[k, indices[m]] * weights[m]
            for i in range(image.size):
                image[i] -= overlap * residual.scores[k, i]
    if patch.values.size > 0:
        v = np.zeros(loadings.shape[1])
        v[indices] = weights
        image[:] = _with_patched_image(patch, image, v)


@jit()
def _with_patched_image(patch: Patch, image: Float, v: Float) -> Float:
    """Return an image of v with what the patch adds to it."""
    out = image.copy()
    for k in range(patch.values.size):
        out[patch.rows[k]] += patch.values[k] * v[patch.columns[k]]
    return out


@jit()
def _patch_lengths(patch: Patch, p: int) -> Float:
    """Return the length of the patch of each column."""
    squares = np.zeros(p)
    for k in range(patch.values.size):
        squares[patch.columns[k]] += patch.values[k] ** 2
    return np.sqrt(squares)


@jit()
def cells_of_product(scores: Float, loadings: Float, rows: Index, columns: Index) -> Float:
    """Return single cells of scores' loadings."""
    out = np.zeros(rows.size)
    for k in range(scores.shape[0]):
        u, v = scores[k], loadings[k]
        for m in range(rows.size):
            out[m] += u[rows[m]] * v[columns[m]]
    return out


@jit()
def _dot(a: Float, b: Float) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit()
def _distance(a: Float, b: Float) -> float:
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) ** 2
    return np.sqrt(total)


@jit()
def _deflate(slopes: Float, scores: Float, loadings: Float, u: Float) -> None:
    for k in range(scores.shape[0]):
        overlap = _dot(scores[k], u)
        row = loadings[k]
        for j in range(slopes.size):
            slopes[j] -= overlap * row[j]


@jit()
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


@jit()
def _packed(X: NDArray[Any], by_columns: bool, columns: Index) -> NDArray[Any]:
    n = X.shape[1] if by_columns else X.shape[0]
    out = np.empty((n, columns.size), X.dtype)
    if by_columns:
        for k in range(columns.size):
            j = columns[k]
            for i in range(n):
                out[i, k] = X[j, i]
    else:
        for i in range(n):
            row, packed = X[i], out[i]
            for k in range(columns.size):
                packed[k] = row[columns[k]]
    return out


@jit()
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


@jit()
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
