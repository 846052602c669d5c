"""Clustering of AnnData objects: pseudobulks, and results in the layout of scanpy."""
