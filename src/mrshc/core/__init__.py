"""The mathematics of multi-rank sparse hierarchical clustering: arrays in, frozen results out."""
