"""From a table to a result: what is to be done, doing it, what was found, what to say of it."""

from mrshc.app.execution_backends import HERE, Place, place_of
from mrshc.app.messages import (
    classes_in_clusters,
    notes_on,
    preparation,
    refined,
    summary,
    weighed,
)
from mrshc.app.plan import Plan, plan_of, refuse_elsewhere
from mrshc.app.result_building import COMPARISON_FORMAT, COMPARISON_VERSION, about_comparison
from mrshc.app.run import clusters_compared, compare_methods, described, fit, fitted
from mrshc.methods import METHODS

__all__ = [
    "COMPARISON_FORMAT",
    "COMPARISON_VERSION",
    "HERE",
    "METHODS",
    "Place",
    "Plan",
    "about_comparison",
    "classes_in_clusters",
    "clusters_compared",
    "compare_methods",
    "described",
    "fit",
    "fitted",
    "notes_on",
    "place_of",
    "plan_of",
    "preparation",
    "refined",
    "refuse_elsewhere",
    "summary",
    "weighed",
]
