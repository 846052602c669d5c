"""Sparse principal components: alternation, path over L1 bounds, certification."""
