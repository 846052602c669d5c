"""Preprocessing of measurements: normalisation, filters, logarithm, standardisation, imputation.

Each step is a scikit-learn transformer of data with samples in rows; NaN marks a missing value, and
all steps except imputation preserve it. `prepare` runs several steps and reports what each has
done. `detect_scale` recognises counts and raw intensities.
"""

from mrshc.preprocessing.chains import chain, prepare
from mrshc.preprocessing.counts import CountsPerMillion, LowCountFilter, SizeFactors
from mrshc.preprocessing.imputation import NeighborImputer
from mrshc.preprocessing.scale import RawScaleWarning, detect_scale
from mrshc.preprocessing.steps import Log2, RangeFilter, Standardize, Thresholds, VarianceFilter

__all__ = [
    "CountsPerMillion",
    "Log2",
    "LowCountFilter",
    "NeighborImputer",
    "RangeFilter",
    "RawScaleWarning",
    "SizeFactors",
    "Standardize",
    "Thresholds",
    "VarianceFilter",
    "chain",
    "detect_scale",
    "prepare",
]
