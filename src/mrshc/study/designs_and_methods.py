"""Simulated data sets, imputation and estimators, created from the entries of a config.

A design is an entry that describes how data sets are simulated. A method is an entry that describes
an estimator and its parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import KNNImputer, SimpleImputer

import mrshc
from mrshc import datasets
from mrshc.datasets import SimulatedData
from mrshc.methods import METHODS, VARIANTS
from mrshc.study.config import Study, StudyError

# Entries of a method that are not parameters of its estimator. `as_many_as` names another method,
# whose number of selected features is used. `impute` names the imputation before the fit. `share`
# limits the number of simulated data sets. `extra_clusters` is added to the true number of
# clusters. `leave_out` lists data sets to which the method is not fitted.
# `paper` and `in_r` contain values from the paper and from R.
_NOT_PARAMETERS = (
    *("name", "estimator", "as_many_as", "impute", "share", "extra_clusters"),
    "leave_out",
    *("paper", "in_r"),
)


def check_names(study: Study, *kinds: str) -> None:
    """Raise StudyError if the seed, a list, a design or a method of a config is not valid.

    Parameters
    ----------
    study : Study
        The study.
    *kinds : str
        Names of the lists that the config must contain, such as "design" and "method".
    """
    seed = study.option("seed")
    if not isinstance(seed, int) or seed < 0:
        raise StudyError(f"{study.name}.toml must have a whole number as seed, got {seed!r}.")
    for kind in kinds:
        names = [entry.get("name") for entry in study.entries(kind)]
        if not names or None in names or len(set(names)) < len(names):
            raise StudyError(f"{study.name}.toml must give every {kind} a name of its own.")
    for method in study.entries("method") if "method" in kinds else []:
        # The number of features that the other method selects is not known yet. Any valid number
        # suffices for this check.
        assumed = {"n_features_to_select": 1} if "as_many_as" in method else {}
        make_estimator(study, method, seed, **assumed)
    if {"design", "method"} <= set(kinds):
        for design in study.entries("design"):
            draw_dataset(study, design, seed)


def draw_dataset(study: Study, design: dict[str, Any], seed: int) -> SimulatedData:
    """Return one simulated data set of a design.

    Missing values or outliers are added if the design contains the item `spoil`.

    Parameters
    ----------
    study : Study
        The study, which is named in error messages.
    design : dict
        Entry of the config. Its item `make` names a function in :mod:`mrshc.datasets`. The optional
        item `spoil` contains the name of a function that adds missing values or outliers, and the
        parameters of that function. All other items, except `name` and `share`, are parameters of
        `make`.
    seed : int
        Seed of the simulation.

    Raises
    ------
    StudyError
        If the design names an unknown function or contains an invalid parameter.
    """
    options = {k: v for k, v in design.items() if k not in ("name", "make", "spoil", "share")}
    make = _dataset_function(study, "make", design.get("make"), prefix="make_")
    spoil = dict(design.get("spoil", {}))
    contaminate = None
    if spoil:
        contaminate = _dataset_function(study, "spoil", spoil.pop("how"), prefix="with_")
    try:
        data: SimulatedData = make(seed, **options)
        # Missing values and outliers are drawn from a separate random stream. Apart from the added
        # values, the data are therefore the same as in a design without them.
        if contaminate is not None:
            data = contaminate(data, np.random.RandomState([seed, 1]), **spoil)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{study.name}.toml, design {design.get('name')!r}: {error}") from None
    return data


def _dataset_function(study: Study, entry: str, name: Any, *, prefix: str) -> Any:
    """Return the function in `mrshc.datasets` called `name`, the value of `entry` in the config.

    Raise StudyError if there is no such function, or if its name does not begin with `prefix`.
    """
    known = sorted(known for known in vars(datasets) if known.startswith(prefix))
    if name not in known:
        raise _unknown_name_error(study, entry, name, known)
    return getattr(datasets, name)


def impute_for_method(study: Study, method: dict[str, Any], X: NDArray[Any]) -> NDArray[Any]:
    """Return X with missing values imputed, or X itself if the method has no item `impute`.

    Raise StudyError if the item names an unknown imputation.
    """
    kind = method.get("impute")
    # The imputers of scikit-learn are used with their default parameters, which are a well-known
    # baseline.
    imputers = {"mean": SimpleImputer, "neighbors": KNNImputer}
    if kind is None:
        return X
    if kind not in imputers:
        raise _unknown_name_error(study, "impute", kind, sorted(imputers))
    X_imputed: NDArray[Any] = imputers[kind]().fit_transform(X)
    return X_imputed


def make_estimator(study: Study, method: dict[str, Any], seed: int, **more: Any) -> Any:
    """Return the unfitted estimator that an entry of a config describes.

    Parameters
    ----------
    study : Study
        The study, which is named in error messages.
    method : dict
        Entry of the config. Its item `estimator` names a class. Other items, except those in
        `_NOT_PARAMETERS`, are parameters of that class.
    seed : int
        Random state of the estimator, if the estimator has a parameter `random_state`.
    **more
        Additional parameters of the estimator.

    Raises
    ------
    StudyError
        If the entry names an unknown class, or a parameter that the class does not have.
    """
    known = {cls.__name__: cls for cls in (m.load() for m in (METHODS | VARIANTS).values())}
    name = method.get("estimator")
    if not isinstance(name, str) or name not in known:
        raise _unknown_name_error(study, "estimator", name, sorted(known))
    options = {k: v for k, v in method.items() if k not in _NOT_PARAMETERS}
    try:
        estimator = known[name](**options, **more)
    except TypeError as error:
        raise StudyError(f"{study.name}.toml, method {method.get('name')!r}: {error}") from None
    # Methods that draw no random numbers have no random state.
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator


@contextmanager
def ignore_unsupported_clusters() -> Iterator[None]:
    """Suppress warnings about clusters that the data do not support.

    The warnings are not needed, since the rows of a study state whether the clusters are supported.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
        yield


def _unknown_name_error(study: Study, entry: str, got: Any, known: list[str]) -> StudyError:
    """Return the error for a config entry whose value is not one of the known names."""
    return StudyError(f"{study.name}.toml: {entry} must be one of {', '.join(known)}, got {got!r}.")
