"""Sparse principal components: alternation, path over L1 bounds, working sets, certification."""
