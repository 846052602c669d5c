"""Fit the method of a plan, or compare all registered methods on its data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mrshc.app.plan import (
    Plan,
    refuse_out_of_core_comparison,
    refuse_samples_without_values,
    value_errors_as_user_errors,
)
from mrshc.app.result_building import build_result, known_classes
from mrshc.comparison import Comparison, compare, default_methods
from mrshc.estimators.feature_refinement import UnsupportedClustersWarning
from mrshc.io.result import Result
from mrshc.methods import METHODS
from mrshc.metrics import classification_error_rate, purity
from mrshc.validation.parameters import check_integer

# Parameters that a comparison passes to every method that has them.
_COMPARISON_PARAMETERS = (
    *("n_features_to_select", "linkage", "metric", "random_state", "n_jobs"),
    *("selection", "refine", "robust"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedModel:
    """A fitted estimator and its warnings.

    Attributes
    ----------
    model : estimator
        The fitted estimator.
    warnings : tuple of str
        Messages on clusters that the data do not support, for the description of the result.
    """

    model: Any
    warnings: tuple[str, ...]


def fit(plan: Plan, *, checkpoint: Path | None = None, verbose: bool = False) -> Result:
    """Fit the method of a plan and return the described result.

    Parameters
    ----------
    plan : Plan
        Data, method and parameters.
    checkpoint : Path or None, default=None
        File in which a search stores finished steps, and from which it resumes them.
    verbose : bool, default=False
        Whether a progress bar is shown.
    """
    return describe_fit(plan, fit_estimator(plan, checkpoint=checkpoint, verbose=verbose))


def fit_estimator(
    plan: Plan, *, checkpoint: Path | None = None, verbose: bool = False
) -> FittedModel:
    """Fit the estimator of a plan on its execution backend; parameters are those of `fit`."""
    estimator = plan.estimator
    settings = {"checkpoint": checkpoint, "verbose": verbose}
    known = METHODS[plan.method].parameters
    estimator.set_params(**{name: value for name, value in settings.items() if name in known})
    with (
        plan.backend.activate(),
        warnings.catch_warnings(record=True) as caught,
        value_errors_as_user_errors(),
    ):
        # Python shows a repeated warning once only; every fit must record its own.
        warnings.simplefilter("always")
        model = estimator.fit(plan.data)
    # Imported here: the module loads numba, which a plan that is refused does not need.
    from mrshc.core.kernels.compilation_cache import CompilationCacheWarning

    for w in caught:
        # This warning concerns the installation, not the result: it is shown, not stored.
        if issubclass(w.category, CompilationCacheWarning):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    findings = tuple(
        w.message.finding for w in caught if isinstance(w.message, UnsupportedClustersWarning)
    )
    return FittedModel(model=model, warnings=findings)


def describe_fit(plan: Plan, fitted: FittedModel) -> Result:
    """Return the result of a fitted model, with statistics of all features."""
    # Features that were not selected are described too, which needs a pass over the data.
    with plan.backend.activate():
        return build_result(plan, fitted.model, fitted.warnings)


def compare_methods(plan: Plan, *, n_clusters: int | None) -> Comparison:
    """Cluster the data of a plan by the registered methods, and score them.

    Parameters
    ----------
    plan : Plan
        Data, parameters, and the annotation with known classes.
    n_clusters : int or None
        Number of clusters into which every tree is cut. None: the number of known classes; without
        classes, the trees are not cut.
    """
    refuse_out_of_core_comparison(plan.table)
    X, parameters = plan.data, plan.estimator.get_params()
    methods = default_methods(X, **{name: parameters[name] for name in _COMPARISON_PARAMETERS})
    # SHC is among the methods, and compares samples pair by pair.
    refuse_samples_without_values(plan.matrix.values, plan.table, needs_shared_features=True)
    k = comparison_n_clusters(plan, n_clusters)
    with value_errors_as_user_errors(), warnings.catch_warnings():
        # A method that fails has a row with its error in the table of scores.
        warnings.simplefilter("ignore", UserWarning)
        if k is not None:
            limits: Any = {"low": 1, "high": X.shape[0], "advice": "It is where trees are cut."}
            check_integer("n_clusters", k, **limits)
        comparison = compare(X, methods=methods)
        for error in comparison.errors.values():
            # A ValueError comes from the request, so no table is worth showing.
            if isinstance(error, ValueError):
                raise error
    if k is not None:
        _score_cuts(plan, comparison, k)
    return comparison


def _score_cuts(plan: Plan, comparison: Comparison, k: int) -> None:
    """Fill in the scores of every method for its tree cut into k clusters."""
    known, classes = known_classes(plan)
    for name, model in comparison.models.items():
        labels = model.cut(k)
        sizes = ", ".join(map(str, np.bincount(labels)))
        comparison.scores.loc[name, "cluster_sizes"] = sizes
        if known.any():
            cer = classification_error_rate(classes, labels[known])
            comparison.scores.loc[name, "cer"] = cer
            comparison.scores.loc[name, "purity"] = purity(classes, labels[known])


def comparison_n_clusters(plan: Plan, n_clusters: int | None) -> int | None:
    """Return the number of clusters into which trees are cut: as given, or the number of classes.

    None is returned if neither is known.
    """
    known, classes = known_classes(plan)
    return n_clusters or (len(set(classes)) if known.any() else None)
