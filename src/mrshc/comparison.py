"""Comparison of several clustering methods on one data set, by the same scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

from mrshc.optional_packages import require_packages

# The check comes first, so that its message is shown and not that of the failed import.
require_packages(["pandas"], purpose="mrshc.comparison", extra="tables")

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mrshc.estimators.base import HierarchicalClusterer
from mrshc.methods import compared_methods
from mrshc.metrics import (
    adjusted_rand_index,
    classification_error_rate,
    feature_precision,
    feature_recall,
    purity,
)
from mrshc.shell.sample_alignment import align_samples, column_names, row_names
from mrshc.shell.wording import Parameter, ParameterError, invalid_parameter_error
from mrshc.validation import check_integer, check_n_jobs

# An estimator, or a function that returns an estimator. The function is called with a dict of the
# models that have been fitted so far, by name.
EstimatorOrFactory = Any | Callable[[Mapping[str, Any]], Any]


class MethodFailedWarning(UserWarning):
    """Warning that a method of a comparison raised an error. The other methods are still fitted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Result of :func:`compare`: fitted models and their scores.

    Attributes
    ----------
    models : dict of str to estimator
        Fitted estimators by name. Methods that failed are not included.
    scores : pandas.DataFrame
        Scores with one row for each method. The columns are described in :func:`compare`.
    errors : dict of str to Exception
        Exceptions raised by the methods that failed, by name of the method.
    """

    models: dict[str, Any]
    scores: pd.DataFrame
    errors: dict[str, Exception] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the table of scores as text."""
        return f"Comparison of {len(self.scores)} methods\n{self._shown_scores().to_string()}"

    def _repr_html_(self) -> str:
        """Return the table of scores as HTML, which notebooks show."""
        return self._shown_scores().to_html(border=0, na_rep="")

    def _shown_scores(self) -> pd.DataFrame:
        """Return the scores with a suitable number of digits, as text."""
        scores = convert_counts_to_integers(self.scores).astype(object)
        return scores.map(
            lambda value: f"{value:.3f}" if isinstance(value, float) else value, na_action="ignore"
        ).where(scores.notna(), "")


