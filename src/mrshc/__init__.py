"""Sparse hierarchical clustering for large and flat data."""

from mrshc.components import SparseComponents, sparse_components
from mrshc.estimators import HighVarianceHC, MrSHC, UnsupportedClustersWarning

__all__ = [
    "HighVarianceHC",
    "MrSHC",
    "SparseComponents",
    "UnsupportedClustersWarning",
    "sparse_components",
]
