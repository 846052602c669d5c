"""The interface of a selection rule: evaluation, scores, choice, explanation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mrshc.core.array_types import Mask
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.selection.candidates import Candidate, CandidateTable, Evaluation
from mrshc.core.selection.explanation import SearchStory
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings

# A cell of the grid of the search: number of features q, rank.
GridCell = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """Settings of the evaluation of a feature set.

    Attributes
    ----------
    gap : GapSettings
        Linkage and metric of the tree, and how nodes are tested.
    entropy : int
        Seed of all reference samples.
    n_clusters : int or None
        Reference number of clusters K; None while it is not known.
    """

    gap: GapSettings
    entropy: int
    n_clusters: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """The decision of a rule, in terms of rows of the table of candidates.

    Attributes
    ----------
    chosen : int
        Row of the chosen candidate.
    best_rank : ndarray of bool of shape (n_candidates,)
        Whether the rank of each candidate was chosen for its q.
    removed : ndarray of bool of shape (n_candidates,)
        Whether each candidate was removed before the final choice.
    """

    chosen: int
    best_rank: Mask
    removed: Mask


class SelectionRule(ABC):
    """Rule by which the search chooses the rank, the number of features and of clusters.

    For each (q, rank) of the grid the search computes a feature set. It then

    1. derives K, if the user gave none: the feature sets of `reference_cells` are evaluated and
       passed to `reference_number_of_clusters`;
    2. evaluates every distinct feature set with `task`, in parallel, and stores the results in the
       checkpoint;
    3. adds scores that need all of the data at once (`score_together`);
    4. turns each feature set into a `candidate`, and calls `choose` on their table.

    To add a rule, write a subclass, set the class attributes, implement the abstract methods, and
    register the class with :func:`mrshc.core.selection.register`.

    Attributes
    ----------
    name : str
        Value of the parameter `selection`.
    summary : str
        One or two sentences for the help of the command line; a :class:`mrshc.errors.Sentence` if
        they name parameters.
    description : str
        A paragraph for the documentation: how the rule chooses, and for which data it is meant.
    columns : tuple of str
        Columns that the rule adds to the table of candidates: the keys of `Candidate.scores`.
        Their values are finite numbers.
    cut_scores : tuple of str
        Names of the scores of cuts that `task` computes: the keys of `Evaluation.scores`, which
        the checkpoint stores.
    no_clusters_reason : str
        The reason why a result has a single cluster; completes "No groups were found: ...".

    See Also
    --------
    mrshc.core.selection.silhouette_rule.SilhouetteRule : The rule of the paper.
    mrshc.core.selection.evidence_rule.EvidenceRule : Uses features that were not selected.
    """

    # The defaults below suit rules that prune trees with the gap statistic and add no scores.
    name: ClassVar[str]
    summary: ClassVar[str]
    description: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    cut_scores: ClassVar[tuple[str, ...]] = ()
    no_clusters_reason: ClassVar[str] = "no split of the tree is larger than expected by chance"

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int | None:
        """Return the number of clusters that each tree is cut into; None if pruning decides.

        Parameters
        ----------
        n_clusters : int or None
            K, if the user gave it.
        n_samples : int
            Number of samples.
        """
        return None

    def reference_cells(self, grid: Sequence[GridCell], ranks: Sequence[int]) -> list[GridCell]:
        """Return the cells of the grid from whose trees K is derived.

        Parameters
        ----------
        grid : sequence of (int, int)
            All cells.
        ranks : sequence of int
            Ranks of the grid, increasing.

        Returns
        -------
        cells : list of (int, int)
            Empty if K follows from the choice.
        """
        return []

    def reference_number_of_clusters(
        self, evaluations: Mapping[GridCell, Evaluation]
    ) -> int | None:
        """Return K from the evaluations of the reference cells; None if it follows from the choice.

        Parameters
        ----------
        evaluations : mapping of (int, int) to Evaluation
            Evaluations by cell of the grid.
        """
        return None

    @abstractmethod
    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function without arguments that evaluates a feature set.

        It is called later, in parallel, and perhaps in another process. It must therefore refer to
        arrays derived from the matrix, such as `matrix.columns(features.indices)`, and not to the
        matrix itself.

        Parameters
        ----------
        matrix : CentredMatrix
            The data.
        features : FeatureSet
            The feature set to evaluate.
        settings : RuleSettings
            Settings of the evaluation.
        """

    def score_together(
        self,
        matrix: CentredMatrix,
        sets: Mapping[GridCell, FeatureSet],
        evaluations: Mapping[GridCell, Evaluation],
    ) -> Mapping[GridCell, Evaluation]:
        """Return the evaluations with additional scores that need the whole matrix.

        It is called once, for all cells of the grid, so that held-out features can be tested
        against the cuts of all trees in a single pass over the data. Checkpoints do not store
        these scores.

        Parameters
        ----------
        matrix : CentredMatrix
            The data.
        sets : mapping of (int, int) to FeatureSet
            Feature sets by cell of the grid.
        evaluations : mapping of (int, int) to Evaluation
            Their evaluations.
        """
        return evaluations

    @abstractmethod
    def candidate(
        self, target: int, features: FeatureSet, evaluation: Evaluation, n_clusters: int | None
    ) -> Candidate:
        """Return the candidate of a feature set.

        Parameters
        ----------
        target : int
            Wanted number of features q.
        features : FeatureSet
            The feature set.
        evaluation : Evaluation
            Its evaluation.
        n_clusters : int or None
            K; None if it follows from the choice.
        """

    @abstractmethod
    def choose(self, table: CandidateTable) -> Decision:
        """Choose a row of the table of candidates.

        The columns `best_rank`, `removed` and `chosen` must not be used, so that a table loaded
        from a saved result gives the same decision as the search.
        """

    @abstractmethod
    def explain(self, table: CandidateTable) -> SearchStory:
        """Return the verdict, the rule as text, and curves of the scores that `choose` compared."""

    def shortfall_message(self, found: int, asked_for: int | None) -> tuple[str, str]:
        """Return the two parts of the warning of a fit with fewer clusters than K.

        Parameters
        ----------
        found : int
            Number of clusters that were found.
        asked_for : int or None
            Number of clusters that the user gave; None if the user gave none.

        Returns
        -------
        finding : str
            A sentence.
        labels : str
            The content of `labels_`, without a full stop: the caller adds how to cut the tree.
        """
        supported = "a single cluster" if found == 1 else f"only {found} clusters"
        wanted = "" if asked_for is None else f" of the {asked_for} asked for"
        finding = f"The gap statistic supports {supported}{wanted}, whatever the features."
        return finding, "labels_ holds no more"

    def score_sentence(self, row: Mapping[str, Any]) -> str | None:
        """Return a sentence on the scores of the chosen candidate; None if there is none."""
        return None

    def facts(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return names and values of the scores of the chosen candidate for the report."""
        return []

    def runner_up_sentence(self, table: CandidateTable, n_clusters: int) -> str:
        """Return a sentence on the second best candidate, or an empty string."""
        return ""
