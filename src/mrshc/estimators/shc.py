"""Sparse hierarchical clustering (SHC) of Witten and Tibshirani."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centre_data import centre
from mrshc.core.inference.refinement import refine_feature_set
from mrshc.core.parallel import effective_n_threads, limit_blas_to_one_thread
from mrshc.core.permutations import PermutationGap
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.penalties import PENALTIES, L1Penalty, SpikeAndSlabPenalty, WeightPenalty
from mrshc.core.sparse_hc.spike_and_slab import spike_and_slab_settings
from mrshc.core.sparse_hc.weighted_dissimilarity import DataDissimilarity
from mrshc.core.trees.tree import ADDITIVE_METRICS, METRICS, AdditiveMetric, agglomerate
from mrshc.errors import Parameter, ParameterError
from mrshc.estimators.base import (
    TreeCutter,
    all_constant_error,
    candidate_feature_counts,
    centres_of_cut,
    check_linkage_and_metric,
    derive_seed,
    no_common_feature_error,
    store_n_passes,
)
from mrshc.estimators.feature_refinement import (
    no_support_warning,
    refinement_settings,
    store_refinement,
)
from mrshc.estimators.penalty_candidates import candidate_l1_bounds, candidate_values, search_table
from mrshc.utils.caller_warnings import warn_caller
from mrshc.utils.progress import CallbackSupportMixin, report_progress, with_callbacks
from mrshc.utils.sample_alignment import align_square, sample_names
from mrshc.validation.estimator_data import check_samples
from mrshc.validation.parameters import (
    MAX_REPETITIONS,
    check_dissimilarity,
    check_integer,
    check_n_jobs,
    check_number,
    check_option,
)

# Range of the penalties of the spike-and-slab lasso. The logarithms of the penalties are used, so
# they must be positive and finite.
_PENALTY_RANGE = (1e-6, 1e300)
_DEFAULT_SLAB = 1.0
_SLAB_ADVICE = "It is the penalty of large weights; the default is 1."


class SHC(CallbackSupportMixin, TreeCutter):
    r"""Sparse hierarchical clustering of Witten and Tibshirani.

    SHC [1]_ computes a dissimilarity matrix of the samples for each feature. The features are
    weighted such that the weighted sum of these matrices has the largest norm. A bound on the L1
    norm of the weights makes most of the weights zero. The penalty of the spike-and-slab lasso can
    be used instead (SHC-SSL) [3]_. The tree of the samples is built on the weighted sum.

    Parameters
    ----------
    n_features_to_select : int, sequence of int, "auto" or None, default=None
        Target number of features with a nonzero weight, or an increasing sequence of candidates for
        this number, one of which is chosen by the permutation gap (see Notes). "auto" uses the same
        candidates as :class:`MrSHC`. None is equivalent to "auto" unless `l1_bound` is given. If a
        number cannot be reached exactly, the closest number found by a bisection is used.
    l1_bound : float, sequence of float, "auto" or None, default=None
        Upper bound on the L1 norm of the weights, between 1 and the square root of the number of
        features, or a sequence of candidates, one of which is chosen by the permutation gap. "auto"
        uses ten equidistant candidates, from 1.1 to 0.7 times the square root of the number of
        features. Only one of `l1_bound` and `n_features_to_select` can be given.
    penalty : {"l1", "ssl"}, default="l1"
        Restriction of the weights: the bound on their L1 norm, or the penalty of the spike-and-slab
        lasso. With "ssl", `n_features_to_select` and `l1_bound` must be None, since the number of
        features follows from `spike_penalty`.
    spike_penalty : float, sequence of float, "auto" or None, default=None
        Penalty of small weights if `penalty="ssl"`, at least `slab_penalty`, or a sequence of
        candidates, one of which is chosen by the permutation gap. None and "auto" stand for 100
        candidates, from `slab_penalty` to three times the largest entry of :math:`D^\top u` for
        equal dissimilarities u. The penalty does not depend on the unit of the data, but on the
        number of samples; see Notes.
    slab_penalty : float, default=1.0
        Penalty of large weights if `penalty="ssl"`, a positive number. With "l1", it must be 1.
    n_clusters : int or None, default=None
        Number of clusters into which the tree is cut. If None, the tree is built but not cut.
    linkage : str, default="complete"
        Linkage criterion of the tree: "single", "complete", "average", "weighted", "ward",
        "centroid" or "median", as in :func:`scipy.cluster.hierarchy.linkage`.
    metric : {"sqeuclidean", "cityblock"}, default="sqeuclidean"
        Dissimilarity of two samples in one feature: their squared ("sqeuclidean") or absolute
        ("cityblock") difference. Ward's, centroid and median linkage are defined only for
        "sqeuclidean". The metric "correlation" of other estimators is not available, since it is
        not a sum over features.
    complement_of : array-like of shape (n_samples, n_samples) or None, default=None
        The `dissimilarity_` of an earlier fit to the same samples. The new dissimilarity is
        constrained to be orthogonal to this matrix (complementary sparse clustering). If the matrix
        is a DataFrame, its rows and columns are matched to the index of X. With `complement_of`,
        only one candidate for `n_features_to_select`, `l1_bound` or `spike_penalty` is allowed.
    n_permutations : int, default=10
        Number of permutations for the permutation gap, at least 2. The parameter has no effect if
        there is only one candidate.
    max_iter : int, default=15
        Maximum number of iterations for each L1 bound or spike penalty.
    tol : float, default=1e-4
        The iteration stops when the L1 norm of the change in the dissimilarity is at most `tol`
        times the L1 norm of the dissimilarity.
    n_jobs : int or None, default=None
        Number of workers, as in joblib: -1 means all processors, and None means 1 unless a
        :obj:`joblib.parallel_config` context sets another number. The number of workers does not
        affect the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations. Pass an int for reproducible results.
    verbose : bool, default=False
        Whether to show a progress bar on stderr. The bar is shown only if stderr is a terminal.
    refine : bool, default=False
        Whether to replace the tree by a tree that is built, without weights, on the features that
        are associated with the clusters or, if there are more than 500, on the 500 with the largest
        sums of squares between clusters; see :func:`refine_features`. `feature_weights_` is not
        changed.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. Clusters are numbered 0, 1, ... in the order of the leaves of the
        tree, from left to right. Defined only if `n_clusters` is not None.
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weight of each feature. The weights are nonnegative, and most of them are zero. The
        Euclidean norm of the weights is 1, or less if several features are exactly tied.
    dissimilarity_ : ndarray of shape (n_samples, n_samples)
        Weighted sum of the dissimilarity matrices of the features or, with `complement_of`, the
        part of the weighted sum that is orthogonal to `complement_of`. The matrix is scaled to unit
        Frobenius norm. The tree is built on this matrix, unless the features were refined.
    criterion_ : float
        Value of :math:`u^\top D w` (see Notes), without a penalty. Each pair of samples is counted
        once.
    l1_bound_ : float
        Chosen bound on the L1 norm of the weights. Defined only if `penalty="l1"`.
    spike_penalty_ : float
        Chosen penalty of small weights. Defined only if `penalty="ssl"`.
    n_iter_ : int
        Number of iterations for the chosen bound or penalty.
    converged_ : bool
        Whether these iterations converged within `max_iter` iterations.
    search_results_ : dict of ndarray of shape (n_candidates,)
        Table of the candidates. The columns are:

        - `l1_bound` or `spike_penalty` : L1 bound, or penalty of small weights;
        - `n_features`, `criterion` : number of nonzero weights, and value of
          :math:`u^\top D w`;
        - `chosen` : whether the candidate was chosen;
        - `n_features_target`, `reached` : target number of features, and whether `n_features`
          equals this number; only if the candidates are numbers of features;
        - `gap`, `gap_sd` : permutation gap, and standard deviation of the logarithm of the
          objective over permutations; only if there are several candidates.
    n_features_selected_ : int
        Number of features on which the tree is built. The method `get_support` returns a mask of
        these features.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Numbers of the two nodes that each merge joins, as in
        :class:`sklearn.cluster.AgglomerativeClustering`.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge.
    n_leaves_ : int
        Number of leaves of the tree, which equals the number of samples.
    supported_ : bool or None
        Defined only if `refine=True`. Whether at least 5 features are associated with the clusters.
        If False, the tree is not replaced, and `fit` issues a warning; `labels_` (if defined) still
        has `n_clusters` clusters. If fewer than 5 features have a nonzero weight, `supported_` is
        None instead of False, and the result is not changed.
    associated_features_ : ndarray of shape (n_associated,)
        Defined only if `refine=True`. Indices of all features associated with the clusters at a
        false discovery rate of 0.05; empty if `supported_` is not True.
    feature_qvalues_ : ndarray of shape (n_features_in_,)
        Defined only if `refine=True`. The q-value of each feature: the smallest false discovery
        rate at which the feature counts as associated with the clusters.
    n_passes_ : int
        Defined only if X was read in blocks of features. Number of passes over the data. Each
        iteration needs at most two passes.
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
    MrSHC : Multi-rank sparse hierarchical clustering.
    HighVarianceHC : Hierarchical clustering on the features of highest variance.
    mrshc.compare : Runs several methods on the same data.

    Notes
    -----
    Let D be the matrix with one row for each pair of samples and one column for each feature. An
    entry of D is the dissimilarity of the two samples in that feature. SHC maximises

    .. math::

        u^\top D w \quad \text{subject to} \quad
        \|u\|_2 \le 1, \; \|w\|_2 \le 1, \; \|w\|_1 \le s, \; w \ge 0,

    where w contains the weights of the features and s is the L1 bound. The algorithm alternates
    between :math:`u \propto Dw` and :math:`w \propto \max(D^\top u - \delta, 0)`, where the maximum
    is taken for each entry, and :math:`\delta` is the smallest nonnegative value for which
    :math:`\|w\|_1 \le s` [2]_. The matrix D is not formed, since it is usually too large for
    memory. Instead, Dw is computed as a matrix of weighted distances. For squared Euclidean
    distances, :math:`D^\top u` is computed from the graph Laplacian of u.

    The permutation gap of an L1 bound is the logarithm of the maximum of :math:`u^\top D w`, minus
    the mean of this logarithm over permutations. In a permutation, the entries of each column of D
    are permuted independently. The candidate with the largest gap is chosen.

    With `penalty="ssl"`, there is no L1 bound. The objective is :math:`u^\top D w / \sigma + \sum_j
    \log[\theta \lambda_1 e^{-\lambda_1 w_j} + (1 - \theta) \lambda_0 e^{-\lambda_0 w_j}]`, where
    :math:`\sigma` is half of the median over features of the mean distance between two samples. A
    feature with variance 1 then has about the mean distance 2, and the result does not depend on
    the unit of the data. Instead of :math:`\delta`, each feature has a threshold of its own, the
    mean of the slab penalty :math:`\lambda_1` and the spike penalty
    :math:`\lambda_0`, weighted by the posterior probability that the feature belongs to the slab
    [4]_:

    .. math:: \delta_j = \lambda_1 p_j + \lambda_0 (1 - p_j), \quad
        p_j = \left[1 + \frac{\lambda_0 (1 - \theta)}{\lambda_1 \theta}
        e^{-w_j (\lambda_0 - \lambda_1)}\right]^{-1}.

    The share :math:`\theta` of features in the slab is estimated as (1 + q) / (1 + 2p), where q is
    the number of nonzero weights. The objective has many local maxima. Therefore solutions are
    computed for an increasing sequence of up to 100 spike penalties, and each solution is the start
    for the next one. This takes about 250 iterations, also if one penalty is given, and as many for
    each permutation. `n_iter_` is the number of iterations for the chosen penalty only. The entries
    of :math:`D^\top u` are proportional to the number of samples, so the same spike penalty leaves
    fewer features if there are fewer samples. The R package recombine has no :math:`\sigma`, and
    its candidates are equidistant up to the larger number of samples and features. The permutation
    gap can be largest for the smallest candidate, with which all features have nonzero weights.

    Missing values (NaN) are allowed. The dissimilarity of two samples is computed from the m
    features that are observed in both samples, and is multiplied by p / m, where p is the number of
    all features. The treatment of missing values and the defaults of `n_permutations`, `max_iter`
    and `tol` are those of the R package sparcl.

    References
    ----------
    .. [1] Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering.
       Journal of the American Statistical Association 105(490), 713-726.
       https://doi.org/10.1198/jasa.2010.tm09415
    .. [2] Witten, D. M., Tibshirani, R. and Hastie, T. (2009). A penalized matrix decomposition,
       with applications to sparse principal components and canonical correlation analysis.
       Biostatistics 10(3), 515-534. https://doi.org/10.1093/biostatistics/kxp008
    .. [3] Li, X., Korkut, A. and others (2026). RECOMBINE identifies recurrent composite markers of
       cell types and states. Genome Research 36(6), 1221-1237.
       https://doi.org/10.1101/gr.280817.125
    .. [4] Ročková, V. and George, E. I. (2018). The spike-and-slab lasso. Journal of the American
       Statistical Association 113(521), 431-444. https://doi.org/10.1080/01621459.2016.1260469

    Examples
    --------
    >>> from mrshc import SHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)  # features 0 to 49 are informative
    >>> model = SHC(50, n_clusters=3).fit(data.X)
    >>> int(model.get_support()[:50].sum())
    50
    >>> model.feature_weights_.shape
    (500,)
    """

    def __init__(
        self,
        n_features_to_select: Any = None,
        *,
        l1_bound: Any = None,
        penalty: str = "l1",
        spike_penalty: Any = None,
        slab_penalty: float = _DEFAULT_SLAB,
        n_clusters: int | None = None,
        linkage: str = "complete",
        metric: str = "sqeuclidean",
        complement_of: Any = None,
        n_permutations: int = 10,
        max_iter: int = 15,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        refine: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.l1_bound = l1_bound
        self.penalty = penalty
        self.spike_penalty = spike_penalty
        self.slab_penalty = slab_penalty
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.complement_of = complement_of
        self.n_permutations = n_permutations
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.refine = refine

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Weight the features, build the tree, and cut it unless `n_clusters` is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with at least 3 samples and 2 features; NaN marks a missing value. X may be
            out-of-core, sparse or on a device such as a GPU; see :meth:`MrSHC.fit`.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : SHC
            Fitted estimator.

        Raises
        ------
        ValueError
            If X is invalid, if all features are constant, if two samples have no observed feature
            in common, or if the sum of the dissimilarity matrices of all features is a multiple of
            `complement_of`.
        ParameterError
            If a parameter is invalid.

        Warns
        -----
        UnsupportedClustersWarning
            If `refine=True` and fewer than 5 features are associated with the clusters.
        """
        threads = effective_n_threads(check_n_jobs(self.n_jobs))
        data = check_samples(self, X, n_threads=threads)
        n, p = data.shape
        metric = _check_additive_metric(self.metric)
        linkage, _ = check_linkage_and_metric(self.linkage, metric, metrics=ADDITIVE_METRICS)
        n_clusters = self._check_n_clusters(n)
        with limit_blas_to_one_thread():  # rounding errors depend on the number of BLAS threads
            pairs = PairDistances(data, metric, n_threads=threads)
        _refuse_disjoint_samples(pairs)
        penalty = self._weight_penalty(pairs, n_constant=data.summary().n_constant)
        self._refuse_several_complements(penalty.n_candidates)
        with limit_blas_to_one_thread():
            weighted = self._weighted_dissimilarity(pairs)
            solutions = penalty.solve(weighted)
        # The permutation gap is needed only to choose among several candidates.
        gap = None
        if len(solutions) > 1:
            gap = self._permutation_gap(penalty, pairs=pairs, solutions=solutions, X=X)
        best = 0 if gap is None else gap.best_position
        settings = refinement_settings(self)
        refined, n_passes = None, pairs.n_passes
        with limit_blas_to_one_thread():
            dissimilarity = weighted.matrix(solutions[best].indices, solutions[best].weights)
            if settings is not None:
                matrix = centre(data, center="columns", drop_constant=True, n_threads=threads)
                refined = refine_feature_set(matrix, solutions[best].indices, settings)
                columns = matrix.columns(refined.features)
                # The pass that computes the column statistics takes place only once, but `pairs`
                # and `matrix` both count it.
                n_passes = pairs.n_passes + (matrix.n_passes or 1) - 1
            tree = agglomerate(_as_distances(dissimilarity), linkage)
            features, weights = _nonzero_weights(solutions[best])
            if settings is not None and refined is not None and refined.supported:
                distances = complete_missing_cells(columns).distances(settings.metric)
                tree, features, weights = agglomerate(distances, linkage), refined.features, None
            centres = centres_of_cut(
                data, tree, n_clusters, features=features, metric=metric, weights=weights
            )
        # X is not read after this point. A fit that fails while reading X therefore leaves the
        # attributes of an earlier fit unchanged.
        self._store_solution(solutions[best], parameter=penalty.parameter, n_features=p)
        self.dissimilarity_: Float = dissimilarity
        self.search_results_ = search_table(
            solutions, parameter=penalty.parameter, targets=penalty.targets, gap=gap, best=best
        )
        support = np.zeros(p, dtype=bool)
        support[features] = True
        self._store_tree(tree, support)
        self._store_cut(n_clusters)
        self._store_centres(centres)
        store_refinement(self, refined)
        if refined is not None and refined.supported is False:
            warn_caller(no_support_warning(n_given=n_clusters))
        store_n_passes(self, None if data.in_memory else n_passes)
        return self

    @property
    def _has_weighted_tree(self) -> bool:
        """Whether the tree is built on weighted features rather than on refined features."""
        return not getattr(self, "supported_", False)

    def sample_distances(self, X: Any) -> Float:
        """Return the pairwise distances of the samples, from which the tree is built.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            The attribute `dissimilarity_` or, if the tree is built on refined features, the
            distances computed from these features.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        """
        self.data_of_fit(X)  # raises ValueError if X cannot be the data of the fit
        return self.dissimilarity_ if self._has_weighted_tree else super().sample_distances(X)

    def _distance_weights(self) -> Float | None:
        return self.feature_weights_[self._support] if self._has_weighted_tree else None

    def _weight_penalty(self, pairs: PairDistances, *, n_constant: int) -> WeightPenalty:
        """Return the penalty of the weights, with the candidates for its parameter.

        Raise ParameterError if a parameter is invalid or has no effect with this penalty. Raise
        ValueError if all features are constant.
        """
        _, p = pairs.shape
        wanted = self.n_features_to_select
        if check_option("penalty", self.penalty, PENALTIES) == "ssl":
            return self._spike_and_slab_penalty(pairs, n_constant=n_constant)
        slab = self._check_slab_penalty()
        for name, is_default in (
            ("spike_penalty", self.spike_penalty is None),
            ("slab_penalty", slab == _DEFAULT_SLAB),
        ):
            if not is_default:
                raise ParameterError(
                    "{name} has an effect only if {penalty} is 'ssl', got {value!r}. Leave it out.",
                    name=Parameter(name),
                    penalty=Parameter("penalty"),
                    value=getattr(self, name),
                )
        if wanted is not None and self.l1_bound is not None:
            raise ParameterError(
                "Give {number} or {bound}, not both, got {value[0]!r} and {value[1]!r}. {advice}",
                number=Parameter("n_features_to_select"),
                bound=Parameter("l1_bound"),
                value=(wanted, self.l1_bound),
                advice="The bound decides on the number of features.",
            )
        targets = candidate_feature_counts(
            "auto" if wanted is None else wanted,
            n_features=p,
            n_constant=n_constant,
            metric=self.metric,
        )
        if self.l1_bound is None:
            return L1Penalty(bounds=(), targets=targets, **self._stopping_rule())
        bounds = candidate_l1_bounds(self.l1_bound, n_features=p)
        return L1Penalty(bounds=bounds, targets=(), **self._stopping_rule())

    def _spike_and_slab_penalty(
        self, pairs: PairDistances, *, n_constant: int
    ) -> SpikeAndSlabPenalty:
        """Return the penalty of the spike-and-slab lasso; see `_weight_penalty`."""
        for name in ("n_features_to_select", "l1_bound"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    "If {penalty} is 'ssl', the number of features follows from {spike}, so {name} "
                    "cannot be given, got {value!r}. Leave it out.",
                    penalty=Parameter("penalty"),
                    spike=Parameter("spike_penalty"),
                    name=Parameter(name),
                    value=getattr(self, name),
                )
        if n_constant == pairs.shape[1]:
            raise all_constant_error(n_constant)
        slab = self._check_slab_penalty()
        with limit_blas_to_one_thread():
            settings = spike_and_slab_settings(pairs, slab_penalty=slab, **self._stopping_rule())
        if self.spike_penalty is None or _is_auto(self.spike_penalty):
            return SpikeAndSlabPenalty(spike_penalties=settings.path_penalties, settings=settings)
        candidates = candidate_values(
            "spike_penalty",
            self.spike_penalty,
            low=slab,
            high=_PENALTY_RANGE[1],
            advice="It is at least the penalty of large weights. Leave it out to try 100 values.",
        )
        return SpikeAndSlabPenalty(spike_penalties=candidates, settings=settings)

    def _check_slab_penalty(self) -> float:
        """Return `slab_penalty`; raise ParameterError if it is invalid."""
        low, high = _PENALTY_RANGE
        return check_number(
            "slab_penalty", self.slab_penalty, low=low, high=high, advice=_SLAB_ADVICE
        )

    def _refuse_several_complements(self, n_candidates: int) -> None:
        """Raise ParameterError if `complement_of` is given and there are several candidates."""
        if self.complement_of is not None and n_candidates > 1:
            raise ParameterError(
                "{complement} needs one {number}, got {value} candidates. {advice}",
                complement=Parameter("complement_of"),
                number=Parameter(
                    "spike_penalty" if self.penalty == "ssl" else "n_features_to_select"
                ),
                value=n_candidates,
                advice="The permutation gap, which would choose among them, is not defined for a "
                "complement.",
            )

    def _weighted_dissimilarity(self, pairs: PairDistances) -> DataDissimilarity:
        """Return the dissimilarity of the samples as a function of the feature weights.

        Raise ParameterError if `complement_of` is invalid. Raise ValueError if the sum of the
        dissimilarity matrices of all features is a multiple of `complement_of`.
        """
        earlier = self.complement_of
        if earlier is not None:
            earlier = align_square(earlier, sample_names(self), what="complement_of")
            earlier = check_dissimilarity("complement_of", earlier, n_samples=pairs.shape[0])
        weighted = DataDissimilarity(pairs, orthogonal_to=earlier)
        if weighted.is_exhausted:
            raise ValueError(
                "The dissimilarity of X must not be a multiple of complement_of, but it is: "
                "nothing is orthogonal to complement_of. There is no complementary clustering in "
                "these features; pass other features or another complement_of."
            )
        return weighted

    def _stopping_rule(self) -> dict[str, Any]:
        """Return the parameters `max_iter` and `tol` as a dictionary of arguments.

        Raise ParameterError if either of them is invalid.
        """
        # The data and the permuted data must be treated with the same `max_iter` and `tol`;
        # otherwise the permutation gap would be biased.
        advice = "The default is that of R's sparcl."
        return {
            "max_iter": check_integer("max_iter", self.max_iter, low=1, high=None, advice=advice),
            "tol": check_number("tol", self.tol, low=0.0, high=np.inf, advice=advice),
        }

    def _permutation_gap(
        self, penalty: WeightPenalty, *, pairs: PairDistances, solutions: Sequence[Any], X: Any
    ) -> PermutationGap:
        """Return the permutation gap for each candidate of the penalty.

        A solution contains the feature weights for one candidate. Raise ParameterError if
        `n_permutations`, `random_state` or `n_jobs` is invalid.
        """
        n_permutations = check_integer(
            "n_permutations",
            self.n_permutations,
            low=2,
            high=MAX_REPETITIONS,
            advice="A standard deviation needs two; the default is 10.",
        )
        with report_progress(self, n_steps=n_permutations, X=X, verbose=self.verbose) as progress:
            return penalty.permutation_gap(
                pairs,
                solutions,
                n_permutations=n_permutations,
                entropy=derive_seed(self.random_state),
                n_jobs=check_n_jobs(self.n_jobs),
                progress=progress,
            )

    def _store_solution(self, solution: Any, *, parameter: str, n_features: int) -> None:
        """Set the fitted attributes that describe the chosen weights."""
        # The solution stores only the nonzero weights, so the other weights are set to zero first.
        self.feature_weights_ = np.zeros(n_features)
        self.feature_weights_[solution.indices] = solution.weights
        self.criterion_ = solution.criterion
        # An earlier fit may have used the other penalty.
        for name in ("l1_bound", "spike_penalty"):
            self.__dict__.pop(f"{name}_", None)
        setattr(self, f"{parameter}_", getattr(solution, parameter))
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged


