"""Estimators with the interface of scikit-learn, and functions for fitted estimators.

The method `fit` of an estimator validates the data and the parameters, calls functions of
`mrshc.core` for the computations, and stores the results as attributes.
"""

from mrshc.estimators.branch_tests import branch_significance
from mrshc.estimators.cluster_stability import stability
from mrshc.estimators.cosa import COSA
from mrshc.estimators.feature_refinement import UnsupportedClustersWarning, refine_features
from mrshc.estimators.high_variance_hc import HighVarianceHC
from mrshc.estimators.mrshc import MrSHC
from mrshc.estimators.shc import SHC
from mrshc.estimators.sparse_kmeans import SparseKMeans

__all__ = [
    "COSA",
    "SHC",
    "HighVarianceHC",
    "MrSHC",
    "SparseKMeans",
    "UnsupportedClustersWarning",
    "branch_significance",
    "refine_features",
    "stability",
]
