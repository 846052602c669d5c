"""Candidates of a search: their evaluation, and the table of all candidates.

A candidate is a pair (q, r) of a target number of features and a rank. It has a feature set, a tree
of the samples that is built on this set, and the clusters of this tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Labels
from mrshc.core.inference.permutation_scores import permutation_z_scores
from mrshc.core.inference.refinement import RefinementResult
from mrshc.core.parallel import MANY_SAMPLES, run_parts
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.cut_choice import drop_ratios
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import PrunedTree, cut_tree, prune
from mrshc.core.trees.silhouette import average_silhouette
from mrshc.core.trees.tree import agglomerate

# The table of candidates. It maps the name of each column to an array with one value for each
# candidate.
CandidateTable = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """A tree that was built on a feature set, and the scores of its partitions into clusters.

    Attributes
    ----------
    pruned : PrunedTree
        The tree, and the nodes that are split. The number of clusters of the pruned tree is
        `pruned.n_leaves`.
    silhouettes : ndarray of shape (n_leaves,)
        Average silhouettes of the partitions into 1, 2, ..., n_leaves clusters.
    scores : mapping of str to ndarray of shape (n_leaves - 1,)
        Additional scores that a selection rule computes. Each key is the name of a score, and its
        value contains the scores of the partitions into 2, 3, ..., n_leaves clusters.
    """

    pruned: PrunedTree
    silhouettes: Float
    scores: Mapping[str, Float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A candidate of a search: a number of features q and a rank, with the resulting clusters.

    Attributes
    ----------
    target : int
        Target number of features q.
    features : FeatureSet
        The selected features, the rank, and the L1 bound.
    pruned : PrunedTree
        Tree of the samples that was built on the selected features.
    n_leaves : int
        Number of clusters of the candidate.
    silhouette : float
        Average silhouette of these clusters; zero if there is only one cluster.
    scores : mapping of str to float
        Values of the columns that the selection rule adds to the table of candidates.
    screened_out : bool
        Whether the selection rule excludes the candidate from the comparison, for example because
        the candidate has too few clusters.
    best_rank : bool
        Whether the selection rule chose this rank for this q.
    removed : bool
        Whether the selection rule removed the candidate before the final choice. The silhouette
        rule removes local minima (Algorithms 3 and 4).
    chosen : bool
        Whether the selection rule chose this candidate.
    refined : RefinementResult or None
        Refinement of the feature set; None if the feature sets were not refined.
    n_supported : int or None
        Number of clusters that the data support, if this number is smaller than `n_leaves`;
        otherwise None.
    """

    target: int
    features: FeatureSet
    pruned: PrunedTree
    n_leaves: int
    silhouette: float
    scores: Mapping[str, float] = field(default_factory=dict)
    screened_out: bool = False
    best_rank: bool = False
    removed: bool = False
    chosen: bool = False
    refined: RefinementResult | None = None
    n_supported: int | None = None


def candidate_table(candidates: Sequence[Candidate]) -> dict[str, NDArray[Any]]:
    """Return the table of candidates, which is the attribute `search_results_` of estimators.

    Parameters
    ----------
    candidates : sequence of Candidate
        All candidates, sorted by q and, for equal q, by rank.

    Returns
    -------
    table : dict of str to ndarray of shape (n_candidates,)
        The table, which maps the name of each column to its values. The columns that the selection
        rule adds come after the column "silhouette".
    """
    # The scores of all candidates have the same names, so the names are taken from the first
    # candidate.
    return {
        "n_features_target": np.array([c.target for c in candidates]),
        "n_features": np.array([c.features.indices.size for c in candidates]),
        "reached": np.array([c.features.reached for c in candidates]),
        "rank": np.array([c.features.rank for c in candidates]),
        "l1_bound": np.array([c.features.l1_bound for c in candidates]),
        "n_leaves": np.array([c.n_leaves for c in candidates]),
        "silhouette": np.array([c.silhouette for c in candidates]),
        **{name: np.array([c.scores[name] for c in candidates]) for name in candidates[0].scores},
        "screened_out": np.array([c.screened_out for c in candidates]),
        "best_rank": np.array([c.best_rank for c in candidates]),
        "removed": np.array([c.removed for c in candidates]),
        "chosen": np.array([c.chosen for c in candidates]),
    }


