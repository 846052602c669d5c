"""Multi-rank sparse hierarchical clustering (MrSHC) of Zhang and Zamar."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.centre_data import centre
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import effective_n_threads, limit_blas_to_one_thread
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.robust.outliers import (
    RobustData,
    attach_to_nearest_neighbours,
    detect_outliers,
    winsorisation_limits,
)
from mrshc.core.search import SearchPlan, SearchResult, search
from mrshc.core.selection import RULES, candidate_table
from mrshc.core.trees.cluster_centres import ClusterCentres, cluster_centres
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.tree import Metric
from mrshc.errors import Parameter, ParameterError, Setting
from mrshc.estimators.base import (
    TreeClusterer,
    candidate_feature_counts,
    check_linkage_and_metric,
    derive_seed,
    store_n_passes,
)
from mrshc.estimators.checkpoint import Checkpoint, StepSizes
from mrshc.estimators.feature_refinement import (
    UnsupportedClustersWarning,
    no_support_warning,
    store_refinement,
)
from mrshc.estimators.sparse_components import check_center, dense_loadings
from mrshc.utils.caller_warnings import warn_caller
from mrshc.utils.progress import CallbackSupportMixin, report_progress, with_callbacks
from mrshc.validation.estimator_data import check_samples, delete_attributes
from mrshc.validation.parameters import (
    MAX_REPETITIONS,
    check_integer,
    check_integer_or_keyword,
    check_n_jobs,
    check_option,
)


class MrSHC(CallbackSupportMixin, TreeClusterer):
    r"""Multi-rank sparse hierarchical clustering.

    MrSHC [1]_ clusters samples with many features, of which only a few are informative. The method
    selects the features with nonzero loadings on the first sparse principal components of the data.
    It then builds a tree of the samples on the selected features, and prunes the tree with the gap
    statistic. A search chooses the numbers of features, components and clusters unless they are
    given.

    With its default parameters, the estimator follows the procedure of the paper [1]_. The
    parameters `selection`, `refine` and `robust` provide extensions that are not in the paper. For
    real data, `selection="association"` is recommended.

    Parameters
    ----------
    n_features_to_select : int, sequence of int or "auto", default="auto"
        Number q of features to select, or an increasing sequence of candidates for q, one of which
        is chosen by the selection rule. "auto" uses the candidates of the paper (10, 20, 40, 60,
        ..., 200, 250, ..., 500) that are smaller than the number of non-constant features. If there
        are fewer than 100 non-constant features, "auto" instead uses the numbers among 2, 3, ...,
        8, 10, 15, 20, 30, 40 that do not exceed half the number of non-constant features, rounded
        up (but at least 2). With `metric="correlation"`, at least 3 features are needed: smaller
        numbers are not allowed and are not used by "auto".

        With `selection="association"`, these are the numbers of features of the start sets, and
        "auto" uses 20, 60 and a tenth of the number of non-constant features (at least 20 and at
        most 500). The number of features of the result follows from the tests of association.
    rank : int or "auto", default="auto"
        Number r of sparse components from which the features are selected. With "auto", the
        selection rule chooses one of 1, 2, ..., `max_rank`. With `selection="association"`, this is
        the rank of the start sets, and "auto" uses those of 1, 3 and 5 that do not exceed
        `max_rank`.
    max_rank : int, default=5
        Largest rank that is tried if `rank="auto"`. Ranks that exceed q or the number of samples
        minus one are not tried.
    n_clusters : int or "auto", default="auto"
        Number of clusters K. Trees are pruned to at most K clusters. A feature set whose tree has
        fewer than K clusters is chosen only if no tree has K clusters. If K is given, `labels_` has
        exactly K clusters: if the data support fewer, further nodes of the tree are split, in the
        order of a cut (the last merges first), and `fit` issues a warning. With "auto", the trees
        for ranks 1 to 3 are first pruned without a limit. For each q, the largest number of
        clusters among these trees is recorded. K is the second largest of these numbers (the only
        one if there is a single q), but never less than 2. If the data then support no clusters,
        `labels_` has a single cluster.

        With `selection="evidence"`, trees are not pruned but cut into K clusters. With "auto", the
        chosen tree is cut into 2 to 10 clusters, and K is the number of clusters of the cut with
        the largest evidence. If no cut has an evidence of at least 4, K is 2, and the result is a
        single cluster. If K is given and the cut into K clusters has an evidence of less than 4,
        `fit` issues a warning.

        With `selection="association"`, and after `refine=True`, the tree is cut as well. With
        "auto", K is the number of clusters, from 2 to 10, whose last split exceeds the next split
        by the largest ratio (see Notes), and the result is a single cluster if `supported_` is
        False.
    linkage : str, default="complete"
        Linkage criterion of the tree: "single", "complete", "average", "weighted", "ward",
        "centroid" or "median", as in :func:`scipy.cluster.hierarchy.linkage`.
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance between samples: the sum of squared ("sqeuclidean") or absolute ("cityblock")
        differences over the selected features, or 1 minus the Pearson correlation of the samples
        over these features ("correlation"; see Notes). Ward's, centroid and median linkage are not
        defined for "cityblock".
    n_references : int, default=50
        Maximum number of reference data sets for each gap statistic, at least 2. Reference data
        sets are simulated from a distribution without clusters.
    stop_early : bool, default=True
        The gap statistic decides whether a node of the tree is split. If `stop_early` is True, the
        simulation of reference data sets for a node ends as soon as further data sets are very
        unlikely to change the decision. If False, all `n_references` data sets are simulated.
    feature_tolerance : int, default=0
        A feature set is accepted if its number of features differs from q by at most this number.
        With `selection="association"`, a start set is also accepted if it differs from q by at most
        10 % of q.
    center : {True, "grand", False}, default=True
        Offset subtracted from the data before the components are computed: the mean of each feature
        (True), the mean of all values ("grand"), or no offset (False). Distances between samples
        are computed from the data without this offset, whatever the metric.
    n_jobs : int or None, default=None
        Number of workers, as in joblib: -1 means all processors, and None means 1 unless a
        :obj:`joblib.parallel_config` context sets another number. The number of workers does not
        affect the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers with which reference data sets are simulated. Pass an int for
        reproducible results. It has no effect with `selection="evidence"` or "association", which
        use no random numbers.
    verbose : bool, default=False
        Whether to show a progress bar on stderr. The bar is shown only if stderr is a terminal.
    checkpoint : str, path-like or None, default=None
        File to which the finished steps of the search are written. After an interruption, a fit
        with the same file, data, parameters and seed continues from these steps. The file is not
        removed after the fit. A checkpoint requires an integer `random_state`.
    selection : {"silhouette", "association", "evidence"}, default="silhouette"
        Rule by which the rank and the number of features are chosen.

        - "silhouette" is the rule of the paper. It compares the feature sets whose trees have K
          clusters according to the gap statistic. The score of a feature set is the mean silhouette
          width of these clusters, computed from the selected features. The choice is described in
          the Notes.
        - "association" is recommended for real data. It starts from several small feature sets and
          repeatedly replaces each set by all features that are associated with clusters of trees
          that were built without them; see `refine`. The result is the set with the largest sum of
          squares between clusters. The tree is built on the associated features or, if there are
          more than 500, on the 500 with the largest sums of squares between clusters. The rule does
          not use the gap statistic. It is described in the Notes.
        - "evidence" compares trees by the variation that their clusters explain in the features
          that were not selected. The evidence for a cut of a tree is the sum of squares between the
          clusters in these features, standardised by its mean and standard deviation over
          permutations of the samples. The rule does not use the gap statistic and takes less time.
          It is suited to data in which many features differ between the clusters, such as gene
          expression. If only a few features are informative, all of them may be selected. The other
          features then provide no evidence, so `refine=True` is recommended for such data.
    refine : bool, default=False
        Whether to refine the selected features after the search. This is the procedure of
        `selection="association"` with a single start set, the one that the search chose. The
        features are repeatedly replaced by the features that are associated with the clusters. If
        there are more than 500, those with the largest sums of squares between clusters are used.
        The tree is rebuilt on these features and cut into K clusters; see `n_clusters`. With
        `selection="association"`, `refine` has no effect.

        Each feature is tested for association with clusters of trees that were built without it.
        This avoids the bias of testing a feature with clusters that it helped to form. In data
        without clusters, few or no features are therefore significant; see `supported_`. A feature
        can be found only if a tree built without it shows the same clusters. The tests therefore
        have little power if each split of the samples is visible in only one or two features. See
        :func:`refine_features`.
    robust : bool, default=False
        Whether to reduce the influence of outliers. Let s be the robust standard deviation of a
        feature, which is 1.4826 times the median absolute deviation. Values farther than 2.5 s from
        the median of the feature are replaced by the median plus or minus 2.5 s (winsorised).
        However, if no more than three samples have values more than 3.5 s above the median, these
        values are treated as missing instead of being winsorised; the same applies below the
        median. Outlying samples are excluded from the search and attached to the tree afterwards;
        see `outlier_samples_`. With fewer than 10 samples, values are winsorised, but no values are
        treated as missing and no samples as outlying. X must be an array in memory.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. Clusters are numbered 0, 1, ... in the order of the leaves of the
        tree, from left to right.
    n_clusters_ : int
        Number of clusters in `labels_`: the value of `n_clusters`, if it was given. If the data
        support fewer clusters, or no clusters with `n_clusters="auto"`, `fit` issues an
        :class:`UnsupportedClustersWarning`.
    n_features_selected_ : int
        Number of features on which the tree is built. The method `get_support` returns a mask of
        these features.
    rank_ : int
        Chosen number of sparse components. With `selection="association"`, this is the rank of the
        start set that led to the result.
    components_ : ndarray of shape (rank_, n_features_in_)
        Loadings of the sparse components from which the search selected the features, one component
        in each row. With `selection="association"`, the features with nonzero loadings are those of
        the start set, which differ from the features of the result.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Numbers of the two nodes that each merge joins, as in
        :class:`sklearn.cluster.AgglomerativeClustering`.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge.
    n_leaves_ : int
        Number of leaves of the tree, which equals the number of samples.
    search_results_ : dict of ndarray of shape (n_candidates,)
        Table of the candidates of the search. A candidate is a pair (q, r) of a target number of
        features and a rank. With `selection="association"`, q and r describe its start set. The
        columns are:

        - `n_features_target`, `rank` : q and r;
        - `n_features`, `l1_bound` : number of features in the selected feature set, and the bound
          on the L1 norm of the loadings that yields this set; with `selection="association"`,
          `n_features` is the number after the refinement, and `l1_bound` yields the start set;
        - `reached` : whether the number of features that the bound yields differs from q by no more
          than the accepted difference (see `feature_tolerance`);
        - `n_leaves` : number of clusters of the tree after pruning to at most K clusters; with
          `selection="evidence"`, the value of `n_clusters` or, if it is "auto", the number of
          clusters of the cut with the largest evidence (1 if this evidence is less than 4); with
          `selection="association"`, the value of `n_clusters` or, if it is "auto", the number of
          clusters of the cut with the largest drop ratio (1 if too few features are associated);
        - `silhouette` : mean silhouette width of these clusters; 0 for a single cluster;
        - `evidence` : mean evidence for the cuts of the tree into 2 to 7 clusters; only with
          `selection="evidence"`;
        - `n_associated`, `strength` : number of associated features, and sum of squares between
          clusters over these features (both 0 if fewer than 5 are associated); only with
          `selection="association"`;
        - `screened_out` : whether the candidate was excluded because its tree has fewer than K
          clusters;
        - `best_rank` : whether the rank is the one chosen for this q; with `selection="evidence"`,
          the same rank is chosen for all q, and with `selection="association"`, it is the rank
          with the largest strength;
        - `removed` : whether Algorithm 3 or 4 removed the candidate as a local minimum (see Notes);
        - `chosen` : whether the candidate was chosen.
    split_tests_ : dict of ndarray of shape (n_tests,)
        Table of the gap statistics, with one entry for each node of the tree that was tested. The
        table is empty if the tree was not pruned with the gap statistic: with
        `selection="evidence"` or "association", or if it was rebuilt on associated features
        (`refine=True`). The columns are:

        - `node` : number of the node in scipy's format;
        - `n_samples`, `height` : number of samples of the node, without outlying samples, and
          height of the node;
        - `drop` : decrease of the log dispersion within clusters when the node is split into two
          clusters;
        - `expected_drop` : mean of this decrease over the reference data sets;
        - `standard_error` : standard deviation, over the reference data sets, of the log dispersion
          within two clusters, times :math:`\sqrt{1 + 1/B}`, where B is `n_references`;
        - `supported` : whether `drop` exceeds `expected_drop` by more than `standard_error`;
        - `split` : whether the node was split. Once there are K clusters, no node is split even if
          the split is supported. A node whose split is not supported is split only if `n_clusters`
          was given and more clusters are needed;
        - `reference_drops` : array with the decrease in each reference data set.
    supported_ : bool or None
        Defined only with `refine=True` or `selection="association"`. Whether at least 5 features
        are associated with clusters of trees that were built without these features. If False, the
        tree is the one that the search chose (with "association", the tree on a start set), and
        `labels_` contains a single cluster unless `n_clusters` was given. However, if the search or
        the start set has fewer than 5 features, or if there are fewer than 7 samples, which are too
        few to decide, `supported_` is None instead of False, and the features and the tree are not
        changed.
    associated_features_ : ndarray of shape (n_associated,)
        Defined only with `refine=True` or `selection="association"`. Indices of all features
        associated with the clusters at a false discovery rate of 0.05; empty if `supported_` is not
        True. The tree is built on these features or, if there are more than 500, on the 500 with
        the largest sums of squares between clusters.
    feature_qvalues_ : ndarray of shape (n_features_in_,)
        Defined only with `refine=True` or `selection="association"`. The q-value of each feature:
        the smallest false discovery rate at which the feature counts as associated with the
        clusters.
    outlier_samples_ : ndarray of shape (n_outliers,)
        Defined only if `robust=True`. Indices of the outlying samples. Let d be the logarithm of
        the distance between a sample and its third nearest neighbour, computed from all features
        after winsorising, and let s_d be the robust standard deviation of d over all samples. A
        sample is outlying if its d exceeds the median of d by more than 4 s_d, and also exceeds the
        smallest d among its three nearest neighbours by more than 4 s_d. A sample is also outlying
        if more than half of its observed values are treated as missing because they are extreme.
    n_passes_ : int
        Defined only if X was read in blocks of features. Number of passes over the data. For data
        on a device, workers share passes, so the number may vary from fit to fit.
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
    HighVarianceHC : Hierarchical clustering on the features of highest variance.
    refine_features : Returns the features associated with the clusters of a tree.
    sparse_components : Computes sparse principal components.
    mrshc.compare : Runs several methods on the same data.

    Notes
    -----
    The search runs the following algorithms of the paper [1]_. Algorithms 1 and 2 run for each
    candidate number of features q and each rank r.

    1. Algorithm 1, feature selection. Sparse component k maximises

       .. math::

           u^\top X_k v \quad \text{subject to} \quad
           \|u\|_2 \le 1, \; \|v\|_2 \le 1, \; \|v\|_1 \le \lambda,

       where :math:`X_k` is the centred matrix X minus the first k - 1 components [2]_. A feature is
       selected if its loading on at least one of the first r components is not zero. The bound
       :math:`\lambda` is determined by bisection such that q features are selected. The number of
       features is a step function of :math:`\lambda`, so some values of q cannot be reached. In
       this case, the feature set whose size is closest to q is used.
    2. Algorithm 2, multi-layer pruning. A tree is built on the selected features. Its nodes are
       tested from the root downwards, in decreasing order of height. A node is split if the gap
       statistic [3]_ indicates that its samples form two clusters rather than one. Nodes below a
       node that is not split are not tested. Pruning stops at K clusters.
    3. Algorithm 3, choice of r, and Algorithm 4, choice of q. Feature sets whose trees have fewer
       than K clusters are excluded. For each q, Algorithm 3 arranges the mean silhouette widths
       [4]_ of the other feature sets in a sequence by r, and chooses one r. Algorithm 4 arranges
       the widths of the chosen feature sets in a sequence by q. In both algorithms, the last local
       minimum is removed repeatedly until the sequence is monotone. If the sequence is then
       decreasing, its first member is chosen; if it is increasing, the member just after the
       largest increase is chosen.

    With `selection="association"`, Algorithm 1 selects start sets, and Algorithms 2 to 4 are not
    used. In one round, each start set is replaced by the features that are associated with its
    clusters; see :func:`refine_features` for the tests [6]_, [7]_. The three sets with the largest
    strength are refined further, and the set with the largest strength is the result. The strength
    is the sum, over the associated features, of the sum of squares between clusters, averaged over
    cuts of the tree into 2 to 7 clusters. The tests compare the features with independent noise.
    Features that are correlated for another reason, such as a batch effect, are associated too.

    A tree on associated features is cut by its drop ratios. Let :math:`W_k` be the dispersion
    within k clusters: the sum, over clusters, of the distances between all pairs of samples in a
    cluster, divided by the number of its samples. The chosen number of clusters is the k, from 2 to
    10, with the largest ratio

    .. math::

        \frac{W_{k-1} - W_k}{W_k - W_{k+1}}.

    This is a heuristic: the number of clusters is not tested.

    Constant features are never selected. If two features are identical, either both or neither is
    selected.

    Missing values (NaN) are allowed. When component k is computed, the missing values of
    :math:`X_k` are replaced by the mean of all observed values of :math:`X_k`. For the first
    component, this is equivalent to replacing a missing value of X by the mean of its feature if
    `center=True`, and by the mean of all values otherwise. Distances between samples are expected
    distances: missing values of the selected features are imputed by regularised iterative PCA
    [5]_, and the variances of the imputed values are included in the distances.

    With `metric="correlation"`, the distance of two samples is :math:`1 - \rho`. Here :math:`\rho`
    is the Pearson correlation of their values over the selected features, as they are in X
    (winsorised if `robust=True`), not after subtraction of the feature means. A feature with a
    large mean therefore contributes to all correlations; centre the features of X beforehand if
    only deviations from the means are of interest. Missing values are imputed as above, and
    :math:`\rho` is computed from the imputed values; the variances of the imputed values of a
    sample are added to its sum of squares in the denominator of :math:`\rho`. If all selected
    features of a sample have the same value, its correlations do not exist, and its distance to
    every other sample is 1.

    The distance :math:`1 - \rho` is half the squared Euclidean distance between the samples after
    each is centred and scaled to norm 1. Ward's, centroid and median linkage are defined by this
    property; their heights are on the scale of :math:`\sqrt{1 - \rho}`. The reference data sets of
    the gap statistic are drawn in the space of the selected features, as for the other metrics, and
    their samples are then compared by :math:`1 - \rho`. The number of constant samples is the same
    in the reference data sets.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745
    .. [2] Witten, D. M., Tibshirani, R. and Hastie, T. (2009). A penalized matrix decomposition,
       with applications to sparse principal components and canonical correlation analysis.
       Biostatistics 10(3), 515-534. https://doi.org/10.1093/biostatistics/kxp008
    .. [3] Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a
       data set via the gap statistic. Journal of the Royal Statistical Society B 63(2), 411-423.
       https://doi.org/10.1111/1467-9868.00293
    .. [4] Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and
       validation of cluster analysis. Journal of Computational and Applied Mathematics 20, 53-65.
       https://doi.org/10.1016/0377-0427(87)90125-7
    .. [5] Josse, J. and Husson, F. (2012). Handling missing values in exploratory multivariate data
       analysis methods. Journal de la Société Française de Statistique 153(2), 79-99.
    .. [6] Liu, Y. and Xie, J. (2020). Cauchy combination test: a powerful test with analytic
       p-value calculation under arbitrary dependency structures. Journal of the American
       Statistical Association 115(529), 393-402. https://doi.org/10.1080/01621459.2018.1554485
    .. [7] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical
       and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1),
       289-300. https://doi.org/10.1111/j.2517-6161.1995.tb02031.x

    Examples
    --------
    Three clusters of 20 samples that differ in the first 50 of 500 features:

    >>> from mrshc import MrSHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)
    >>> model = MrSHC(n_features_to_select=50, random_state=0).fit(data.X)
    >>> model.n_clusters_, model.rank_
    (3, 1)
    >>> int(model.get_support()[:50].sum())
    50

    The tree can be cut into any number of clusters:

    >>> len(set(model.cut(2)))
    2

    The association rule needs no number of features, and tests all features:

    >>> model = MrSHC(selection="association", linkage="ward").fit(data.X)
    >>> model.supported_, model.n_clusters_
    (True, 3)
    >>> int(data.support[model.associated_features_].sum())
    50
    """

    def __init__(
        self,
        n_features_to_select: Any = "auto",
        *,
        rank: Any = "auto",
        max_rank: int = 5,
        n_clusters: Any = "auto",
        linkage: str = "complete",
        metric: str = "sqeuclidean",
        n_references: int = 50,
        stop_early: bool = True,
        feature_tolerance: int = 0,
        center: Any = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        checkpoint: Any = None,
        selection: str = "silhouette",
        refine: bool = False,
        robust: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.rank = rank
        self.max_rank = max_rank
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.n_references = n_references
        self.stop_early = stop_early
        self.feature_tolerance = feature_tolerance
        self.center = center
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.selection = selection
        self.refine = refine
        self.robust = robust

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features, build the tree and find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with at least 3 samples and 2 features; NaN marks a missing value. X may also be a
            memory map, an HDF5 or Zarr array, a backed AnnData object, a sparse matrix, a Dask
            array or an array on a device (torch, CuPy). Such data are read in blocks of features
            and are never loaded as a whole, unless there are no more features than samples.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : MrSHC
            Fitted estimator.

        Raises
        ------
        ValueError
            If X or the checkpoint file is invalid, or if all features are constant.
        ParameterError
            If a parameter is invalid.

        Warns
        -----
        UnsupportedClustersWarning
            If the data support fewer clusters than `n_clusters`, or no clusters. If the tree is
            built on associated features, the number of clusters is not tested.
        """
        gap = self._gap_settings()
        n_jobs = check_n_jobs(self.n_jobs)
        threads = effective_n_threads(n_jobs)
        data = check_samples(self, X, n_threads=threads)
        robust = self._robust_data(data, gap.metric)
        # The search uses only samples that are not outlying. Outlying samples thus influence
        # neither the selected features nor the tree of the other samples.
        usual = robust.usual_samples()
        plan = self._search_plan(usual, gap)
        checkpoint = None if self.checkpoint is None else self._open_checkpoint(usual, plan)
        center = check_center(self.center)
        with report_progress(self, n_steps=plan.n_steps, X=X, verbose=self.verbose) as progress:
            matrix = centre(
                usual,
                center=center,
                drop_constant=True,  # constant features do not distinguish samples
                n_threads=threads,
                on_block=progress.pass_callback(usual.shape, usual.dtype.itemsize),
            )
            result = search(matrix, plan, n_jobs=n_jobs, progress=progress, memory=checkpoint)
        if robust.outlying_samples.size:
            result = _attach_outliers(result, robust, gap)
        centres = self._centres_of_result(result, data=data, robust=robust)
        self._store_centres(centres)
        self._store_result(result, robust.outlying_samples, n_features=data.shape[1])
        store_n_passes(self, matrix.n_passes)
        return self

    def _robust_data(self, data: DataMatrix, metric: Metric) -> RobustData:
        """Return the data, winsorised if `robust=True`, and the indices of outlying samples.

        Raise ParameterError if `robust` is invalid, or if `robust=True` and the data are not an
        array in memory.
        """
        if not check_option("robust", self.robust, (False, True)):
            return RobustData(data=data, outlying_samples=np.empty(0, np.intp))
        if not data.in_memory:
            raise ParameterError(
                "{given} needs X in memory, as an array, but X is stored in another form, such as "
                "a file or a sparse matrix. Load it, or leave {robust} off.",
                given=Setting("robust", True),
                robust=Parameter("robust"),
                value=True,
            )
        with limit_blas_to_one_thread():  # rounding errors depend on the number of BLAS threads
            return detect_outliers(data.values, metric)

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return the data on which the tree was built: X, winsorised if `robust=True`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        data : DataMatrix
            The validated data, winsorised if `robust=True`.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        """
        return self._robust_data(super().data_of_fit(X), self.metric).data

    def _centres_of_result(
        self, result: SearchResult, *, data: DataMatrix, robust: RobustData
    ) -> ClusterCentres:
        """Return the centres of the clusters, for the method `predict`.

        `data` contains the data before, and `robust` after they are winsorised.
        """
        limits = None
        if self.robust:
            limits = winsorisation_limits(data.columns(result.features), robust.outlying_samples)
        return cluster_centres(
            robust.data,
            result.pruned.tree.number_by_leaves(result.labels),
            features=result.features,
            metric=self.metric,
            excluded=robust.outlying_samples,
            limits=limits,
        )

    def _search_plan(self, data: DataMatrix, gap: GapSettings) -> SearchPlan:
        """Return the settings of the search; raise ParameterError if a parameter is invalid."""
        n, p = data.shape
        limit = min(n, p)  # an (n, p) matrix cannot have a larger rank
        rank = check_integer_or_keyword(
            "rank",
            self.rank,
            "auto",
            low=1,
            high=limit,
            advice="There are no more components than samples and features.",
        )
        max_rank = check_integer(
            "max_rank", self.max_rank, low=1, high=None, advice="The default is 5."
        )
        selection = check_option("selection", self.selection, tuple(RULES))
        return SearchPlan(
            targets=candidate_feature_counts(
                self.n_features_to_select,
                n_features=p,
                n_constant=data.summary().n_constant,
                metric=gap.metric,
                default=RULES[selection].default_targets,
            ),
            # After centring, n samples span at most n - 1 dimensions, so larger ranks are not
            # tried.
            ranks=(rank,) if rank else RULES[selection].default_ranks(min(max_rank, n - 1, p)),
            n_clusters=check_integer_or_keyword(
                "n_clusters",
                self.n_clusters,
                "auto",
                low=2,
                high=n,
                advice="Give 'auto' to let the selection rule choose it.",
            ),
            tolerance=check_integer(
                "feature_tolerance",
                self.feature_tolerance,
                low=0,
                high=None,
                advice="The default, 0, asks for exactly the wanted number.",
            ),
            gap=gap,
            entropy=derive_seed(self.random_state),
            selection=selection,
            refine=bool(check_option("refine", self.refine, (False, True))),
        )

    def _open_checkpoint(self, data: DataMatrix, plan: SearchPlan) -> Checkpoint:
        """Return the checkpoint, with the steps that an interrupted fit has stored in its file.

        Raise ParameterError if `random_state` is not a nonnegative integer, or if `checkpoint` is
        not a path. Raise JournalMismatchError or DamagedJournalError if the file cannot be used.
        """
        # Without a fixed seed, the continued search would use other random numbers than the steps
        # in the file.
        advice = "A checkpoint needs a fixed seed: a continued search uses the same random numbers."
        check_integer("random_state", self.random_state, low=0, high=None, advice=advice)
        n, p = data.shape
        sizes = StepSizes(
            n_samples=n,
            n_features=p,
            n_leaves=plan.n_cuts(n),
            cut_scores=plan.rule.cut_scores,
        )
        # The string contains everything on which the steps depend. The number of workers and the
        # storage backend do not affect the steps. They are left out, so an interrupted search can
        # continue with a different number of workers or on a different backend.
        search = f"{data.fingerprint()} {self.center!r} {plan!r}"
        return Checkpoint(self.checkpoint, search=search, sizes=sizes)

    def _gap_settings(self) -> GapSettings:
        """Return the settings of the gap statistic; raise ParameterError if one is invalid."""
        linkage, metric = check_linkage_and_metric(self.linkage, self.metric)
        # A standard deviation requires at least two reference data sets.
        advice = "A standard error needs two; the default is 50."
        n_references = check_integer(
            "n_references", self.n_references, low=2, high=MAX_REPETITIONS, advice=advice
        )
        return GapSettings(
            linkage=linkage,
            metric=metric,
            n_references=n_references,
            stop_early=check_option("stop_early", self.stop_early, (True, False)),
        )

    def _store_result(self, result: SearchResult, outlying: Index, *, n_features: int) -> None:
        """Set the fitted attributes, and warn if the data support fewer clusters than expected."""
        support = np.zeros(n_features, dtype=bool)
        support[result.features] = True
        self._store_tree(result.pruned.tree, support)
        # These are the clusters of the pruned tree. Pruning may split a node and leave a higher
        # node unsplit, so the clusters may differ from those that `cut` returns.
        self.labels_ = self._tree.number_by_leaves(result.labels)
        self.n_clusters_ = result.n_leaves
        self.rank_ = result.chosen.features.rank
        self.components_ = dense_loadings(result.components, n_features)
        self.search_results_ = candidate_table(result.candidates)
        self.split_tests_ = _split_test_table(result, outlying)
        if self.robust:
            self.outlier_samples_ = outlying
        else:
            delete_attributes(self, "outlier_samples_")  # may exist from an earlier fit
        store_refinement(self, result.refined)
        if (warning := self._support_warning(result)) is not None:
            warn_caller(warning)

    def _support_warning(self, result: SearchResult) -> UnsupportedClustersWarning | None:
        """Return, without issuing it, the warning that the data support fewer clusters.

        Return None if the data support all clusters.
        """
        n_given = None if self.n_clusters == "auto" else result.n_leaves
        if result.refined is not None and result.refined.supported is False:
            return no_support_warning(n_given=n_given, n_expected=result.n_clusters)
        if n_given is None and result.n_leaves < result.n_clusters:
            finding, labels = RULES[self.selection].shortfall_message(result.n_leaves, None)
            advice = f"{labels}: use cut({result.n_clusters}) to cut the tree all the same."
            return UnsupportedClustersWarning(finding, advice=advice)
        if result.n_supported is None:
            return None
        # A tree on associated features is cut into the given number of clusters, and the number is
        # not tested. The warning is therefore always about the decision of the selection rule.
        finding, labels = RULES[self.selection].shortfall_message(result.n_supported, n_given)
        return UnsupportedClustersWarning(finding, advice=f"{labels}.")


def _attach_outliers(result: SearchResult, robust: RobustData, gap: GapSettings) -> SearchResult:
    """Return the result of a search after attaching the outlying samples to its tree."""
    with limit_blas_to_one_thread():
        columns = robust.data.columns(result.features).astype(np.float64)
        # Outlying samples must not influence the imputed values of the other samples.
        samples = complete_missing_cells(columns, excluded=robust.outlying_samples)
        pruned = attach_to_nearest_neighbours(
            result.pruned,
            samples.distances(gap.metric),
            robust.outlying_samples,
            n_clusters=result.n_leaves,
            linkage=gap.linkage,
        )
    return replace(result, pruned=pruned)


def _split_test_table(result: SearchResult, outlying: Index) -> dict[str, NDArray[Any]]:
    """Return the table for the attribute `split_tests_`, with one entry for each tested node."""
    pruned, n_splits = result.pruned, result.n_leaves - 1
    # The drop is the decrease of the log dispersion from one cluster to two clusters. The drop in
    # the data, minus its mean over the reference data sets, equals gap(2) - gap(1). The table
    # contains drops rather than gaps, so the data can be compared with each reference data set.
    nodes, curves = list(pruned.tests), list(pruned.tests.values())
    is_usual = np.ones(pruned.tree.n_samples, dtype=bool)
    is_usual[outlying] = False
    drops = [c.reference[:, 0] - c.reference[:, 1] for c in curves]
    references = np.empty(len(drops), dtype=object)  # arrays differ in length (early stopping)
    for i, drop in enumerate(drops):
        references[i] = drop
    return {
        "node": np.array(nodes, dtype=np.intp),
        # Outlying samples are not counted, since the tests do not use them.
        "n_samples": np.array(
            [np.count_nonzero(is_usual[pruned.tree.members(node)]) for node in nodes],
            dtype=np.intp,
        ),
        "height": np.array([pruned.tree.height(node) for node in nodes]),
        "drop": np.array([c.log_dispersion[0] - c.log_dispersion[1] for c in curves]),
        "expected_drop": np.array([drop.mean() for drop in drops]),
        "standard_error": np.array([c.standard_error[1] for c in curves]),
        "supported": np.array([c.n_clusters > 1 for c in curves], dtype=bool),
        "split": np.isin(nodes, pruned.splits[:n_splits]),
        "reference_drops": references,
    }
