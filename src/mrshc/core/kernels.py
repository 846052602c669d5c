"""The loops that numpy and scipy do not provide, compiled by numba.

Arrays are C-contiguous float64, or int64 for indices, so that each function is compiled once. The
loops release the global interpreter lock, so threads run them at the same time. Nothing is returned
but numbers and arrays: numba would create other objects by calling Python.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

# The compiler may change the order of additions, and vectorises sums and minima for that reason.
# The order is the same in every thread and in every run.
_REORDER = {"reassoc", "contract", "nnan", "nsz"}


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function, and store its machine code where numba finds a writable folder."""
    try:
        return numba.njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # neither the package nor the home is writable
        folder = Path(tempfile.gettempdir()) / f"mrshc-{getattr(os, 'getuid', int)()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        # Another user could have put a folder there, whose machine code must not be run.
        is_own = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
        numba.config.CACHE_DIR = str(folder) if is_own else tempfile.mkdtemp(prefix="mrshc-")
        return numba.njit(function, cache=True, nogil=True, **options)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function."""
    return _compile(function)


def reordered(function: Callable[..., Any]) -> Any:
    """Compile a short function whose sum or minimum is vectorised; it must not meet NaN."""
    return _compile(function, fastmath=_REORDER)


@reordered
def dot(a, b):
    """Return the inner product of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@reordered
