"""Sparse hierarchical clustering of data with many features and few samples.

The package implements multi-rank sparse hierarchical clustering (MrSHC; Zhang and Zamar 2014,
https://arxiv.org/abs/1409.0745) and the methods that the paper compares with MrSHC.

Estimators: :class:`AssociationHC`, :class:`MrSHC`, :class:`SHC`, :class:`COSA`,
:class:`HighVarianceHC`, :class:`SparseKMeans`. Functions: :func:`compare`,
:func:`sparse_components`, :func:`stability`, :func:`branch_significance`,
:func:`gene_set_enrichment`. Modules:
:mod:`mrshc.datasets`, :mod:`mrshc.exports`, :mod:`mrshc.io`, :mod:`mrshc.metrics`,
:mod:`mrshc.plotting`, :mod:`mrshc.preprocessing`; for AnnData objects, :mod:`mrshc.tl` and
:mod:`mrshc.pl`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mrshc.version import __version__ as __version__

# Type checkers and editors do not run `__getattr__`, so they need these imports.
if TYPE_CHECKING:
    from mrshc.comparison import Comparison, MethodFailedWarning, compare
    from mrshc.enrichment import gene_set_enrichment
    from mrshc.estimators import (
        COSA,
        SHC,
        AssociationHC,
        HighVarianceHC,
        MrSHC,
        SparseKMeans,
        UnsupportedClustersWarning,
        branch_significance,
        stability,
    )
    from mrshc.estimators.sparse_components import SparseComponents, sparse_components

__all__ = [
    "COSA",
    "SHC",
    "AssociationHC",
    "Comparison",
    "HighVarianceHC",
    "MethodFailedWarning",
    "MrSHC",
    "SparseComponents",
    "SparseKMeans",
    "UnsupportedClustersWarning",
    "branch_significance",
    "compare",
    "gene_set_enrichment",
    "sparse_components",
    "stability",
]

# Public names, grouped by the module from which they are imported. A module is imported when one of
# its names is first used. Importing `mrshc` itself therefore does not import pandas, numba and
# matplotlib, which are slow to import.
_NAMES_BY_MODULE = {
    "comparison": ("Comparison", "MethodFailedWarning", "compare"),
    "enrichment": ("gene_set_enrichment",),
    "estimators.sparse_components": ("SparseComponents", "sparse_components"),
    "estimators": (
        *("COSA", "SHC", "AssociationHC", "HighVarianceHC", "MrSHC", "SparseKMeans"),
        "UnsupportedClustersWarning",
        *("branch_significance", "stability"),
    ),
}
# Public modules. After `import mrshc`, they are available as attributes, such as `mrshc.io`.
_SUBMODULES = (
    "comparison",
    "datasets",
    "estimators",
    "exports",
    "io",
    "metrics",
    "pl",
    "plotting",
    "preprocessing",
    "tl",
)


def __getattr__(name: str) -> Any:
    """Return a public object or submodule, which is imported when it is first used.

    Raise AttributeError if there is no public object or submodule called `name`.
    """
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            # Store the object in the module, so that Python does not call this function for the
            # same name again.
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names in the module, including public names that have not been imported yet."""
    return sorted({*globals(), *__all__, *_SUBMODULES})
