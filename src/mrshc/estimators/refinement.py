"""How estimators refine the features that they start with."""

from __future__ import annotations

from typing import Any

from mrshc.core.refine import Refined, RefineSettings
from mrshc.estimators.base import forget, linkage_and_metric
from mrshc.validation import check_option

NO_SUPPORT = (
    "There is no structure that other features support: fewer than 5 features are associated with "
    "what trees without them show. labels_ holds one cluster."
)


class UnsupportedClustersWarning(UserWarning):
    """The data support fewer clusters than were asked for, or none."""


def refine_settings(estimator: Any) -> RefineSettings | None:
    """Return how to refine, if the estimator is asked to."""
    if not check_option("refine", estimator.refine, (False, True)):
        return None
    linkage, metric = linkage_and_metric(estimator.linkage, estimator.metric)
    return RefineSettings(linkage=linkage, metric=metric)


def keep_refined(estimator: Any, refined: Refined | None) -> None:
    """Set what a refinement found, or drop that of an earlier fit."""
    if refined is None:
        forget(estimator, "supported_", "associated_features_", "feature_qvalues_")
        return
    estimator.supported_ = refined.supported
    estimator.associated_features_ = refined.associated
    estimator.feature_qvalues_ = refined.q_values
