"""Comparison of clusters with true classes, and of selected features with informative features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import adjusted_rand_score, rand_score
from sklearn.metrics.cluster import contingency_matrix

# The adjusted Rand index is that of scikit-learn. It has a name here so that all scores of a
# comparison can be imported from one module.
adjusted_rand_index = adjusted_rand_score

# Definition of the classification error rate. It is shown at the first mention of the rate in every
# output, because the term is also used for the error rate of a classifier.
CER_DEFINITION = "share of pairs of samples that one partition puts together and the other apart"
# Explanations of the scores of clusters against known classes, by the names of their columns.
SCORE_EXPLANATIONS = {
    "cer": f"classification error rate, the {CER_DEFINITION}; 0 is best",
    "ari": "adjusted Rand index, the agreement of two partitions corrected for chance; 1 is best, "
    "and random clusters have about 0",
    "purity": "share of samples that belong to the most frequent class of their cluster; 1 is best",
}


def classification_error_rate(labels_true: ArrayLike, labels: ArrayLike) -> float:
    """Return the classification error rate (CER) between two partitions.

    The CER [1]_ is the proportion of pairs of samples that are in the same group in one partition
    and in different groups in the other partition. The CER is 0 if the partitions are equal. It
    does not depend on the names of the classes and clusters.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        True class of each sample.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    float
        The classification error rate, between 0 and 1.

    Notes
    -----
    The CER is 1 minus the Rand index [2]_. The tables of [3]_ report the CER.

    References
    ----------
    .. [1] Chipman, H. and Tibshirani, R. (2006). Hybrid hierarchical clustering with applications
       to microarray data. Biostatistics 7(2), 286-301. https://doi.org/10.1093/biostatistics/kxj007
    .. [2] Rand, W. M. (1971). Objective criteria for the evaluation of clustering methods. Journal
       of the American Statistical Association 66(336), 846-850.
       https://doi.org/10.1080/01621459.1971.10482356
    .. [3] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    >>> from mrshc.metrics import classification_error_rate
    >>> classification_error_rate([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    """
    return float(1.0 - rand_score(labels_true, labels))


def purity(labels_true: ArrayLike, labels: ArrayLike) -> float:
    """Return the proportion of samples that belong to the majority class of their cluster.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        True class of each sample.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    float
        The purity, greater than 0 and at most 1. It is 1 if each cluster contains samples of only
        one class.

    Notes
    -----
    Let n_kc be the number of samples of class c in cluster k, and let n be the number of samples.
    The purity [1]_ is the sum over k of max_c n_kc, divided by n. Purity never decreases when a
    cluster is split, and it is 1 if every sample forms its own cluster. Only partitions with the
    same number of clusters should therefore be compared.

    References
    ----------
    .. [1] Manning, C. D., Raghavan, P. and Schuetze, H. (2008). Introduction to Information
       Retrieval. Cambridge University Press, section 16.3.

    Examples
    --------
    >>> from mrshc.metrics import purity
    >>> purity([0, 0, 0, 1], [0, 0, 1, 1])
    0.75
    """
    counts = contingency_matrix(labels_true, labels)  # classes in rows, clusters in columns
    return float(counts.max(axis=0).sum() / counts.sum())


def feature_recall(true_support: ArrayLike, support: ArrayLike) -> float:
    """Return the proportion of the informative features that were selected.

    Parameters
    ----------
    true_support : array-like of bool of shape (n_features,)
        Mask of the informative features, which distinguish the true clusters.
    support : array-like of bool of shape (n_features,)
        Mask of the selected features, such as `model.get_support()`.

    Returns
    -------
    float
        The recall, between 0 and 1. It is defined as 1 if no feature is informative.

    Examples
    --------
    >>> from mrshc.metrics import feature_recall
    >>> feature_recall([True, True, False], [True, False, True])
    0.5
    """
    n_hits, n_informative, _ = _count_features(true_support, support)
    return n_hits / n_informative if n_informative else 1.0


def feature_precision(true_support: ArrayLike, support: ArrayLike) -> float:
    """Return the proportion of the selected features that are informative.

    Parameters
    ----------
    true_support : array-like of bool of shape (n_features,)
        Mask of the informative features, which distinguish the true clusters.
    support : array-like of bool of shape (n_features,)
        Mask of the selected features, such as `model.get_support()`.

    Returns
    -------
    float
        The precision, between 0 and 1. It is defined as 1 if no feature is selected.

    Examples
    --------
    >>> from mrshc.metrics import feature_precision
    >>> feature_precision([True, True, False], [True, False, False])
    1.0
    """
    n_hits, _, n_selected = _count_features(true_support, support)
    return n_hits / n_selected if n_selected else 1.0


def _count_features(true_support: ArrayLike, support: ArrayLike) -> tuple[int, int, int]:
    """Return three numbers of features: informative and selected, informative, and selected.

    Raise ValueError if the arguments are not boolean masks of the same shape.
    """
    informative, selected = np.asarray(true_support), np.asarray(support)
    # The type must be bool: arrays of feature indices could be converted to masks without an error,
    # but would give wrong scores.
    if informative.dtype != bool or selected.dtype != bool or informative.shape != selected.shape:
        raise ValueError(
            "true_support and support must be boolean masks over the same features, got "
            f"{informative.dtype} {informative.shape} and {selected.dtype} {selected.shape}. "
            "Make a mask with numpy.isin(numpy.arange(n_features), indices)."
        )
    n_hits = int((informative & selected).sum())
    return n_hits, int(informative.sum()), int(selected.sum())
