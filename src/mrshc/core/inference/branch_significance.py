"""Significance of the branches of a tree whose features were selected from the same data.

The null hypothesis for a node is that the samples below the node are drawn from one Gaussian
distribution. Data are simulated from this distribution, and the whole procedure, with the selection
of the features, is applied to the simulated data. The split of the node is significant if its two
branches are separated more clearly than the branches of simulated data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.trees.tree import Tree

StatisticName = Literal["separation", "cluster_index"]

# Smallest number of samples below a node that is tested, as in sigclust2: the covariance and the
# split of fewer samples are too uncertain.
MIN_NODE_SAMPLES = 10
# Smallest number of samples of a branch. Smaller branches are regarded as outlying samples and not
# as clusters: with heavy-tailed noise, one to three extreme samples often form a branch.
MIN_BRANCH_SAMPLES = 4
# Numbers of simulations after which the p-value is computed. Later numbers are multiples of 20.
_FIRST_LOOKS = (10, 20)
_LOOK_STEP = 20
# The simulations end early if the p-value is larger than this value, because further simulations
# would hardly reduce it to the threshold, ...
_CLEARLY_LARGE = 0.25
# ... or if there are at least 20 simulations and the p-value is smaller than this share of the
# threshold. Ending earlier would make use of accidentally small variances.
_CLEARLY_SMALL_SHARE = 0.1
_MIN_SIMULATIONS_OF_SMALL = 20
# Ratio of the standard deviation and the median absolute deviation of the normal distribution.
_NORMAL_MAD = 1.4826
# Number of candidate thresholds for the eigenvalues, as in SigClust.
_N_THRESHOLDS = 100
# Label of samples that belong to no cluster, as in scikit-learn.
_OUTLYING = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BranchSignificance:
    """Significance of the branches of a tree; returned by :func:`mrshc.branch_significance`.

    The arrays have one entry for each tested node, from the root downwards: a node comes after its
    ancestors.

    Attributes
    ----------
    node : ndarray of int of shape (n_nodes,)
        Row of the node in the linkage matrix.
    n_samples : ndarray of int of shape (n_nodes,)
        Number of samples below the node.
    statistic : ndarray of shape (n_nodes,)
        Test statistic. The name is given by `statistic_name`.
    p_value : ndarray of shape (n_nodes,)
        P-value of the hypothesis that the samples below the node form a single Gaussian group. It
        is 1 if no split with enough samples in both branches exists.
    threshold : ndarray of shape (n_nodes,)
        Largest p-value at which the split of the node is significant.
    significant : ndarray of bool of shape (n_nodes,)
        Whether the split of the node is significant.
    agreement : ndarray of shape (n_nodes,)
        Adjusted Rand index of the split of the node in the tree and of the split that was tested.
        Features are selected again for the samples below a node, so the splits may differ.
    n_simulations : ndarray of int of shape (n_nodes,)
        Number of simulated data sets.
    labels : ndarray of int of shape (n_samples_of_tree,)
        Cluster of each sample if the tree is divided at the significant nodes, numbered from 0 in
        the order of the leaves; -1 for outlying samples that were left out above a significant
        node.
    alpha : float
        Bound of the probability that any node is significant whose samples form a single group.
    statistic_name : {"separation", "cluster_index"}
        "separation" is the distance between the branches along the line through their means, in
        standard deviations within the branches; large values indicate clusters. "cluster_index" is
        the sum of squares within the branches, divided by the total sum of squares; small values
        indicate clusters. It is used if no features are selected.

    See Also
    --------
    mrshc.branch_significance : Compute the significance of the branches of a fitted estimator.
    """

    node: Index
    n_samples: Index
    statistic: Float
    p_value: Float
    threshold: Float
    significant: Mask
    agreement: Float
    n_simulations: Index
    labels: Labels
    alpha: float
    statistic_name: StatisticName


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeTest:
    """Result of the test of one node.

    Attributes
    ----------
    statistic : float
        Statistic of the data; NaN if there is no split that can be tested.
    p_value : float
        P-value; 1 if there is no split that can be tested.
    agreement : float
        Adjusted Rand index of the split of the node and of the split that was tested.
    n_simulations : int
        Number of simulated data sets.
    """

    statistic: float
    p_value: float
    agreement: float
    n_simulations: int


def separation(X: Float, is_first: Mask) -> float:
    r"""Return the distance between two groups of samples, in standard deviations within groups.

    Parameters
    ----------
    X : ndarray of shape (n, q)
        Selected features of n samples, without missing values.
    is_first : ndarray of bool of shape (n,)
        Mask of the samples of the first group. Both groups have at least two samples.

    Notes
    -----
    Each sample :math:`x_i` is projected on the difference of the means of the two groups, where the
    mean of its own group is computed without :math:`x_i`. Without this correction, samples would be
    separated by noise alone if there are many features, because each sample contributes to the mean
    of its group. The statistic is the difference of the mean projections of the two groups, divided
    by the pooled standard deviation within the groups. It may be negative for data without
    clusters.
    """
    projections = leave_one_out_projections(X, is_first)
    first, second = projections[is_first], projections[~is_first]
    squares = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
    if squares == 0.0:
        return 0.0 if first[0] == second[0] else np.inf
    return float((first.mean() - second.mean()) / np.sqrt(squares / (projections.size - 2)))


def leave_one_out_projections(X: Float, is_first: Mask) -> Float:
    """Return the projection of each sample on the difference of the means of two groups.

    The mean of the group of a sample is computed from the other samples of the group. The
    parameters are those of `separation`.
    """
    centred = X - X.mean(axis=0)
    n_first, n_second = int(is_first.sum()), int((~is_first).sum())
    # The inner products of each sample with the means of both groups are sufficient.
    first = centred @ centred[is_first].mean(axis=0)
    second = centred @ centred[~is_first].mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    own_first = (n_first * first - squares) / (n_first - 1)
    own_second = (n_second * second - squares) / (n_second - 1)
    return np.where(is_first, own_first - second, first - own_second)


def cluster_index(X: Float, is_first: Mask) -> float:
    """Return the sum of squares within two groups, divided by the total sum of squares.

    This is the statistic of SigClust [1]_. The parameters are those of `separation`.

    References
    ----------
    .. [1] Liu, Y., Hayes, D. N., Nobel, A. and Marron, J. S. (2008). Statistical significance of
       clustering for high-dimension, low-sample size data. Journal of the American Statistical
       Association 103(483), 1281-1293. doi:10.1198/016214508000000454
    """
    total = float(((X - X.mean(axis=0)) ** 2).sum())
    within = sum(
        float(((X[group] - X[group].mean(axis=0)) ** 2).sum()) for group in (is_first, ~is_first)
    )
    return within / total if total > 0.0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianNull:
    """Gaussian distribution of n samples with p features, by k factors and independent noise.

    Attributes
    ----------
    means : ndarray of shape (p,)
        Mean of each feature.
    factors : ndarray of shape (k, p)
        Loadings of the factors. Their cross product is a part of the covariance.
    noise : ndarray of shape (p,)
        Standard deviation of the independent noise of each feature.
    is_missing : ndarray of bool of shape (n, p)
        Mask of the missing values.
    """

    means: Float
    factors: Float
    noise: Float
    is_missing: Mask

    def draw(self, rng: np.random.Generator) -> Float:
        """Return simulated data of shape (n, p). The same values are missing as in the data."""
        n = len(self.is_missing)
        drawn: Float = rng.standard_normal((n, len(self.factors))) @ self.factors
        if self.noise.any():
            drawn += self.noise * rng.standard_normal(drawn.shape)
        drawn += self.means
        drawn[self.is_missing] = np.nan
        return drawn


def estimate_null(X: Float) -> GaussianNull:
    r"""Return a Gaussian distribution with the means, the variances and the factors of data.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Data, with NaN for missing values.

    Notes
    -----
    Let :math:`\lambda_k` and :math:`v_k` be the n - 1 largest eigenvalues of the sample covariance
    and their eigenvectors, and let m be the median of these eigenvalues. The factors are
    :math:`\sqrt{\lambda_k - m} \, v_k` for all eigenvalues above the median. The rest of the
    variance of each feature is independent noise, so the variances are those of X.

    If p is much larger than n, independent noise of variance :math:`\sigma^2` has sample
    eigenvalues near :math:`\sigma^2 p / n` instead of :math:`\sigma^2`. Without the subtraction of
    the median, simulated data would have n - 1 strong factors, and a procedure that selects
    features would find clear splits along them. If the median were replaced by the upper edge of
    the eigenvalues of noise, moderately correlated blocks of features would be lost, and such
    blocks in the data would be mistaken for clusters.
    """
    eigen = _decompose(X)
    median = float(np.median(eigen.values))
    factors = eigen.factors(np.maximum(eigen.values - median, 0.0))
    rest = np.nanvar(X, axis=0, ddof=1) - np.einsum("ij,ij->j", factors, factors)
    return GaussianNull(
        means=eigen.means,
        factors=factors,
        # The variance of a feature with a single value is NaN.
        noise=np.sqrt(np.maximum(np.nan_to_num(rest), 0.0)),
        is_missing=eigen.is_missing,
    )


def estimate_null_of_sigclust(X: Float) -> GaussianNull:
    """Return the Gaussian distribution of SigClust, whose covariance has a background variance.

    It is used if no features are selected. All features then have the same background variance,
    which would not be suitable for a selection of features with large variances.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Data, with NaN for missing values.
    """
    eigen = _decompose(X)
    values = np.zeros(max(X.shape[1], eigen.values.size))
    values[: eigen.values.size] = eigen.values
    background = background_variance(X)
    reduced = soft_threshold(values, background=background)[: eigen.values.size]
    return GaussianNull(
        means=eigen.means,
        factors=eigen.factors(reduced - background),
        noise=np.full(eigen.means.size, np.sqrt(background)),
        is_missing=eigen.is_missing,
    )


def background_variance(X: Float) -> float:
    """Return the squared median absolute deviation of all values, scaled for normal data."""
    median = np.nanmedian(X)
    return float((_NORMAL_MAD * np.nanmedian(np.abs(X - median))) ** 2)


def soft_threshold(values: Float, *, background: float) -> Float:
    r"""Return eigenvalues of the null covariance of SigClust, given sample eigenvalues.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Eigenvalues of the sample covariance, in decreasing order.
    background : float
        Variance of the background noise, :math:`\sigma^2`.

    Notes
    -----
    The eigenvalues are :math:`\max(\lambda_k - \tau, \sigma^2)`. The largest candidate of
    :math:`\tau` is the one that preserves the total variance [1]_. Of 100 candidates from zero to
    this value, the one is chosen for which the first eigenvalue has the largest share of the total
    variance, since the split is most likely to follow the first eigenvector.

    References
    ----------
    .. [1] Huang, H., Liu, Y., Yuan, M. and Marron, J. S. (2015). Statistical significance of
       clustering using soft thresholding. Journal of Computational and Graphical Statistics 24(4),
       975-993. doi:10.1080/10618600.2014.948179
    """
    largest = _variance_preserving_threshold(values, background)
    candidates = np.maximum(
        values - largest * np.arange(_N_THRESHOLDS)[:, None] / _N_THRESHOLDS, background
    )
    shares = candidates[:, 0] / candidates.sum(axis=1)
    best: Float = candidates[int(shares.argmax())]
    return best


def _variance_preserving_threshold(values: Float, background: float) -> float:
    """Return the threshold that preserves the sum of the eigenvalues; zero if there is none."""

    def excess(threshold: float) -> float:
        return float(np.maximum(values - threshold, background).sum() - values.sum())

    highest = float(values[0])
    if excess(0.0) <= 0.0 or excess(highest) >= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, highest))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Eigen:
    """Eigenvalues and eigenvectors of the covariance of n samples with p features.

    Attributes
    ----------
    means : ndarray of shape (p,)
        Mean of each feature.
    values : ndarray of shape (n - 1,)
        Eigenvalues of the sample covariance, in decreasing order.
    vectors : ndarray of shape (n - 1, p)
        Eigenvectors; zero for eigenvalues that are zero.
    is_missing : ndarray of bool of shape (n, p)
        Mask of the missing values. They were replaced by the means.
    """

    means: Float
    values: Float
    vectors: Float
    is_missing: Mask

    def factors(self, variances: Float) -> Float:
        """Return the factors with the given variances, without those of zero variance."""
        is_used = variances > 0.0
        return np.sqrt(variances[is_used])[:, None] * self.vectors[is_used]


def _decompose(X: Float) -> _Eigen:
    """Return the eigenvalues and eigenvectors of the sample covariance of X."""
    means = np.nanmean(X, axis=0)
    centred = X - means
    is_missing = np.isnan(centred)
    centred[is_missing] = 0.0
    # The cross product of the samples is small, and has the same non-zero eigenvalues. Its smallest
    # eigenvalue is zero because of the centring.
    squares, rows = np.linalg.eigh(centred @ centred.T)
    squares, rows = np.maximum(squares[:0:-1], 0.0), rows[:, :0:-1]
    # Without this bound, vectors of eigenvalues that are zero except for rounding would be noise.
    is_zero = squares <= squares[0] * len(X) * np.finfo(float).eps
    lengths = np.where(is_zero, np.inf, np.sqrt(squares))
    return _Eigen(
        means=means,
        values=np.where(is_zero, 0.0, squares) / (len(X) - 1),
        vectors=(rows / lengths).T @ centred,
        is_missing=is_missing,
    )


def upper_tail_p_value(observed: float, simulated: Float) -> float:
    r"""Return the p-value of a statistic for which large values are extreme.

    Parameters
    ----------
    observed : float
        Statistic of the data.
    simulated : ndarray of shape (m,)
        Statistics of m simulated data sets, at least two. NaN are ignored.

    Notes
    -----
    A normal distribution is fitted to the simulated values, since m simulations could not show
    p-values below 1 / (m + 1). Its mean and its standard deviation s are estimates, so the p-value
    is that of the predictive distribution: :math:`(x - \bar x) / (s \sqrt{1 + 1 / m})` has
    Student's t distribution with m - 1 degrees of freedom.
    """
    values = simulated[~np.isnan(simulated)]
    m = values.size
    if m < 2:
        return 1.0
    scale = values.std(ddof=1) * np.sqrt(1.0 + 1.0 / m)
    if scale == 0.0:
        return 1.0 if observed <= values[0] else 0.0
    return float(stdtr(m - 1, -(observed - values.mean()) / scale))


def looks(n_simulations: int) -> Iterator[int]:
    """Yield the numbers of simulations after which the p-value is computed, in increasing order."""
    numbers = [*_FIRST_LOOKS, *range(2 * _LOOK_STEP, n_simulations, _LOOK_STEP)]
    yield from (number for number in numbers if number < n_simulations)
    yield n_simulations


def is_decided(p_value: float, *, n_simulated: int, threshold: float) -> bool:
    """Return whether further simulations would hardly change the decision about a node."""
    if p_value > _CLEARLY_LARGE:
        return True
    return n_simulated >= _MIN_SIMULATIONS_OF_SMALL and p_value < _CLEARLY_SMALL_SHARE * threshold


def tested_nodes(
    tree: Tree, *, alpha: float, test_node: Callable[[int, float], NodeTest]
) -> Iterator[tuple[int, float, NodeTest]]:
    r"""Yield node number, threshold and result of each tested node, from the root downwards.

    A node is tested if it has at least 10 samples and its parent is significant. Branches with
    fewer than four samples are left out above a tested node. The threshold is
    :math:`\alpha (m - 1) / (n - 1)` for a node with m of the n samples. The probability that any
    node is significant whose samples form a single group is then at most :math:`\alpha` [1]_.

    Parameters
    ----------
    tree : Tree
        Tree of n samples.
    alpha : float
        Bound of the family-wise error rate.
    test_node : callable
        Function that is called with a node number and a threshold, and returns a `NodeTest`.

    References
    ----------
    .. [1] Kimes, P. K., Liu, Y., Hayes, D. N. and Marron, J. S. (2017). Statistical significance
       for hierarchical clustering. Biometrics 73(3), 811-821. doi:10.1111/biom.12647
    """
    n = tree.n_samples
    waiting = [tree.root]
    while waiting:
        node = skip_small_branches(tree, waiting.pop(0))
        if node is None:
            continue
        threshold = alpha * (tree.n_samples_below(node) - 1) / (n - 1)
        result = test_node(node, threshold)
        yield node, threshold, result
        if result.p_value <= threshold:
            waiting.extend(tree.children(node))


def skip_small_branches(tree: Tree, node: int) -> int | None:
    """Return the first node, from `node` downwards, whose two branches are both large enough.

    Below a node with a small branch, the search continues with the other branch. The result is None
    if fewer than 10 samples are left.
    """
    while tree.n_samples_below(node) >= MIN_NODE_SAMPLES:
        smaller, larger = sorted(tree.children(node), key=tree.n_samples_below)
        if tree.n_samples_below(smaller) >= MIN_BRANCH_SAMPLES:
            return node
        node = larger
    return None


def label_by_nodes(tree: Tree, nodes: Iterable[int]) -> Labels:
    """Return the cluster of each sample if a tree is divided at the given nodes.

    Each node comes after its ancestors. Samples of a cluster that are not below the node at which
    the cluster is divided have the label -1. If there are no nodes, all samples form one cluster.
    """
    labels = np.zeros(tree.n_samples, dtype=np.intp)
    for node in nodes:
        # The cluster that contains the node is replaced by the two branches of the node. Its other
        # samples are those of small branches above the node.
        labels[labels == labels[tree.members(node)[0]]] = _OUTLYING
        for child in tree.children(node):
            labels[tree.members(child)] = child
    is_member = labels != _OUTLYING
    in_order = labels[tree.leaf_order]
    levels, first = np.unique(in_order[in_order != _OUTLYING], return_index=True)
    numbers = np.empty(levels.size, dtype=np.intp)
    numbers[np.argsort(first)] = np.arange(levels.size)
    labels[is_member] = numbers[np.searchsorted(levels, labels[is_member])]
    return labels
