"""Sparse K-means clustering of Witten and Tibshirani."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mrshc.core import parallel
from mrshc.core.parallel import progress_bar
from mrshc.core.sparse_dissimilarity import candidate_table, permutation_gap
from mrshc.core.sparse_kmeans import CentredColumns, PartitionPath
from mrshc.estimators.base import FeatureSelector, count_varying
from mrshc.estimators.shc import bound_and_count, candidate_bounds
from mrshc.validation import (
    check_integer,
    check_n_jobs,
    check_new_samples,
    check_samples,
    draw_seed,
)

_NO_MISSING = (
    "SparseKMeans does not accept missing values, but X holds NaN. Impute them first, for example "
    "with mrshc.preprocessing.NeighborImputer, or use SHC."
)


class SparseKMeans(ClusterMixin, FeatureSelector):
    """Sparse K-means clustering of Witten and Tibshirani [1]_.

    The samples are partitioned and the features weighted such that the weighted sum of squares
    between clusters is largest, under a bound on the L1 norm of the weights. Features are not
    standardised. The guide has the algorithm.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    l1_bound : float, sequence of float or "auto", default="auto"
        Bound on the L1 norm, between 1 and the square root of the number of features, or
        candidates, of which the permutation gap chooses one. "auto" means ten from 1.1 to 0.7 times
        that root.
    n_features_to_select : int or None, default=None
        Number of features with a weight, in place of a bound.
    n_init : int, default=20
        Number of random starts of K-means in each iteration.
    n_permutations : int, default=10
        Number of permutations for the gap, if there are several candidates.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the permutations.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, numbered in the order of their first samples.
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Means of all features in each cluster.
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weights, at least 0, of norm 1.
    n_features_selected_ : int
        Number of features with a weight; `get_support` returns their mask.
    l1_bound_, criterion_ : float
        The chosen bound, and the weighted sum of squares between clusters.
    n_iter_, converged_ : int, bool
        Iterations for the chosen bound, and whether they converged.
    search_results_ : dict of ndarray
        One entry for each candidate, as in :class:`SHC`.

    See Also
    --------
    SHC, sklearn.cluster.KMeans

    References
    ----------
    .. [1] Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering.
       Journal of the American Statistical Association 105(490), 713-726.
       https://doi.org/10.1198/jasa.2010.tm09415

    Examples
    --------
    >>> from mrshc import SparseKMeans
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)  # features 0 to 49 are informative
    >>> model = SparseKMeans(3, n_features_to_select=50, random_state=0).fit(data.X)
    >>> int(model.get_support()[:50].sum())
    50
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        l1_bound: Any = "auto",
        n_features_to_select: int | None = None,
        n_init: int = 20,
        n_permutations: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.l1_bound = l1_bound
        self.n_features_to_select = n_features_to_select
        self.n_init = n_init
        self.n_permutations = n_permutations
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Partition the samples and weight the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, in any of the forms that :meth:`MrSHC.fit` takes, without missing values.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with parallel.threads(check_n_jobs(self.n_jobs)), progress_bar("SparseKMeans") as progress:
            matrix, summary = check_samples(self, X)
            n, p = matrix.shape
            if summary.has_missing:
                raise ValueError(_NO_MISSING)
            count_varying(summary, "sqeuclidean")
            k = check_integer("n_clusters", self.n_clusters, low=2, high=n)
            n_init = check_integer("n_init", self.n_init, low=1, high=10**6)
            entropy, q = draw_seed(self.random_state), self.n_features_to_select
            columns = CentredColumns(matrix, summary)
            path = PartitionPath(columns, k, n_init, np.random.SeedSequence(entropy))
            targets: tuple[int, ...] = ()
            if q is None:
                bounds = candidate_bounds(self.l1_bound, p)
                solutions = [path.solve(bound) for bound in bounds]
            elif isinstance(self.l1_bound, str) and self.l1_bound == "auto":
                targets = (check_integer("n_features_to_select", q, low=1, high=p),)
                solutions = [path.search(targets[0])]
            else:
                raise bound_and_count(self.l1_bound, q)
            gap = None
            if len(solutions) > 1:
                m = self.n_permutations
                n_permutations = check_integer("n_permutations", m, low=2, high=10**6)

                def permuted_criteria(m: int) -> np.ndarray:
                    # The permutations of blocks have keys of two entries, the starts of one.
                    seed = np.random.SeedSequence(entropy, spawn_key=(m,))
                    permuted = PartitionPath(columns.permuted(entropy, m), k, n_init, seed)
                    return np.array([permuted.solve(bound).criterion for bound in bounds])

                criteria = [s.criterion for s in solutions]
                gap = permutation_gap(criteria, permuted_criteria, n_permutations, progress)
            best = 0 if gap is None else gap.best
            solution = solutions[best]
            self.cluster_centers_ = columns.centres(solution.labels, k)
        self.labels_ = solution.labels
        self.feature_weights_ = solution.weights
        self.criterion_, self.l1_bound_ = solution.criterion, solution.penalty
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged
        self._support = solution.weights > 0
        self.n_features_selected_ = int(self._support.sum())
        self.search_results_ = candidate_table("l1_bound", solutions, targets, gap, best)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre is nearest to each sample.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            New samples; see :meth:`MrSHC.predict`.

        Returns
        -------
        labels : ndarray of shape (n_new_samples,)
            Clusters, numbered as in `labels_`.
        """
        check_is_fitted(self)
        selected = np.flatnonzero(self._support)
        columns = check_new_samples(self, X, selected)
        if np.isnan(columns).any():
            raise ValueError(_NO_MISSING)
        centres, weights = self.cluster_centers_[:, selected], self.feature_weights_[selected]
        return np.argmin([np.square(columns - centre) @ weights for centre in centres], axis=0)
