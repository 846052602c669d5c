"""Algorithms of multi-rank sparse hierarchical clustering, for arrays and other data matrices."""