def squared_distance(a, b):
    """Return the squared Euclidean distance of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


# ------------------------------------------------------------------------ Sparse components


@compiled
def soft_threshold(slopes, n_slopes, l1_bound, weights, depths):
    """Write the unit vector v that maximises slopes'v subject to |v|_1 <= l1_bound to `weights`.

    Only the first `n_slopes` slopes are used. v consists of the slopes after soft-thresholding,
    scaled to norm 1. Return the threshold, or -1 if all slopes are zero. `depths` is overwritten.

    The depth of a slope is the largest absolute slope minus its absolute value, and t is the depth
    at the threshold. Working with depths avoids cancellation between large slopes that differ
    little. The ratio of the L1 norm to the L2 norm increases with t. The slopes are divided at one
    of them again and again, as in quickselect, until it is known which are active at the solution;
    then t solves a quadratic equation.
    """
    largest, squared_bound = 0.0, l1_bound * l1_bound
    for i in range(n_slopes):
        largest = max(largest, abs(slopes[i]))
    if largest == 0.0:
        return -1.0
    n_tied, second = 0, largest
    total = squares = 0.0
    for i in range(n_slopes):
        depths[i] = largest - abs(slopes[i])
        total += abs(slopes[i])
        squares += slopes[i] * slopes[i]
        if depths[i] == 0.0:
            n_tied += 1
        else:
            second = min(second, depths[i])
    if n_tied >= squared_bound:
        # Equal slopes share the bound. If they meet it exactly, any threshold above the second
        # largest slope gives the same result.
        t = second if n_tied == squared_bound else 0.0
    elif total * total <= squared_bound * squares:
        t = largest  # the bound holds without a threshold
    else:
        low, high, n_left = 0.0, largest, n_slopes
        n_active, sum_1, sum_2 = 0, 0.0, 0.0  # of the slopes that are known to be active
        while n_left > 0:
            pivot = depths[n_left // 2]
            below, sum_below, squares_below = n_active, sum_1, sum_2
            for i in range(n_left):
                if depths[i] < pivot:
                    below += 1
                    sum_below += depths[i]
                    squares_below += depths[i] * depths[i]
            l1 = below * pivot - sum_below
            l2 = below * pivot * pivot - 2.0 * pivot * sum_below + squares_below
            n_kept = 0
            if l2 > 0.0 and l1 * l1 >= squared_bound * l2:
                high = pivot
                for i in range(n_left):
                    if depths[i] < pivot:
                        depths[n_kept] = depths[i]
                        n_kept += 1
            else:
                low = pivot
                n_active, sum_1, sum_2 = below, sum_below, squares_below
                for i in range(n_left):
                    if depths[i] > pivot:
                        depths[n_kept] = depths[i]
                        n_kept += 1
                    elif depths[i] == pivot:
                        n_active += 1
                        sum_1 += pivot
                        sum_2 += pivot * pivot
            n_left = n_kept
        t = high
        if n_active > squared_bound:
            spread = max(n_active * sum_2 - sum_1 * sum_1, 0.0) / (n_active - squared_bound)
            t = min(max((sum_1 + l1_bound * np.sqrt(spread)) / n_active, low), high)
    norm = 0.0
    for i in range(n_slopes):
        depth = largest - abs(slopes[i])
        weights[i] = max(t - depth, 0.0) if t > 0.0 else l1_bound / n_tied * (depth == 0.0)
        norm += weights[i] * weights[i]
    norm = np.sqrt(norm) if t > 0.0 else 1.0
    for i in range(n_slopes):
        weights[i] = -weights[i] / norm if slopes[i] < 0.0 else weights[i] / norm
    return largest - t


# A column is left out of an iteration if its slope cannot reach this share of the last threshold.
# If the new threshold is smaller, the columns are found again. The share affects only time.
_SHARE_OF_THRESHOLD = 0.95
# No column is left out if this would leave more than this share of them.
_MANY_CANDIDATES = 0.25
# More than the relative rounding error of an operation in single precision.
_ROUNDING = np.finfo(np.float32).eps


@compiled
def alternate(columns, norms, earlier, state, l1_bound, limits, known, history, work):
    """Compute a sparse component of R, the data minus the earlier components, by alternation.

    The component maximises u'Rv subject to |u|_2 <= 1, |v|_2 <= 1 and |v|_1 <= l1_bound. R is
    never formed.

    Columns that cannot reach the threshold are left out of an iteration, as slopes of the data at
    other vectors show. In large data, u is the sum of a combination of these vectors and a rest;
    the slopes at the combination follow, and that of a column at the rest is at most the product of
    the norms. If this leaves too many columns, the function returns, and goes on when it is called
    again with the slopes at u. In small data, the vector is u of the last iteration in which no
    column was left out.

    Parameters
    ----------
    columns : tuple
        F (w, n), the columns, one in each row; their missing cells as gap_starts (w + 1,) and
        gap_samples: those of column j are gap_samples[gap_starts[j]:gap_starts[j + 1]]; fills, what
        is added to these cells of the data minus the components.
    norms : tuple
        The norms of the columns (w,), and by how much a slope of R may exceed that of the data
        (w,).
    earlier : tuple
        scores (m, n), loadings (m, w) and scales (m,) of the components that are subtracted, and
        the scores to which u is kept orthogonal.
    state : tuple
        v (w,), the loadings to start from, which become the result; Rv (n,); and u (n,). All are
        overwritten, and zero in the end if R is zero up to rounding errors.
    limits : tuple
        max_iter; tol, the change of v in L1 norm at which it has converged; noise, the norm of Rv
        that is a rounding error; whether the data are large.
    known : tuple
        Unit vectors (A, n); an orthonormal basis of the first; the matrix (A, A) that gives it by
        multiplication; the slopes of the data at the vectors (A, w) in single precision; how many
        there are; and those at u (w,), or no values.
    history : tuple
        n_iter, the number of iterations so far; and two arrays that get u and the soft threshold of
        each iteration, (max_iter, n) and (max_iter,), of which the first may be empty.
    work : tuple
        Arrays (3, w) of float64 and (2, w) of int64, which are overwritten.

    Returns
    -------
    is_finished, scale, n_iter, converged
        Whether no slopes are wanted, u'Rv, the number of iterations, and whether v has converged.
    """
    F, loadings_of_earlier, orthogonal_to = columns[0], earlier[1], earlier[3]
    v, image, u = state
    max_iter, tol, noise, is_large = limits
    vectors, basis, combinations, at_vectors, n_known, at_u = known
    n_iter, iterates, thresholds = history
    (slopes, weights, depths), (candidates, support) = work
    w, n = F.shape
    parts, factors = np.empty(loadings_of_earlier.shape[0]), np.empty(n_known)
    estimated, error, rest, anchor = np.zeros(w, np.float32), 0.0, np.empty(n), np.zeros(n)
    n_selected = 0
    for j in range(w):
        support[n_selected] = j
        n_selected += v[j] != 0.0
    limit = _SHARE_OF_THRESHOLD * thresholds[n_iter - 1] if n_iter > 0 else 0.0
    scale, converged, is_exact = 0.0, False, at_u.size > 0
    while n_iter < max_iter and not converged:
        if is_exact:
            estimated[:] = at_u
            error = _ROUNDING * (n + 2)
        else:
            for c in range(orthogonal_to.shape[0]):
                _add_multiple(image, -dot(orthogonal_to[c], image), orthogonal_to[c])
            norm = np.sqrt(dot(image, image))
            if norm <= noise:
                break
            for i in range(n):
                u[i] = image[i] / norm
            if is_large and n_known == 0:
                return False, scale, n_iter, False
            if is_large:
                error = _divide(u, vectors, basis, combinations, factors, rest)
                total = _estimate_slopes(at_vectors, factors, estimated)
                error += _ROUNDING * (n + n_known + 2) * total
            else:
                error = np.sqrt(squared_distance(u, anchor)) + _ROUNDING
        if is_large and limit == 0.0:
            slopes[:] = estimated
            limit = _SHARE_OF_THRESHOLD * soft_threshold(slopes, w, l1_bound, weights, depths)
        n_candidates, threshold = w, -1.0
        for _ in range(2):  # the second time if the threshold is lower than expected
            n_candidates = _find_candidates(estimated, norms, error, limit, candidates)
            if n_candidates > _MANY_CANDIDATES * w and not is_exact:
                if is_large:
                    return False, scale, n_iter, False
                for j in range(w):
                    candidates[j] = j
                n_candidates = w
            _write_slopes(columns, earlier, u, parts, candidates, n_candidates, slopes, depths)
            if n_candidates == w:
                for j in range(w):
                    estimated[j] = depths[j]
                anchor[:] = u
                error = _ROUNDING
            threshold = soft_threshold(slopes, n_candidates, l1_bound, weights, depths)
            if threshold >= limit or n_candidates == w:
                break
            limit = _SHARE_OF_THRESHOLD * threshold
        if is_large and threshold >= 0.0:
            # Which columns are left out depends on other runs, and with it rounding errors.
            n_candidates = _keep_large(candidates, n_candidates, slopes, threshold)
            threshold = soft_threshold(slopes, n_candidates, l1_bound, weights, depths)
        if threshold < 0.0:
            break
        thresholds[n_iter] = threshold
        for i in range(n * (n_iter < iterates.shape[0])):
            iterates[n_iter, i] = u[i]
        limit, is_exact = _SHARE_OF_THRESHOLD * threshold, False
        moved, scale, n_selected = _replace_loadings(
            candidates, n_candidates, weights, slopes, v, support, n_selected
        )
        converged, n_iter = moved <= tol, n_iter + 1
        _write_image(columns, earlier, support, n_selected, v, image)
    else:
        return True, scale, n_iter, converged
    for j in range(w):
        v[j] = 0.0
    for i in range(n):
        u[i] = 0.0
    return True, 0.0, 0, True


@compiled
def _divide(u, vectors, basis, combinations, factors, rest):
    """Divide u into a combination of vectors and a rest, and return the norm of the rest."""
    for a in range(factors.size):
        factors[a] = 0.0
    for b in range(factors.size):
        coordinate = dot(basis[b], u)
        for a in range(b + 1):
            factors[a] += coordinate * combinations[b, a]
    for i in range(u.size):
        rest[i] = u[i]
    for a in range(factors.size):
        _add_multiple(rest, -factors[a], vectors[a])
    return np.sqrt(dot(rest, rest))


@compiled
def _estimate_slopes(at_vectors, factors, estimated):
    """Write the slopes at a combination of vectors, and return the sum of absolute factors."""
    for j in range(estimated.size):
        estimated[j] = 0.0
    total = 0.0
    for a in range(factors.size):
        factor = np.float32(factors[a])
        for j in range(estimated.size):
            estimated[j] += factor * at_vectors[a, j]
        total += abs(factors[a])
    return total


@compiled
def _find_candidates(estimated, norms, error, limit, candidates):
    """Write the columns whose slopes may reach a limit, and return their number."""
    of_columns, margins = norms
    n_candidates = 0
    for j in range(of_columns.size):
        candidates[n_candidates] = j
        n_candidates += abs(estimated[j]) + of_columns[j] * error + margins[j] >= limit
    return n_candidates


@compiled
def _keep_large(candidates, n_candidates, slopes, threshold):
    """Move the candidates with slopes near or above the threshold to the front."""
    n_kept = 0
    for c in range(n_candidates):
        if abs(slopes[c]) >= _SHARE_OF_THRESHOLD * threshold:
            candidates[n_kept], slopes[n_kept] = candidates[c], slopes[c]
            n_kept += 1
    return n_kept


@compiled
def _replace_loadings(candidates, n_candidates, weights, slopes, v, support, n_support):
    """Write the weights of the candidates to v, and the features with weights to `support`.

    Return the change of v in L1 norm, the inner product of weights and slopes, and the number of
    features.
    """
    moved, scale, c, n_selected = 0.0, 0.0, 0, 0
    for position in range(n_support):
        j = support[position]
        while c < n_candidates and candidates[c] < j:
            c += 1
        if c == n_candidates or candidates[c] != j or weights[c] == 0.0:
            moved += abs(v[j])
            v[j] = 0.0
    for c in range(n_candidates):
        if weights[c] != 0.0:
            j = candidates[c]
            moved += abs(weights[c] - v[j])
            scale += slopes[c] * weights[c]
            v[j] = weights[c]
            support[n_selected] = j
            n_selected += 1
    return moved, scale, n_selected


@compiled
def _add_multiple(vector, factor, other):
    for i in range(vector.size):
        vector[i] += factor * other[i]


@compiled
def _write_slopes(columns, earlier, u, parts, candidates, n_candidates, slopes, of_data):
    """Write R'u and the slopes of the data at the first candidates; `parts` is overwritten."""
    F, gap_starts, gap_samples, fills = columns
    scores, loadings, scales, _ = earlier
    for k in range(parts.size):
        parts[k] = scales[k] * dot(scores[k], u)
    for c in range(n_candidates):
        j = candidates[c]
        slope = of_data[c] = dot(F[j], u)
        for k in range(parts.size):
            slope -= parts[k] * loadings[k, j]
        for g in range(gap_starts[j], gap_starts[j + 1]):
            slope += fills[g] * u[gap_samples[g]]
        slopes[c] = slope


