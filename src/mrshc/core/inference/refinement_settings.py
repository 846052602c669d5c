"""Settings of the refinement of feature sets."""

from __future__ import annotations

from dataclasses import dataclass

from mrshc.core.trees.tree import Linkage, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementSettings:
    """Settings of the refinement of a feature set.

    Attributes
    ----------
    linkage, metric : str
        Linkage and metric with which trees are built.
    alpha : float
        Largest q-value at which a feature is considered to be associated with the clusters.
    max_features : int
        Largest number of features from which a tree is built. The limit is needed because, in real
        data, half of all features may be associated.
    min_features : int
        Smallest number of associated features for which the clusters are considered to be
        supported.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    alpha: float = 0.05
    # A common number of genes in the analysis of gene expression: enough for stable distances, and
    # few enough to leave out weakly associated genes.
    max_features: int = 500
    min_features: int = 5
