"""Preprocessing of measurements: normalisation, filters, logarithm, standardisation, imputation.

Each step is a scikit-learn transformer of data with samples in rows and features in columns, and
can be used in a pipeline. The function :func:`prepare` runs several steps and reports the effect of
each step. The function :func:`detect_scale` recognises counts and raw intensities. Missing values
are marked by NaN, and all steps except imputation preserve them. Steps raise ValueError if the data
contain infinite values. The input data are never changed in place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrshc.preprocessing.counts import CountsPerMillion, LowCountFilter, SizeFactors
    from mrshc.preprocessing.imputation import NeighborImputer
    from mrshc.preprocessing.pipeline import Prepared, StepReport, chain, dudoit2002, prepare
    from mrshc.preprocessing.presets import PRESETS
    from mrshc.preprocessing.scale_detection import DataScale, RawScaleWarning, detect_scale
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
    "CountsPerMillion",
    "DataScale",
    "Log2",
    "LowCountFilter",
    "NeighborImputer",
    "ObservedFilter",
    "Prepared",
    "RangeFilter",
    "RawScaleWarning",
    "SizeFactors",
    "Standardize",
    "StepReport",
    "Thresholds",
    "VarianceFilter",
    "chain",
    "detect_scale",
    "dudoit2002",
    "prepare",
]

# Public names of this package, listed by the module that defines them. The modules are imported on
# first use: the command-line help needs only the names of the presets, and importing scikit-learn
# takes a long time.
_NAMES_BY_MODULE = {
    "counts": ("CountsPerMillion", "LowCountFilter", "SizeFactors"),
    "imputation": ("NeighborImputer",),
    "pipeline": ("Prepared", "StepReport", "chain", "dudoit2002", "prepare"),
    "presets": ("PRESETS",),
    "scale_detection": ("DataScale", "RawScaleWarning", "detect_scale"),
    "steps": (
        *("Log2", "ObservedFilter", "RangeFilter"),
        *("Standardize", "Thresholds", "VarianceFilter"),
    ),
}


def __getattr__(name: str) -> Any:
    """Return the public object with the given name, importing its module on first use.

    Raise AttributeError if there is no public object with this name.
    """
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
