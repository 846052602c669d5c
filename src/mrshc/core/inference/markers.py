"""The features that mark a cluster, or that tell the two sides of a split apart.

A feature that helped to make a cluster always seems to mark it. So a feature is tested against the
cluster as trees without that feature see it: the branch that has most samples in common with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mrshc.core.array_types import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.statistics import column_variances
from mrshc.core.inference.association import q_values, rank_p_values
from mrshc.core.inference.refinement import folds
from mrshc.core.robust.missing_values import completed
from mrshc.core.trees.tree import Linkage, Metric, Tree, agglomerate

# A branch that shares less of its samples with a cluster is another one.
_SAME = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contrast:
    """Two groups of samples."""

    inside: Index
    outside: Index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marks:
    """How each feature differs between the two groups of a contrast, (p,) each."""

    mean_inside: Float
    mean_outside: Float
    effect_size: Float  # difference in standard deviations within the groups; NaN if they are zero
    p_values: Float
    q_values: Float


def marks(
    matrix: CentredMatrix,
    features: Index,
    contrasts: Sequence[Contrast],
    *,
    linkage: Linkage,
    metric: Metric,
    weights: Float | None = None,
) -> list[Marks]:
    """Describe and test every feature for every contrast of a tree on some features.

    Features of the tree are tested against trees on nine tenths of it that leave them out; those
    outside against the tree itself. Weights are those of the features in the tree's distances.
    """
    n, p = matrix.shape
    if not contrasts:
        return []
    p_values = np.ones((p, len(contrasts)))
    outside = np.setdiff1d(np.arange(p), features, assume_unique=True)
    as_they_are = [_labels(n, c.inside, c.outside) for c in contrasts]
    p_values[outside] = rank_p_values(matrix, as_they_are, outside)
    X = matrix.columns(features)
    if weights is not None:
        X = X * (np.sqrt(weights) if metric == "sqeuclidean" else weights)
    for fold in folds(column_variances(X)):
        others = np.delete(np.arange(features.size), fold)
        if others.size:
            distances = completed(X[:, others]).distances(metric)
            found = _as_seen_by(agglomerate(distances, linkage), contrasts)
            p_values[features[fold]] = rank_p_values(matrix, found, features[fold])
    means, squares, counts = (np.empty((len(contrasts), 2, p)) for _ in range(3))
    for which, sides in matrix.map_columns(np.arange(p), partial(_sides_of, contrasts=contrasts)):
        means[..., which], squares[..., which], counts[..., which] = sides
    return [
        _described(means[i], squares[i], counts[i], p_values[:, i]) for i in range(len(contrasts))
    ]


def _as_seen_by(tree: Tree, contrasts: Sequence[Contrast]) -> list[Labels]:
    """Return the contrasts between the branches of a tree that are most like their groups.

    A contrast that the tree does not have leaves nothing to compare.
    """
    n = tree.n_samples
    nothing = np.full(n, -1, dtype=np.intp)
    out = []
    for contrast in contrasts:
        inside = tree.branch_like(contrast.inside, at_least=_SAME)
        if contrast.inside.size + contrast.outside.size == n:  # a cluster against the rest
            outside = np.setdiff1d(np.arange(n), inside, assume_unique=True)
        else:
            outside = tree.branch_like(contrast.outside, at_least=_SAME)
        apart = np.intersect1d(inside, outside, assume_unique=True).size == 0
        found = apart and inside.size and outside.size
        out.append(_labels(n, inside, outside) if found else nothing)
    return out


def _labels(n: int, inside: Index, outside: Index) -> Labels:
    labels = np.full(n, -1, dtype=np.intp)
    labels[inside] = 1
    labels[outside] = 0
    return labels


def _sides_of(X: Float, contrasts: Sequence[Contrast]) -> tuple[Float, Float, Float]:
    """Return means, sums of squares about them and numbers of observed cells of all sides."""
    means, squares, counts = (np.empty((len(contrasts), 2, X.shape[1])) for _ in range(3))
    for i, contrast in enumerate(contrasts):
        for side, members in enumerate((contrast.inside, contrast.outside)):
            some = X[members]
            counts[i, side] = (~np.isnan(some)).sum(axis=0)
            mean = np.nansum(some, axis=0) / np.maximum(counts[i, side], 1)
            means[i, side] = np.where(counts[i, side] > 0, mean, np.nan)
            squares[i, side] = np.nansum((some - mean) ** 2, axis=0)
    return means, squares, counts


def _described(means: Float, squares: Float, counts: Float, p_values: Float) -> Marks:
    within = np.sqrt(squares.sum(axis=0) / np.maximum(counts.sum(axis=0) - 2, 1))
    difference = means[0] - means[1]
    effect = np.full(difference.size, np.nan)
    np.divide(difference, within, out=effect, where=within > 0)
    return Marks(
        mean_inside=means[0],
        mean_outside=means[1],
        effect_size=effect,
        p_values=p_values,
        q_values=q_values(p_values),
    )
