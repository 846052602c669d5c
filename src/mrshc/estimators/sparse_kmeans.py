"""Sparse K-means clustering of Witten and Tibshirani."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mrshc.core.array_types import Float, Labels
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import effective_n_threads, limit_blas_to_one_thread
from mrshc.core.permutations import PermutationGap
from mrshc.core.sparse_kmeans.centred_columns import CentredColumns
from mrshc.core.sparse_kmeans.partitions import (
    PartitionPath,
    PartitionSettings,
    SparsePartition,
    permutation_gap,
)
from mrshc.errors import Parameter, ParameterError, PythonOnly
from mrshc.estimators.base import FeatureSelector, all_constant_error, derive_seed
from mrshc.estimators.penalty_candidates import candidate_l1_bounds, search_table
from mrshc.validation.estimator_data import check_samples
from mrshc.validation.new_samples import columns_of_new_samples
from mrshc.validation.parameters import MAX_REPETITIONS, check_integer, check_n_jobs


class SparseKMeans(FeatureSelector, ClusterMixin, BaseEstimator):
    r"""Sparse K-means clustering of Witten and Tibshirani.

    Sparse K-means [1]_ partitions the samples into clusters and weights the features such that the
    weighted sum of squares between the clusters is as large as possible. A bound on the L1 norm of
    the weights makes most of the weights zero. In contrast to :class:`SHC`, there is no tree, and
    the number of clusters must be given.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, at least 2.
    l1_bound : float, sequence of float or "auto", default="auto"
        Upper bound on the L1 norm of the weights, between 1 and the square root of the number of
        features, or a sequence of candidates, one of which is chosen by the permutation gap (see
        Notes). "auto" uses ten equidistant candidates, from 1.1 to 0.7 times the square root of the
        number of features. It has no effect if `n_features_to_select` is given.
    n_features_to_select : int or None, default=None
        Number of features with a nonzero weight. The L1 bound is then determined by bisection. If
        the number cannot be reached exactly, the closest number found by the bisection is used.
        Only one of `n_features_to_select` and a numeric `l1_bound` can be given.
    n_init : int, default=20
        Number of random starts of K-means. K-means is repeated in each iteration, with new starts.
    n_permutations : int, default=10
        Number of permutations for the permutation gap, at least 2. The parameter has no effect if
        there is only one candidate.
    n_jobs : int or None, default=None
        Number of workers for the permutations, as in joblib: -1 means all processors, and None
        means 1 unless a :obj:`joblib.parallel_config` context sets another number. The number of
        workers does not affect the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts and of the permutations. Pass an int for reproducible results.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. Clusters are numbered 0, 1, ... in the order of their first samples.
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Mean of each feature in each cluster, whether or not the feature was selected.
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weight of each feature. The weights are nonnegative, and most of them are zero. The
        Euclidean norm of the weights is 1, or less if several features are exactly tied.
    n_features_selected_ : int
        Number of features with a nonzero weight. The method `get_support` returns a mask of these
        features.
    l1_bound_ : float
        Chosen bound on the L1 norm of the weights.
    criterion_ : float
        Value of the objective (see Notes).
    n_iter_ : int
        Number of iterations for the chosen bound.
    converged_ : bool
        Whether the relative change of the weights became less than 1e-4 within 15 iterations.
    search_results_ : dict of ndarray of shape (n_candidates,)
        Table of the candidates. The columns are:

        - `l1_bound`, `n_features`, `criterion` : L1 bound, number of nonzero weights, and value of
          the objective;
        - `chosen` : whether the candidate was chosen;
        - `n_features_target`, `reached` : value of `n_features_to_select`, and whether `n_features`
          equals this number; only if `n_features_to_select` is given;
        - `gap`, `gap_sd` : permutation gap, and standard deviation of the logarithm of the
          objective over permutations; only if there are several candidates.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is an AnnData object, or a DataFrame whose column
        names are strings.
    sample_names_in_ : ndarray of shape (n_samples,)
        Names of the samples (index of X). Defined only if X is a pandas DataFrame or an AnnData
        object.

    See Also
    --------
    SHC : Sparse hierarchical clustering of Witten and Tibshirani.
    sklearn.cluster.KMeans : K-means clustering on all features.
    mrshc.compare : Runs several methods on the same data.

    Notes
    -----
    Let :math:`b_j` be the sum of squares between clusters of feature j. Sparse K-means maximises

    .. math::

        \sum_j w_j b_j \quad \text{subject to} \quad
        \|w\|_2 \le 1, \; \|w\|_1 \le s, \; w \ge 0,

    over the partitions of the samples into `n_clusters` clusters and the weights w, where s is the
    L1 bound. The algorithm starts from equal weights. It alternates between K-means clustering of
    the features scaled by :math:`\sqrt{w_j}`, and :math:`w \propto \max(b - \delta, 0)`, where
    :math:`\delta` is the smallest nonnegative value for which :math:`\|w\|_1 \le s`. The present
    partition is one of the starts of K-means, so the objective never decreases. The result is a
    local maximum, which may depend on the random starts.

    K-means uses the initial centres of k-means++ [2]_ and moves single samples between clusters
    [3]_. It is computed from the inner products of the samples, so a fit needs memory for the
    square of the number of samples.

    The permutation gap of an L1 bound is the logarithm of the maximum of the objective, minus the
    mean of this logarithm over permutations. In a permutation, the values of each feature are
    permuted independently. The candidate with the largest gap is chosen.

    Features are not standardised. If their units differ, standardise them first. Missing values are
    not allowed.

    References
    ----------
    .. [1] Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering.
       Journal of the American Statistical Association 105(490), 713-726.
       https://doi.org/10.1198/jasa.2010.tm09415
    .. [2] Arthur, D. and Vassilvitskii, S. (2007). k-means++: the advantages of careful seeding.
       Proceedings of the 18th ACM-SIAM Symposium on Discrete Algorithms, 1027-1035.
    .. [3] Hartigan, J. A. and Wong, M. A. (1979). Algorithm AS 136: a K-means clustering algorithm.
       Journal of the Royal Statistical Society C 28(1), 100-108. https://doi.org/10.2307/2346830

    Examples
    --------
    >>> from mrshc import SparseKMeans
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)  # features 0 to 49 are informative
    >>> model = SparseKMeans(3, n_features_to_select=50, random_state=0).fit(data.X)
    >>> int(model.get_support()[:50].sum())
    50
    >>> model.cluster_centers_.shape
    (3, 500)
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
            Data with at least 3 samples and 2 features, without missing values. X may be
            out-of-core, sparse or on a device such as a GPU; it is then read in blocks of features.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : SparseKMeans
            Fitted estimator.

        Raises
        ------
        ValueError
            If X is invalid, if values are missing, or if all features are constant.
        ParameterError
            If a parameter is invalid.
        """
        threads = effective_n_threads(check_n_jobs(self.n_jobs))
        data = check_samples(self, X, n_threads=threads)
        _refuse_unsuitable_data(data)
        settings = self._check_settings(data.shape[0])
        bounds, targets = self._check_candidates(data.shape[1])
        entropy = derive_seed(self.random_state)
        with limit_blas_to_one_thread():  # rounding errors depend on the number of BLAS threads
            columns = CentredColumns(data)
            path = PartitionPath(columns, settings, seed=np.random.SeedSequence(entropy))
            solutions = [path.solve(b) for b in bounds] + [path.search(q) for q in targets]
        # The permutation gap is needed only to choose among several candidates.
        gap = None
        if len(solutions) > 1:
            gap = self._permutation_gap(columns, solutions, settings, entropy=entropy)
        best = 0 if gap is None else gap.best_position
        with limit_blas_to_one_thread():
            centers = columns.cluster_means(solutions[best].labels, settings.n_clusters)
        # X is not read after this point. A fit that fails while reading X therefore leaves the
        # attributes of an earlier fit unchanged.
        self._store_solution(solutions[best], centers)
        self.search_results_ = search_table(solutions, targets=targets, gap=gap, best=best)
        return self

    def predict(self, X: Any) -> Labels:
        """Return the cluster whose centre is nearest to each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples, without missing values. If X is a DataFrame and the data of the fit had
            column names, features are matched by name: only the features with a nonzero weight are
            needed, in any order, and other columns are ignored. Otherwise X must have the features
            of the fit in the same order.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster with the smallest sum, over features, of the weight times the squared difference
            from the centre. For the data of the fit, this is `labels_` if the fit converged.

        Raises
        ------
        ValueError
            If X is invalid, lacks a feature with a nonzero weight or has it twice, or if values are
            missing.
        """
        check_is_fitted(self)
        selected = np.flatnonzero(self._support)
        columns = columns_of_new_samples(self, X, selected, allow_missing=False)
        _refuse_missing_values(bool(np.isnan(columns).any()))
        weights = self.feature_weights_[selected]
        distances = [
            np.square(columns - center) @ weights for center in self.cluster_centers_[:, selected]
        ]
        return np.argmin(distances, axis=0)

    def _check_settings(self, n_samples: int) -> PartitionSettings:
        """Return the settings of the algorithm.

        Raise ParameterError if `n_clusters` or `n_init` is invalid.
        """
        advice = "With one cluster, no feature differs between clusters."
        n_clusters = check_integer(
            "n_clusters", self.n_clusters, low=2, high=n_samples, advice=advice
        )
        advice = "The default is 20."
        n_init = check_integer("n_init", self.n_init, low=1, high=MAX_REPETITIONS, advice=advice)
        return PartitionSettings(n_clusters=n_clusters, n_init=n_init)

    def _check_candidates(self, p: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Return a tuple of candidate L1 bounds, and a tuple with the target number of features.

        One of the two tuples is empty. Raise ParameterError if both `n_features_to_select` and
        `l1_bound` are given, or if either of them is invalid.
        """
        if self.n_features_to_select is None:
            return candidate_l1_bounds(self.l1_bound, n_features=p), ()
        if not (isinstance(self.l1_bound, str) and self.l1_bound == "auto"):
            raise ParameterError(
                "Give {number} or {bound}, not both, got {value[0]!r} and {value[1]!r}. {advice}",
                number=Parameter("n_features_to_select"),
                bound=Parameter("l1_bound"),
                value=(self.n_features_to_select, self.l1_bound),
                advice="The bound decides on the number of features.",
            )
        target = check_integer(
            "n_features_to_select",
            self.n_features_to_select,
            low=1,
            high=p,
            advice="Give None to choose the L1 bound by the permutation gap.",
        )
        return (), (target,)

    def _permutation_gap(
        self,
        columns: CentredColumns,
        solutions: Sequence[SparsePartition],
        settings: PartitionSettings,
        *,
        entropy: int,
    ) -> PermutationGap:
        """Return the permutation gap for the L1 bound of each solution.

        Raise ParameterError if `n_permutations` is invalid.
        """
        n_permutations = check_integer(
            "n_permutations",
            self.n_permutations,
            low=2,
            high=MAX_REPETITIONS,
            advice="A standard deviation needs two; the default is 10.",
        )
        return permutation_gap(
            columns,
            solutions,
            settings,
            n_permutations=n_permutations,
            entropy=entropy,
            n_jobs=check_n_jobs(self.n_jobs),
            progress=lambda *_: None,
        )

    def _store_solution(self, solution: SparsePartition, centers: Float) -> None:
        """Set the fitted attributes that describe the chosen solution."""
        self.labels_ = solution.labels
        self.cluster_centers_ = centers
        # The solution stores only the nonzero weights, so the other weights are set to zero first.
        self.feature_weights_ = np.zeros(centers.shape[1])
        self.feature_weights_[solution.indices] = solution.weights
        self.criterion_ = solution.criterion
        self.l1_bound_ = solution.l1_bound
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self._support = self.feature_weights_ > 0
        self.n_features_selected_ = int(self._support.sum())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _refuse_unsuitable_data(data: DataMatrix) -> None:
    """Raise ValueError if values are missing or if all features are constant."""
    summary = data.summary()
    _refuse_missing_values(summary.has_missing)
    if summary.n_constant == data.shape[1]:
        raise all_constant_error(data.shape[1])


def _refuse_missing_values(has_missing: bool) -> None:
    """Raise ParameterError if `has_missing` is True."""
    if has_missing:
        raise ParameterError(
            "SparseKMeans does not accept missing values, but X holds NaN. Impute them first"
            "{example}, or use SHC.",
            example=PythonOnly(", for example with mrshc.preprocessing.NeighborImputer"),
        )