def _as_distances(dissimilarity: Float) -> Float:
    """Return a dissimilarity matrix as nonnegative distances, from which a tree can be built."""
    # A dissimilarity that is orthogonal to an earlier dissimilarity has negative entries, which are
    # not valid distances. The same amount is therefore added to all entries, which does not change
    # their order.
    distances = dissimilarity - min(0.0, float(dissimilarity.min()))
    np.fill_diagonal(distances, 0.0)
    return distances


def _nonzero_weights(solution: Any) -> tuple[Index, Float | None]:
    """Return the indices of the features with a nonzero weight, in increasing order, and weights.

    The type of the weights includes None, since a tree on refined features has no weights.
    """
    is_positive = solution.weights > 0
    features, weights = solution.indices[is_positive], solution.weights[is_positive]
    order = np.argsort(features)
    return features[order], weights[order]


def _is_auto(value: Any) -> bool:
    """Return whether the value of a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"


def _check_additive_metric(metric: Any) -> AdditiveMetric:
    """Return the metric if it is a sum over features; raise ParameterError otherwise."""
    checked: AdditiveMetric = check_option("metric", metric, METRICS)
    if checked not in ADDITIVE_METRICS:
        raise ParameterError(
            "SHC adds up dissimilarities over features, so {metric} must {allowed}, got {value!r}. "
            "Choose one of these, or another method.",
            metric=Parameter("metric"),
            allowed=f"be one of {', '.join(map(repr, ADDITIVE_METRICS))}",
            value=metric,
        )
    return checked


def _refuse_disjoint_samples(pairs: PairDistances) -> None:
    """Raise ValueError if two samples have no observed feature in common."""
    if pairs.incomparable_pair is not None:
        raise no_common_feature_error(*pairs.incomparable_pair)
