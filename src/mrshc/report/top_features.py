"""Selected features with the largest differences between clusters, which sentences name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.io.result import MIN_RANKED_SAMPLES, Result
from mrshc.report.page_data import values_of_fit

# Largest number of features that a sentence names. A longer list would be hard to read, and the
# table of features contains all names.
_MAX_NAMED_FEATURES = 10


def top_features_sentence(result: Result) -> str | None:
    """Return a sentence that names the selected features with the largest effect sizes.

    Clusters of one or two samples are left out if there are at least two larger clusters. Return
    None if there is only one cluster, for which effect sizes are not defined.
    """
    if result.n_clusters_ == 1:
        return None
    names, clusters = result.selected.columns, "clusters"
    # The table of features lists the selected features first, in decreasing order of effect size.
    strongest = result.features.index[: len(names)]
    if 1 < len(result.ranked_clusters) < result.n_clusters_:
        clusters = f"clusters of at least {MIN_RANKED_SAMPLES} samples"
        strongest = names[np.argsort(-_effect_sizes(result), kind="stable")]
    listed = ", ".join(result.feature_labels.loc[strongest[:_MAX_NAMED_FEATURES]])
    return f"Selected features with the largest differences between the {clusters}: {listed}."


def _effect_sizes(result: Result) -> NDArray[np.float64]:
    """Return the effect sizes of the selected features, from the samples of the larger clusters.

    An effect size is the sum of squares between clusters, divided by the total sum of squares; it
    is zero for features that are constant in these samples.
    """
    is_ranked = np.isin(result.labels_ + 1, result.ranked_clusters)
    labels = result.labels_[is_ranked]
    X = values_of_fit(result, result.selected.to_numpy(dtype=np.float64))[is_ranked]
    is_observed = ~np.isnan(X)
    centre = np.nansum(X, axis=0) / np.maximum(is_observed.sum(axis=0), 1)
    deviations = np.where(is_observed, X - centre, 0.0)
    between = np.zeros(X.shape[1])
    for k in np.unique(labels):
        inside = labels == k
        counts = np.maximum(is_observed[inside].sum(axis=0), 1)
        # The count times the squared mean of the deviations of the cluster.
        between += deviations[inside].sum(axis=0) ** 2 / counts
    total = (deviations**2).sum(axis=0)
    return np.divide(between, total, out=np.zeros(X.shape[1]), where=total > 0)
