"""Repeated fits of an estimator, for resampling and simulation."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mrshc.core.array_types import Mask
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.trees.tree import agglomerate
from mrshc.errors import Parameter, ParameterError
from mrshc.estimators.base import TreeClusterer


def values_of_fit(model: Any, X: Any, *, function: str) -> NDArray[Any]:
    """Return the data of the fit as an array.

    Raise ParameterError if the model is not one of our estimators or is an `SHC` with
    `complement_of`, and ValueError if X is not in memory or is not the data of the fit. `function`
    is the name of the calling function.
    """
    if not isinstance(model, TreeClusterer):
        raise ParameterError(
            "{function} needs a fitted MrSHC, SHC, COSA or HighVarianceHC, got {got}.",
            function=function,
            got=type(model).__name__,
        )
    if getattr(model, "complement_of", None) is not None:
        raise ParameterError(
            "{function} needs a model that can be fitted to other samples, but {complement_of} "
            "refers to a fit of these samples. Use the first fit instead.",
            function=function,
            complement_of=Parameter("complement_of"),
        )
    # Not the data that a robust fit has winsorised: each fit winsorises its own data.
    data = TreeClusterer.data_of_fit(model, X)
    if not data.in_memory:
        raise ValueError(
            f"{function} needs X in memory, as an array or a table, but X is stored in another "
            "form, such as a file or a sparse matrix. Load it, or select fewer features first."
        )
    _refuse_other_data(model, X)
    return data.values


def clone_for_refit(model: Any, *, seed: int) -> Any:
    """Return an unfitted copy of a model that uses one thread, prints nothing and has a seed."""
    settings = {"n_jobs": 1, "verbose": False, "checkpoint": None, "random_state": seed}
    known = model.get_params(deep=False)
    return clone(model).set_params(**{k: v for k, v in settings.items() if k in known})


def fit_observed_features(model: Any, X: NDArray[Any]) -> Mask:
    """Fit a model to the features of X that have values, and return the mask of those selected.

    In a subset of the samples, all values of a feature may be missing, which estimators refuse.
    Parameters that exceed the number of samples or features are reduced.
    """
    is_observed = ~np.isnan(X).all(axis=0)
    if not is_observed.all():
        X = X[:, is_observed]
    _limit_parameters(model, n_samples=X.shape[0], n_features=X.shape[1])
    model.fit(X)
    support = np.zeros(is_observed.size, dtype=bool)
    support[is_observed] = model.get_support()
    return support


def _limit_parameters(model: Any, *, n_samples: int, n_features: int) -> None:
    """Reduce the parameters of a model that exceed the number of samples or features."""
    limits = {
        "n_clusters": n_samples,
        "rank": n_samples,
        "n_neighbors": n_samples - 1,
        "n_features_to_select": n_features,
    }
    known = model.get_params(deep=False)
    for name, limit in limits.items():
        value = known.get(name)
        if isinstance(value, Integral):
            model.set_params(**{name: min(value, limit)})
        elif not isinstance(value, str | None):
            # A sequence of candidates, which increase strictly.
            model.set_params(**{name: sorted({min(int(number), limit) for number in value})})


def _refuse_other_data(model: Any, X: Any) -> None:
    """Raise ValueError if the tree that is built from X differs from the tree of the model.

    The values of the fit are not stored, so permuted samples, for example, would not be noticed
    otherwise. They are not noticed for SHC and COSA, whose distances are those of the fit.
    """
    if len(model._outlier_rows):  # they are attached to a tree that was built without them
        return
    with limit_blas_to_one_thread():
        tree = agglomerate(model.sample_distances(X), model.linkage)
    built, stored = tree.linkage_matrix, model.linkage_matrix_
    # Rounding may depend on the version of BLAS if the model was fitted on another computer.
    if (
        not np.allclose(built[:, 2], stored[:, 2], rtol=1e-6, atol=1e-9 * stored[-1, 2])
        or (model.cut(2) != model._tree.number_by_leaves(tree.cut(2))).any()
    ):
        raise ValueError(
            "X must be the data of the fit, but its samples have other distances. Pass the data "
            "that were passed to fit, with samples and features in the same order."
        )
