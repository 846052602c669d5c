"""From what an instrument gives to what is clustered: thresholds, filters, logarithm, imputation.

Each step is a scikit-learn transformer, with samples in rows and features in columns, for use in a
pipeline; `prepare` runs several of them and keeps a log for people. NaN marks a missing value and
passes through, infinity is refused. What comes in is never changed in place.
"""

from mrshc.preprocessing.imputation import NeighborImputer
from mrshc.preprocessing.pipeline import PRESETS, Prepared, StepReport, chain, dudoit2002, prepare
from mrshc.preprocessing.steps import (
    Log2,
    ObservedFilter,
    RangeFilter,
    Standardize,
    Thresholds,
    VarianceFilter,
)

__all__ = [
    "PRESETS",
    "Log2",
    "NeighborImputer",
    "ObservedFilter",
    "Prepared",
    "RangeFilter",
    "Standardize",
    "StepReport",
    "Thresholds",
    "VarianceFilter",
    "chain",
    "dudoit2002",
    "prepare",
]
