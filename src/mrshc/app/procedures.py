"""The method of `mrshc cluster`: the recommended one, that of the paper, or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrshc.core.linkages import SQUARED_METRICS
from mrshc.errors import UserError

RECOMMENDED, PAPER = "association", "mrshc"
# Linkages by default where they are not complete linkage, as in the estimators, whose import takes
# seconds.
_DEFAULT_LINKAGES = {"association": "ward", "cosa": "average"}


def complete_procedure(
    method: str | None, parameters: Mapping[str, Any], *, paper: bool
) -> tuple[str, dict[str, Any], str]:
    """Return the key of the method, its parameters, and a sentence on the procedure."""
    if paper and method not in (None, PAPER):
        raise UserError(
            f"--paper is the method {PAPER}, but --method {method} was given. Leave one of the two "
            "out."
        )
    method = PAPER if paper else method or RECOMMENDED
    linkage = parameters.get("linkage")
    if linkage is None:
        linkage = _DEFAULT_LINKAGES.get(method, "complete")
        if linkage == "ward" and parameters.get("metric") not in (None, *SQUARED_METRICS):
            linkage = "complete"
    name = "Ward's" if linkage == "ward" else linkage
    if paper:
        sentence = f"Procedure of the paper (--paper): method {method}, {name} linkage."
    elif method == RECOMMENDED:
        sentence = (
            f"Recommended method: {method}, {name} linkage. It determines the number of features "
            "from the data, and tests whether held-out features support the clusters. For the "
            "procedure of the paper, use --paper."
        )
    else:
        sentence = f"Method: {method}, {name} linkage."
    return method, dict(parameters) | {"linkage": linkage}, sentence
