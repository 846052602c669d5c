"""The features that mark clusters and splits, as a tidy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.centre_data import centre
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.inference.markers import Contrast, marks
from mrshc.core.parallel import one_blas_thread
from mrshc.core.trees.tree import Linkage, Metric, Tree

if TYPE_CHECKING:
    import pandas as pd


def marker_table(
    data: DataMatrix,
    *,
    tree: Tree,
    labels: Labels,
    support: Mask,
    weights: Float | None,
    outlying: Index,
    names: NDArray[Any] | None,
    linkage: Linkage,
    metric: Metric,
    alpha: float,
) -> pd.DataFrame:
    """Return the markers of all clusters and splits; outlying samples take no part."""
    import pandas as pd

    kept = np.setdiff1d(np.arange(data.shape[0]), outlying, assume_unique=True)
    matrix = centre(data.select_samples(kept), center="columns", drop_constant=True)
    about = _contrasts(tree, labels, kept)
    selected = np.flatnonzero(support)
    with one_blas_thread():
        found = marks(
            matrix,
            selected,
            [contrast for _, contrast in about],
            linkage=linkage,
            metric=metric,
            weights=weights,
        )
    columns = np.arange(support.size)
    blocks = []
    for (words, contrast), mark in zip(about, found, strict=True):
        block = pd.DataFrame(
            words
            | {
                "n_inside": contrast.inside.size,
                "n_outside": contrast.outside.size,
                "feature": columns,
                "name": columns.astype(str) if names is None else names,
                "selected": support,
                "mean_inside": mark.mean_inside,
                "mean_outside": mark.mean_outside,
                "effect_size": mark.effect_size,
                "p_value": mark.p_values,
                "q_value": mark.q_values,
            }
        )
        largest = np.argsort(-np.abs(np.nan_to_num(mark.effect_size)), kind="stable")
        blocks.append(block.iloc[largest[mark.q_values[largest] <= alpha]])
    if not blocks:  # a single cluster has nothing to be told apart from
        return pd.DataFrame(columns=_TABLE_COLUMNS)
    return pd.concat(blocks, ignore_index=True)


_TABLE_COLUMNS = [
    *("contrast", "node", "inside", "outside", "n_inside", "n_outside", "feature", "name"),
    *("selected", "mean_inside", "mean_outside", "effect_size", "p_value", "q_value"),
]


def _contrasts(tree: Tree, labels: Labels, kept: Index) -> list[tuple[dict[str, Any], Contrast]]:
    """Return each cluster against all others, then the two branches of each split, highest first.

    Samples are counted among those that are kept.
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters < 2:
        return []
    low, high = tree.label_ranges(labels)
    position = np.full(tree.n_samples, -1)
    position[kept] = np.arange(kept.size)

    def positions_among_kept(samples: Index) -> Index:
        found = position[samples]
        return found[found >= 0]

    def clusters_of(samples: Index) -> str:
        return ", ".join(str(k) for k in np.unique(labels[samples]))

    everyone = np.arange(tree.n_samples)
    out = list[tuple[str, int, Index, Index]]()
    for k in range(n_clusters):
        top = int(np.flatnonzero((low == k) & (high == k))[-1])
        out.append(("cluster", top, everyone[labels == k], everyone[labels != k]))
    for node in np.flatnonzero(low < high)[::-1].tolist():
        left, right = tree.children(node)
        out.append(("split", node, tree.members(left), tree.members(right)))
    contrasts = [
        (
            {
                "contrast": kind,
                "node": node,
                "inside": clusters_of(inside),
                "outside": clusters_of(outside),
            },
            Contrast(inside=positions_among_kept(inside), outside=positions_among_kept(outside)),
        )
        for kind, node, inside, outside in out
    ]
    # Of outlying samples alone, nothing is known.
    return [(w, c) for w, c in contrasts if c.inside.size and c.outside.size]
