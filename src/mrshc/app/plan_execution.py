"""Runs what was planned."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mrshc.app.plan import (
    Plan,
    refusals,
    refuse_elsewhere,
    refuse_unknown_samples,
)
from mrshc.app.result_building import known_classes, result_of
from mrshc.comparison import Comparison, compare, default_methods
from mrshc.estimators.feature_refinement import UnsupportedClustersWarning
from mrshc.io.result import Result
from mrshc.methods import METHODS
from mrshc.metrics import classification_error_rate, purity
from mrshc.validation.parameters import check_integer

# Parameters of a comparison: of all methods, or of those that know them.
_SHARED = (
    *("n_features_to_select", "linkage", "metric", "random_state", "n_jobs"),
    *("selection", "refine", "robust"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A fitted estimator, and what it warned of."""

    model: Any
    said: tuple[str, ...]


def fit(plan: Plan, *, checkpoint: Path | None = None, verbose: bool = False) -> Result:
    """Fit the method and tell what it found."""
    return described(plan, fitted(plan, checkpoint=checkpoint, verbose=verbose))


def fitted(plan: Plan, *, checkpoint: Path | None = None, verbose: bool = False) -> Fitted:
    """Fit the method."""
    estimator = plan.estimator
    settings = {"checkpoint": checkpoint, "verbose": verbose}
    known = METHODS[plan.method].parameters
    estimator.set_params(**{name: value for name, value in settings.items() if name in known})
    with plan.place.working(), warnings.catch_warnings(record=True) as caught, refusals():
        warnings.simplefilter("always")
        model = estimator.fit(plan.data)
    from mrshc.core.kernels.compilation_cache import CompilationCacheWarning

    for w in caught:
        if issubclass(w.category, CompilationCacheWarning):  # of this process, not of the result
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    said = tuple(
        w.message.finding for w in caught if isinstance(w.message, UnsupportedClustersWarning)
    )
    return Fitted(model=model, said=said)


def described(plan: Plan, found: Fitted) -> Result:
    """Tell what a method found, also about features that it did not select."""
    with plan.place.working():
        return result_of(plan, found.model, found.said)


def compare_methods(plan: Plan, *, n_clusters: int | None) -> Comparison:
    """Cluster a table by the registered methods; score where classes are known."""
    refuse_elsewhere(plan.table)
    X, own = plan.data, plan.estimator.get_params()
    methods = default_methods(X, **{name: own[name] for name in _SHARED})
    refuse_unknown_samples(plan.matrix.values, plan.table, shared=True)
    k = clusters_compared(plan, n_clusters)
    with refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a method that failed has a row
        if k is not None:
            limits: Any = {"low": 1, "high": X.shape[0], "advice": "It is where trees are cut."}
            check_integer("n_clusters", k, **limits)
        comparison = compare(X, methods=methods)
        for error in comparison.errors.values():
            if isinstance(error, ValueError):  # what was asked for made the method fail
                raise error
    if k is not None:
        known, classes = known_classes(plan)
        for name, model in comparison.models.items():
            labels = model.cut(k)
            sizes = ", ".join(map(str, np.bincount(labels)))
            comparison.scores.loc[name, "cluster_sizes"] = sizes
            if known.any():
                cer = classification_error_rate(classes, labels[known])
                comparison.scores.loc[name, "cer"] = cer
                comparison.scores.loc[name, "purity"] = purity(classes, labels[known])
    return comparison


def clusters_compared(plan: Plan, n_clusters: int | None) -> int | None:
    """Return where trees are cut: as asked for, or into as many clusters as there are classes."""
    known, classes = known_classes(plan)
    return n_clusters or (len(set(classes)) if known.any() else None)