@compiled
def _write_image(columns, earlier, support, n_selected, v, image):
    """Write Rv, where v is zero but for the features of its support."""
    F, gap_starts, gap_samples, fills = columns
    scores, loadings, scales, _ = earlier
    for i in range(image.size):
        image[i] = 0.0
    for c in range(n_selected):
        j = support[c]
        _add_multiple(image, v[j], F[j])
        for g in range(gap_starts[j], gap_starts[j + 1]):
            image[gap_samples[g]] += fills[g] * v[j]
    for k in range(scales.size):
        part = 0.0
        for c in range(n_selected):
            part += loadings[k, support[c]] * v[support[c]]
        _add_multiple(image, -scales[k] * part, scores[k])


# ------------------------------------------------------------------------------------ Trees


@compiled
def squared_distances(X):
    """Return the squared Euclidean distances between the rows of X (n, q)."""
    n = len(X)
    distances = np.zeros((n, n))
    for start in range(0, n, 32):  # so many rows stay in the cache
        for i in range(start, n):
            for j in range(start, min(start + 32, i)):
                distances[i, j] = distances[j, i] = squared_distance(X[i], X[j])
    return distances


# Methods of the nearest-neighbour chain, which is valid for reducible linkages only.
CHAIN_METHODS = {"complete": 0, "average": 1, "weighted": 2, "ward": 3, "single": 4}


