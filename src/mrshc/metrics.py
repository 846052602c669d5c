"""Scores of a clustering and of a feature selection against the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import rand_score
from sklearn.metrics.cluster import contingency_matrix


def classification_error_rate(labels_true: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of sample pairs on which two partitions disagree: 1 - Rand index.

    Examples
    --------
    >>> from mrshc.metrics import classification_error_rate
    >>> classification_error_rate([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    """
    return float(1.0 - rand_score(labels_true, labels))


def purity(labels_true: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of samples that belong to the majority class of their cluster.

    Examples
    --------
    >>> from mrshc.metrics import purity
    >>> purity([0, 0, 0, 1], [0, 0, 1, 1])
    0.75
    """
    counts = contingency_matrix(labels_true, labels)
    return float(counts.max(axis=0).sum() / counts.sum())


def feature_recall(true_support: ArrayLike, support: ArrayLike) -> float:
    """Return the share of the clustering features that were selected.

    Both arguments are masks over all features.

    Examples
    --------
    >>> from mrshc.metrics import feature_recall
    >>> feature_recall([True, True, False], [True, False, True])
    0.5
    """
    hits, wanted, _ = _counts(true_support, support)
    return hits / wanted if wanted else 1.0


def feature_precision(true_support: ArrayLike, support: ArrayLike) -> float:
    """Return the share of the selected features that are clustering features.

    Both arguments are masks over all features.

    Examples
    --------
    >>> from mrshc.metrics import feature_precision
    >>> feature_precision([True, True, False], [True, False, False])
    1.0
    """
    hits, _, selected = _counts(true_support, support)
    return hits / selected if selected else 1.0


def _counts(true_support: ArrayLike, support: ArrayLike) -> tuple[int, int, int]:
    wanted, selected = np.asarray(true_support), np.asarray(support)
    if wanted.dtype != bool or selected.dtype != bool or wanted.shape != selected.shape:
        raise ValueError(
            "true_support and support must be boolean masks over the same features, got "
            f"{wanted.dtype} {wanted.shape} and {selected.dtype} {selected.shape}. "
            "Make a mask with numpy.isin(numpy.arange(n_features), indices)."
        )
    return int((wanted & selected).sum()), int(wanted.sum()), int(selected.sum())
