"""Stability of a fitted estimator: the fit is repeated on random subsamples of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.inference.stability import (
    Refit,
    StabilityResult,
    draw_subsample,
    summarise_refits,
)
from mrshc.core.parallel import run_in_parallel
from mrshc.errors import Parameter, ParameterError
from mrshc.estimators.feature_refinement import UnsupportedClustersWarning
from mrshc.estimators.refits import (
    clone_for_refit,
    fit_observed_features,
    values_of_fit,
)
from mrshc.validation.parameters import check_integer, check_n_jobs, check_number, check_seed

# A tree has at least three samples.
_MIN_SUBSAMPLE = 3


def stability(
    model: Any,
    X: Any,
    *,
    n_resamples: int = 50,
    fraction: float = 0.8,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> StabilityResult:
    """Return how stable clusters, branches and selected features are if samples are left out.

    The fit is repeated on random subsamples of the samples, with the parameters of the model. The
    selection of the features is therefore repeated, too. If a fit finds another number of clusters
    than the model has, its tree is cut into as many clusters as the model has.

    Parameters
    ----------
    model : MrSHC, SHC, COSA or HighVarianceHC
        Fitted estimator with clusters (`labels_`).
    X : array-like of shape (n_samples, n_features)
        The data that were passed to `fit`, in memory.
    n_resamples : int, default=50
        Number of subsamples.
    fraction : float, default=0.8
        Share of the samples in each subsample. They are drawn without replacement, because a sample
        that is drawn twice would form a cluster with itself.
    random_state : int, RandomState instance or None, default=None
        Determines the subsamples. Pass an int for reproducible results.
    n_jobs : int or None, default=None
        Number of subsamples that are processed in parallel, as in joblib. It does not affect the
        result.
    callback : callable or None, default=None
        Function that is called after each subsample with two arguments: the number of subsamples
        that are done, and `n_resamples`.

    Returns
    -------
    StabilityResult
        Its attributes are `cluster_jaccard` (for each cluster; NaN if there is only one),
        `feature_frequency` (for each feature), `branch_support` (for each row of
        `linkage_matrix_`) and `consensus` (for each pair of samples).

    Raises
    ------
    ValueError
        If X is invalid, is not in memory, or is not the data of the fit. Other data of the same
        shape are noticed unless the model is an `SHC` or a `COSA`, or a robust fit with outlying
        samples.
    ParameterError
        If the model has no clusters or is an `SHC` with `complement_of`, or if a parameter is
        invalid.

    See Also
    --------
    MrSHC : Multi-rank sparse hierarchical clustering.

    Notes
    -----
    Clusters with a Jaccard index of at least 0.75 are usually considered to be stable, and clusters
    below 0.6 should not be interpreted [1]_. Stable clusters are not necessarily real: if a
    homogeneous group is elongated, it may be divided in the same way in every subsample.

    The costs are those of `n_resamples` fits, and of `n_resamples` times O(n²) operations to
    compare trees of n samples.

    References
    ----------
    .. [1] Hennig, C. (2007). Cluster-wise assessment of cluster stability. Computational Statistics
       and Data Analysis 52(1), 258-271. https://doi.org/10.1016/j.csda.2006.11.025

    Examples
    --------
    >>> from mrshc import MrSHC, stability
    >>> from mrshc.datasets import make_simulation_1
    >>> X = make_simulation_1(0).X
    >>> model = MrSHC(selection="association", linkage="ward").fit(X)
    >>> result = stability(model, X, n_resamples=10, random_state=0)
    >>> bool((result.cluster_jaccard > 0.8).all())
    True
    """
    values = values_of_fit(model, X, function="stability")
    if not hasattr(model, "labels_"):
        raise ParameterError(
            "stability needs a model with clusters, but {n_clusters} was None in the fit. Give the "
            "number of clusters and fit again.",
            n_clusters=Parameter("n_clusters"),
        )
    advice = "50 are enough for clusters, 200 for the frequencies of single features."
    n_resamples = check_integer("n_resamples", n_resamples, low=2, high=None, advice=advice)
    n_jobs = check_n_jobs(n_jobs)
    n, n_clusters = len(values), int(model.labels_.max()) + 1
    fraction = _check_fraction(fraction, n_samples=n, n_clusters=n_clusters)
    seeds = check_seed(random_state).randint(np.iinfo(np.int32).max, size=(n_resamples, 2))
    arguments = (
        {
            "model": clone_for_refit(model, seed=int(fit_seed)),
            "X": values,
            "rows": draw_subsample(n, fraction=fraction, seed=int(seed)),
            "n_clusters": n_clusters,
        }
        for seed, fit_seed in seeds
    )
    with (
        warnings.catch_warnings(),
        closing(run_in_parallel(_refit, arguments, n_jobs=n_jobs)) as refits,
    ):
        # The clusters of a subsample need not be supported. Filters apply to all threads, so they
        # are set here and not in the threads.
        warnings.simplefilter("ignore", UnsupportedClustersWarning)
        return summarise_refits(
            model._tree,
            model.labels_,
            values.shape[1],
            _count(refits, n_resamples, callback),
        )


def _count(
    refits: Iterator[Refit], total: int, callback: Callable[[int, int], None] | None
) -> Iterator[Refit]:
    """Yield the refits, and call `callback` after each of them."""
    for done, refit in enumerate(refits, start=1):
        yield refit
        if callback is not None:
            callback(done, total)


def _refit(model: Any, X: NDArray[Any], rows: Index, n_clusters: int) -> Refit:
    """Fit a model to some samples, and return its tree, features and clusters."""
    support = fit_observed_features(model, X[rows])
    # The clusters of a pruned tree may differ from those of a cut.
    labels = getattr(model, "labels_", None)
    if labels is None or labels.max() + 1 != n_clusters:
        labels = model.cut(n_clusters)
    return Refit(rows=rows, tree=model._tree, labels=labels, support=support)


def _check_fraction(fraction: Any, *, n_samples: int, n_clusters: int) -> float:
    """Return the share of the samples in a subsample if it is valid; raise ParameterError if not.

    A subsample must have at least three samples, and as many as there are clusters, and must leave
    out at least one sample.
    """
    smallest = max(_MIN_SUBSAMPLE, n_clusters)
    if smallest >= n_samples:
        raise ParameterError(
            "stability needs subsamples with at least {smallest} samples, for a tree with {k} "
            "clusters, but there are only {n} samples. Fit with fewer clusters, or use more "
            "samples.",
            smallest=smallest,
            k=n_clusters,
            n=n_samples,
        )
    advice = f"Each subsample needs at least {smallest} of the {n_samples} samples, but not all."
    low, high = (smallest - 0.5) / n_samples, 1.0 - 0.5 / n_samples
    return check_number("fraction", fraction, low=low, high=high, advice=advice)