@reordered
def _row_minimum(row, sizes):
    smallest = np.inf
    for k in range(row.size):
        value = row[k] if sizes[k] > 0.0 else np.inf
        smallest = min(smallest, value)
    return smallest


@compiled
def _merge_rows(row_x, row_y, sizes, x, y, method):
    """Write the distances from the union of clusters x and y to `row_y` (Lance and Williams 1967).

    The operations are in the order of scipy, so rounding errors and therefore ties are the same.
    """
    d_xy, n_x, n_y = row_y[x], sizes[x], sizes[y]
    if method == 0:
        for i in range(row_y.size):
            row_y[i] = max(row_x[i], row_y[i])
    elif method == 1:
        for i in range(row_y.size):
            row_y[i] = (n_x * row_x[i] + n_y * row_y[i]) / (n_x + n_y)
    elif method == 2:
        for i in range(row_y.size):
            row_y[i] = 0.5 * (row_x[i] + row_y[i])
    elif method == 3:
        for i in range(row_y.size):
            n_i, d_x, d_y = sizes[i], row_x[i], row_y[i]
            t = 1.0 / (n_x + n_y + n_i)
            square = (n_i + n_x) * t * d_x * d_x + (n_i + n_y) * t * d_y * d_y
            row_y[i] = np.sqrt(max(square - n_i * t * d_xy * d_xy, 0.0))
    else:
        for i in range(row_y.size):
            row_y[i] = min(row_x[i], row_y[i])
    row_y[y] = np.inf


