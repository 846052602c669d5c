"""Fit the method of a plan, or compare several methods on the data of a plan."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.app.confidence import Confidence, assess
from mrshc.app.plan import (
    Plan,
    refuse_out_of_core_comparison,
    refuse_samples_without_values,
    value_errors_as_user_errors,
)
from mrshc.app.result_building import build_result, final_labels, known_classes
from mrshc.comparison import (
    Comparison,
    agreement_scores,
    compare,
    default_methods,
    labels_to_score,
)
from mrshc.estimators import UnsupportedClustersWarning
from mrshc.io.result import Result
from mrshc.methods import compared_methods
from mrshc.validation import check_integer

# Parameters that a comparison passes to the methods. Each method receives only the parameters that
# its estimator has.
_COMPARISON_PARAMETERS = (
    *("n_features_to_select", "linkage", "metric", "random_state", "n_jobs"),
    "robust",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedModel:
    """A fitted estimator and the warnings of its fit.

    Attributes
    ----------
    model : estimator
        The fitted estimator.
    warnings : tuple of str
        Messages about clusters that the data do not support, to be stored with the result.
    """

    model: Any
    warnings: tuple[str, ...]


def fit(plan: Plan) -> Result:
    """Fit the method of a plan, compute the requested analyses, and return the result."""
    fitted = fit_estimator(plan)
    return describe_fit(plan, fitted, assess_confidence(plan, fitted))


def fit_estimator(plan: Plan) -> FittedModel:
    """Fit the estimator of a plan on its execution backend, and return it with its warnings.

    Raises UserError if the data or a parameter cannot be used.
    """
    with (
        plan.backend.activate(),
        warnings.catch_warnings(record=True) as caught,
        value_errors_as_user_errors(),
    ):
        # By default, Python may suppress a warning that was issued before, but every fit must
        # record its own warnings.
        warnings.simplefilter("always")
        model = plan.estimator.fit(plan.data)
    findings = tuple(
        w.message.finding for w in caught if isinstance(w.message, UnsupportedClustersWarning)
    )
    return FittedModel(model=model, warnings=findings)


def assess_confidence(
    plan: Plan,
    fitted: FittedModel,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> Confidence:
    """Return the significance and the stability of a fitted model, as far as the plan has them."""
    if not plan.confidence.is_given:
        return Confidence()
    with value_errors_as_user_errors():
        labels = final_labels(plan, fitted.model)
        return assess(
            fitted.model,
            plan.data,
            labels,
            settings=plan.confidence,
            announce=announce,
        )


def describe_fit(plan: Plan, fitted: FittedModel, confidence: Confidence) -> Result:
    """Return the result of a fitted model, with statistics of all features."""
    # Statistics of features that were not selected need a pass over the data. The pass runs on the
    # backend.
    with plan.backend.activate():
        return build_result(plan, fitted.model, fitted.warnings, confidence=confidence)


def compare_methods(
    plan: Plan,
    *,
    n_clusters: int | None,
    methods: Sequence[str] | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Fit several methods to the data of a plan, and return the fitted methods and their scores."""
    refuse_out_of_core_comparison(plan.table)
    X, parameters = plan.data, plan.estimator.get_params()
    # Some methods, such as SHC, compare samples pair by pair, so every two samples must share an
    # observed feature.
    needs_shared = any(method.needs_shared_features for method in compared_methods(methods))
    refuse_samples_without_values(
        plan.matrix.values, plan.table, needs_shared_features=needs_shared
    )
    k = comparison_n_clusters(plan, n_clusters)
    with value_errors_as_user_errors(), warnings.catch_warnings():
        # A warning about a failed method is not needed, since the error is part of the comparison.
        warnings.simplefilter("ignore", UserWarning)
        if k is not None:
            limits: Any = {"low": 1, "high": X.shape[0], "advice": "It is where trees are cut."}
            check_integer("n_clusters", k, **limits)
        given = {name: parameters[name] for name in _COMPARISON_PARAMETERS if name in parameters}
        made = default_methods(X, methods=methods, n_clusters=k, **given)
        # The names of some methods contain commas.
        noun = "method" if len(made) == 1 else "methods"
        announce(f"Fitting {len(made)} {noun}: {'; '.join(made)}.")
        comparison = compare(X, methods=made)
    if k is not None:
        _score_cuts(plan, comparison, k)
    return comparison


def _score_cuts(plan: Plan, comparison: Comparison, k: int) -> None:
    """Cut the tree of each method into k clusters, and add scores to `comparison.scores`.

    A method without a tree keeps its own clusters.
    The cluster sizes are always added. The classification error rate, the adjusted Rand index and
    the purity are added if classes are known.
    """
    known, classes = known_classes(plan)
    for name, model in comparison.models.items():
        labels = labels_to_score(model, k)
        sizes = ", ".join(map(str, np.bincount(labels)))
        comparison.scores.loc[name, "cluster_sizes"] = sizes
        if known.any():
            for score, value in agreement_scores(classes, labels[known]).items():
                comparison.scores.loc[name, score] = value


def comparison_n_clusters(plan: Plan, n_clusters: int | None) -> int | None:
    """Return the number of clusters into which the trees of a comparison are cut.

    The number is `n_clusters` or, if `n_clusters` is None, the number of known classes. None is
    returned if `n_clusters` is None and no class is known.
    """
    known, classes = known_classes(plan)
    return n_clusters or (len(set(classes)) if known.any() else None)
