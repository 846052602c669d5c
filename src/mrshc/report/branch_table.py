"""Table of the branches of the tree that consist of whole clusters."""

from __future__ import annotations

from mrshc.core.trees import Tree
from mrshc.io.result import Result
from mrshc.report.branch_names import (
    branch_name,
    clusters_below,
    dominant_class,
    higher_features,
)
from mrshc.report.section_parts import Table

# Largest number of clusters for which the table of branches is shown. The table has two rows for
# each cluster. The value is not tuned: it does not affect any result.
_MAX_CLUSTERS = 50


def branch_table(result: Result) -> Table | None:
    """Return a table of the branches that consist of whole clusters, from the root downwards.

    Return None if there is only one cluster, or if there are too many.
    """
    if not 1 < result.n_clusters_ <= _MAX_CLUSTERS:
        return None
    tree = Tree(linkage_matrix=result.linkage_matrix_)
    truth = (result.about["scores"] or {}).get("truth")
    classes = None if truth is None else result.samples[truth].to_numpy(dtype=object)
    features = higher_features(result)
    rows, pending = [], [tree.root]
    while pending:
        node = pending.pop()
        clusters, members = clusters_below(result, node), tree.members(node)
        row = [branch_name(clusters, n_clusters=result.n_clusters_), f"{len(members):,}"]
        row += [] if classes is None else [dominant_class(classes[members])]
        rows.append([*row, ", ".join(features.get(node, []))])
        if len(clusters) > 1:
            pending += reversed(tree.children(node))
    headings = ["branch", "samples", *([] if truth is None else [truth])]
    return Table(
        headings=[*headings, "markers that are higher than in the sibling branch"],
        rows=rows,
        caption="Branches of the tree",
    )
