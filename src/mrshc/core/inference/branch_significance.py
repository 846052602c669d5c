"""Significance of the branches of a tree whose features were selected from the same data.

The null hypothesis for a node is that the samples below the node are drawn from one Gaussian
distribution. Data are simulated from this distribution, and the whole procedure, with the selection
of the features, is applied to the simulated data. The split of the node is significant if its two
branches are separated more clearly than the branches of simulated data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.trees.tree import Tree

StatisticName = Literal["separation", "cluster_index"]

# Smallest number of samples below a node that is tested, as in sigclust2: the covariance and the
# split of fewer samples are too uncertain.
MIN_NODE_SAMPLES = 10
# Smallest number of samples of a branch. Smaller branches are regarded as outlying samples and not
# as clusters: with heavy-tailed noise, one to three extreme samples often form a branch.
MIN_BRANCH_SAMPLES = 4
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
        Whether the p-value is at most the threshold: the samples below the node are not a single
        group. If `agreement` is small, they may be better divided in another way than in the tree.
    agreement : ndarray of shape (n_nodes,)
        Adjusted Rand index of the split of the node in the tree and of the split that was tested.
        Other features are used for the samples below a node than for the whole tree, so the splits
        may differ.
    n_simulations : ndarray of int of shape (n_nodes,)
        Number of simulated data sets, of one or two tests of the node.
    labels : ndarray of int of shape (n_samples_of_tree,)
        Cluster of each sample if the tree is divided at the significant nodes, numbered from 0 in
        the order of the leaves; -1 for outlying samples that were left out above a significant
        node.
    alpha : float
        Level of the tests, for the whole tree.
    statistic_name : {"separation", "cluster_index"}
        "separation" is one minus the ratio of the standard deviation within the branches and the
        standard deviation of all samples, along the line through the means of the branches; 1 means
        complete separation. "cluster_index" is the sum of squares within the branches,
        divided by the total sum of squares; small values indicate clusters. It is used if no
        features are selected.

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


def combine_tests(tests: Sequence[NodeTest]) -> NodeTest:
    """Return the test with the smallest p-value, corrected for the number of tests (Bonferroni)."""
    best = min(tests, key=lambda test: test.p_value)
    return NodeTest(
        statistic=best.statistic,
        p_value=min(1.0, len(tests) * best.p_value),
        agreement=best.agreement,
        n_simulations=sum(test.n_simulations for test in tests),
    )


def top_down_tests(
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


def groups_around(tree: Tree, node: int) -> Labels:
    """Return the partition of the samples into those below a node and the branches around it.

    The samples below the node form one group. For each ancestor of the node, the samples of the
    branch that does not contain the node form another group. The groups are numbered from 0, from
    the root downwards.
    """
    groups = np.zeros(tree.n_samples, dtype=np.intp)
    present, n_groups = tree.root, 0
    first_sample = tree.members(node)[0]
    while present != node:
        inside, outside = tree.children(present)
        if first_sample not in tree.members(inside):
            inside, outside = outside, inside
        groups[tree.members(outside)] = n_groups
        n_groups += 1
        groups[tree.members(inside)] = n_groups
        present = inside
    return groups


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
