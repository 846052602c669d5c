"""Hierarchical clustering trees: linkage, cuts, gap statistic, pruning and silhouette widths."""
