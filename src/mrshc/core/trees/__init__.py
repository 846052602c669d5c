"""Trees of samples: linkage, cuts, gap statistic, pruning, silhouette."""
