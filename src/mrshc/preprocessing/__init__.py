"""Preprocessing of measurements: thresholds, filters, logarithm, standardisation, imputation.

Each step is a transformer of scikit-learn, with samples in rows and features in columns, for use in
a pipeline; :func:`prepare` runs several of them and reports the effect of each. NaN marks a missing
value and is preserved, except by imputation; infinity is refused. Data are never changed in place.
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

# Imported on first use: the help of the command line needs the names of the presets only, and
# scikit-learn takes long to import.
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