@compiled
def chain_merges(D, method, merges):
    """Write the merges of a tree, found by the nearest-neighbour chain (Muellner 2011).

    `D` holds the symmetric distances of n samples and is overwritten. Each row of `merges`, of
    shape (n - 1, 3), gets a sample of each of the two clusters and the height. The merges are not
    in the order of their heights, but the last one is the root. Of several nearest neighbours, the
    one that scipy takes is taken.
    """
    n = D.shape[0]
    m = n_clusters = n  # number of rows in use, and number of clusters among them
    sizes, samples, chain = np.ones(n), np.arange(n), np.empty(n, np.int64)
    for i in range(n):
        D[i, i] = np.inf
    length = 0
    for merge in range(n - 1):
        if length == 0:
            chain[0], length = 0, 1
            while sizes[chain[0]] == 0.0:
                chain[0] += 1
        while True:
            x = chain[length - 1]
            height = _row_minimum(D[x, :m], sizes[:m])
            if length > 1 and D[x, chain[length - 2]] == height:
                break
            y = 0
            while sizes[y] == 0.0 or D[x, y] != height:
                y += 1
            chain[length] = y
            length += 1
        x, y = chain[length - 2], chain[length - 1]
        x, y = min(x, y), max(x, y)
        length -= 2
        merges[merge, 0], merges[merge, 1], merges[merge, 2] = samples[x], samples[y], height
        _merge_rows(D[x, :m], D[y, :m], sizes[:m], x, y, method)
        sizes[y] += sizes[x]
        sizes[x] = 0.0
        for i in range(m):
            D[i, y] = D[y, i]
        n_clusters -= 1
        if 2 * n_clusters < m and m > 64:
            # The rows of the remaining clusters move together, in their order, so that searches
            # become shorter (a third of the time for 5,000 samples).
            kept = 0
            for i in range(m):
                if sizes[i] > 0.0:
                    column = 0
                    for j in range(m):
                        if sizes[j] > 0.0:
                            D[kept, column] = D[i, j]
                            column += 1
                    for position in range(length):
                        if chain[position] == i:
                            chain[position] = kept
                    samples[kept] = samples[i]
                    kept += 1
            kept = 0
            for i in range(m):
                if sizes[i] > 0.0:
                    sizes[kept] = sizes[i]
                    kept += 1
            m = n_clusters


@compiled
def number_nodes(merges, order):
    """Return a linkage matrix in scipy's format, given merges and the order of their heights."""
    n = merges.shape[0] + 1
    Z, parents = np.empty((n - 1, 4)), np.arange(2 * n - 1)
    for row in range(n - 1):
        merge, size = order[row], 0.0
        for side in range(2):
            node = int(merges[merge, side])
            root = node
            while parents[root] != root:
                root = parents[root]
            while parents[node] != root:
                parents[node], node = root, parents[node]
            parents[root] = n + row
            Z[row, side] = root
            size += 1.0 if root < n else Z[root - n, 3]
        if Z[row, 0] > Z[row, 1]:
            Z[row, 0], Z[row, 1] = Z[row, 1], Z[row, 0]
        Z[row, 2], Z[row, 3] = merges[merge, 2], size
    return Z


@compiled
def cut_labels(Z, n_clusters):
    """Return the labels of the samples for several cuts, one in each row.

    Clusters are numbered 0, 1, ... in the order of their first samples.
    """
    n = Z.shape[0] + 1
    labels = np.empty((n_clusters.size, n), np.int64)
    clusters, numbers = np.empty((2, 2 * n - 1), np.int64)
    for row in range(n_clusters.size):
        first_undone = 2 * n - n_clusters[row]
        clusters[2 * n - 2] = 2 * n - 2
        for node in range(2 * n - 2, n - 1, -1):
            for side in range(2):
                child = int(Z[node - n, side])
                clusters[child] = child if node >= first_undone else clusters[node]
        numbers[:] = -1
        count = 0
        for i in range(n):
            if numbers[clusters[i]] < 0:
                numbers[clusters[i]] = count
                count += 1
            labels[row, i] = numbers[clusters[i]]
    return labels


