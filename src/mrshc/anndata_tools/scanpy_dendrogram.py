"""Trees in the layout in which scanpy stores the dendrogram of a categorical annotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram


def scanpy_dendrogram(
    linkage_matrix: NDArray[np.float64],
    profiles: NDArray[np.float64],
    *,
    groupby: str,
    names: Sequence[str],
    linkage: str,
) -> dict[str, Any]:
    """Return a tree of the categories of an annotation, as `scanpy.tl.dendrogram` stores it."""
    drawn = dendrogram(linkage_matrix, labels=list(names), no_plot=True)
    return {
        "linkage": linkage_matrix,
        "groupby": [groupby],
        "use_rep": "mrshc",
        "cor_method": "pearson",
        "linkage_method": linkage,
        "categories_ordered": drawn["ivl"],
        "categories_idx_ordered": drawn["leaves"],
        "dendrogram_info": drawn,
        "correlation_matrix": _correlations(profiles),
    }


def _correlations(profiles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlations of the rows; 0 for constant rows, and 1 on the diagonal."""
    centred = profiles - profiles.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    units = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
    correlations: NDArray[np.float64] = np.clip(units @ units.T, -1.0, 1.0)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def cluster_linkage(
    linkage_matrix: NDArray[np.float64], labels: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the tree of the clusters: the upper part of a tree of samples."""
    n = len(labels)
    n_clusters = int(labels.max()) + 1
    # For each node of the tree: the clusters of its samples, and its number in the new tree.
    clusters = [frozenset([int(label)]) for label in labels]
    numbers = [int(label) for label in labels]
    merges: list[tuple[float, float, float, float]] = []
    for left, right, height, _ in linkage_matrix:
        a, b = int(left), int(right)
        joined = clusters[a] | clusters[b]
        larger = a if clusters[a] == joined else b if clusters[b] == joined else None
        if larger is None:
            merges.append((numbers[a], numbers[b], float(height), len(joined)))
            numbers.append(n_clusters + len(merges) - 1)
        else:
            # The node joins samples of the same clusters, so the new tree has no node for it.
            numbers.append(numbers[larger])
        clusters.append(joined)
    if len(merges) != n_clusters - 1:
        raise ValueError(f"The {n_clusters} clusters of {n} samples are not branches of the tree.")
    return np.array(merges, dtype=np.float64).reshape(-1, 4)
