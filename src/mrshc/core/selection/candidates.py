"""Candidates of the search: evaluated feature sets, and the table of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.robust.missing_values import completed
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import PrunedTree, cut_tree, prune
from mrshc.core.trees.silhouette import average_silhouette
from mrshc.core.trees.tree import agglomerate

# Columns of the table of candidates, a row for each (q, rank).
Table = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """The tree of a feature set, and how its clusters score."""

    pruned: PrunedTree
    silhouettes: Float  # (n_leaves,), when pruned to 1, 2, ... leaves
    # By name, each (n_leaves - 1,): scores that a selection rule gives to 2, 3, ... leaves.
    scores: Mapping[str, Float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """One (q, rank): its features, tree and clusters."""

    target: int
    features: FeatureSet
    pruned: PrunedTree
    n_leaves: int  # at most K
    silhouette: float  # of these leaves; zero for a single one
    scores: Mapping[str, float] = field(default_factory=dict)  # by column that the rule adds
    screened_out: bool = False  # the rule sets it aside: for example, fewer than K leaves
    best_rank: bool = False  # this rank was chosen for its q
    removed: bool = False  # a local minimum that Algorithm 3 or 4 removed
    chosen: bool = False


def candidate_table(candidates: Sequence[Candidate]) -> dict[str, NDArray[Any]]:
    """Return the table of candidates, `search_results_` of the estimator.

    Parameters
    ----------
    candidates : sequence of Candidate
        In increasing order of q, then of rank.

    Returns
    -------
    table : dict of ndarray
        A column for each property; the scores of the rule stand after the silhouette.
    """
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
    """Build the tree of samples on the columns of X, prune it, and compute its silhouettes."""
    samples = completed(X)
    distances = samples.distances(settings.metric)
    pruned = prune(
        agglomerate(distances, settings.linkage),
        samples.values,
        distances=distances,
        settings=settings,
        entropy=entropy,
        max_leaves=max_leaves,
    )
    return Evaluation(pruned=pruned, silhouettes=_silhouettes(distances, pruned))


def evaluate_cuts(X: Float, *, settings: GapSettings, k: int) -> Evaluation:
    """Build the tree of samples on the columns of X, cut into up to k clusters without tests."""
    distances = completed(X).distances(settings.metric)
    cuts = cut_tree(agglomerate(distances, settings.linkage), k)
    return Evaluation(pruned=cuts, silhouettes=_silhouettes(distances, cuts))


def _silhouettes(distances: Float, pruned: PrunedTree) -> Float:
    every = range(1, pruned.n_leaves + 1)
    return np.array([average_silhouette(distances, pruned.labels(k)) for k in every])
