"""Hierarchical clustering: linkage, cuts, gap statistic, pruning, silhouette."""
