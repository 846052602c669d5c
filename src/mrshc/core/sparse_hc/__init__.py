"""Sparse hierarchical clustering of Witten and Tibshirani (2010): weights of features."""
