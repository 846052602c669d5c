"""The base class of selection rules, which evaluate candidates, choose one, and explain the choice.

A candidate is a pair (q, r) of a number of features and a rank (number of sparse components).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mrshc.core.array_types import Mask
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import RefinementResult
from mrshc.core.selection.candidates import Candidate, CandidateTable, Evaluation
from mrshc.core.selection.explanation import SearchStory
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings

# A pair (q, rank) in the grid of a search, where q is a number of features.
GridCell = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """Settings for the evaluation of a feature set by a selection rule.

    Attributes
    ----------
    gap : GapSettings
        Linkage and metric of the tree, and settings of the gap statistic.
    entropy : int
        Seed of the random numbers for the gap statistic.
    n_clusters : int or None
        Reference number of clusters K; None if the user did not give K and the rule has not yet
        determined it.
    """

    gap: GapSettings
    entropy: int
    n_clusters: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """The decision of a selection rule about the candidates of a search.

    Attributes
    ----------
    chosen : int
        Row of the chosen candidate in the table of candidates, counted from zero.
    best_rank : ndarray of bool of shape (n_candidates,)
        For each candidate, whether the rule chose the rank of this candidate for its number of
        features q.
    removed : ndarray of bool of shape (n_candidates,)
        For each candidate, whether the rule removed the candidate before the final choice.
    """

    chosen: int
    best_rank: Mask
    removed: Mask


class SelectionRule(ABC):
    """Base class of rules that choose the rank, the number of features and the number of clusters.

    A search selects one feature set for each pair (q, rank) of a grid, where q is a number of
    features. The search then uses the rule as follows.

    1. If the user did not give the reference number of clusters K, the search evaluates the feature
       sets of the pairs that `reference_cells` returns. It passes the evaluations to
       `reference_number_of_clusters`, which returns K. This step is omitted if `reference_cells`
       returns no pairs.
    2. For each distinct feature set, `task` returns a function that evaluates the set. The search
       calls these functions in parallel. The results are stored in the checkpoint if the user
       requested one.
    3. `score_together` adds further scores to the evaluations, namely those that need the whole
       data matrix.
    4. `candidate` makes a candidate from each evaluated feature set.
    5. `choose` chooses one row of the table of all candidates.

    To add a rule, write a subclass, set the class attributes, implement the abstract methods, and
    register the class with :func:`mrshc.core.selection.register`.

    Attributes
    ----------
    name : str
        Name of the rule. Users pass this name as the parameter `selection` of an estimator.
    summary : str
        A short description for the command-line help. A description that contains names of
        parameters must be a :class:`mrshc.errors.Sentence`.
    description : str
        A paragraph for the documentation. It says how the rule chooses a candidate, and for which
        data the rule is suitable.
    columns : tuple of str
        Names of the columns that the rule adds to the table of candidates. These names are the keys
        of `Candidate.scores`. All values in these columns must be finite numbers.
    cut_scores : tuple of str
        Names of the scores that the function returned by `task` computes for each cut of a tree.
        These names are the keys of `Evaluation.scores` in the evaluation that this function
        returns. Checkpoints store these scores.
    refines_candidates : bool
        Whether the feature set of every candidate is refined before it is evaluated. The set is
        then replaced by the features that are associated with its clusters.
    n_continued : int or None
        Number of feature sets whose refinement has more than one round: those whose associated
        features have the largest sum of squares between clusters in the first round. None means all
        sets.
    uses_gram : bool
        Whether the rule uses the Gram matrix of the samples. Otherwise the matrix, which is as
        large as the distances between the samples, is released before trees are built.
    no_clusters_reason : str
        Reason why a result has a single cluster. The text completes the sentence
        "No groups were found: ...".

    See Also
    --------
    mrshc.core.selection.silhouette_rule.SilhouetteRule : The rule of Zhang and Zamar (2014).
    mrshc.core.selection.evidence_rule.EvidenceRule : A rule that uses features not selected.
    mrshc.core.selection.association_rule.AssociationRule : A rule that tests all features.
    """

    # The default values of the other attributes are suitable for rules that prune trees with the
    # gap statistic and do not compute additional scores.
    name: ClassVar[str]
    summary: ClassVar[str]
    description: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    cut_scores: ClassVar[tuple[str, ...]] = ()
    refines_candidates: ClassVar[bool] = False
    n_continued: ClassVar[int | None] = None
    uses_gram: ClassVar[bool] = False
    no_clusters_reason: ClassVar[str] = "no split of the tree passed the gap test"

    def default_targets(self, n_features: int) -> tuple[int, ...] | None:
        """Return the numbers of features q to try if the user does not give any.

        The numbers are in increasing order. Return None for the numbers that the paper tries.
        `n_features` is the number of features that are not constant.
        """
        return None

    def default_ranks(self, max_rank: int) -> tuple[int, ...]:
        """Return the ranks to try if the user does not give one, in increasing order.

        `max_rank` is the largest rank that is possible or that the user admits.
        """
        return tuple(range(1, max_rank + 1))

    def n_cuts(self, *, n_clusters: int | None, n_samples: int) -> int | None:
        """Return the largest number of clusters into which each tree is cut.

        Return None if the rule prunes the trees with the gap statistic instead of cutting them.

        Parameters
        ----------
        n_clusters : int or None
            Number of clusters that the user gave; None if the user did not give a number.
        n_samples : int
            Number of samples.
        """
        return None

    def reference_cells(self, grid: Sequence[GridCell], ranks: Sequence[int]) -> list[GridCell]:
        """Return the pairs (q, rank) whose trees determine the reference number of clusters K.

        Parameters
        ----------
        grid : sequence of (int, int)
            All pairs (q, rank).
        ranks : sequence of int
            Ranks of the grid, in increasing order.

        Returns
        -------
        cells : list of (int, int)
            Some of the pairs in `grid`. The list is empty if the rule does not need K before it
            chooses a candidate.
        """
        return []

    def reference_number_of_clusters(
        self, evaluations: Mapping[GridCell, Evaluation]
    ) -> int | None:
        """Return the reference number of clusters K, or None.

        None means that the rule does not need K before it chooses a candidate.

        Parameters
        ----------
        evaluations : mapping of (int, int) to Evaluation
            Maps each pair (q, rank) that `reference_cells` returned to the evaluation of its
            feature set.
        """
        return None

    @abstractmethod
    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function without arguments that evaluates a feature set.

        The function is called later, in parallel, and possibly in another process. It must
        therefore not refer to the matrix itself, but only to arrays derived from the matrix, such
        as `matrix.columns(features.indices)`.

        Parameters
        ----------
        matrix : CentredMatrix
            The data.
        features : FeatureSet
            The feature set to evaluate.
        settings : RuleSettings
            Settings for the evaluation.
        """

    def score_together(
        self,
        matrix: CentredMatrix,
        sets: Mapping[GridCell, FeatureSet],
        evaluations: Mapping[GridCell, Evaluation],
    ) -> Mapping[GridCell, Evaluation]:
        """Return the evaluations, with additional scores that need the whole data matrix.

        This method is called once for all feature sets. Scores that depend on all features of the
        data can therefore be computed for all trees in a single pass over the data. Checkpoints do
        not store these additional scores.

        Parameters
        ----------
        matrix : CentredMatrix
            The data.
        sets : mapping of (int, int) to FeatureSet
            Maps each pair (q, rank) to its feature set.
        evaluations : mapping of (int, int) to Evaluation
            Maps each pair (q, rank) to the evaluation of its feature set.
        """
        return evaluations

    @abstractmethod
    def candidate(
        self,
        target: int,
        features: FeatureSet,
        evaluation: Evaluation,
        *,
        n_clusters: int | None,
        refined: RefinementResult | None,
    ) -> Candidate:
        """Return the candidate for a target number of features.

        The candidate is made from a feature set and from the evaluation of the tree on this set.

        Parameters
        ----------
        target : int
            Target number of features q.
        features : FeatureSet
            The feature set.
        evaluation : Evaluation
            Evaluation of the feature set.
        n_clusters : int or None
            Reference number of clusters K. None means that the user did not give K and that the
            rule does not need K before it chooses a candidate.
        refined : RefinementResult or None
            Refinement of the feature set; None unless `refines_candidates` is True.
        """

    @abstractmethod
    def choose(self, table: CandidateTable) -> Decision:
        """Return the decision of the rule: which row of a table of candidates is chosen.

        The method must not use the columns `best_rank`, `removed` and `chosen`. They are filled in
        from the decision that the method returns.
        """

    @abstractmethod
    def explain(self, table: CandidateTable) -> SearchStory:
        """Return an explanation of the choice: text, and curves of the scores that were compared.

        The table of candidates contains the decision in the columns `best_rank`, `removed` and
        `chosen`.
        """

    def shortfall_message(self, found: int, asked_for: int | None) -> tuple[str, str]:
        """Return the two parts of the warning that the data support fewer clusters than expected.

        The rule is asked only about its own decision. A tree on refined features is cut into the
        number of clusters that the user gave, and the number is not tested.

        Parameters
        ----------
        found : int
            Number of clusters that the data support.
        asked_for : int or None
            Number of clusters that the user gave; None if the user did not give a number.

        Returns
        -------
        finding : str
            A sentence that says how many clusters were found. It does not say that the data
            support these clusters: the gap statistic is computed in the selected features.
        labels : str
            A clause about the attribute `labels_`. It contains all clusters that the user asked
            for, or only the supported ones if the user did not give a number.
        """
        return gap_shortfall_message(found, asked_for)

    def score_sentence(self, row: Mapping[str, Any]) -> str | None:
        """Return a sentence about the scores of the chosen candidate, or None for no sentence.

        `row` is the row of the chosen candidate in the table of candidates.
        """
        return None

    def facts(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the scores of the chosen candidate as pairs (label, value), for the report.

        `row` is the row of the chosen candidate in the table of candidates.
        """
        return []

    def runner_up_sentence(self, table: CandidateTable, n_clusters: int) -> str:
        """Return a sentence about the best of the candidates that were not chosen.

        The sentence may be empty. `n_clusters` is the number of clusters of the chosen candidate.
        """
        return ""


def gap_shortfall_message(found: int, asked_for: int | None) -> tuple[str, str]:
    """Return the two parts of the warning that the gap statistic supports fewer clusters.

    The parameters and the returned values are those of :meth:`SelectionRule.shortfall_message`.
    """
    if asked_for is None:
        supported = "a single cluster" if found == 1 else f"only {found} clusters"
        finding = f"The gap statistic finds {supported}, whatever the features."
        return finding, "labels_ holds no more"
    supported = "a single cluster, not the" if found == 1 else f"only {found} of the"
    finding = f"The gap statistic finds {supported} {asked_for} clusters asked for."
    return finding, f"labels_ has all {asked_for}"
