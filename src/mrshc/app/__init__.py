"""Run a clustering analysis of a table and write the results to a folder.

The module :mod:`~mrshc.app.plan` checks the request and prepares the data, and
:mod:`~mrshc.app.plan_execution` fits the method. :mod:`~mrshc.app.result_building` builds the
tables and the description of the result, and :mod:`~mrshc.app.messages` summarises the result in
sentences. :mod:`~mrshc.app.confidence` computes significance and stability.
:mod:`~mrshc.app.genes` compares markers with gene sets.
:mod:`~mrshc.app.output_folder` writes the files, and :mod:`~mrshc.app.picture_writing` the pictures
among them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrshc.app.confidence import Confidence, ConfidenceSettings
    from mrshc.app.execution_backends import LOCAL_BACKEND, ExecutionBackend, open_backend
    from mrshc.app.genes import GeneSettings
    from mrshc.app.messages import (
        comparison_notes,
        confidence_warnings,
        preprocessing_summary,
        result_summary,
    )
    from mrshc.app.plan import Plan, make_plan, refuse_out_of_core_comparison
    from mrshc.app.plan_execution import (
        assess_confidence,
        compare_methods,
        comparison_n_clusters,
        describe_fit,
        fit,
        fit_estimator,
    )
    from mrshc.app.result_building import comparison_json_content

__all__ = [
    "LOCAL_BACKEND",
    "Confidence",
    "ConfidenceSettings",
    "ExecutionBackend",
    "GeneSettings",
    "Plan",
    "assess_confidence",
    "compare_methods",
    "comparison_json_content",
    "comparison_n_clusters",
    "comparison_notes",
    "confidence_warnings",
    "describe_fit",
    "fit",
    "fit_estimator",
    "make_plan",
    "open_backend",
    "preprocessing_summary",
    "refuse_out_of_core_comparison",
    "result_summary",
]

# Public names of this package, listed by the module that defines them. Each name is imported on
# first use, because the command line must show its help without loading numpy, pandas and the
# estimators.
_NAMES_BY_MODULE = {
    "confidence": ("Confidence", "ConfidenceSettings"),
    "execution_backends": ("LOCAL_BACKEND", "ExecutionBackend", "open_backend"),
    "genes": ("GeneSettings",),
    "messages": (
        *("comparison_notes", "confidence_warnings", "preprocessing_summary", "result_summary"),
    ),
    "plan": ("Plan", "make_plan", "refuse_out_of_core_comparison"),
    "result_building": ("comparison_json_content",),
    "plan_execution": (
        *("assess_confidence", "compare_methods", "comparison_n_clusters", "describe_fit", "fit"),
        "fit_estimator",
    ),
}


def __getattr__(name: str) -> Any:
    """Return the public object with the given name, importing its module on first use.

    Raises AttributeError if there is no public object with this name.
    """
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            # Store the value as a global variable, so that Python does not call this function again
            # for the same name.
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