def compare(
    X: Any,
    *,
    methods: Mapping[str, EstimatorOrFactory] | Sequence[str] | None = None,
    truth: Any = None,
    support: Any = None,
    n_clusters: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Fit several clustering methods to one data set, and return the models and their scores.

    For the scores, all trees are cut into the same number of clusters, so that the scores are
    comparable. Clusterers without a tree, such as those of scikit-learn, are scored by their own
    clusters (`labels_`). The true classes (`truth`) and the mask of informative features
    (`support`) are used only for the scores, not for the fits; only the number of true classes is
    passed to registered methods without a tree, such as sparse K-means.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, with samples in rows.
    methods : mapping of str to estimator or callable, sequence of str, or None, default=None
        Estimators by name, or keys of registered methods, such as `["mrshc", "cosa", "shc-ssl"]`;
        the keys are those of `mrshc.methods.METHODS` and `mrshc.methods.VARIANTS`. In
        place of an estimator, a function can be given. The function is called with a dict of the
        models that have been fitted so far, by name, and must return an estimator. An estimator is
        a tree estimator of this package, or any clusterer that has the attribute `labels_` after
        `fit`, such as :class:`sklearn.cluster.KMeans`. Samples with a negative label are noise, as
        in :class:`sklearn.cluster.HDBSCAN`. For the scores, each of them is a cluster of its own.
        Pipelines are not accepted; transform X first instead.

        None stands for the following methods, and for any methods that were registered in addition:
        :class:`~mrshc.AssociationHC`, Ward's clustering on the 500 features of highest variance
        ("HMV 500, Ward"), :class:`~mrshc.MrSHC`, :class:`~mrshc.SHC`, hierarchical clustering on
        all features (HC), and hierarchical clustering on the features of highest variance (HC-HMV).
        As in the paper [1]_, HC-HMV uses as many features as MrSHC selects.
    truth : array-like of shape (n_samples,) or None, default=None
        True class of each sample. The index of a Series is matched to the index of X, and must
        contain every sample. To match by position, pass the values of the Series.
    support : array-like of bool of shape (n_features,) or None, default=None
        Mask of the informative features, that is, the features that distinguish the true classes.
        The index of a Series is matched to the columns of X.
    n_clusters : int or None, default=None
        Number of clusters into which the trees are cut for the scores. None stands for the number
        of true classes. If `truth` is None, the trees are not cut. Registered methods without a
        tree are fitted with this number. Other clusterers without a tree keep their own number of
        clusters.
    random_state : int, RandomState instance or None, default=None
        Seed of registered methods. The seed has no effect if `methods` contains estimators.
    n_jobs : int or None, default=None
        Number of parallel workers of registered methods. The number has no effect if `methods`
        contains estimators.

    Returns
    -------
    Comparison
        The fitted `models`, their `scores`, and the `errors` of methods that failed. The columns of
        `scores` are `n_features` (number of selected features) and `rank` (number of sparse
        components). If `truth` is given, there are also the
        columns `cer` (classification error rate: share of pairs of samples that one partition puts
        together and the other apart), `ari` (adjusted Rand index) and `purity`. If `support` is
        given, there are also the columns `recall` and `precision` of the selected features. A score
        is missing for methods to which it does not apply: `rank` for methods without components,
        and `n_features`, `recall` and `precision` for methods that do not select features. If a
        method failed, the column `error` contains the error message.

    Warns
    -----
    MethodFailedWarning
        For each method that fails, if at least one other method succeeds.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    Compare sparse hierarchical clustering with classical clustering and with k-means, which has no
    tree and is scored by its own clusters:

    >>> from sklearn.cluster import KMeans
    >>> from mrshc import SHC, HighVarianceHC, compare
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)
    >>> methods = {"SHC": SHC(50), "HC": HighVarianceHC(500), "k-means": KMeans(3, random_state=0)}
    >>> result = compare(data.X, methods=methods, truth=data.labels)
    >>> list(result.scores.columns)
    ['n_features', 'rank', 'cer', 'ari', 'purity']
    >>> float(result.scores.loc["SHC", "ari"])
    1.0
    """
    # All arguments are checked before the first fit, since a fit may take a long time.
    n_samples, n_features = _check_shape(X)
    truth = align_samples(truth, row_names(X), what="truth")
    support = align_samples(support, column_names(X), what="support", unit="feature")
    truth = _check_truth(truth, n_samples=n_samples)
    support = _check_support(support, n_features=n_features)
    k = len(np.unique(truth)) if truth is not None and n_clusters is None else n_clusters
    if k is not None:
        advice = "All trees are cut into this number of clusters."
        check_integer("n_clusters", k, low=1, high=n_samples, advice=advice)
    if methods is None or _are_keys(methods):
        methods = default_methods(
            X, methods=methods, n_clusters=k, random_state=random_state, n_jobs=n_jobs
        )
    given = _check_methods(methods)
    scorer = partial(score_model, truth=truth, support=support, n_clusters=k)
    result = _fit_and_score(X, given, scorer=scorer)
    # If all methods fail, the cause is most likely in the data, so an error is raised rather than a
    # warning issued.
    if not result.models:
        raise next(iter(result.errors.values()))
    for name, reason in result.errors.items():
        warnings.warn(f"{name} failed: {reason}", MethodFailedWarning, stacklevel=2)
    return result


def _fit_and_score(
    X: Any,
    methods: Mapping[str, EstimatorOrFactory],
    *,
    scorer: Callable[[Any], dict[str, Any]],
) -> Comparison:
    """Fit the methods in the given order; return the fitted models, their scores and the errors.

    `scorer` is called with a fitted model and returns its scores by name.
    """
    models: dict[str, Any] = {}
    rows: dict[str, dict[str, Any]] = {}
    errors: dict[str, Exception] = {}
    for name, method in methods.items():
        try:
            # Fit a clone, so that the caller's estimators remain unfitted.
            # An estimator that does not derive from scikit-learn is copied instead (`safe=False`).
            estimator = clone(method, safe=False) if hasattr(method, "fit") else method(models)
            model = estimator.fit(X)
            _check_clusterer(model)
            rows[name] = scorer(model)
            models[name] = model
        # If one method fails, the results of the other methods must not be lost, since the fits may
        # have taken hours.
        except Exception as error:
            # A function that looks up the model of a failed method raises a KeyError. The KeyError
            # is replaced by an error whose message states the reason.
            missing = error.args[0] if isinstance(error, KeyError) and error.args else None
            if missing in errors:
                error = RuntimeError(f"it uses the result of {missing}, which failed")
            errors[name] = error
            rows[name] = {"error": format_error(error)}
    scores = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
    return Comparison(models=models, scores=scores, errors=errors)


def _check_clusterer(model: Any) -> None:
    """Raise ValueError if a fitted model has neither a tree nor clusters."""
    if not isinstance(model, HierarchicalClusterer) and not hasattr(model, "labels_"):
        raise ValueError(
            f"Every method must have the attribute labels_ after fit, but {type(model).__name__} "
            "does not have it. Give a clusterer."
        )


def convert_counts_to_integers(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of the scores in which `n_features` and `rank` have the type Int64.

    Both values are missing for methods that failed, and `rank` is missing for methods without
    components. If a column has missing values, pandas by default stores its integers as floats, and
    displays 20 as 20.0. The pandas type Int64 can store both integers and missing values.

    Parameters
    ----------
    scores : pandas.DataFrame
        Scores of a :class:`Comparison`.
    """
    return scores.astype({"n_features": "Int64", "rank": "Int64"})


