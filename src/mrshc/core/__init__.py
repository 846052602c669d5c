"""Algorithms of sparse hierarchical clustering, for data in memory and for out-of-core data."""
