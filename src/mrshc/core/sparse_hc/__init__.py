"""Feature weights of the sparse hierarchical clustering of Witten and Tibshirani (2010)."""