def _are_keys(methods: Any) -> TypeGuard[Sequence[str]]:
    """Return whether a value is a sequence of strings."""
    return isinstance(methods, Sequence) and all(isinstance(key, str) for key in methods)


def _check_methods(methods: Any) -> Mapping[str, EstimatorOrFactory]:
    """Return `methods`; raise ParameterError if it does not map names to clusterers or functions.

    An empty mapping is also invalid.
    """
    if isinstance(methods, Mapping) and methods and all(map(_is_method, methods.values())):
        return methods
    raise invalid_parameter_error(
        "methods",
        methods,
        allowed="name methods, or map names to clusterers or to functions that make one",
        advice="Transform X first in place of giving a pipeline.",
    )


def _is_method(method: Any) -> bool:
    """Return whether a value is an estimator, or a function that returns an estimator.

    Classes and pipelines are not accepted. A pipeline has no attribute `labels_`, and its features
    are not those of X.
    """
    if isinstance(method, type | Pipeline):
        return False
    return hasattr(method, "fit") or callable(method)


def _check_shape(X: Any) -> tuple[int, int]:
    """Return the shape of X, or raise ValueError if X does not have two dimensions."""
    shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(
            "X must be a table with samples in rows and features in columns, got data of shape "
            f"{shape}. Reshape X to (n_samples, n_features)."
        )
    return shape


def _check_truth(truth: Any, *, n_samples: int) -> NDArray[Any] | None:
    """Return the true classes as an array, or None if `truth` is None.

    Raise ValueError if there is not exactly one class for each sample, or if a class is missing.
    """
    if truth is None:
        return None
    # pandas.isna detects None and NaN in arrays of any type; numpy.isnan does not.
    classes = np.asarray(truth)
    if classes.shape != (n_samples,) or pd.isna(classes).any():
        raise ValueError(
            f"truth must hold a class for each of the {n_samples} samples, got "
            f"{classes.size} values, {int(pd.isna(classes).sum())} of them missing. Leave out the "
            "samples without a class from X and truth."
        )
    return classes


def _check_support(support: Any, *, n_features: int) -> NDArray[np.bool_] | None:
    """Return the mask of informative features as an array, or None if `support` is None.

    Raise ValueError if `support` is not a boolean mask with one entry for each feature.
    """
    if support is None:
        return None
    # The type must be bool: an array of feature indices could be converted to a mask without an
    # error, but would give wrong scores.
    mask = np.asarray(support)
    if mask.shape != (n_features,) or mask.dtype != bool:
        raise ValueError(
            f"support must be a mask of {n_features} values, True for features that distinguish "
            f"the classes, got an array of {mask.dtype} and shape {mask.shape}. Make a mask with "
            "numpy.isin(numpy.arange(n_features), indices)."
        )
    return mask


