"""What a selection rule provides: evaluation, scores, choice, explanation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mrshc.core.array_types import Mask
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.selection.candidates import Candidate, Evaluation, Table
from mrshc.core.selection.explanation import SearchStory
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings

# A cell of the grid: number of features q, rank.
Key = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """What the evaluation of a feature set depends on, apart from the data."""

    gap: GapSettings
    entropy: int  # of all reference samples
    n_clusters: int | None  # reference number of clusters K; None: not known (yet)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """The outcome of a rule, by rows of the table of candidates."""

    chosen: int  # row
    best_rank: Mask  # (candidates,), this rank was chosen for its q
    removed: Mask  # (candidates,), removed on the way


class SelectionRule(ABC):
    """How the search chooses the rank, the number of features and the number of clusters.

    For each (q, rank) of the grid the search obtains a feature set. It then

    1. asks for K, if the user gave none: the feature sets of `reference_cells` are evaluated and
       passed to `reference_number_of_clusters`;
    2. evaluates every distinct feature set with `task`, in parallel, and keeps the results in the
       checkpoint;
    3. lets the rule add scores that need all of the data at once (`score_together`);
    4. makes a `candidate` of each, and calls `choose` on their table.

    To add a rule, subclass, set the class attributes, implement the abstract methods, and register
    the class with :func:`mrshc.core.selection.register`.

    Attributes
    ----------
    name : str
        Value of the parameter `selection`.
    summary : str
        One or two sentences for the help of the command line; a :class:`mrshc.errors.Sentence` if
        they name parameters.
    description : str
        A paragraph for the documentation: what the rule does, and for which data.
    columns : tuple of str
        Columns that the rule adds to the table of candidates: the keys of `Candidate.scores`.
        Their values are finite numbers.
    cut_scores : tuple of str
        Names of the scores of cuts that `task` computes: the keys of `Evaluation.scores`, which
        the checkpoint holds.
    no_clusters : str
        Why a result has a single cluster; completes "No groups were found: ...".

    See Also
    --------
    mrshc.core.selection.silhouette_rule.SilhouetteRule : The rule of the paper.
    mrshc.core.selection.evidence_rule.EvidenceRule : Scores of held-out features.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    description: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    cut_scores: ClassVar[tuple[str, ...]] = ()
    no_clusters: ClassVar[str] = "no split of the tree is larger than chance makes it"

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int | None:
        """Return the number of clusters that each tree is cut into; None if pruning finds it."""
        return None

    def reference_cells(self, grid: Sequence[Key], ranks: Sequence[int]) -> list[Key]:
        """Return the cells from whose trees K is derived; none if K follows from the choice."""
        return []

    def reference_number_of_clusters(self, evaluations: Mapping[Key, Evaluation]) -> int | None:
        """Return K, derived from the evaluations of the reference cells; None: from the choice."""
        return None

    @abstractmethod
    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return the evaluation of a feature set, to be called later and in parallel.

        The task may run in another process: it holds arrays derived from the matrix, such as
        `matrix.columns(features.indices)`, not the matrix.
        """

    def score_together(
        self,
        matrix: CentredMatrix,
        sets: Mapping[Key, FeatureSet],
        evaluations: Mapping[Key, Evaluation],
    ) -> Mapping[Key, Evaluation]:
        """Return the evaluations with scores that need the whole matrix.

        Called once, for all cells of the grid: held-out features can be tested against the cuts
        of all trees in a single pass over the data. These scores are not kept in checkpoints.
        """
        return evaluations

    @abstractmethod
    def candidate(
        self, target: int, features: FeatureSet, evaluation: Evaluation, n_clusters: int | None
    ) -> Candidate:
        """Return the candidate of a feature set; K is None if it follows from the choice."""

    @abstractmethod
    def choose(self, table: Table) -> Decision:
        """Choose a row of the table of candidates.

        The columns `best_rank`, `removed` and `chosen` are not read: a table loaded from a saved
        result gives the same decision as the search.
        """

    @abstractmethod
    def explain(self, table: Table) -> SearchStory:
        """Return the verdict, the rule and the curves with the numbers that `choose` compared."""

    def shortfall(self, found: int, asked_for: int | None) -> tuple[str, str]:
        """Return the warning of a fit with fewer clusters than K, in two parts.

        The first is a sentence, the second says what `labels_` holds, without a full stop: advice
        on the tree follows. `asked_for` is None if the user gave no number of clusters.
        """
        seen = "a single cluster" if found == 1 else f"only {found} clusters"
        asked = "" if asked_for is None else f" of the {asked_for} asked for"
        finding = f"The gap statistic supports {seen}{asked}, whatever the features."
        return finding, "labels_ holds no more"

    def score_sentence(self, row: Mapping[str, Any]) -> str | None:
        """Return a sentence on the scores of the chosen candidate; None if there is none."""
        return None

    def facts(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the scores of the chosen candidate for the list of facts of the report."""
        return []

    def next_best(self, table: Table, n_clusters: int) -> str:
        """Return a sentence on the candidate that came closest to the chosen one, or nothing."""
        return ""
