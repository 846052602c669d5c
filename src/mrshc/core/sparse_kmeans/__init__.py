"""Sparse K-means clustering of Witten and Tibshirani (2010)."""