@compiled
def split_dispersions(D, method, is_squared):
    """Return the dispersions W_1 and W_2 within all samples and within two clusters of a tree.

    `D` holds distances, or squared Euclidean distances if `is_squared`; the dispersions are then
    sums of their roots. The tree is built by the nearest-neighbour chain.
    """
    n = D.shape[0]
    roots, merges = np.empty((n, n)), np.empty((n - 1, 3))
    for i in range(n):
        for j in range(n):
            roots[i, j] = np.sqrt(D[i, j]) if is_squared else D[i, j]
    working = roots.copy() if method == 3 else D.copy()
    chain_merges(working, method, merges)
    # Both clusters below the root: follow all merges but the last.
    parents, membership = np.arange(n), np.empty(n)
    for merge in range(n - 2):
        parents[int(merges[merge, 0])] = int(merges[merge, 1])
    last = int(merges[n - 2, 0])
    size = 0.0
    for i in range(n):
        root = i
        while parents[root] != root:
            root = parents[root]
        parents[i] = root
        membership[i] = 1.0 if root == last else 0.0
        size += membership[i]
    total = inside = outside = 0.0
    for i in range(n):
        for j in range(i):
            total += roots[i, j]
            # Multiplications instead of branches, so that the loop is vectorised.
            inside += roots[i, j] * (membership[i] * membership[j])
            outside += roots[i, j] * ((1.0 - membership[i]) * (1.0 - membership[j]))
    return total / (2 * n), inside / (2 * size) + outside / (2 * (n - size))


# ------------------------------------------------------------------------------------ Ranks


@compiled
def midranks(features, order):
    """Return the ranks of the observed values in each row; tied values have their mean rank.

    `order` sorts each row, with NaN last. Missing values have the rank 0.
    """
    p, n = features.shape
    ranks = np.zeros((p, n))
    for j in range(p):
        start = 0
        while start < n and not np.isnan(features[j, order[j, start]]):
            end = start + 1
            while end < n and features[j, order[j, end]] == features[j, order[j, start]]:
                end += 1
            for i in range(start, end):
                ranks[j, order[j, i]] = 0.5 * (start + end + 1)
            start = end
    return ranks


# ------------------------------------------------------------- Sparse hierarchical clustering


@compiled
def cityblock_slopes(u, features, observed):
    """Return, for each feature, the sum of u_ij |x_i - x_j| over pairs of samples.

    `features` (b, n) has one feature in each row; `observed` marks its values, or is empty.
    """
    b, n = features.shape
    slopes = np.empty(b)
    for k in range(b):
        x, total = features[k], 0.0
        for i in range(n):
            for j in range(i):
                term = u[i, j] * abs(x[i] - x[j])
                total += term * (observed[k, i] * observed[k, j]) if observed.size else term
        slopes[k] = total
    return slopes


@compiled
def add_cityblock_distances(total, features, observed, weights):
    """Add w_k |x_ik - x_jk| for all features k to the distances `total`, for observed values."""
    b, n = features.shape
    for k in range(b):
        if weights[k] == 0.0:
            continue
        x, weight = features[k], weights[k]
        for i in range(n):
            for j in range(n):
                term = weight * abs(x[i] - x[j])
                total[i, j] += term * (observed[k, i] * observed[k, j]) if observed.size else term


# -------------------------------------------------------------------------- Sparse K-means

# A sample moves only if this decreases the dispersion within clusters by more than this share of
# the total: rounding errors could otherwise move it back and forth for ever.
_SMALLEST_GAIN = 1e-12


@compiled
def best_partition(products, uniforms, labels):
    """Return the best K-means partition over several starts, and its sum of squares.

    The partitions are computed from the inner products of the samples, by exchanges of single
    samples; scikit-learn's K-means would take fifty times as long, since it is called hundreds of
    times for a few dozen samples. `uniforms` (n_init, k) are the random numbers of the starts;
    `labels` is a further start unless it is empty.
    """
    k = uniforms.shape[1]
    best, best_between = labels, -np.inf
    if labels.size > 0:
        best = labels.copy()
        best_between = _exchange_samples(products, best, k)
    for start in range(uniforms.shape[0]):
        candidate = _initial_partition(products, uniforms[start])
        between = _exchange_samples(products, candidate, k)
        if between > best_between + _SMALLEST_GAIN * abs(best_between) or best.size == 0:
            best, best_between = candidate, between
    return best, best_between


