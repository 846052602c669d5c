"""The whole method in its plainest form: the specification that the fast code must agree with.

Everything is recomputed when it is needed, matrices are formed, and other people's well tested code
is used where there is some. Only the streams of random numbers are the package's own, so that
both see the same reference samples.
"""

from itertools import pairwise

import numpy as np
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.optimize import brentq
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_score

EUCLIDEAN = ("ward", "centroid", "median")


def sparse_direction(a, bound):
    """Unit v with |v|_1 <= bound along a: soft-threshold |a| where the ratio of norms fits."""

    def soft(delta):
        return np.maximum(np.abs(a) - delta, 0)

    def excess(delta):
        return soft(delta).sum() - bound * np.linalg.norm(soft(delta))

    top, second = np.sort(np.abs(a))[::-1][:2]
    delta = 0.0
    if excess(0.0) > 0:  # with one feature left the ratio is 1, which no bound excludes
        delta = second if excess(second) >= 0 else brentq(excess, 0.0, second, xtol=1e-15 * top)
    v = np.sign(a) * soft(delta)
    return v / np.linalg.norm(v)


def sparse_components(X, bound, rank, max_iter=20, tol=1e-7):
    """Loadings (rank, p) by alternation from the singular vectors, X deflated after each."""
    starts = np.linalg.svd(X, full_matrices=False)[2]
    left, loadings = X.copy(), []
    for v in starts[:rank]:
        for _ in range(max_iter):
            u = left @ v
            u = u / np.linalg.norm(u)
            old, v = v, sparse_direction(left.T @ u, bound)
            if np.abs(v - old).sum() <= tol:
                break
        left = left - (u @ left @ v) * np.outer(u, v)
        loadings.append(v)
    return np.array(loadings)


def features(X, bound, rank):
    return np.flatnonzero(np.any(sparse_components(X, bound, rank) != 0, axis=0))


def hit(X, q, rank):
    """Algorithm 1: bisection between the ends; the closest set, the smaller of two."""
    low, high = 1.0, np.sqrt(X.shape[1])
    tried = [features(X, low, rank)]
    if tried[0].size >= q:
        return tried[0]
    tried.append(features(X, high, rank))
    if tried[1].size <= q:
        return tried[1]
    while tried[-1].size != q and high - low > 1e-7:
        middle = (low + high) / 2
        tried.append(features(X, middle, rank))
        low, high = (low, middle) if tried[-1].size > q else (middle, high)
    return min(tried, key=lambda s: (abs(s.size - q), s.size))


def build(X, linkage, metric):
    condensed = pdist(X, metric)
    return scipy_linkage(np.sqrt(condensed) if linkage in EUCLIDEAN else condensed, linkage)


def members(Z, node):
    n = len(Z) + 1
    if node < n:
        return [node]
    return sorted(members(Z, int(Z[node - n, 0])) + members(Z, int(Z[node - n, 1])))


def log_dispersion(X, groups, metric):
    distances = squareform(pdist(X, metric))
    if metric != "cityblock":  # the others are squares, up to rounding errors
        distances = np.sqrt(np.maximum(distances, 0.0))
    whole = distances.sum() / 2 / (2 * len(X))
    within = sum(distances[np.ix_(g, g)].sum() / 2 / (2 * len(g)) for g in groups)
    return np.log(max(within, 1e-16 * whole))


def top_two(Z):
    n = len(Z) + 1
    return [members(Z, int(child)) for child in Z[-1, :2]] if n > 1 else [[0]]


def prefers_split(X, halves, rng, *, linkage, metric, n_references):
    """Gap statistic, rule of Tibshirani et al.: is one cluster not enough?"""
    whole = [list(range(len(X)))]
    centred = X - X.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][: min(len(X) - 1, X.shape[1])]
    low, high = (centred @ axes.T).min(axis=0), (centred @ axes.T).max(axis=0)
    middle = X.mean(axis=0) + (low + high) / 2 @ axes
    reference = []
    for _ in range(n_references):
        sample = middle + (rng.random((len(X), len(axes))) - 0.5) * (high - low) @ axes
        found = top_two(build(sample, linkage, metric))
        reference.append([log_dispersion(sample, g, metric) for g in (whole, found)])
    observed = np.array([log_dispersion(X, g, metric) for g in (whole, halves)])
    gap = np.mean(reference, axis=0) - observed
    error = np.std(reference, axis=0, ddof=1) * np.sqrt(1 + 1 / n_references)
    return gap[0] < gap[1] - error[1]


