"""Several methods on one data set, scored by the same rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from mrshc.errors import described, refused
from mrshc.estimators.base import TreeClusterer
from mrshc.methods import compared_methods
from mrshc.metrics import (
    classification_error_rate,
    feature_precision,
    feature_recall,
    purity,
)
from mrshc.utils.sample_alignment import align_samples, column_names, row_names
from mrshc.validation.parameters import check_integer

# An estimator, or a function that makes one from the methods fitted before it.
Method = Any | Callable[[Mapping[str, Any]], Any]


class MethodFailedWarning(UserWarning):
    """A method of a comparison raised an error; the others went on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Fitted methods and their scores."""

    models: dict[str, Any]  # by name of the method, without those that failed
    scores: pd.DataFrame  # one row for each method
    errors: dict[str, Exception] = field(default_factory=dict)  # of those that failed, by name


def compare(
    X: Any,
    *,
    methods: Mapping[str, Method] | None = None,
    truth: Any = None,
    support: Any = None,
    n_clusters: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Fit several methods to one data set and score them.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples in rows.
    methods : mapping or None
        Estimators by name, or functions that make one from the methods fitted before; the scores
        need their `cut`, so pipelines are not taken: transform X first. By default
        those of the paper: classical clustering (HC), SHC, MrSHC, and clustering on as many
        features of highest variance as MrSHC chose (HC-HMV).
    truth : array-like of shape (n_samples,) or None
        True classes; used for scores only. A Series is matched by its index to that of X, and
        refused if it does not match; give its values to go by position.
    support : array-like of shape (n_features,) or None
        Mask of the features that make the true classes; used for scores only. A Series is matched
        by its index to the columns of X.
    n_clusters : int or None
        Where to cut the trees for the scores; the number of true classes by default.
    random_state : int, RandomState instance or None
        Seed of the default methods.
    n_jobs : int or None
        Workers of the default methods.

    Returns
    -------
    Comparison
        With `models` and `scores`: `n_features`, `rank` and, if the truth is known, `cer` (share
        of pairs on which tree and truth disagree), `purity`, `recall` and `precision`. A method
        that fails has a warning, a row with its `error` and an entry in `errors`, the exception
        itself; only if all fail is that raised.

    Examples
    --------
    >>> from mrshc import compare
    >>> from mrshc.datasets import make_section2_example
    >>> data = make_section2_example(1)
    >>> result = compare(data.X, truth=data.labels, random_state=0)
    >>> list(result.scores.index)
    ['HC', 'SHC', 'MrSHC', 'HC-HMV']
    """
    if methods is None:
        methods = default_methods(X, random_state=random_state, n_jobs=n_jobs)
    known = isinstance(methods, Mapping) and methods and all(map(_is_method, methods.values()))
    if not known:
        raise refused(
            "methods",
            methods,
            allowed="map names to estimators of mrshc, or to functions that make one",
        )
    n_samples, n_features = _shape(X)
    truth = align_samples(truth, row_names(X), what="truth")
    support = align_samples(support, column_names(X), what="support", unit="feature")
    truth = _checked_truth(truth, n_samples)
    support = _checked_support(support, n_features)
    k = len(np.unique(truth)) if truth is not None and n_clusters is None else n_clusters
    if k is not None:
        check_integer("n_clusters", k, low=1, high=n_samples, advice="It is where trees are cut.")
    models: dict[str, Any] = {}
    rows: dict[str, dict[str, Any]] = {}
    errors: dict[str, Exception] = {}
    for name, method in methods.items():
        try:
            estimator = clone(method) if isinstance(method, TreeClusterer) else method(models)
            model = estimator.fit(X)
            rows[name] = score(model, truth=truth, support=support, n_clusters=k)
            models[name] = model
        except Exception as error:
            missing = error.args[0] if isinstance(error, KeyError) and error.args else None
            if missing in errors:
                error = RuntimeError(f"it follows {missing}, which failed")
            errors[name] = error
            rows[name] = {"error": described(error)}
    if not models:
        raise next(iter(errors.values()))
    for name, reason in errors.items():
        warnings.warn(f"{name} failed: {reason}", MethodFailedWarning, stacklevel=2)
    scores = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
    return Comparison(models=models, scores=scores, errors=errors)


def whole_counts(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores for a reader: counts stay whole where some are missing."""
    return scores.astype({"n_features": "Int64", "rank": "Int64"})


def _is_method(method: Any) -> bool:
    return isinstance(method, TreeClusterer) or (callable(method) and not isinstance(method, type))


def _shape(X: Any) -> tuple[int, int]:
    shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(
            f"X must have samples in rows and features in columns, got something of shape {shape}."
        )
    return shape


def _checked_truth(truth: Any, n_samples: int) -> NDArray[Any] | None:
    if truth is None:
        return None
    classes = np.asarray(truth)
    if classes.shape != (n_samples,) or pd.isna(classes).any():
        raise ValueError(
            f"truth must hold a class for each of the {n_samples} samples, got "
            f"{classes.size} values, {int(pd.isna(classes).sum())} of them missing."
        )
    return classes


def _checked_support(support: Any, n_features: int) -> NDArray[np.bool_] | None:
    if support is None:
        return None
    mask = np.asarray(support)
    if mask.shape != (n_features,) or mask.dtype != bool:
        raise ValueError(
            f"support must be a mask of {n_features} values, True where a feature makes the "
            f"classes, got an array of {mask.dtype} and shape {mask.shape}."
        )
    return mask


def default_methods(
    X: Any,
    *,
    n_features_to_select: Any = "auto",
    linkage: str = "complete",
    metric: str = "sqeuclidean",
    random_state: Any = None,
    n_jobs: int | None = None,
    selection: str = "silhouette",
    refine: bool = False,
    robust: bool = False,
) -> dict[str, Method]:
    """Return the registered methods of a comparison, with the same linkage and metric.

    Each method gets those of the parameters that its estimator has: SHC and MrSHC can refine their
    features; `selection` and `robust` are MrSHC's.
    """
    given = {
        "n_features_to_select": n_features_to_select,
        "linkage": linkage,
        "metric": metric,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "selection": selection,
        "refine": refine,
        "robust": robust,
    }
    n_features = _shape(X)[1]
    return {
        method.label: method.make_compared(given, n_features=n_features)
        for method in compared_methods()
    }


def score(model: Any, *, truth: Any, support: Any, n_clusters: int | None) -> dict[str, Any]:
    """Return the scores of one fitted method; those without a truth to go by are left out."""
    row: dict[str, Any] = {
        "n_features": model.n_features_selected_,
        "rank": getattr(model, "rank_", None),
    }
    if truth is not None and n_clusters is not None:
        labels = model.cut(n_clusters)
        row["cer"] = classification_error_rate(truth, labels)
        row["purity"] = purity(truth, labels)
    if support is not None:
        row["recall"] = feature_recall(support, model.get_support())
        row["precision"] = feature_precision(support, model.get_support())
    return row