@compiled
def _initial_partition(products, uniforms):
    """Return the partition by the nearest of K centres, chosen by k-means++."""
    n, k = products.shape[0], uniforms.size
    labels, nearest, is_centre = np.zeros(n, np.int64), np.full(n, np.inf), np.zeros(n, np.bool_)
    mass = np.ones(n)
    for c in range(k):
        # Draw a sample with a probability proportional to `mass`.
        target, total, centre = uniforms[c] * mass.sum(), 0.0, 0
        for i in range(n):
            if mass[i] > 0.0:
                centre = i
                total += mass[i]
                if total > target:
                    break
        is_centre[centre] = True
        for i in range(n):
            square = products[i, i] - 2.0 * products[i, centre] + products[centre, centre]
            if square < nearest[i] and not (is_centre[i] and i != centre):
                nearest[i] = max(square, 0.0)
                labels[i] = c
        # A centre belongs to its own cluster, even if it equals an earlier centre.
        labels[centre], nearest[centre] = c, 0.0
        for i in range(n):
            mass[i] = 0.0 if is_centre[i] else nearest[i]
        if not mass.any():  # all other samples equal a centre
            for i in range(n):
                mass[i] = 0.0 if is_centre[i] else 1.0
    return labels


@compiled
def _exchange_samples(products, labels, k):
    """Move single samples until no move decreases the dispersion; return the sum of squares."""
    n = labels.size
    sizes, squares = np.zeros(k), np.zeros(k)
    # sums[c, i] is the inner product of sample i with the sum of cluster c.
    sums, total = np.zeros((k, n)), 0.0
    for i in range(n):
        sizes[labels[i]] += 1.0
        total += products[i, i]
        for j in range(n):
            sums[labels[i], j] += products[i, j]
    for i in range(n):
        squares[labels[i]] += sums[labels[i], i]
    n_unmoved = i = 0
    while n_unmoved < n:
        old, new, smallest = labels[i], labels[i], np.inf
        if sizes[old] > 1.0:  # no cluster becomes empty
            for c in range(k):
                if c != old:
                    square = products[i, i] - 2.0 * sums[c, i] / sizes[c]
                    square += squares[c] / sizes[c] ** 2
                    cost = square * sizes[c] / (sizes[c] + 1.0)
                    if cost < smallest:
                        new, smallest = c, cost
            square = products[i, i] - 2.0 * sums[old, i] / sizes[old]
            square += squares[old] / sizes[old] ** 2
            gain = square * sizes[old] / (sizes[old] - 1.0) - smallest
        else:
            gain = 0.0
        if gain > _SMALLEST_GAIN * total:
            squares[old] += products[i, i] - 2.0 * sums[old, i]
            squares[new] += products[i, i] + 2.0 * sums[new, i]
            for j in range(n):
                sums[old, j] -= products[i, j]
                sums[new, j] += products[i, j]
            sizes[old] -= 1.0
            sizes[new] += 1.0
            labels[i] = new
            n_unmoved = 0
        else:
            n_unmoved += 1
        i = (i + 1) % n
    return (squares / sizes).sum()


# ------------------------------------------------------------------------------------- COSA


@reordered
def _add_exponentials(sums, w_i, w_j, growth_i, growth_j, decay_i, decay_j):
    """Add sum_k v_k exp(-|x_ik - x_jk| / eta) and sum_k v_k to `sums`, v_k the larger weight."""
    total = norm = 0.0
    for k in range(w_i.size):
        v = w_i[k] if w_i[k] > w_j[k] else w_j[k]
        one, other = growth_i[k] * decay_j[k], decay_i[k] * growth_j[k]
        total += v * (one if one < other else other)
        norm += v
    sums[0] += total
    sums[1] += norm


@reordered
def _add_observed_exponentials(sums, w_i, w_j, growth_i, growth_j, decay_i, decay_j, o_i, o_j):
    """Do the same for the features that both samples have."""
    total = norm = 0.0
    for k in range(w_i.size):
        v = (w_i[k] if w_i[k] > w_j[k] else w_j[k]) * (o_i[k] * o_j[k])
        one, other = growth_i[k] * decay_j[k], decay_i[k] * growth_j[k]
        total += v * (one if one < other else other)
        norm += v
    sums[0] += total
    sums[1] += norm


