"""The complete set of features behind a clustering: those that trees without them predict.

The features that a search picks were picked because they agree with each other, so any test against
the clusters they make would let them pass. Here a feature is tested against trees that never saw
it, which in pure noise predict nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.statistics import column_variances
from mrshc.core.inference.association import cauchy_combination, q_values, rank_p_values
from mrshc.core.kernels.k_means import lloyd_iterations
from mrshc.core.robust.missing_values import completed
from mrshc.core.trees.tree import Linkage, Metric, agglomerate

# A tree is asked what it says in each of these numbers of clusters: which one is right need not be
# known, and more of them are seldom seen.
_CUTS = (2, 3, 4, 5, 6)
_N_FOLDS = 10
_MAX_ROUNDS = 10
_MAX_MOVES = 20  # of the samples, when clusters are consolidated
_SETTLED = 0.95  # share of features in common at which a round counts as the last


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineSettings:
    """How features are tested."""

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    alpha: float = 0.05  # false discovery rate
    max_features: int = 200  # of the tree; on real data half of all genes may be associated
    fewest: int = 5  # fewer associated features support nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refined:
    """The features associated with the structure, and those to build the tree on."""

    # False: nothing is associated, and the tree stays on the start set. None: the same, but the
    # start set is too small for its own members to count as support.
    supported: bool | None
    features: Index  # of the tree, increasing
    associated: Index  # all that pass, increasing
    q_values: Float  # (p,), of the last round
    n_rounds: int


def refine(matrix: CentredMatrix, start: Index, settings: RefineSettings) -> Refined:
    """Replace a start set by the features that are associated with what it shows, until it settles.

    In each round every feature is tested against trees on the present set, the members of the set
    against trees on the other nine tenths of it; the associated features, the strongest if they
    are many, make the next set.
    """
    present, seen = np.sort(start), set[bytes]()
    for n_rounds in range(1, _MAX_ROUNDS + 1):
        p_values = association(matrix, present, settings)
        values = q_values(p_values)
        associated = np.flatnonzero(values <= settings.alpha)
        if associated.size < settings.fewest:
            return Refined(
                supported=False if start.size >= settings.fewest else None,
                features=np.sort(start),
                associated=np.empty(0, np.intp),
                q_values=values,
                n_rounds=n_rounds,
            )
        seen.add(present.tobytes())
        strongest = np.argsort(p_values[associated], kind="stable")[: settings.max_features]
        following = np.sort(associated[strongest])
        common = np.intersect1d(present, following, assume_unique=True).size
        settled = common >= _SETTLED * max(present.size, following.size)
        present = following
        if settled or present.tobytes() in seen:
            break
    return Refined(
        supported=True,
        features=present,
        associated=associated,
        q_values=values,
        n_rounds=n_rounds,
    )


def association(matrix: CentredMatrix, present: Index, settings: RefineSettings) -> Float:
    """Return the p-value of every feature against trees on the present set that leave it out."""
    p = matrix.shape[1]
    p_values = np.ones(p)
    outside = np.setdiff1d(np.arange(p), present, assume_unique=True)
    X = matrix.columns(present)
    p_values[outside] = _against(matrix, X, outside, settings)
    for fold in folds(column_variances(X)):
        others = np.delete(np.arange(present.size), fold)
        if others.size:
            p_values[present[fold]] = _against(matrix, X[:, others], present[fold], settings)
    return p_values


def folds(variances: Float) -> list[Index]:
    """Deal features into ten folds by decreasing variance; fewer features make as many folds."""
    order = np.argsort(-variances, kind="stable")
    return [order[i::_N_FOLDS] for i in range(min(_N_FOLDS, order.size))]


def _against(matrix: CentredMatrix, X: Float, tested: Index, settings: RefineSettings) -> Float:
    """Return the p-value of each tested feature against the tree on the columns of X."""
    if not tested.size:
        return np.empty(0)
    partitions = partitions_of(X, settings)
    if not partitions:
        return np.ones(tested.size)
    return cauchy_combination(rank_p_values(matrix, partitions, tested))


def partitions_of(X: Float, settings: RefineSettings) -> Sequence[Labels]:
    """Return the consolidated clusters of the samples for each number of clusters."""
    distances = completed(X).distances(settings.metric)
    tree = agglomerate(distances, settings.linkage)
    cuts = (tree.cut(k) for k in _CUTS if k < tree.n_samples)
    found = [lloyd_iterations(distances, cut, _MAX_MOVES) for cut in cuts]
    return [labels for labels in found if np.unique(labels).size > 1]