def default_methods(
    X: Any,
    *,
    methods: Sequence[str] | None = None,
    n_clusters: int | None = None,
    n_features_to_select: Any = "auto",
    linkage: str = "complete",
    metric: str = "sqeuclidean",
    random_state: Any = None,
    n_jobs: int | None = None,
    robust: bool = False,
) -> dict[str, EstimatorOrFactory]:
    """Return the methods of a comparison, with the given parameters.

    Each estimator receives only those parameters that it has. For example, only AssociationHC and
    MrSHC have the parameter `robust`. The fixed parameters of a variant override the given ones. A
    variant with the same parameters as another method is left out of the default comparison.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, of which only the shape is used.
    methods : sequence of str or None, default=None
        Keys of the methods; None stands for the default comparison.
    n_clusters : int or None, default=None
        Number of clusters of methods without a tree, such as sparse K-means. It has no effect on
        other methods.
    n_features_to_select : int, sequence of int or "auto", default="auto"
        Number of features that SHC and MrSHC select, or several candidate numbers.
    linkage : str, default="complete"
        Linkage of all trees, except those of variants with a fixed linkage.
    metric : str, default="sqeuclidean"
        Metric of all trees, except those of variants with a fixed metric. SHC does not have the
        metric "correlation".
    random_state : int, RandomState instance or None, default=None
        Seed of the methods that draw random numbers.
    n_jobs : int or None, default=None
        Number of parallel workers.
    robust : bool, default=False
        Whether AssociationHC and MrSHC are made robust against outliers.

    Returns
    -------
    dict of str to estimator or callable
        Methods by label, in the order of the comparison. The dict can be passed to :func:`compare`
        as `methods`.
    """
    compared = compared_methods(methods)
    # Some methods do not use workers, so that an invalid number would not make all methods fail.
    check_n_jobs(n_jobs)
    for method in compared:
        if not method.has_tree and n_clusters is None:
            raise ParameterError(
                "{label} needs the number of clusters, since it has no tree. Give {n_clusters} or "
                "{truth}.",
                label=method.label,
                n_clusters=Parameter("n_clusters"),
                truth=Parameter("truth"),
            )
    parameters = {
        "n_features_to_select": n_features_to_select,
        "linkage": linkage,
        "metric": metric,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "robust": robust,
    }
    # For hierarchical clustering on all features, `n_features_to_select` must be the number of all
    # features.
    n_features = _check_shape(X)[1]
    made = {
        method: method.make_for_comparison(parameters, n_features=n_features, n_clusters=n_clusters)
        for method in compared
    }
    if methods is not None:
        return {method.label: estimator for method, estimator in made.items()}
    others = [estimator for method, estimator in made.items() if not method.fixed]
    return {
        method.label: estimator
        for method, estimator in made.items()
        if not (method.fixed and any(_are_equal(estimator, other) for other in others))
    }


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether two estimators have the same class and the same parameters."""
    if type(one) is not type(other):
        return False
    theirs = other.get_params()
    # Parameters that the methods share are the same object. They are not compared by their values,
    # since the comparison of two arrays has no single truth value.
    return all(
        value is theirs[name] or value == theirs[name] for name, value in one.get_params().items()
    )


def agreement_scores(truth: Any, labels: Any) -> dict[str, float]:
    """Return the scores of clusters against known classes, by the names of their columns.

    Parameters
    ----------
    truth : array-like of shape (n_samples,)
        True class of each sample.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.
    """
    return {
        "cer": classification_error_rate(truth, labels),
        "ari": float(adjusted_rand_index(truth, labels)),
        "purity": purity(truth, labels),
    }


def score_model(model: Any, *, truth: Any, support: Any, n_clusters: int | None) -> dict[str, Any]:
    """Return the scores of one fitted model.

    Parameters
    ----------
    model : fitted estimator
        The model to score.
    truth : array-like of shape (n_samples,) or None
        True class of each sample. If `truth` is None, `cer`, `ari` and `purity` are left out.
    support : array-like of bool of shape (n_features,) or None
        Mask of the informative features. If `support` is None, `recall` and `precision` are left
        out.
    n_clusters : int or None
        Number of clusters into which the tree is cut. If `n_clusters` is None, `cer`, `ari` and
        `purity` are left out. A model without a tree keeps its own clusters.

    Returns
    -------
    dict of str to object
        Scores by name. The names are those of the columns described in :func:`compare`.
    """
    row: dict[str, Any] = {
        "n_features": getattr(model, "n_features_selected_", None),
        "rank": getattr(model, "rank_", None),  # only MrSHC has a rank
    }
    # The tree is cut into `n_clusters` clusters even if the method has chosen another number.
    # Otherwise the scores would depend more on the chosen number than on the tree.
    if truth is not None and n_clusters is not None:
        row |= agreement_scores(truth, labels_to_score(model, n_clusters))
    if support is not None:
        selected = model.get_support() if hasattr(model, "get_support") else None
        row["recall"] = None if selected is None else feature_recall(support, selected)
        row["precision"] = None if selected is None else feature_precision(support, selected)
    return row


def labels_to_score(model: Any, n_clusters: int) -> NDArray[np.intp]:
    """Return the cluster of each sample, for the scores of a comparison.

    Parameters
    ----------
    model : fitted estimator
        The model.
    n_clusters : int
        Number of clusters into which the tree of the model is cut.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        The cut of the tree or, for a model without a tree, its own clusters, numbered 0, 1, ... In
        the latter case, each sample with a negative label (noise) is a cluster of its own.
    """
    if isinstance(model, HierarchicalClusterer):
        return model.cut(n_clusters)
    labels = np.asarray(model.labels_).copy()
    is_noise = labels < 0
    # The new labels are larger than all others, so that no sample of noise joins a cluster.
    labels[is_noise] = labels.max() + 1 + np.arange(is_noise.sum())
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def format_error(error: BaseException) -> str:
    """Return the class and the message of an error as text, for tables of results.

    The nearest base class outside this package is named, since readers know no other.
    """
    classes = (cls for cls in type(error).__mro__ if not cls.__module__.startswith("mrshc."))
    return f"{next(classes).__name__}: {error}"
