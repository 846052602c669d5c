"""Estimators and functions with the interface of scikit-learn."""

from mrshc.rebuilt.estimators.association import AssociationHC
from mrshc.rebuilt.estimators.base import UnsupportedClustersWarning
from mrshc.rebuilt.estimators.confidence import branch_significance, stability
from mrshc.rebuilt.estimators.cosa import COSA
from mrshc.rebuilt.estimators.high_variance import HighVarianceHC
from mrshc.rebuilt.estimators.mrshc import MrSHC
from mrshc.rebuilt.estimators.shc import SHC
from mrshc.rebuilt.estimators.sparse_components import SparseComponents, sparse_components
from mrshc.rebuilt.estimators.sparse_kmeans import SparseKMeans

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
