"""Sparse hierarchical clustering for large and flat data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrshc.comparison import Comparison, MethodFailedWarning, compare
    from mrshc.components import SparseComponents, sparse_components
    from mrshc.estimators import (
        SHC,
        HighVarianceHC,
        MrSHC,
        UnsupportedClustersWarning,
        refine_features,
    )

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

# A room is opened when someone asks for what is in it: nobody pays for what they do not use.
_ROOMS = {
    "comparison": ("Comparison", "MethodFailedWarning", "compare"),
    "components": ("SparseComponents", "sparse_components"),
    "estimators": (
        *("SHC", "HighVarianceHC", "MrSHC"),
        *("UnsupportedClustersWarning", "refine_features"),
    ),
}
# Rooms with more to see than the names above.
_OPEN = (
    "comparison",
    "components",
    "datasets",
    "estimators",
    "exports",
    "io",
    "metrics",
    "plotting",
    "preprocessing",
)


def __getattr__(name: str) -> Any:
    """Return a public name from the room it lives in."""
    for room, names in _ROOMS.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{room}"), name)
            return value
    if name in _OPEN:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_OPEN})
