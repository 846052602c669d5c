"""Sparse hierarchical clustering for large and flat data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrshc.comparison import Comparison, MethodFailedWarning, compare
    from mrshc.estimators import (
        SHC,
        HighVarianceHC,
        MrSHC,
        UnsupportedClustersWarning,
        refine_features,
    )
    from mrshc.estimators.sparse_components import SparseComponents, sparse_components

__all__ = [
    "SHC",
    "Comparison",
    "HighVarianceHC",
    "MethodFailedWarning",
    "MrSHC",
    "SparseComponents",
    "UnsupportedClustersWarning",
    "compare",
    "refine_features",
    "sparse_components",
]

# Imported with their first use: `import mrshc` must not wait for numba, pandas and matplotlib.
_HOMES = {
    "comparison": ("Comparison", "MethodFailedWarning", "compare"),
    "estimators.sparse_components": ("SparseComponents", "sparse_components"),
    "estimators": (
        *("SHC", "HighVarianceHC", "MrSHC"),
        *("UnsupportedClustersWarning", "refine_features"),
    ),
}
_SUBMODULES = (
    "comparison",
    "datasets",
    "estimators",
    "exports",
    "io",
    "metrics",
    "plotting",
    "preprocessing",
)


def __getattr__(name: str) -> Any:
    """Import a public name, or a public submodule, when it is first used."""
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
