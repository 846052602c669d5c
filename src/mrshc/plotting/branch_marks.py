"""P-values and support of the branches of a tree, as shown in plots. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrshc.core.stability import StabilityResult
from mrshc.core.trees import check_linkage
from mrshc.estimators.confidence import BranchSignificance
from mrshc.plotting.arguments import check_numbers, check_table
from mrshc.plotting.dendrogram_layout import clusters_of_merges

_COLUMNS = ("node", "p_value", "significant")
# Smaller p-values are written as "p < 0.001". They depend on the tail of a normal distribution that
# is fitted to the simulated statistics, so further digits would not be reliable.
_SMALLEST_P_VALUE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMark:
    """P-value and support of one node of the tree.

    Attributes
    ----------
    node : int
        Row of the node in the linkage matrix.
    p_value : float
        P-value of the split of the node; NaN if the node was not tested.
    significant : bool
        Whether the split of the node is significant. It is False if the node was not tested.
    support : float
        Support of the branch below the node, from 0 to 1; NaN if it is not shown.
    """

    node: int
    p_value: float
    significant: bool
    support: float

    @property
    def is_tested(self) -> bool:
        """Whether the split of the node was tested."""
        return not np.isnan(self.p_value)

    @property
    def label(self) -> str:
        """P-value and support as text, in two lines if both are known."""
        lines = [format_p_value(self.p_value)] if self.is_tested else []
        if not np.isnan(self.support):
            lines.append(format_support(self.support))
        return "\n".join(lines)


def format_p_value(p_value: float) -> str:
    """Return a p-value as text, such as "p = 0.012" or "p < 0.001"."""
    if p_value < _SMALLEST_P_VALUE:
        return f"p < {_SMALLEST_P_VALUE}"
    # Three decimals show on which side of the usual thresholds a small p-value is.
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def format_support(support: float) -> str:
    """Return a share from 0 to 1 as text, such as "97 %"."""
    return f"{100 * support:.0f} %"


def branch_marks(
    linkage_matrix: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    significance: Any = None,
    stability: Any = None,
) -> list[BranchMark]:
    """Return the p-values and the support that a plot of a tree shows, from the root downwards.

    P-values are shown at all tested nodes. The support is shown at the nodes that join clusters and
    at the top node of each cluster; the nodes inside clusters are too many for a plot.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree in scipy's format.
    labels : array-like of shape (n_samples,) or None, default=None
        Cluster of each sample. If None, the support is shown at the tested nodes and the nodes
        directly below them.
    significance : BranchSignificance, mapping, DataFrame or None, default=None
        Result of :func:`mrshc.branch_significance`, or a table with the columns `node` (row of the
        linkage matrix), `p_value` (NaN if the node was not tested) and `significant`.
    stability : StabilityResult, array-like of shape (n_samples - 1,) or None, default=None
        Result of :func:`mrshc.stability`, or the support of each row of the linkage matrix.

    Returns
    -------
    marks : list of BranchMark
        One entry for each node with a p-value or a support, in decreasing order of the rows.

    Examples
    --------
    >>> from mrshc.plotting import branch_marks
    >>> tree = [[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 9.0, 4]]
    >>> tests = {"node": [2], "p_value": [0.012], "significant": [True]}
    >>> marks = branch_marks(tree, significance=tests, stability=[0.97, 0.5, float("nan")])
    >>> [(mark.node, mark.label) for mark in marks]
    [(2, 'p = 0.012'), (1, '50 %'), (0, '97 %')]
    """
    merges = check_linkage(linkage_matrix)
    p_values, significant = _tests_of_nodes(significance, n_merges=len(merges))
    support = _support_of_nodes(stability, n_merges=len(merges))
    children = merges[:, :2].astype(np.intp) - len(merges) - 1
    # `parents` are the nodes at which the tree is divided. Their support and that of the nodes
    # directly below them are shown.
    parents = ~np.isnan(p_values) if labels is None else clusters_of_merges(merges, labels) < 0
    is_shown = parents.copy()
    below = children[parents]
    is_shown[below[below >= 0]] = True
    support = np.where(is_shown, support, np.nan)
    return [
        BranchMark(
            node=node,
            p_value=float(p_values[node]),
            significant=bool(significant[node]),
            support=float(support[node]),
        )
        for node in reversed(range(len(merges)))
        if not (np.isnan(p_values[node]) and np.isnan(support[node]))
    ]


def significance_note(
    linkage_matrix: ArrayLike, labels: ArrayLike | None, *, significance: Any
) -> str:
    """Return a note for the title of a plot whose clusters are not all significant."""
    if labels is None or significance is None:
        return ""
    n_significant, n_splits = count_significant_splits(
        linkage_matrix, labels, significance=significance
    )
    p_values, _ = _tests_of_nodes(significance, n_merges=len(np.asarray(linkage_matrix)))
    if np.isnan(p_values).all() or n_significant == n_splits:
        return ""
    if n_significant == 0:
        return "clusters not significant"
    return f"{n_significant} of {n_splits} splits significant"


def count_significant_splits(
    linkage_matrix: ArrayLike, labels: ArrayLike, *, significance: Any
) -> tuple[int, int]:
    """Return the number of significant splits between clusters, and the number of all of them.

    The parameters are those of :func:`significance_note`. A node that was not tested is not
    significant.
    """
    is_split = clusters_of_merges(linkage_matrix, labels) < 0
    _, significant = _tests_of_nodes(significance, n_merges=is_split.size)
    return int((is_split & significant).sum()), int(is_split.sum())


def result_tests(result: Any) -> dict[str, Any] | None:
    """Return the tests of the branches of a result, for the argument `significance` of plots."""
    if result.branches is None or "p_value" not in result.branches:
        return None
    tested = result.branches[result.branches["p_value"].notna()]
    return {
        "node": tested["node"].to_numpy() - len(result.linkage_matrix_) - 1,
        "p_value": tested["p_value"].to_numpy(),
        "threshold": tested["threshold"].to_numpy(),
        "significant": tested["significant"].to_numpy(dtype=bool),
        "agreement": tested["agreement"].to_numpy(),
    }


def result_support(result: Any) -> NDArray[np.float64] | None:
    """Return the support of each row of the linkage matrix; None if it was not computed.

    `result` is a Result, whose attribute `branches` lists the nodes from the root downwards.
    """
    if result.branches is None or "support" not in result.branches:
        return None
    support: NDArray[np.float64] = result.branches["support"].to_numpy()[::-1]
    return support


def _tests_of_nodes(
    significance: Any, *, n_merges: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the p-value of each node, NaN if it was not tested, and whether it is significant."""
    p_values, significant = np.full(n_merges, np.nan), np.zeros(n_merges, dtype=bool)
    if significance is None:
        return p_values, significant
    table = significance
    if isinstance(significance, BranchSignificance):
        table = {name: getattr(significance, name) for name in _COLUMNS}
    check_table("significance", table, columns=_COLUMNS)
    numbers = [check_numbers(name, table[name]) for name in _COLUMNS]
    is_tested = ~np.isnan(numbers[1])
    if any(column.shape != is_tested.shape for column in numbers):
        raise ValueError(
            "The columns of significance must have the same length, got the shapes "
            f"{', '.join(str(column.shape) for column in numbers)}. Pass one value for each node."
        )
    node, p_of_tests, is_significant = (column[is_tested] for column in numbers)
    nodes: NDArray[np.intp] = node.astype(np.intp)
    if nodes.size and not 0 <= nodes.min() <= nodes.max() < n_merges:
        raise ValueError(
            f"significance must be that of the tree, whose nodes have the rows 0 to "
            f"{n_merges - 1}, got the row {nodes.max()}. Pass the model that was tested."
        )
    p_values[nodes], significant[nodes] = p_of_tests, is_significant.astype(bool)
    return p_values, significant


def _support_of_nodes(stability: Any, *, n_merges: int) -> NDArray[np.float64]:
    """Return the support of each node, NaN if it is not known."""
    if stability is None:
        return np.full(n_merges, np.nan)
    is_result = isinstance(stability, StabilityResult)
    support = check_numbers("stability", stability.branch_support if is_result else stability)
    if support.shape != (n_merges,):
        raise ValueError(
            f"stability must be that of the tree, with the support of {n_merges} nodes, got the "
            f"shape {support.shape}. Pass the model whose stability was computed."
        )
    return support
