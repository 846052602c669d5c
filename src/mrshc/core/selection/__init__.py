"""Selection rules, which choose the rank and the number of features, and their registry.

A rule is one class in one module, registered below. Estimators, checkpoints, tables of candidates,
plots, the report, the command line and its help take names, columns, scores and texts from it.
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
    "find_rule",
    "register",
]

_RuleClass = TypeVar("_RuleClass", bound=type[SelectionRule])

# Rules by name, in the order in which help and error messages list them.
RULES: dict[str, SelectionRule] = {}


def register(rule: _RuleClass) -> _RuleClass:
    """Register a selection rule under its name; usable as a class decorator.

    Parameters
    ----------
    rule : subclass of SelectionRule
        Its name, and the set of columns that it adds to the table of candidates, must differ from
        those of every registered rule.

    Returns
    -------
    rule : subclass of SelectionRule
        The same class.

    Raises
    ------
    ValueError
        If a rule with the same name or the same columns is registered already.

    See Also
    --------
    mrshc.core.selection.rule_interface.SelectionRule : Interface of a rule.
    """
    if rule.name in RULES:
        raise ValueError(
            f"A selection rule with the name {rule.name!r} is registered already. Give the new "
            "rule another name."
        )
    # The rule that produced a saved table is recognised by its columns.
    for other in RULES.values():
        if set(other.columns) == set(rule.columns):
            raise ValueError(
                f"The selection rule {rule.name!r} must not add the same columns to the table of "
                f"candidates as {other.name!r}, but both add {list(rule.columns)}. Rename a column."
            )
    RULES[rule.name] = rule()
    return rule


def find_rule(columns: Iterable[str]) -> SelectionRule | None:
    """Return the rule that produced a table of candidates.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns of the table.

    Returns
    -------
    rule : SelectionRule or None
        None if the table is not that of a search over numbers of features and ranks.
    """
    names = set(columns)
    # Tables of other methods, such as the permutation gap of SHC, have no rank.
    if "rank" not in names:
        return None
    matching = [rule for rule in RULES.values() if names.issuperset(rule.columns)]
    # The silhouette rule adds no columns and matches every table: the most specific rule is taken.
    return max(matching, key=lambda rule: len(rule.columns))


for _rule in (SilhouetteRule, EvidenceRule):
    register(_rule)
