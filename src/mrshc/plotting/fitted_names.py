"""Names of the samples and features of a fitted model, which plots show by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mrshc.plotting.arguments import check_names
from mrshc.shell.sample_alignment import align_samples, is_default_index, sample_names


def resolve_sample_names(model: Any, names: Iterable[Any] | None) -> list[Any] | None:
    """Return the names of the samples that a plot shows, in the order of the samples."""
    if names is not None:
        given = check_names("names", names)
        return list(align_samples(given, sample_names(model), what="names"))
    known = getattr(model, "sample_names_in_", None)
    return None if known is None or is_default_index(known) else list(known)


def fitted_feature_names(model: Any) -> list[Any] | None:
    """Return the names of all features of the fit; None if the features have no names."""
    known = getattr(model, "feature_names_in_", None)
    return None if known is None else list(known)


def label_features(model: Any, names: Iterable[Any]) -> list[Any]:
    """Return the texts that name features in a plot: the labels of a result, or the names.

    The labels of a result are genes if its features have a column of genes. Features that the
    result does not contain keep their names.
    """
    labels = getattr(model, "feature_labels", None)
    known = {} if labels is None else labels.to_dict()
    return [known.get(name, name) for name in names]
