"""scikit-learn faces of the algorithms: validate, call core once, keep the results."""

from mrshc.estimators.feature_refinement import UnsupportedClustersWarning, refine_features
from mrshc.estimators.high_variance_hc import HighVarianceHC
from mrshc.estimators.mrshc import MrSHC
from mrshc.estimators.shc import SHC

__all__ = ["SHC", "HighVarianceHC", "MrSHC", "UnsupportedClustersWarning", "refine_features"]
