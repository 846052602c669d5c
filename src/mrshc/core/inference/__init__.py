"""Statistical tests of features: association with a tree, markers of clusters, refinement."""
