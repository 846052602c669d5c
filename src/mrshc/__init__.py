"""Sparse hierarchical clustering for large and flat data."""

from mrshc.estimators import (
    HighVarianceHC,
    MrSHC,
    SparseComponents,
    UnsupportedClustersWarning,
    sparse_components,
)

__all__ = [
    "HighVarianceHC",
    "MrSHC",
    "SparseComponents",
    "UnsupportedClustersWarning",
    "sparse_components",
]
