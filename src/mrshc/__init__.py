"""Sparse hierarchical clustering for large and flat data."""

from mrshc.comparison import Comparison, MethodFailedWarning, compare
from mrshc.components import SparseComponents, sparse_components
from mrshc.estimators import SHC, HighVarianceHC, MrSHC, UnsupportedClustersWarning

__all__ = [
    "SHC",
    "Comparison",
    "HighVarianceHC",
    "MethodFailedWarning",
    "MrSHC",
    "SparseComponents",
    "UnsupportedClustersWarning",
    "compare",
    "sparse_components",
]
