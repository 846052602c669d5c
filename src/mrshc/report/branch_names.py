"""Names of the branches of a tree: their clusters, known classes, and features that mark them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mrshc.core.trees import Tree
from mrshc.io.result import Result

# Number of features that are named for a branch. More would not fit into a line.
_N_FEATURES = 3


def branch_name(clusters: Sequence[int], *, n_clusters: int) -> str:
    """Return the name of a branch, given the numbers of its clusters and the number of clusters.

    The scripts of the page use the same names for the clusters that the reader chooses.
    """
    if len(clusters) == 1:
        return f"cluster {clusters[0]}"
    if len(clusters) == n_clusters:
        return "all clusters"
    first, last = clusters[0], clusters[-1]
    # Clusters are numbered in the order of the leaves, so those of a branch are consecutive.
    if len(clusters) > 2 and last - first + 1 == len(clusters):
        return f"clusters {first} to {last}"
    return f"clusters {', '.join(map(str, clusters[:-1]))} and {last}"


def clusters_below(result: Result, node: int) -> list[int]:
    """Return the numbers of the clusters that have samples below a node, counted from 1.

    The node is numbered as in scipy.
    """
    members = Tree(linkage_matrix=result.linkage_matrix_).members(node)
    return [int(label) + 1 for label in np.unique(result.labels_[members])]


def dominant_class(classes: Sequence[Any]) -> str:
    """Return the class of most samples as text, such as "mostly ALL (38 of 40)".

    Samples whose class is not known (None or NaN) do not count. The text is empty if no class is
    known.
    """
    known = [str(value) for value in classes if not pd.isna(value)]
    if not known:
        return ""
    (name, count), n = Counter(known).most_common(1)[0], len(known)
    if count == n:
        return f"all {name} ({n})"
    return f"mostly {name} ({count} of {n})" if 2 * count > n else "mixed"


def higher_features(result: Result) -> dict[int, list[str]]:
    """Return the features that mark each branch below a split, by the number of its node.

    They are the markers of the split that are higher in the branch than in the other branch of the
    split, in decreasing order of the effect size. Branches without such markers are left out.
    """
    tree = Tree(linkage_matrix=result.linkage_matrix_)
    splits = result.markers[result.markers["contrast"] == "split"]
    labels, found = result.feature_labels, {}
    for node, rows in splits.groupby("node", sort=False):
        # The samples inside a contrast of a split are those of the first child.
        for child, direction in zip(tree.children(int(node)), ("up", "down"), strict=True):
            names = rows.loc[rows["direction"] == direction, "feature"].head(_N_FEATURES)
            if len(names):
                found[child] = labels.loc[names].tolist()
    return found
