"""scikit-learn faces of the algorithms: validate, call core once, keep the results."""

from mrshc.estimators.multirank import MrSHC
from mrshc.estimators.refinement import UnsupportedClustersWarning, refine_features
from mrshc.estimators.shc import SHC
from mrshc.estimators.variance import HighVarianceHC

__all__ = ["SHC", "HighVarianceHC", "MrSHC", "UnsupportedClustersWarning", "refine_features"]
