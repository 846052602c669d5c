"""Selection rules, and the registry of these rules.

A selection rule chooses the rank, the number of features and the number of clusters.

Each rule is a class in its own module and is registered at the end of this file. The other parts of
the package (estimators, checkpoints, plots, reports and the command line) obtain the name, the
scores and the descriptions of a rule from the registry. A new rule therefore requires no changes in
these parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mrshc.core.selection.association_rule import AssociationRule
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

# Maps the name of each registered rule to an instance of its class. The command-line help and error
# messages list the rules in the order of this dictionary.
RULES: dict[str, SelectionRule] = {}


def register(rule: _RuleClass) -> _RuleClass:
    """Register a selection rule under its name, and return the class of the rule.

    This function can be used as a class decorator.

    Parameters
    ----------
    rule : subclass of SelectionRule
        Class of the rule. Its attribute `name` must differ from the name of every registered rule,
        and its attribute `columns` from the columns of every registered rule. The order of the
        columns does not matter.

    Returns
    -------
    rule : subclass of SelectionRule
        The same class.

    Raises
    ------
    ValueError
        If a registered rule has the same name or the same columns.

    See Also
    --------
    mrshc.core.selection.rule_interface.SelectionRule : Base class of all selection rules.
    """
    if rule.name in RULES:
        raise ValueError(
            f"A selection rule with the name {rule.name!r} is registered already. Give the new "
            "rule another name."
        )
    # `find_rule` identifies the rule of a saved table by the columns of the table, so two rules
    # must not have the same columns.
    for other in RULES.values():
        if set(other.columns) == set(rule.columns):
            raise ValueError(
                f"The selection rule {rule.name!r} must not add the same columns to the table of "
                f"candidates as {other.name!r}, but both add {list(rule.columns)}. Rename a column."
            )
    RULES[rule.name] = rule()
    return rule


def find_rule(columns: Iterable[str]) -> SelectionRule | None:
    """Return the selection rule that produced a table of candidates.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns of the table.

    Returns
    -------
    rule : SelectionRule or None
        The rule. None if the table has no column "rank", which means that it was not produced by a
        search over numbers of features and ranks.
    """
    names = set(columns)
    # Tables of other methods, such as the table of permutation gaps of SHC, have no column "rank".
    if "rank" not in names:
        return None
    matching = [rule for rule in RULES.values() if names.issuperset(rule.columns)]
    # The silhouette rule adds no columns, so it matches every table. Of all matching rules, the
    # rule that adds the most columns is returned.
    return max(matching, key=lambda rule: len(rule.columns))


for _rule in (SilhouetteRule, AssociationRule, EvidenceRule):
    register(_rule)
