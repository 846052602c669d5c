"""Candidates of a search: their evaluation, and the table of all candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import PrunedTree, cut_tree, prune
from mrshc.core.trees.silhouette import average_silhouette
from mrshc.core.trees.tree import agglomerate

# The table of candidates. It maps the name of each column to an array with one value for each
# candidate, that is, for each pair (q, r) of a number of features and a rank.
CandidateTable = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """The tree of the samples on a feature set, and scores of its partitions into clusters.

    Attributes
    ----------
    pruned : PrunedTree
        The tree and its splits.
    silhouettes : ndarray of shape (n_leaves,)
        Average silhouette of the partitions into 1, 2, ..., n_leaves clusters.
    scores : mapping of str to ndarray of shape (n_leaves - 1,)
        Additional scores of a selection rule. The mapping contains, for each score, its name and
        its values for the partitions into 2, 3, ..., n_leaves clusters.
    """

    pruned: PrunedTree
    silhouettes: Float
    scores: Mapping[str, Float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A candidate of the search: a number of features q and a rank, with the resulting clusters.

    Attributes
    ----------
    target : int
        Target number of features q.
    features : FeatureSet
        Selected features, and the rank.
    pruned : PrunedTree
        Tree of the samples on the selected features.
    n_leaves : int
        Number of clusters of the candidate.
    silhouette : float
        Average silhouette of these clusters; zero if there is a single cluster.
    scores : mapping of str to float
        Values of the columns that the selection rule adds to the table of candidates.
    screened_out : bool
        Whether the rule excludes the candidate from the comparison, for example because it has too
        few clusters.
    best_rank : bool
        Whether the rank is the one that the rule chose for this q.
    removed : bool
        Whether Algorithm 3 or 4 removed the candidate as a local minimum.
    chosen : bool
        Whether this candidate was chosen among all candidates.
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


def candidate_table(candidates: Sequence[Candidate]) -> dict[str, NDArray[Any]]:
    """Return the table of candidates, which is the attribute `search_results_` of estimators.

    Parameters
    ----------
    candidates : sequence of Candidate
        All candidates, in increasing order of q, and of rank for the same q.

    Returns
    -------
    table : dict of str to ndarray of shape (n_candidates,)
        Names and values of the columns. The columns that the selection rule adds come after the
        column "silhouette".
    """
    # All candidates have scores with the same names, so the names are taken from the first one.
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
    """Return the tree of the samples, pruned with the gap statistic, and its silhouettes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Columns of the q selected features. Missing values are NaN.
    settings : GapSettings
        Linkage and metric of the tree, and settings of the gap statistic.
    entropy : int
        Seed of the random numbers for the gap statistic.
    max_leaves : int or None
        Largest number of leaves (clusters); None for no limit.
    """
    # The distances take into account the uncertainty of the estimates that replace missing values.
    # The gap statistic simulates data sets that have the range of the completed data.
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
    """Return the tree of the samples, cut into k clusters, and its silhouettes.

    The gap statistic is not used. The silhouettes are those of the cuts into 1, ..., k clusters.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Columns of the q selected features. Missing values are NaN.
    settings : GapSettings
        Settings of which only the linkage and the metric are used.
    k : int
        Largest number of clusters.
    """
    distances = complete_missing_cells(X).distances(settings.metric)
    cuts = cut_tree(agglomerate(distances, settings.linkage), k)
    return Evaluation(pruned=cuts, silhouettes=_silhouettes_by_n_leaves(distances, cuts))


def _silhouettes_by_n_leaves(distances: Float, pruned: PrunedTree) -> Float:
    """Return the average silhouettes of a tree that is pruned to 1, 2, ..., n_leaves clusters."""
    leaf_counts = range(1, pruned.n_leaves + 1)
    return np.array([average_silhouette(distances, pruned.labels(k)) for k in leaf_counts])
