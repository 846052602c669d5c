"""Sparse hierarchical clustering for large and flat data."""

from mrshc.components import SparseComponents, sparse_components
from mrshc.estimators import SHC, HighVarianceHC, MrSHC, UnsupportedClustersWarning

__all__ = [
    "SHC",
    "HighVarianceHC",
    "MrSHC",
    "SparseComponents",
    "UnsupportedClustersWarning",
    "sparse_components",
]
