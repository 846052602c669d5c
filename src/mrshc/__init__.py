"""Sparse hierarchical clustering of data with many features and few samples.

The package implements multi-rank sparse hierarchical clustering (MrSHC; Zhang and Zamar 2014,
https://arxiv.org/abs/1409.0745) and the methods with which its paper compares it.

Estimators: :class:`MrSHC`, :class:`SHC`, :class:`HighVarianceHC`. Functions: :func:`compare`,
:func:`sparse_components`, :func:`refine_features`. Modules: :mod:`mrshc.datasets`,
:mod:`mrshc.exports`, :mod:`mrshc.io`, :mod:`mrshc.metrics`, :mod:`mrshc.plotting`,
:mod:`mrshc.preprocessing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Type checkers and editors do not run `__getattr__`: they read these imports instead.
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

# Modules of the public names, imported at their first use: `import mrshc` must not wait for
# pandas, numba and matplotlib, which are slow to import.
_NAMES_BY_MODULE = {
    "comparison": ("Comparison", "MethodFailedWarning", "compare"),
    "estimators.sparse_components": ("SparseComponents", "sparse_components"),
    "estimators": (
        *("SHC", "HighVarianceHC", "MrSHC"),
        *("UnsupportedClustersWarning", "refine_features"),
    ),
}
# Public modules, which are available as `mrshc.io` after `import mrshc`.
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
    """Import a public name, or a public submodule, at its first use."""
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            # Stored, so that Python does not call this function for the name again.
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of the module, including those that are not imported yet."""
    return sorted({*globals(), *__all__, *_SUBMODULES})
