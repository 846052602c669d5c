"""Estimators with the interface of scikit-learn.

Each estimator validates the data and the parameters, calls the functions of `mrshc.core`, and
stores the fitted attributes.
"""

from mrshc.estimators.feature_refinement import UnsupportedClustersWarning, refine_features
from mrshc.estimators.high_variance_hc import HighVarianceHC
from mrshc.estimators.mrshc import MrSHC
from mrshc.estimators.shc import SHC

__all__ = ["SHC", "HighVarianceHC", "MrSHC", "UnsupportedClustersWarning", "refine_features"]
