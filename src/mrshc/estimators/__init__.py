"""Estimators and functions with the interface of scikit-learn."""

from mrshc.estimators.association import AssociationHC
from mrshc.estimators.base import UnsupportedClustersWarning
from mrshc.estimators.confidence import branch_significance, stability
from mrshc.estimators.cosa import COSA
from mrshc.estimators.high_variance import HighVarianceHC
from mrshc.estimators.mrshc import MrSHC
from mrshc.estimators.shc import SHC
from mrshc.estimators.sparse_components import SparseComponents, sparse_components
from mrshc.estimators.sparse_kmeans import SparseKMeans

__all__ = [
    "COSA",
    "SHC",
    "AssociationHC",
    "HighVarianceHC",
    "MrSHC",
    "SparseComponents",
    "SparseKMeans",
    "UnsupportedClustersWarning",
    "branch_significance",
    "sparse_components",
    "stability",
]
