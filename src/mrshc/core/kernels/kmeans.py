"""K-means clustering by exchanges of single samples, computed from inner products.

K-means needs only the inner products of the samples: the squared distance from a sample to the
centre of a cluster is a sum of inner products. If there are more features than samples, computing
with inner products takes less time than computing with the features.

References
----------
Hartigan, J. A. and Wong, M. A. (1979). Algorithm AS 136: a K-means clustering algorithm. Journal of
the Royal Statistical Society C 28(1), 100-108. https://doi.org/10.2307/2346830

Arthur, D. and Vassilvitskii, S. (2007). k-means++: the advantages of careful seeding. Proceedings
of the 18th ACM-SIAM Symposium on Discrete Algorithms, 1027-1035.
"""

from __future__ import annotations

import numpy as np

from mrshc.core.array_types import Float, Labels
from mrshc.core.kernels.jit import jit

# A sample is moved only if the move decreases the dispersion within clusters by more than this
# fraction of the total dispersion. The fraction is far above the rounding errors of double
# precision. Without it, rounding errors could move a sample back and forth for ever.
_SMALLEST_GAIN = 1e-12


@jit()
def best_partition(products: Float, uniforms: Float, labels: Labels) -> tuple[Labels, float]:
    """Return the best K-means partition over several starts, and its sum of squares.

    Parameters
    ----------
    products : array of shape (n, n)
        Inner products of the n samples.
    uniforms : array of shape (n_starts, K)
        Random numbers in [0, 1) that determine the starts. The algorithm k-means++ chooses the K
        initial centres of each start among the samples.
    labels : array of shape (n,)
        Partition into K non-empty clusters that is an additional start; an empty array for none.

    Returns
    -------
    labels : array of shape (n,)
        Partition with the smallest dispersion within clusters that was found. Each of the K
        clusters has at least one sample.
    between : float
        Sum of squares between the clusters and the origin: the sum, over clusters, of the number of
        samples times the squared norm of the centre.
    """
    k = uniforms.shape[1]
    best, best_between = labels, -np.inf
    if labels.size > 0:
        best = labels.copy()
        best_between = exchange_samples(products, best, k)
    for start in range(uniforms.shape[0]):
        candidate = initial_partition(products, uniforms[start])
        between = exchange_samples(products, candidate, k)
        # Among equally good partitions, the first is kept. The present labels are the first start,
        # so a partition that is only a rounding error better does not replace them.
        if between > best_between + _SMALLEST_GAIN * abs(best_between) or best.size == 0:
            best, best_between = candidate, between
    return best, best_between


@jit()
def initial_partition(products: Float, uniforms: Float) -> Labels:
    """Return the partition by the nearest of K initial centres, chosen by k-means++.

    Each centre is a sample that is drawn with a probability proportional to its squared distance
    from the nearest earlier centre.

    Parameters
    ----------
    products : array of shape (n, n)
        Inner products of the n samples.
    uniforms : array of shape (K,)
        Random numbers in [0, 1), one for each centre; K is at most n.

    Returns
    -------
    array of shape (n,)
        Index of the nearest centre of each sample.
    """
    n, k = products.shape[0], uniforms.size
    labels = np.zeros(n, np.intp)
    nearest = np.full(n, np.inf)
    is_center = np.zeros(n, np.bool_)
    mass = np.ones(n)  # the first centre is drawn with equal probabilities
    for c in range(k):
        center = _draw(mass, uniforms[c])
        is_center[center] = True
        for i in range(n):
            distance = products[i, i] - 2.0 * products[i, center] + products[center, center]
            if distance < nearest[i] and not (is_center[i] and i != center):
                nearest[i] = max(distance, 0.0)
                labels[i] = c
        # A centre belongs to its own cluster, even if an earlier centre is equal to it, so that no
        # cluster is empty.
        labels[center] = c
        nearest[center] = 0.0
        for i in range(n):
            mass[i] = 0.0 if is_center[i] else nearest[i]
        # If all other samples are equal to a centre, the next centre is any of them.
        if not mass.any():
            for i in range(n):
                mass[i] = 0.0 if is_center[i] else 1.0
    return labels


@jit()
def _draw(mass: Float, uniform: float) -> int:
    """Return an index, drawn with probabilities proportional to `mass`, which is not negative.

    `uniform` is a random number in [0, 1).
    """
    target = uniform * mass.sum()
    last, total = 0, 0.0
    for i in range(mass.size):
        if mass[i] > 0.0:
            last = i
            total += mass[i]
            if total > target:
                break
    # Because of rounding errors, the total may not exceed the target. The last possible index is
    # then returned.
    return last


@jit()
def exchange_samples(products: Float, labels: Labels, n_clusters: int) -> float:
    """Move single samples between clusters until no move decreases the dispersion.

    Moving a sample from a cluster of m samples with squared distance d to its centre, to a cluster
    of m' samples with squared distance d', changes the dispersion within clusters by
    m' d' / (m' + 1) - m d / (m - 1). Every partition that no move improves is also a fixed point of
    Lloyd's algorithm, but not conversely.

    Parameters
    ----------
    products : array of shape (n, n)
        Inner products of the n samples.
    labels : array of shape (n,)
        Cluster of each sample; no cluster is empty. The labels are changed in place.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    float
        Sum, over clusters, of the number of samples times the squared norm of the centre.
    """
    n = labels.size
    sizes, squares = np.zeros(n_clusters), np.zeros(n_clusters)
    # Entry (k, i) is the inner product of sample i with the sum of the samples in cluster k, and
    # entry k of `squares` is the squared norm of this sum.
    sums = np.zeros((n_clusters, n))
    total = 0.0
    for i in range(n):
        sizes[labels[i]] += 1.0
        sums[labels[i]] += products[i]
        total += products[i, i]
    for i in range(n):
        squares[labels[i]] += sums[labels[i], i]
    smallest_gain = _SMALLEST_GAIN * total
    n_unmoved = i = 0
    # The search ends after one round through all samples without a move.
    while n_unmoved < n:
        old = labels[i]
        new, gain = _best_move(products[i, i], sums[:, i], sizes, squares, old)
        if gain > smallest_gain:
            squares[old] += products[i, i] - 2.0 * sums[old, i]
            squares[new] += products[i, i] + 2.0 * sums[new, i]
            sums[old] -= products[i]
            sums[new] += products[i]
            sizes[old] -= 1.0
            sizes[new] += 1.0
            labels[i] = new
            n_unmoved = 0
        else:
            n_unmoved += 1
        i = (i + 1) % n
    return (squares / sizes).sum()


@jit()
def _best_move(
    square: float, sums: Float, sizes: Float, squares: Float, old: int
) -> tuple[int, float]:
    """Return the best new cluster of one sample, and the decrease in dispersion by the move.

    `square` is the squared norm of the sample, `sums` contains its inner products with the sums of
    the clusters, `sizes` and `squares` contain the sizes of the clusters and the squared norms of
    their sums, and `old` is the present cluster of the sample.
    """
    # A sample that is alone in its cluster is not moved, so that no cluster becomes empty.
    if sizes[old] == 1.0:
        return old, 0.0
    distance = square - 2.0 * sums[old] / sizes[old] + squares[old] / sizes[old] ** 2
    present = distance * sizes[old] / (sizes[old] - 1.0)
    new, smallest = old, np.inf
    for c in range(sizes.size):
        if c != old:
            distance = square - 2.0 * sums[c] / sizes[c] + squares[c] / sizes[c] ** 2
            cost = distance * sizes[c] / (sizes[c] + 1.0)
            if cost < smallest:
                new, smallest = c, cost
    return new, present - smallest