@compiled
def _exact_cosa_distance(i, j, x, weights, observed, eta):
    """Return -eta sum_k v_k log(sum_k v_k exp(-d_k / eta) / sum_k v_k) without underflow."""
    smallest = np.inf
    for k in range(x.shape[1]):
        is_shared = not observed.size or observed[i, k] * observed[j, k] > 0.0
        if is_shared and max(weights[i, k], weights[j, k]) > 0.0:
            smallest = min(smallest, abs(x[i, k] - x[j, k]))
    total = norm = 0.0
    for k in range(x.shape[1]):
        v = max(weights[i, k], weights[j, k])
        if (not observed.size or observed[i, k] * observed[j, k] > 0.0) and v > 0.0:
            norm += v
            total += v * np.exp(-(abs(x[i, k] - x[j, k]) - smallest) / eta)
    return norm * (smallest - eta * np.log(total / norm)) if norm > 0.0 else 0.0


# Samples and features that are read together, so that they stay in the cache of a core. They
# affect the rounding of sums, and nothing else but time.
COSA_SAMPLES, _COSA_FEATURES = 32, 512
# Below this sum of exponentials, digits may have been lost by underflow.
_SMALL_SUM = 1e-250


@compiled
def cosa_distances(distances, first, data, exponentials, eta):
    """Write the distances of a block of samples from themselves and from all earlier samples.

    `data` is x (n, p), weights (n, p) and observed (n, p) or empty. `exponentials` are exp(x / eta)
    and exp(-x / eta), or empty arrays if these are not representable: exp(-|a - b|) is the smaller
    of exp(a) exp(-b) and exp(-a) exp(b), so no exponential is computed for a pair of samples.
    """
    x, weights, observed = data
    growth, decay = exponentials
    n, p = x.shape
    last = min(first + COSA_SAMPLES, n)
    sums = np.empty((COSA_SAMPLES, COSA_SAMPLES, 2))
    for start in range(0, last, COSA_SAMPLES):
        sums[:] = 0.0
        for low in range(0, p if growth.size else 0, _COSA_FEATURES):
            k = slice(low, min(low + _COSA_FEATURES, p))
            for i in range(first, last):
                for j in range(start, min(start + COSA_SAMPLES, i)):
                    pair, w_i, w_j = sums[i - first, j - start], weights[i, k], weights[j, k]
                    g_i, g_j, d_i, d_j = growth[i, k], growth[j, k], decay[i, k], decay[j, k]
                    if observed.size:
                        o_i, o_j = observed[i, k], observed[j, k]
                        _add_observed_exponentials(pair, w_i, w_j, g_i, g_j, d_i, d_j, o_i, o_j)
                    else:
                        _add_exponentials(pair, w_i, w_j, g_i, g_j, d_i, d_j)
        for i in range(first, last):
            for j in range(start, min(start + COSA_SAMPLES, i)):
                total, norm = sums[i - first, j - start]
                if total < _SMALL_SUM:
                    value = _exact_cosa_distance(i, j, x, weights, observed, eta)
                else:
                    value = -eta * norm * np.log(total / norm)
                distances[i, j] = distances[j, i] = max(value, 0.0)


@compiled
def cosa_weights(weights, samples, neighbours, x, observed, scale):
    """Write the weights of the features for some samples, from the medians over their neighbours.

    The weight of feature k is proportional to exp(-m / scale), m the floor(K / 2 + 1)-th smallest
    difference from the K neighbours that have the feature; 1 / p if none has it.
    """
    p = x.shape[1]
    smallest, difference = np.empty((neighbours.shape[1] // 2 + 1, p)), np.empty(p)
    counts = np.empty(p, np.int64)
    for i in samples:
        row = weights[i]
        smallest[:], counts[:] = np.inf, 0
        for j in neighbours[i]:
            for k in range(p):
                is_shared = not observed.size or observed[i, k] * observed[j, k] > 0.0
                difference[k] = abs(x[i, k] - x[j, k]) if is_shared else np.inf
                counts[k] += is_shared
            # Each difference is inserted into the sorted list of its feature.
            for m in range(smallest.shape[0]):
                for k in range(p):
                    larger = max(smallest[m, k], difference[k])
                    smallest[m, k] = min(smallest[m, k], difference[k])
                    difference[k] = larger
        least = np.inf
        for k in range(p):
            row[k] = smallest[counts[k] // 2, k]
            least = min(least, row[k])
        total, n_known = 0.0, 0
        for k in range(p):
            if row[k] < np.inf:
                row[k] = np.exp(-(row[k] - least) / scale)
                total += row[k]
                n_known += 1
        for k in range(p):
            row[k] = 1.0 / p if row[k] == np.inf else row[k] / total * (n_known / p)
