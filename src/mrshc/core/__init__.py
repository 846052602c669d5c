"""The mathematics of multi-rank sparse hierarchical clustering, on arrays and data matrices."""
