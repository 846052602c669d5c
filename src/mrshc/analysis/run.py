"""Runs what was planned."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd

from mrshc.analysis.found import result_of
from mrshc.analysis.plan import Plan
from mrshc.comparison import Comparison, compare, default_methods
from mrshc.errors import UserError
from mrshc.io.result import Result


def fit(plan: Plan, *, checkpoint: Path | None = None, verbose: bool = False) -> Result:
    """Fit the method and tell what it found."""
    estimator = plan.estimator
    if plan.method == "mrshc":
        estimator.set_params(checkpoint=checkpoint)
    if plan.method in ("mrshc", "shc"):
        estimator.set_params(verbose=verbose)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            # With names, so that refusals can name the feature.
            model = estimator.fit(pd.DataFrame(plan.prepared.X, columns=plan.feature_names))
        except UserError:
            raise
        except ValueError as error:
            raise UserError(_in_words_of_options(str(error))) from None
    said = tuple(str(w.message) for w in caught if issubclass(w.category, UserWarning))
    return result_of(plan, model, said)


def _in_words_of_options(sentence: str) -> str:
    """Call parameters by the names of their options."""
    return sentence.replace("n_features_to_select", "--n-features")


def compare_methods(plan: Plan, *, n_clusters: int | None) -> Comparison:
    """Cluster a table by the methods that the paper compares."""
    X = pd.DataFrame(plan.prepared.X, columns=plan.feature_names)
    truth = None if plan.truth is None else plan.table.sample_annotations[plan.truth].to_numpy()
    own = plan.estimator.get_params()
    shared = {name: own[name] for name in ("linkage", "metric", "random_state", "n_jobs")}
    methods = default_methods(X, n_features_to_select=own["n_features_to_select"], **shared)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a method that failed has a row
            comparison = compare(X, methods=methods, truth=truth, n_clusters=n_clusters)
    except ValueError as error:
        raise UserError(_in_words_of_options(str(error))) from None
    errors = comparison.scores["error"].dropna() if "error" in comparison.scores else []
    refused = [text for text in errors if text.startswith("ValueError: ")]
    if refused:  # what was asked for, not the data, made a method fail
        raise UserError(_in_words_of_options(refused[0].removeprefix("ValueError: ")))
    return comparison
