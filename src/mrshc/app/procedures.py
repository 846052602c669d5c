"""The recommended procedure and the procedure of the paper, as settings of `mrshc cluster`."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from mrshc.errors import UserError
from mrshc.methods import METHODS

# Settings of MrSHC that are recommended for real data; see the page docs/guide/recommended.md.
RECOMMENDED = {"selection": "association", "linkage": "ward"}
# The defaults of MrSHC, which are those of Zhang and Zamar (2014).
PAPER = {"selection": "silhouette", "linkage": "complete"}


def complete_procedure(
    method: str, parameters: Mapping[str, Any], *, paper: bool
) -> tuple[dict[str, Any], str]:
    """Return the parameters with selection rule and linkage, and a sentence on the procedure.

    Parameters
    ----------
    method : str
        Key of the method.
    parameters : mapping of str to object
        Parameters by name. The value None stands for a parameter that the user did not give.
    paper : bool
        Whether the user asked for the procedure of the paper.

    Returns
    -------
    parameters : dict of str to object
        The parameters. Those that the user did not give have the values of the recommended
        procedure, or of the paper if `paper` is True. If the method is not MrSHC, the linkage is
        the default of its estimator.
    sentence : str
        A sentence that says which procedure is used and why.

    Raises
    ------
    UserError
        If the user asked for the procedure of the paper and for another method, rule or linkage.
    """
    given = {name: parameters.get(name) for name in RECOMMENDED if parameters.get(name) is not None}
    if paper:
        _refuse_other_settings(method, given)
    if method != "mrshc":
        # The default of an estimator may be another linkage than that of the paper.
        linkage = given.get("linkage", _default_linkage(method))
        return dict(parameters) | {"linkage": linkage}, f"Method: {method}, {linkage} linkage."
    settings: dict[str, Any] = dict(PAPER if paper else RECOMMENDED)
    if not _has_ward_linkage(parameters.get("metric")):
        settings["linkage"] = PAPER["linkage"]
    settings.update(given)
    linkage = "Ward's" if settings["linkage"] == "ward" else settings["linkage"]
    names = f"selection by {settings['selection']}, {linkage} linkage"
    if paper:
        sentence = f"Procedure of the paper (--paper): {names}."
    elif settings == RECOMMENDED:
        sentence = (
            f"Recommended procedure: {names}. It determines the number of features from the data, "
            "and tests whether held-out features support the clusters. For the procedure of the "
            "paper, use --paper."
        )
    else:
        sentence = f"Procedure: {names}."
    return dict(parameters) | settings, sentence


def _has_ward_linkage(metric: str | None) -> bool:
    """Return whether Ward's linkage is defined for a metric; None stands for the default metric."""
    if metric is None:
        return True
    # The import takes half a second, so it is made only if a metric was given.
    from mrshc.core.trees.tree import SQUARED_EUCLIDEAN_METRICS

    return metric in SQUARED_EUCLIDEAN_METRICS


def _default_linkage(method: str) -> Any:
    """Return the default linkage of a method's estimator, or of the paper if there is none."""
    if method not in METHODS:  # an unknown method is refused later, with a list of the methods
        return PAPER["linkage"]
    parameter = signature(METHODS[method].load()).parameters.get("linkage")
    return PAPER["linkage"] if parameter is None else parameter.default


def _refuse_other_settings(method: str, given: Mapping[str, Any]) -> None:
    """Raise UserError if the user gave a method, rule or linkage other than that of the paper."""
    if method != "mrshc":
        raise UserError(
            f"--paper is the procedure of the method mrshc, but --method {method} was given. Leave "
            "one of the two out."
        )
    for name, value in given.items():
        if value != PAPER[name]:
            raise UserError(
                f"--paper has the {name} {PAPER[name]!r}, but --{name} {value} was given. Leave "
                "one of the two out."
            )
