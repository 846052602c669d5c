"""Data of a plot, taken from a fitted estimator or from a result. Nothing is drawn here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mrshc.core.trees import silhouette_widths
from mrshc.plotting.fitted_names import fitted_feature_names, label_features
from mrshc.shell.sample_alignment import align_samples, feature_names_of


def is_model(value: Any) -> bool:
    """Return whether a value is an estimator or a result, rather than numbers or a table."""
    return hasattr(value, "labels_") or hasattr(value, "linkage_matrix_") or hasattr(value, "fit")


def silhouettes_of_model(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the silhouette widths of the samples of a model, and their clusters."""
    labels = _labels_of(model, "silhouettes")
    if hasattr(model, "samples") and "silhouette" in model.samples:
        return model.samples["silhouette"].to_numpy(), labels
    if not hasattr(model, "sample_distances"):
        raise ValueError(
            "silhouettes needs a model with distances between samples, got a "
            f"{type(model).__name__}. Pass silhouette widths and labels in place of the model."
        )
    _require_data(model, X, "silhouettes")
    return silhouette_widths(model.sample_distances(X), np.asarray(labels)), labels


def markers_of_model(model: Any, X: Any) -> tuple[Any, int]:
    """Return the table of markers of a model, and its number of clusters.

    The parameters are those of :func:`silhouettes_of_model`. Raise ValueError if the model has no
    clusters, or if its markers cannot be computed.
    """
    labels = _labels_of(model, "markers")
    n_clusters = int(np.max(labels)) + 1
    if not hasattr(model, "markers"):
        raise ValueError(
            f"markers needs a model with the method markers, got a {type(model).__name__}. Pass a "
            "table of markers and the number of clusters in place of the model."
        )
    if not callable(model.markers):  # the table of a result
        names = model.markers["feature"]
        shown = label_features(model, names)
        return model.markers.assign(feature=pd.Series(shown, names.index, dtype=object)), n_clusters
    _require_data(model, X, "markers")
    return model.markers(X), n_clusters


def loadings_of_model(model: Any, feature_names: Any) -> tuple[Any, list[Any]]:
    """Return the loadings of a model, one component in each row, and the names of all features."""
    if hasattr(model, "features") and hasattr(model, "loadings"):  # a result
        values: Any = model.loadings.to_numpy().T
        known: list[Any] | None = list(model.features.index)
    else:
        values = getattr(model, "components_", getattr(model, "feature_weights_", None))
        known = fitted_feature_names(model)
        # COSA has a weight for each sample and feature, which are not loadings of components.
        if values is None or (np.ndim(values) == 2 and not hasattr(model, "components_")):
            raise ValueError(
                "loadings needs a fitted model with components_, or with one weight for each "
                f"feature, got a {type(model).__name__} without them. Pass a fitted MrSHC or SHC."
            )
    if feature_names is not None:
        names = align_samples(
            feature_names, feature_names_of(known), what="feature_names", unit="feature"
        )
        return values, names
    if known is None:
        return values, list(range(np.shape(values)[-1]))
    return values, label_features(model, known)


def _labels_of(model: Any, function: str) -> Any:
    """Return the clusters of a model; raise ValueError if there are none."""
    if not hasattr(model, "labels_"):
        raise ValueError(
            f"{function} needs a fitted model with clusters in labels_, got a "
            f"{type(model).__name__} without them. Call fit, with n_clusters if it is None."
        )
    return model.labels_


def _require_data(model: Any, X: Any, function: str) -> None:
    """Raise ValueError if the data of the fit were not passed."""
    if X is None:
        raise ValueError(
            f"{function} needs the data of the fit in addition to a {type(model).__name__}, got "
            f"None. Write {function}(model, X)."
        )
