"""Sparse principal components for a sequence of L1 bounds, on all columns or on working sets."""
