"""From a table to a result: the plan of a run, the fit, the description and the output folder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrshc.app.execution_backends import HERE, Place, place_of
    from mrshc.app.messages import notes_on, preparation, summary
    from mrshc.app.plan import Plan, plan_of, refuse_elsewhere
    from mrshc.app.plan_execution import clusters_compared, compare_methods, described, fit, fitted
    from mrshc.app.result_building import about_comparison
    from mrshc.methods import METHODS

__all__ = [
    "HERE",
    "METHODS",
    "Place",
    "Plan",
    "about_comparison",
    "clusters_compared",
    "compare_methods",
    "described",
    "fit",
    "fitted",
    "notes_on",
    "place_of",
    "plan_of",
    "preparation",
    "refuse_elsewhere",
    "summary",
]

# Imported with their first use: the command line must show its help without loading them.
_HOMES = {
    "execution_backends": ("HERE", "Place", "place_of"),
    "messages": ("notes_on", "preparation", "summary"),
    "plan": ("Plan", "plan_of", "refuse_elsewhere"),
    "result_building": ("about_comparison",),
    "plan_execution": ("clusters_compared", "compare_methods", "described", "fit", "fitted"),
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
