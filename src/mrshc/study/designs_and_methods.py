"""Simulated designs, imputation and estimators by the names that a config gives them."""

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
from mrshc.methods import METHODS
from mrshc.study.config import Study, StudyError

# Entries of a method that are not parameters of its estimator: the method whose number of features
# it takes, the imputation before it, and the values that the paper and R report.
_NOT_PARAMETERS = ("name", "estimator", "as_many_as", "impute", "paper", "in_r")


def check_names(study: Study, *kinds: str) -> None:
    """Refuse a config with unknown designs, methods or parameters, before anything is run.

    Parameters
    ----------
    study : Study
        The study.
    *kinds : str
        Lists that the config must have, such as "design" and "method".
    """
    seed = study.option("seed")
    if not isinstance(seed, int) or seed < 0:
        raise StudyError(f"{study.name}.toml must have a whole number as seed, got {seed!r}.")
    for kind in kinds:
        names = [entry.get("name") for entry in study.entries(kind)]
        if not names or None in names or len(set(names)) < len(names):
            raise StudyError(f"{study.name}.toml must give every {kind} a name of its own.")
    for method in study.entries("method") if "method" in kinds else []:
        # The number of features of the other method is not known yet; any valid one will do.
        assumed = {"n_features_to_select": 1} if "as_many_as" in method else {}
        make_estimator(study, method, seed, **assumed)
    if {"design", "method"} <= set(kinds):
        for design in study.entries("design"):
            draw_dataset(study, design, seed)


def draw_dataset(study: Study, design: dict[str, Any], seed: int) -> SimulatedData:
    """Return one draw of a design, with missing values or outliers if the design asks for them.

    Parameters
    ----------
    study : Study
        The study, for error messages.
    design : dict
        Entry of the config: `make` names a function of :mod:`mrshc.datasets`, `spoil` a function
        that adds missing values or outliers, and all other entries are parameters of `make`.
    seed : int
        Seed of the draw.
    """
    options = {k: v for k, v in design.items() if k not in ("name", "make", "spoil")}
    make = _dataset_function(study, "make", design.get("make"), prefix="make_")
    spoil = dict(design.get("spoil", {}))
    contaminate = None
    if spoil:
        contaminate = _dataset_function(study, "spoil", spoil.pop("how"), prefix="with_")
    try:
        data: SimulatedData = make(seed, **options)
        # A random stream of its own, so that designs with and without outliers share their draws.
        if contaminate is not None:
            data = contaminate(data, np.random.RandomState([seed, 1]), **spoil)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{study.name}.toml, design {design.get('name')!r}: {error}") from None
    return data


def _dataset_function(study: Study, entry: str, name: Any, *, prefix: str) -> Any:
    """Return a function of `mrshc.datasets` whose name has a prefix; refuse other names."""
    known = sorted(known for known in vars(datasets) if known.startswith(prefix))
    if name not in known:
        raise _unknown_name_error(study, entry, name, known)
    return getattr(datasets, name)


def impute_for_method(study: Study, method: dict[str, Any], X: NDArray[Any]) -> NDArray[Any]:
    """Return X with missing values filled in, if the method has an entry `impute`."""
    kind = method.get("impute")
    # Imputation as in scikit-learn, with its defaults: a baseline that readers know.
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
        The study, for error messages.
    method : dict
        Entry of the config: `estimator` names a class, further entries are its parameters.
    seed : int
        Random state of the estimator, if it has one.
    **more
        Further parameters of the estimator.
    """
    known = {cls.__name__: cls for cls in (m.load() for m in METHODS.values())}
    name = method.get("estimator")
    if not isinstance(name, str) or name not in known:
        raise _unknown_name_error(study, "estimator", name, sorted(known))
    options = {k: v for k, v in method.items() if k not in _NOT_PARAMETERS}
    try:
        estimator = known[name](**options, **more)
    except TypeError as error:
        raise StudyError(f"{study.name}.toml, method {method.get('name')!r}: {error}") from None
    # Some methods draw no random numbers.
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator


@contextmanager
def ignore_unsupported_clusters() -> Iterator[None]:
    """Suppress warnings on clusters that the data do not support: a study counts them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
        yield


def _unknown_name_error(study: Study, entry: str, got: Any, known: list[str]) -> StudyError:
    """Return the error of a config entry whose value is not among the known names."""
    return StudyError(f"{study.name}.toml: {entry} must be one of {', '.join(known)}, got {got!r}.")
