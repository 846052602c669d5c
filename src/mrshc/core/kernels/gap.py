"""The gap test of a group of samples: reference samples, their topmost clusters, dispersions."""

from __future__ import annotations

import numpy as np

from mrshc.core.arrays import Float, Index
from mrshc.core.kernels.jit import jit

# Dispersions below this share of the whole count as none: their logarithm must stay finite.
_NO_DISPERSION = 1e-16

# The first linkages of core.tree.LINKAGES: a merge brings no third cluster closer than it was.
_N_REDUCIBLE = 5


@jit()
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


@jit()
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


@jit()
def _log_of_dispersions(dispersions: Float) -> Float:
    """Return log W_1, log W_2, ..., finite even where nothing is left within the clusters."""
    return np.log(np.maximum(dispersions, _NO_DISPERSION * dispersions[0]))


@jit()
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


@jit()
def _centred(X: Float) -> Float:
    out = X.copy()
    for j in range(X.shape[1]):
        out[:, j] -= X[:, j].mean()
    return out


@jit()
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


@jit()
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


@jit()
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


@jit()
def _squared_from_gram(gram: Float) -> None:
    """Turn inner products of samples into squared distances, in place."""
    n = gram.shape[0]
    squares = np.empty(n)
    for i in range(n):
        squares[i] = gram[i, i]
    for i in range(n):
        row, own = gram[i], squares[i]
        for j in range(i):
            row[j] = max(own + squares[j] - 2.0 * row[j], 0.0)
        row[i] = 0.0
    # A product of a matrix with its transpose need not be symmetric to the last digit. In blocks,
    # since rows are written as columns.
    for start in range(0, n, 32):
        for i in range(start, n):
            for j in range(start, min(start + 32, i)):
                gram[j, i] = gram[i, j]


@jit()
def top_dispersions(distances: Float, linkage: int, power: int, max_clusters: int) -> Float:
    """Return W_k of the topmost 1..max_clusters clusters of samples.

    W_k adds up the distances themselves if they are of power 1, their roots if of power 2.
    """
    if max_clusters == 2 and linkage < _N_REDUCIBLE:
        one = _top_split(distances.copy(), linkage)
        return _dispersions_of_split(distances, one, power)
    return _top_clusters(distances, linkage, power, max_clusters)


@jit()
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
            while row[b] != closest and b < m - 1:
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


@jit(fastmath={"nnan", "nsz"})  # a minimum needs no order
def _smallest(row: Float) -> float:
    smallest = np.inf
    for k in range(row.size):
        smallest = min(smallest, row[k])
    return smallest


@jit()
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


@jit()
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


@jit()
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


@jit()
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