def prune(X, Z, K, entropy, **options):
    """Algorithm 2: split the highest active node if the gap statistic prefers it; the leaves."""
    n = len(X)
    active, done = [2 * n - 2], []
    while active and len(active) + len(done) < K:
        node = max(active, key=lambda a: (Z[a - n, 2] if a >= n else 0, a))
        active.remove(node)
        inside = members(Z, node)
        split = False
        if len(inside) >= 3 and pdist(X[inside]).max() > 0:
            seed = np.random.SeedSequence(entropy, spawn_key=(X.shape[1], node))
            children = [int(c) for c in Z[node - n, :2]]
            halves = [[inside.index(i) for i in members(Z, c)] for c in children]
            split = prefers_split(X[inside], halves, np.random.default_rng(seed), **options)
        if split:
            active += children
        else:
            done.append(node)
    return active + done


def split_to(Z, leaves, K):
    """Split the leaves that were merged last until there are K."""
    n, leaves = len(Z) + 1, list(leaves)
    while len(leaves) < K:
        node = max(leaves)
        leaves.remove(node)
        leaves += [int(c) for c in Z[node - n, :2]]
    return leaves


def labels_of(Z, leaves):
    """Labels of the samples; the clusters are numbered by their first sample."""
    labels = np.empty(len(Z) + 1, dtype=int)
    for label, group in enumerate(sorted((members(Z, a) for a in leaves), key=lambda g: g[0])):
        labels[group] = label
    return labels


def average_silhouette(X, labels, metric):
    if labels.max() == 0:
        return 0.0
    if labels.max() == len(labels) - 1:  # scikit-learn refuses what Rousseeuw defines as zero
        return 0.0
    return silhouette_score(squareform(pdist(X, metric)), labels, metric="precomputed")


def choose(values):
    """Algorithms 3 and 4: position of the chosen one among silhouettes."""
    left = list(enumerate(values))
    while True:
        s = [value for _, value in left]
        if all(b <= a for a, b in pairwise(s)):
            return left[0][0]
        if all(b >= a for a, b in pairwise(s)):
            return left[int(np.argmax(np.diff(s))) + 1][0]
        walls = [np.inf, *s, np.inf]
        minima = [i for i in range(len(s)) if walls[i] >= s[i] <= walls[i + 2]]
        del left[minima[-1]]


def mrshc(X, targets, ranks, K=None, *, linkage="complete", metric="sqeuclidean", B=50, entropy=0):
    """Cases 1 to 3. Returns q, rank, K, features and labels."""
    options = {"linkage": linkage, "metric": metric, "n_references": B}
    centred = X - X.mean(axis=0)
    sets = {(q, r): hit(centred, q, r) for q in targets for r in ranks if r <= q or r == ranks[0]}
    trees = {key: build(X[:, s], linkage, metric) for key, s in sets.items()}
    is_given = K is not None
    if not is_given:
        found = dict.fromkeys(targets, 1)
        for (q, r), s in sets.items():
            if r in ranks[:3]:
                leaves = prune(X[:, s], trees[q, r], np.inf, entropy, **options)
                found[q] = max(found[q], len(leaves))
        K = max(2, sorted(found.values())[-2 if len(found) > 1 else -1])
    leaves = {key: prune(X[:, s], trees[key], K, entropy, **options) for key, s in sets.items()}
    labels = {key: labels_of(trees[key], nodes) for key, nodes in leaves.items()}
    score = {key: average_silhouette(X[:, s], labels[key], metric) for key, s in sets.items()}
    rows = []
    for q in targets:
        row = [key for key in sets if key[0] == q and labels[key].max() + 1 == K]
        if row:
            rows.append(row[choose([score[key] for key in row])])
    if rows:
        best = rows[choose([score[key] for key in rows])]
    else:
        best = max(sets, key=lambda key: (labels[key].max(), score[key]))
    final = split_to(trees[best], leaves[best], K) if is_given else leaves[best]
    return best[0], best[1], K, sets[best], labels_of(trees[best], final)
