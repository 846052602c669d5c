"""Table of the features that differ between clusters, or between the two branches of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.centre_data import centre
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.inference.markers import Contrast, MarkerStatistics, marker_statistics
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.trees.tree import Linkage, Metric, Tree
from mrshc.optional_packages import require_packages

if TYPE_CHECKING:
    import pandas as pd


# Columns of the table and their types, which are needed for a table without rows.
_TABLE_COLUMNS = {
    "contrast": str,
    "node": np.int64,
    "inside": str,
    "outside": str,
    "n_inside": np.int64,
    "n_outside": np.int64,
    "feature": np.int64,
    "selected": np.bool_,
    "mean_inside": np.float64,
    "mean_outside": np.float64,
    "effect_size": np.float64,
    "p_value": np.float64,
    "q_value": np.float64,
    "direction": str,
}
# Values of the column `direction`, by the sign of the difference of the means; -1 is the last one.
_DIRECTIONS = np.array(["none", "up", "down"], dtype=object)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LabelledContrast:
    """A contrast (comparison of two groups of samples), and its description in the table."""

    description: dict[str, Any]  # values of the columns that identify the contrast
    contrast: Contrast  # samples of both groups, as positions among the samples not outlying


def marker_table(
    data: DataMatrix,
    *,
    tree: Tree,
    labels: Labels,
    support: Mask,
    tree_features: Mask,
    weights: Float | None,
    outlying: Index,
    names: NDArray[Any] | None,
    linkage: Linkage,
    metric: Metric,
    alpha: float,
) -> pd.DataFrame:
    """Return a table of the features that differ between clusters, or between branches.

    Parameters
    ----------
    data : DataMatrix of shape (n_samples, n_features)
        Data of the fit.
    tree : Tree
        Tree of the fit.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample. Every cluster must be a branch of the tree.
    support : ndarray of shape (n_features,)
        Mask of the selected features.
    tree_features : ndarray of shape (n_features,)
        Mask of the features on which the tree is built.
    weights : ndarray of shape (n_tree_features,) or None
        Weights of these features in the distances; None if all weights are equal.
    outlying : ndarray of shape (n_outliers,)
        Indices of outlying samples, which are excluded from all contrasts.
    names : ndarray of shape (n_features,) or None
        Names of the features. If None, the table contains their indices.
    linkage, metric : str
        Linkage and metric of the fit. They are also used for additional trees, each of which is
        built without some of the features of the tree.
    alpha : float
        A feature is listed for a contrast if its q-value is at most `alpha`.

    Returns
    -------
    DataFrame
        The table that :meth:`mrshc.estimators.base.TreeClusterer.markers` describes.
    """
    require_packages(["pandas"], purpose="A table of markers", extra="tables")
    # pandas is imported here because the import takes a long time, and fits do not need pandas.
    import pandas as pd

    kept = np.setdiff1d(np.arange(data.shape[0]), outlying, assume_unique=True)
    labelled = _contrasts(tree, labels, kept)
    if not labelled:  # with one cluster, there are no groups to compare
        types: dict[str, Any] = dict(_TABLE_COLUMNS)
        if names is not None:
            types["feature"] = pd.Series(names).dtype
        return pd.DataFrame({name: pd.Series(dtype=t) for name, t in types.items()})
    matrix = centre(data.select_samples(kept), center="columns", drop_constant=True)
    with limit_blas_to_one_thread():
        results = marker_statistics(
            matrix,
            np.flatnonzero(tree_features),
            [one.contrast for one in labelled],
            linkage=linkage,
            metric=metric,
            weights=weights,
        )
    features = {
        "feature": np.arange(support.size) if names is None else names,
        "selected": support,
    }
    blocks = [
        _contrast_rows(one, result, features=features, alpha=alpha)
        for one, result in zip(labelled, results, strict=True)
    ]
    return pd.concat(blocks, ignore_index=True)


def _contrast_rows(
    labelled: _LabelledContrast, result: MarkerStatistics, *, features: dict[str, Any], alpha: float
) -> pd.DataFrame:
    """Return the rows of the table for one contrast.

    There is one row for each feature with a q-value of at most `alpha`. The rows are in decreasing
    order of the absolute effect size.
    """
    import pandas as pd

    block = pd.DataFrame(
        labelled.description
        | {"n_inside": labelled.contrast.inside.size, "n_outside": labelled.contrast.outside.size}
        | features
        | {
            "mean_inside": result.mean_inside,
            "mean_outside": result.mean_outside,
            "effect_size": result.effect_size,
            "p_value": result.p_values,
            "q_value": result.q_values,
            "direction": _directions(result),
        }
    )
    # The effect size of a feature that does not vary within the groups is NaN. It is sorted as if
    # it were zero, so such features come last.
    order = np.argsort(-np.abs(np.nan_to_num(result.effect_size)), kind="stable")
    return block.iloc[order[result.q_values[order] <= alpha]]


def _directions(result: MarkerStatistics) -> NDArray[Any]:
    """Return "up" for features whose mean is higher inside than outside, "down" if it is lower.

    It is "none" if both means are equal, or if one of them is not defined.
    """
    difference = np.nan_to_num(result.mean_inside - result.mean_outside)
    directions: NDArray[Any] = _DIRECTIONS[np.sign(difference).astype(np.intp)]
    return directions


def _contrasts(tree: Tree, labels: Labels, kept: Index) -> list[_LabelledContrast]:
    """Return the contrasts for the table: first one for each cluster, then one for each split.

    The contrast of a cluster compares the cluster with all other samples. The splits are the nodes
    above the clusters, from the root downwards, and the contrast of a split compares the two
    branches of the node. Samples are given by their positions in `kept`, which contains the indices
    of the samples that are not outlying. Contrasts with an empty group are left out.
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters < 2:
        return []
    low, high = tree.label_ranges(labels)
    samples = np.arange(tree.n_samples)
    groups = list[tuple[str, int, Index, Index]]()  # kind, node, samples inside, samples outside
    for k in range(n_clusters):
        # A node has a larger number than all nodes below it. The last node with samples of only
        # this cluster is therefore the node that contains the whole cluster.
        top = int(np.flatnonzero((low == k) & (high == k))[-1])
        groups.append(("cluster", top, samples[labels == k], samples[labels != k]))
    for node in np.flatnonzero(low < high)[::-1].tolist():
        left, right = tree.children(node)
        groups.append(("split", node, tree.members(left), tree.members(right)))

    def clusters_of(some: Index) -> str:
        return ", ".join(str(k) for k in np.unique(labels[some]))

    contrasts = [
        _LabelledContrast(
            description={
                "contrast": kind,
                "node": node,
                "inside": clusters_of(inside),
                "outside": clusters_of(outside),
            },
            contrast=Contrast(
                inside=np.flatnonzero(np.isin(kept, inside)),
                outside=np.flatnonzero(np.isin(kept, outside)),
            ),
        )
        for kind, node, inside, outside in groups
    ]
    # A group is empty if all of its samples are outlying. An empty group cannot be compared.
    return [one for one in contrasts if one.contrast.inside.size and one.contrast.outside.size]
