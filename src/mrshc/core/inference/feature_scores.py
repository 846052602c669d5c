"""Association of features with trees that were built without them.

The features of a set are divided into folds. The features of a fold are tested for association with
the clusters of a tree that is built from the other folds, and all other features with the clusters
of the tree of the whole set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.statistics import column_variances
from mrshc.core.inference.association import (
    cauchy_combination,
    column_tests,
    combined_tests,
    rank_features,
)
from mrshc.core.inference.device_association import DeviceRanks
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.kernels.agglomeration import linkage_matrix
from mrshc.core.kernels.association import analyse_variance
from mrshc.core.kernels.fold_distances import distances_without
from mrshc.core.kernels.large_agglomeration import large_linkage_matrix, write_distances_without
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.tree_cuts import cut_into_clusters
from mrshc.core.parallel import MANY_SAMPLES, effective_n_threads, run_in_parallel, run_parts
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.matrix_pool import MatrixPool
from mrshc.core.trees.tree import (
    ADDITIVE_METRICS,
    COMPILED_LINKAGES,
    AdditiveMetric,
    agglomerate,
    condensed_distances,
    min_features,
)

# A tree is cut into each of these numbers of clusters, and the tests of all cuts are combined,
# since the true number of clusters is unknown. Few data sets have more than seven clusters.
_N_CLUSTERS = (2, 3, 4, 5, 6, 7)

# Number of folds into which a feature set is divided. The features of a fold are tested for
# association with a tree that is built from the other folds. With ten folds, this tree is nearly as
# good as the tree that is built from the whole set.
_N_FOLDS = 10

# From this number of samples on, each tree of a round is a task of its own, and below it each set.
# A tree of 500 samples takes several milliseconds, and starting a task a small part of one. The
# number has not been tuned; it does not affect the results.
_MIN_SAMPLES_OF_FOLD_TASKS = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureScores:
    """Association of all p features with the clusters of trees that were built without them.

    Attributes
    ----------
    p_values : ndarray of shape (p,)
        P-value of each feature, combined over the cuts of a tree; NaN if it was not computed since
        it is above a limit.
    strengths : ndarray of shape (p,)
        Sum of squares between clusters of each feature, in the squared unit of the feature; mean
        over the cuts of a tree.
    """

    p_values: Float
    strengths: Float


def association_scores(
    matrix: CentredMatrix,
    sets: Sequence[Index],
    settings: RefinementSettings,
    *,
    has_all_p_values: bool = True,
    ranks: DeviceRanks | None = None,
    n_jobs: int | None = None,
) -> list[FeatureScores]:
    """Return the association of each feature with trees that were built without the feature.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, with n samples and p features.
    sets : sequence of ndarray of int
        Indices of the features of each set, in increasing order.
    settings : RefinementSettings
        Settings of the trees.
    has_all_p_values : bool, default=True
        Whether p-values above the limit of `settings` are computed, too.
    ranks : DeviceRanks or None, default=None
        Ranks of data on a device, which later calls use again.
    n_jobs : int or None, default=None
        Number of threads that build trees.

    Returns
    -------
    list of FeatureScores
        One entry for each set.
    """
    n, p = matrix.shape
    if n <= _N_CLUSTERS[0]:  # each sample would be a cluster, so no test is possible
        return [FeatureScores(p_values=np.ones(p), strengths=np.zeros(p)) for _ in sets]
    ranks = DeviceRanks() if ranks is None else ranks
    with _ranks_in_background(matrix, ranks):
        scored = _score_sets(matrix, sets, settings, n_jobs=n_jobs)
    # All sets are tested in one pass. The tests of the features of a set are replaced by those with
    # trees that were built without them.
    partitions = np.stack([cuts for cuts, _ in scored])
    tests = combined_tests(
        matrix,
        partitions,
        ranks,
        alpha=1.0 if has_all_p_values else settings.alpha,
        n_jobs=n_jobs,
    )
    scores = []
    for i, (present, (_, members)) in enumerate(zip(sets, scored, strict=True)):
        of_set = FeatureScores(p_values=tests.p_values[:, i], strengths=tests.strengths[:, i])
        of_set.p_values[present], of_set.strengths[present] = members.p_values, members.strengths
        scores.append(of_set)
    return scores


@contextmanager
def _ranks_in_background(matrix: CentredMatrix, ranks: DeviceRanks) -> Iterator[None]:
    """Context in which a device computes ranks while trees are built in main memory.

    There is nothing to compute unless the data are on a device and complete.
    """
    if not matrix.is_complete_on_device or ranks.is_complete:
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        ranking = pool.submit(_compute_ranks, matrix, ranks)
        yield
        ranking.result()
    ranks.is_complete = True


def _compute_ranks(matrix: CentredMatrix, ranks: DeviceRanks) -> None:
    """Pass over the data on a device, so that their ranks are stored."""
    deque(matrix.map_all_columns(_ignore_columns, ranks, n_jobs=1), maxlen=0)


def _ignore_columns(_: Float) -> None:
    """Do nothing. The function is not called for data on a device."""


# Cuts of the tree of a feature set, and the scores of the features of the set.
_SetScores = tuple[NDArray[np.intp], FeatureScores]


def _score_sets(
    matrix: CentredMatrix,
    sets: Sequence[Index],
    settings: RefinementSettings,
    *,
    n_jobs: int | None,
) -> list[_SetScores]:
    """Return the result of `_score_set` for each feature set.

    The parameters are those of `association_scores`.
    """
    n = matrix.shape[0]
    columns = ({"X": matrix.columns(present), "settings": settings} for present in sets)
    n_threads = effective_n_threads(n_jobs)
    if _MIN_SAMPLES_OF_FOLD_TASKS <= n < MANY_SAMPLES and n_threads > 1:
        return list(_score_sets_by_folds(columns, n_threads=n_threads))
    # With many samples, the trees of one set are built in several threads, and need one matrix of
    # distances in each thread. One set is scored after another, so that there are no more matrices.
    n_sets = 1 if n >= MANY_SAMPLES else n_jobs
    return list(run_in_parallel(_score_set, columns, n_jobs=n_sets, share_memory=True))


def _score_sets_by_folds(
    columns: Iterator[dict[str, Any]], *, n_threads: int
) -> Iterator[_SetScores]:
    """Yield the result of `_score_set` for each feature set, with a task for each tree.

    There may be fewer sets than threads, and large sets take more time than small ones. `columns`
    contains the arguments of `_score_set`.
    """
    run = partial(run_in_parallel, n_jobs=n_threads, share_memory=True)
    # The distances between the samples are in memory for as many sets as there are threads.
    while group := list(islice(columns, n_threads)):
        sets: list[_FoldedSet] = list(run(_FoldedSet, group))
        tasks: list[Callable[[], Any]] = [of_set.cut_tree for of_set in sets]
        for of_set in sets:
            tasks += [partial(of_set.test_fold, fold) for fold in range(of_set.n_folds)]
        results = list(run(_call_task, ({"task": task} for task in tasks)))
        yield from ((cuts, s.scores()) for cuts, s in zip(results[: len(sets)], sets, strict=True))


def _call_task(task: Callable[[], Any]) -> Any:
    """Call a task, which is a function without arguments, and return its result."""
    return task()


def _score_set(X: Float, settings: RefinementSettings) -> _SetScores:
    """Return the cuts of the tree of a feature set, and the scores of the features of the set.

    Parameters
    ----------
    X : ndarray of shape (n, q)
        Columns of the q features of the set, with NaN for missing values.
    settings : RefinementSettings
        Settings of the trees.
    """
    if len(X) >= MANY_SAMPLES and _can_subtract_folds(X, settings):
        metric = cast(AdditiveMetric, settings.metric)
        return _score_set_in_parts(X, condensed_distances(X, metric), settings)
    folded = _FoldedSet(X, settings)
    for fold in range(folded.n_folds):
        folded.test_fold(fold)
    return folded.cut_tree(), folded.scores()


class _FoldedSet:
    """A feature set whose features are tested in folds, each with a tree of the other folds.

    If the other folds have too few features for a tree, for example because the set has a single
    feature, the p-values are 1. The methods may be called in several threads.

    Parameters
    ----------
    X : ndarray of shape (n, q)
        Columns of the q features of the set, with NaN for missing values.
    settings : RefinementSettings
        Settings of the trees.

    Attributes
    ----------
    n_folds : int
        Number of folds; zero if there are too few features.
    """

    def __init__(self, X: Float, settings: RefinementSettings) -> None:
        q = X.shape[1]
        folds = split_into_folds(column_variances(X))
        self.n_folds = 0 if q - folds[0].size < min_features(settings.metric) else len(folds)
        self._X = X
        self._settings = settings
        self._distances = complete_missing_cells(X).distances(settings.metric)
        self._can_subtract = _can_subtract_folds(X, settings)
        # The features of a fold are consecutive rows of an array, of which no copies are made.
        self._order = np.concatenate(folds)
        self._ends = np.cumsum([0, *(fold.size for fold in folds)])
        n_cuts = _cluster_counts(len(X)).size
        self._p_values, self._between = np.ones((q, n_cuts)), np.zeros((q, n_cuts))
        if self._can_subtract and self.n_folds:
            self._features = np.ascontiguousarray(X.T[self._order])
            self._ranks = rank_features(self._features)

    def cut_tree(self) -> NDArray[np.intp]:
        """Return the cuts of the tree that is built from all features of the set."""
        return _cut_partitions(self._distances, self._settings)

    def test_fold(self, fold: int) -> None:
        """Test the features of a fold, given by its number, with the tree of the other folds."""
        rows = slice(self._ends[fold], self._ends[fold + 1])
        test = self._test_by_subtraction if self._can_subtract else self._test_by_tree
        self._p_values[rows], self._between[rows] = test(rows)

    def scores(self) -> FeatureScores:
        """Return the scores of the features of the set; all folds must have been tested."""
        q = self._order.size
        scores = FeatureScores(p_values=np.ones(q), strengths=np.zeros(q))
        if self.n_folds:
            scores.p_values[self._order] = cauchy_combination(self._p_values)
            mean = _mean_over_cuts if self._can_subtract else partial(np.mean, axis=1)
            scores.strengths[self._order] = mean(self._between)
        return scores

    def _test_by_subtraction(self, rows: slice) -> tuple[Float, Float]:
        """Return p-values and sums of squares of a fold, for each feature and cut.

        The compiled functions are called directly, since a fold of few samples takes less than a
        millisecond.
        """
        tested, settings = self._features[rows], self._settings
        linkage, is_squared = LinkageMethod[settings.linkage].value, self._is_squared
        without_fold = distances_without(self._distances, tested, is_squared)
        children = linkage_matrix(without_fold, linkage)[:, :2].astype(np.intp)
        partitions = cut_into_clusters(children, _cluster_counts(len(self._X)))
        return analyse_variance(tested, self._ranks[rows], partitions)

    def _test_by_tree(self, rows: slice) -> tuple[Float, Float]:
        """Return the results of `_test_by_subtraction` for data of any kind, linkage or metric."""
        X, settings, fold = self._X, self._settings, self._order[rows]
        # If the distance is a sum over columns, the part of the fold can be subtracted.
        if settings.metric in ADDITIVE_METRICS and not np.isnan(X).any():
            features = np.ascontiguousarray(X.T[fold])
            without_fold = distances_without(self._distances, features, self._is_squared)
        else:
            others = np.delete(np.arange(X.shape[1]), fold)
            without_fold = complete_missing_cells(X[:, others]).distances(settings.metric)
        tests = column_tests(X[:, fold], _cut_partitions(without_fold, settings))
        return tests.p_values, tests.between

    @property
    def _is_squared(self) -> bool:
        return self._settings.metric == "sqeuclidean"


def _can_subtract_folds(X: Float, settings: RefinementSettings) -> bool:
    """Return whether the trees without a fold are built by compiled code, by subtracting the fold.

    The distance must be a sum over columns without missing values.
    """
    is_additive = settings.metric in ADDITIVE_METRICS and not np.isnan(X).any()
    return is_additive and settings.linkage in COMPILED_LINKAGES


def _score_set_in_parts(
    X: Float, distances: Float, settings: RefinementSettings
) -> tuple[NDArray[np.intp], FeatureScores]:
    """Return the result of `_score_set`, with the trees of many samples in several threads.

    `distances`, of shape (n (n - 1) / 2,), contains the distances between the samples, as
    `condensed_distances` returns them. Each thread needs one matrix of shape (n, n).
    """
    n, q = X.shape
    linkage, cluster_counts = LinkageMethod[settings.linkage].value, _cluster_counts(n)
    is_squared, take_roots = settings.metric == "sqeuclidean", settings.linkage == "ward"
    folds = split_into_folds(column_variances(X))
    if q - folds[0].size < min_features(settings.metric):
        folds = []
    matrices = MatrixPool(n)

    def cuts_and_tests(fold: Index) -> tuple[NDArray[np.intp], Float, Float]:
        """Return the cuts of the tree without a fold, and the tests of the fold."""
        tested = np.ascontiguousarray(X.T[fold])
        with matrices.borrow() as working:
            write_distances_without(distances, tested, is_squared, take_roots, working)
            children = large_linkage_matrix(working, linkage)[:, :2].astype(np.intp)
        partitions = cut_into_clusters(children, cluster_counts)
        return partitions, *analyse_variance(tested, rank_features(tested), partitions)

    # The tree of the whole set is the tree without an empty fold.
    whole, *of_folds = run_parts(
        cuts_and_tests, [(fold,) for fold in (np.empty(0, np.intp), *folds)]
    )
    scores = FeatureScores(p_values=np.ones(q), strengths=np.zeros(q))
    for fold, (_, p_values, between) in zip(folds, of_folds, strict=True):
        scores.p_values[fold] = cauchy_combination(p_values)
        scores.strengths[fold] = _mean_over_cuts(between)
    return whole[0], scores


def _mean_over_cuts(between: Float) -> Float:
    """Return the mean of each row of `between`, whose columns are the cuts of a tree."""
    # The cuts are added one after another. The order of summation in numpy's mean depends on the
    # number of cuts.
    total = np.zeros(len(between))
    for of_cut in between.T:
        total += of_cut
    mean: Float = total / between.shape[1]
    return mean


def split_into_folds(variances: Float) -> list[Index]:
    """Return a list of at most ten folds; each fold is an array of positions in `variances`.

    `variances` contains the variance of each feature. The features are assigned to the folds in
    turn, in order of decreasing variance. Each fold thus contains features of large and of small
    variance, so the trees that are built without one of the folds are similar. If there are fewer
    than ten features, each feature is one fold.
    """
    order = np.argsort(-variances, kind="stable")
    return [order[i::_N_FOLDS] for i in range(min(_N_FOLDS, order.size))]


def _cut_partitions(distances: Float, settings: RefinementSettings) -> NDArray[np.intp]:
    """Return the cluster labels of the n samples for several cuts of a tree, one cut in each row.

    The tree is built from the distances between the samples and cut into each number of clusters
    that is smaller than n.
    """
    tree = agglomerate(distances, settings.linkage)
    return np.stack(tree.cuts(_cluster_counts(len(distances))))


def _cluster_counts(n_samples: int) -> Index:
    """Return the numbers of clusters into which a tree of n samples is cut, all smaller than n."""
    return np.array([k for k in _N_CLUSTERS if k < n_samples])
