"""Candidates of the search: their evaluation, and the table of all of them."""

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

# Columns of the table of candidates by name; a row for each (q, rank).
CandidateTable = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """The tree of a feature set, and the scores of its clusters.

    Attributes
    ----------
    pruned : PrunedTree
        The tree and its splits.
    silhouettes : ndarray of shape (n_leaves,)
        Average silhouette when pruned to 1, 2, ... leaves.
    scores : mapping of str to ndarray of shape (n_leaves - 1,)
        Further scores that a selection rule gives to 2, 3, ... leaves, by name.
    """

    pruned: PrunedTree
    silhouettes: Float
    scores: Mapping[str, Float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A candidate (q, rank) with its features, tree and clusters.

    Attributes
    ----------
    target : int
        Wanted number of features q.
    features : FeatureSet
        Selected features.
    pruned : PrunedTree
        Tree on these features.
    n_leaves : int
        Number of clusters, at most K.
    silhouette : float
        Average silhouette of these clusters; zero for a single one.
    scores : mapping of str to float
        Values of the columns that the selection rule adds to the table of candidates.
    screened_out : bool
        Whether the rule excludes the candidate, for example because it has fewer than K clusters.
    best_rank : bool
        Whether this rank was chosen for its q.
    removed : bool
        Whether Algorithm 3 or 4 removed the candidate as a local minimum.
    chosen : bool
        Whether this candidate was chosen.
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
    """Return the table of candidates, which becomes `search_results_` of the estimator.

    Parameters
    ----------
    candidates : sequence of Candidate
        In increasing order of q, then of rank.

    Returns
    -------
    table : dict of str to ndarray of shape (n_candidates,)
        A column for each property. The scores of the rule follow the silhouette.
    """
    # All candidates have the scores of the same rule, so the first one names the columns.
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
    """Return the pruned tree of samples, and its silhouettes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Selected columns of the data; NaN marks a missing cell.
    settings : GapSettings
        Linkage and metric of the tree, and how nodes are tested.
    entropy : int
        Seed of all reference samples.
    max_leaves : int or None
        Largest number of leaves; None for no limit.
    """
    # Distances account for the uncertainty of missing cells; reference samples are drawn from the
    # completed values.
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
    """Return the tree of samples cut into 1, ..., k clusters without tests, and its silhouettes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, q)
        Selected columns of the data; NaN marks a missing cell.
    settings : GapSettings
        Linkage and metric of the tree.
    k : int
        Largest number of clusters.
    """
    distances = complete_missing_cells(X).distances(settings.metric)
    cuts = cut_tree(agglomerate(distances, settings.linkage), k)
    return Evaluation(pruned=cuts, silhouettes=_silhouettes_by_n_leaves(distances, cuts))


def _silhouettes_by_n_leaves(distances: Float, pruned: PrunedTree) -> Float:
    """Return the average silhouette of a tree pruned to 1, 2, ... leaves, (n_leaves,)."""
    leaf_counts = range(1, pruned.n_leaves + 1)
    return np.array([average_silhouette(distances, pruned.labels(k)) for k in leaf_counts])