def evaluate_pruned(
    X: Float, *, settings: GapSettings, entropy: int, max_leaves: int | None
) -> Evaluation:
    """Return the tree of the samples, pruned with the gap statistic, and average silhouettes.

    The pruned tree has n_leaves clusters. The silhouettes are those of its partitions into 1, 2,
    ..., n_leaves clusters.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Columns of the q selected features. Missing values are NaN.
    settings : GapSettings
        Linkage and metric of the tree, and settings of the gap statistic.
    entropy : int
        Seed of the random numbers for the gap statistic.
    max_leaves : int or None
        Largest number of leaves (clusters) of the pruned tree; None for no limit.
    """
    # The distances take into account the uncertainty of the estimates that replace missing values.
    # The reference data sets of the gap statistic are simulated on a box that encloses the
    # completed data.
    samples = complete_missing_cells(X)
    distances = samples.distances(settings.metric)
    pruned = prune(
        agglomerate(distances, settings.linkage),
        samples.values,
        distances=distances,
        settings=settings,
        entropy=entropy,
        max_leaves=max_leaves,
    )
    return Evaluation(pruned=pruned, silhouettes=_silhouettes_by_n_leaves(distances, pruned))


def evaluate_cuts(X: Float, *, settings: GapSettings, k: int) -> Evaluation:
    """Return the tree of the samples, cut into k clusters, and average silhouettes.

    The silhouettes are those of the cuts into 1, 2, ..., k clusters. The gap statistic is not used.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Columns of the q selected features. Missing values are NaN.
    settings : GapSettings
        Linkage and metric of the tree. The other settings are not used.
    k : int
        Number of clusters.
    """
    distances = complete_missing_cells(X).distances(settings.metric)
    cuts = cut_tree(agglomerate(distances, settings.linkage), k)
    return Evaluation(pruned=cuts, silhouettes=_silhouettes_by_n_leaves(distances, cuts))


def evaluate_evidence(X: Float, *, gram: Float, settings: GapSettings, k: int) -> Evaluation:
    """Return the tree of the samples, cut into k clusters, with the evidence of each cut.

    The evidence of a cut is its sum of squares between clusters, standardised by the mean and the
    standard deviation over permutations of the samples.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Columns of the q selected features. Missing values are NaN.
    gram : ndarray of shape (n_samples, n_samples)
        Gram matrix of the samples in the features in which the sum of squares is taken.
    settings : GapSettings
        Linkage and metric of the tree. The other settings are not used.
    k : int
        Number of clusters.
    """
    evaluation = evaluate_cuts(X, settings=settings, k=k)
    cuts = evaluation.pruned
    partitions = [cuts.labels(i) for i in range(2, cuts.n_leaves + 1)]
    return replace(evaluation, scores={"evidence": permutation_z_scores(partitions, gram)})


def evaluate_drop_ratios(X: Float, *, settings: GapSettings, k: int) -> Evaluation:
    """Return the tree of the samples, cut into k clusters, with the drop ratio of each cut.

    The drop ratio says by how much the last split of a cut exceeds the next split; see
    :func:`mrshc.core.trees.cut_choice.drop_ratios`. The ratio of a cut with one sample in each
    cluster, after which there is no split, is zero.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Columns of the q selected features. Missing values are NaN.
    settings : GapSettings
        Linkage and metric of the tree. The other settings are not used.
    k : int
        Number of clusters.
    """
    distances = complete_missing_cells(X).distances(settings.metric)
    tree = agglomerate(distances, settings.linkage)
    partitions = tree.cuts(range(1, min(k + 1, tree.n_samples) + 1))
    ratios = np.zeros(k - 1)
    ratios[: len(partitions) - 2] = drop_ratios(distances, partitions)
    return Evaluation(
        pruned=cut_tree(tree, k),
        silhouettes=_average_silhouettes(distances, partitions[:k]),
        scores={"drop_ratio": ratios},
    )


def _silhouettes_by_n_leaves(distances: Float, pruned: PrunedTree) -> Float:
    """Return the average silhouettes of the partitions into 1, 2, ..., n_leaves clusters.

    The partitions are those that the pruned tree defines. `distances` contains the distances
    between the samples, in an array of shape (n_samples, n_samples).
    """
    return _average_silhouettes(
        distances, [pruned.labels(k) for k in range(1, pruned.n_leaves + 1)]
    )


def _average_silhouettes(distances: Float, partitions: Sequence[Labels]) -> Float:
    """Return the average silhouette of each partition, as an array."""
    if len(distances) < MANY_SAMPLES:  # threads would take more time than they save
        return np.array([average_silhouette(distances, labels) for labels in partitions])
    arguments = ((distances, labels) for labels in partitions)
    return np.array(run_parts(average_silhouette, arguments))
