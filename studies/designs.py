"""Data sets and estimators that the configs of the studies describe."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

import mrshc
from mrshc import datasets
from mrshc.datasets import SimulatedData
from mrshc.methods import METHODS, VARIANTS
from mrshc.preprocessing import chain, prepare
from mrshc.preprocessing.chains import PRESETS

Row = dict[str, Any]
# Entries of a method that are not parameters of its estimator. `as_many_as` names another method,
# whose number of features is used; `impute` the imputation before the fit; `share` limits the
# number of draws; `extra_clusters` is added to the true number of clusters; `leave_out` lists data
# sets; `paper` and `in_r` hold values from the paper and from R.
_NOT_PARAMETERS = {"name", "estimator", "as_many_as", "impute", "share", "extra_clusters"}
_NOT_PARAMETERS |= {"leave_out", "paper", "in_r"}
# Value of `n_clusters` that stands for the number of classes, which methods without a tree need.
_NUMBER_OF_CLASSES = "number of classes"


def draw_data(design: dict[str, Any], seed: int) -> SimulatedData:
    """Return a simulated data set.

    `make` names a function of `mrshc.datasets`, and `spoil` another one, which adds missing values
    or outliers; the other entries are their parameters.
    """
    options = {k: v for k, v in design.items() if k not in ("name", "make", "spoil", "share")}
    data = getattr(datasets, design["make"])(seed, **options)
    if spoil := dict(design.get("spoil", {})):
        # With random numbers of its own, so that the other values are those without it.
        data = getattr(datasets, spoil.pop("how"))(data, np.random.RandomState([seed, 1]), **spoil)
    return data


def load_data(entry: dict[str, Any], data: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return a real data set, with samples in rows, and the classes of the samples."""
    with np.load(data_file(entry["name"], data), allow_pickle=False) as content:
        X, y = content["X"].astype(np.float64), content["y"]
        if drop := entry.get("drop_samples"):
            keep = ~np.isin(content["sample_names"], drop)
            X, y = X[keep], y[keep]
    if entry.get("raw_intensities"):
        X = prepare(X, chain(**PRESETS["dudoit2002"])).X
    if neighbors := entry.get("impute_neighbors"):
        X = KNNImputer(n_neighbors=neighbors).fit_transform(X.T).T  # from similar genes
    return X, y


def data_file(name: str, data: Path | None) -> Path:
    """Return the file of a real data set."""
    path = (data or Path()) / f"{name}.npz"
    if data is None or not path.exists():
        raise FileNotFoundError(
            f"The study needs the data set {name}.npz, which is not part of this project. Give the "
            "folder that holds it with --data."
        )
    return path


def make_estimator(method: dict[str, Any], seed: int, **more: Any) -> Any:
    """Return the estimator of a method, with a seed if it draws random numbers."""
    known = {cls.__name__: cls for cls in (m.load() for m in (METHODS | VARIANTS).values())}
    options = {k: v for k, v in method.items() if k not in _NOT_PARAMETERS}
    estimator = known[method["estimator"]](**options, **more)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator


def fit(method: dict[str, Any], X: np.ndarray, seed: int, **more: Any) -> Any:
    """Return a fitted estimator; rows say whether clusters are supported, so warnings do not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
        return make_estimator(method, seed, **more).fit(X)


def impute(method: dict[str, Any], X: np.ndarray) -> np.ndarray:
    """Return X with missing values imputed as the method says."""
    imputers = {"mean": SimpleImputer, "neighbors": KNNImputer}
    return imputers[method["impute"]]().fit_transform(X) if "impute" in method else X


def adapt(method: dict[str, Any], n_classes: int, n_features: int) -> dict[str, Any]:
    """Return a method with numbers of clusters and features that the data have."""
    adapted = dict(method)
    if method.get("n_clusters") == _NUMBER_OF_CLASSES:
        adapted["n_clusters"] = n_classes
    q = method.get("n_features_to_select")
    if q == "all":
        adapted["n_features_to_select"] = n_features
    elif isinstance(q, int):
        adapted["n_features_to_select"] = min(q, n_features)
    return adapted
