"""What a config names: simulated designs and estimators."""

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

# Entries of a method that are not for its estimator: whose number of features it takes over, how
# missing cells are filled in before it, and what others report of it.
_NOT_OPTIONS = ("name", "estimator", "as_many_as", "impute", "paper", "in_r")


def check_names(study: Study, *kinds: str) -> None:
    """Refuse a config that names what there is not, before anything has run.

    `kinds` are the lists that it must have: "design", "method" or both.
    """
    seed = study.option("seed")
    if not isinstance(seed, int) or seed < 0:
        raise StudyError(f"{study.name}.toml must have a whole number as seed, got {seed!r}.")
    for kind in kinds:
        names = [entry.get("name") for entry in study.entries(kind)]
        if not names or None in names or len(set(names)) < len(names):
            raise StudyError(f"{study.name}.toml must give every {kind} a name of its own.")
    for method in study.entries("method") if "method" in kinds else []:
        follows = {"n_features_to_select": 1} if "as_many_as" in method else {}
        estimator_of(study, method, seed, **follows)
    if {"design", "method"} <= set(kinds):
        for design in study.entries("design"):
            simulated(study, design, seed)


def simulated(study: Study, design: dict[str, Any], seed: int) -> SimulatedData:
    """Return one draw of a design, spoilt where the design says so."""
    options = {k: v for k, v in design.items() if k not in ("name", "make", "spoil")}
    make = _function(study, "make", design.get("make"), prefix="make_")
    spoil = dict(design.get("spoil", {}))
    how = _function(study, "spoil", spoil.pop("how"), prefix="with_") if spoil else None
    try:
        data: SimulatedData = make(seed, **options)
        # A stream of its own: spoilt or not, the draw is the same.
        return data if how is None else how(data, np.random.RandomState([seed, 1]), **spoil)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{study.name}.toml, design {design.get('name')!r}: {error}") from None


def _function(study: Study, entry: str, name: Any, *, prefix: str) -> Any:
    known = sorted(known for known in vars(datasets) if known.startswith(prefix))
    if name not in known:
        raise _unknown(study, entry, name, known)
    return getattr(datasets, name)


def imputed(study: Study, method: dict[str, Any], X: NDArray[Any]) -> NDArray[Any]:
    """Return the data as a method gets them: with missing cells filled in, if it asks for it."""
    how = method.get("impute")
    imputers = {"mean": SimpleImputer, "neighbors": KNNImputer}
    if how is None:
        return X
    if how not in imputers:
        raise _unknown(study, "impute", how, sorted(imputers))
    filled: NDArray[Any] = imputers[how]().fit_transform(X)
    return filled


def estimator_of(study: Study, method: dict[str, Any], seed: int, **more: Any) -> Any:
    """Return the unfitted estimator that a config describes."""
    known = {kind.__name__: kind for kind in (m.load() for m in METHODS.values())}
    name = method.get("estimator")
    if not isinstance(name, str) or name not in known:
        raise _unknown(study, "estimator", name, sorted(known))
    options = {k: v for k, v in method.items() if k not in _NOT_OPTIONS}
    try:
        estimator = known[name](**options, **more)
    except TypeError as error:
        raise StudyError(f"{study.name}.toml, method {method.get('name')!r}: {error}") from None
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator


@contextmanager
def unsupported_clusters_allowed() -> Iterator[None]:
    """Let draws without supported clusters pass in silence: a study counts them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
        yield


def _unknown(study: Study, entry: str, got: Any, known: list[str]) -> StudyError:
    return StudyError(f"{study.name}.toml: {entry} must be one of {', '.join(known)}, got {got!r}.")
