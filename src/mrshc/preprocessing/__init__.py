"""From what an instrument gives to what is clustered: thresholds, filters, logarithm, imputation.

Each step is a scikit-learn transformer, with samples in rows and features in columns, for use in a
pipeline; `prepare` runs several of them and keeps a log for people. NaN marks a missing value and
passes through, infinity is refused. What comes in is never changed in place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrshc.preprocessing.imputation import NeighborImputer
    from mrshc.preprocessing.pipeline import Prepared, StepReport, chain, dudoit2002, prepare
    from mrshc.preprocessing.presets import PRESETS
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

# Imported with their first use: who only wants the names of presets must not wait for scikit-learn.
_NAMES_BY_MODULE = {
    "imputation": ("NeighborImputer",),
    "pipeline": ("Prepared", "StepReport", "chain", "dudoit2002", "prepare"),
    "presets": ("PRESETS",),
    "steps": (
        *("Log2", "ObservedFilter", "RangeFilter"),
        *("Standardize", "Thresholds", "VarianceFilter"),
    ),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
