"""Rules that choose the rank and the number of features among candidates, and their registry.

A rule is one class in one module, registered below. Estimators, checkpoints, tables of candidates,
plots, the report, the command line and its help take names, columns, numbers and sentences from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mrshc.core.selection.candidates import Candidate, Evaluation, candidate_table
from mrshc.core.selection.evidence_rule import EvidenceRule
from mrshc.core.selection.explanation import Curve, SearchStory
from mrshc.core.selection.rule_interface import Decision, RuleSettings, SelectionRule
from mrshc.core.selection.silhouette_rule import SilhouetteRule

__all__ = [
    "RULES",
    "Candidate",
    "Curve",
    "Decision",
    "Evaluation",
    "RuleSettings",
    "SearchStory",
    "SelectionRule",
    "candidate_table",
    "register",
    "rule_of",
]

_Rule = TypeVar("_Rule", bound=type[SelectionRule])

# By name, in the order in which help and error messages list them.
RULES: dict[str, SelectionRule] = {}


def register(rule: _Rule) -> _Rule:
    """Register a class of rules under its name; usable as a decorator.

    Parameters
    ----------
    rule : subclass of SelectionRule
        Its name, and the columns that it adds to the table of candidates, differ from those of
        every registered rule: a saved table tells by its columns which rule made it.

    Returns
    -------
    rule : subclass of SelectionRule
        The same class.

    See Also
    --------
    mrshc.core.selection.rule_interface.SelectionRule : What a rule provides.
    """
    if rule.name in RULES:
        raise ValueError(
            f"There is a selection rule {rule.name!r} already. Give the new rule another name."
        )
    for other in RULES.values():
        if set(other.columns) == set(rule.columns):
            raise ValueError(
                f"The selection rule {rule.name!r} must add other columns to the table of "
                f"candidates than {other.name!r}, but both add {list(rule.columns)}. Rename one."
            )
    RULES[rule.name] = rule()
    return rule


def rule_of(columns: Iterable[str]) -> SelectionRule | None:
    """Return the rule that made a table of candidates; None if no rule did.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns of the table.
    """
    names = set(columns)
    if "rank" not in names:  # a table of another method
        return None
    made = [rule for rule in RULES.values() if names.issuperset(rule.columns)]
    return max(made, key=lambda rule: len(rule.columns))


for _rule in (SilhouetteRule, EvidenceRule):
    register(_rule)
