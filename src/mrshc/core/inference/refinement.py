"""Refinement of feature sets: selection of all features that are associated with their clusters.

The clusters of a feature set are the clusters of the tree that is built from its features. These
features differ between the clusters even if they are noise, because the tree was built from them. A
test of a feature for association with these clusters would therefore be biased. Here, a feature is
tested only for association with clusters of trees that were built without the feature.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.statistics import column_variances
from mrshc.core.inference.association import (
    benjamini_hochberg,
    cauchy_combination,
    column_tests,
    combined_tests,
    rank_features,
)
from mrshc.core.inference.device_association import DeviceRanks
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
    Linkage,
    Metric,
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

# Largest number of rounds, for the case that the feature sets neither converge nor repeat. Each
# round is one pass over the data, so six rounds are less than half of the passes of a fit.
_MAX_ROUNDS = 6

# Rounds end when at least this share of the features of the larger of the old and the new feature
# set is in both sets, since the few other features have little effect on the tree.
_SETTLED_SHARE = 0.95

# If more sets are tested in one pass, only the p-values that decide whether a feature is associated
# are computed. Other p-values are needed only for the set that is used in the end, which is rarely
# one of so many sets, so that their computation in a later pass is rarely necessary.
_MAX_SETS_WITH_ALL_P_VALUES = 3

# With fewer features, all p-values are computed, since bounds do not save time.
_MIN_BOUNDED_FEATURES = 10_000


# From this number of samples on, each tree of a round is a task of its own, and below it each set.
# A tree of 500 samples takes several milliseconds, and starting a task a small part of one. The
# number has not been tuned; it does not affect the results.
_MIN_SAMPLES_OF_FOLD_TASKS = 500

# With fewer samples, no p-value is below 5 %, not even if all features separate two clusters
# perfectly, so the absence of associated features is no evidence against clusters. If only some
# features differ between the clusters, more samples are needed.
MIN_TESTED_SAMPLES = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementSettings:
    """Settings of the refinement of a feature set.

    Attributes
    ----------
    linkage, metric : str
        Linkage and metric with which trees are built.
    alpha : float
        Largest q-value at which a feature is considered to be associated with the clusters.
    max_features : int
        Largest number of features from which a tree is built. The limit is needed because, in real
        data, half of all features may be associated.
    min_features : int
        Smallest number of associated features for which the clusters are considered to be
        supported.
    """

    linkage: Linkage = "complete"
    metric: Metric = "sqeuclidean"
    alpha: float = 0.05
    # A common number of genes in the analysis of gene expression: enough for stable distances, and
    # few enough to leave out weakly associated genes.
    max_features: int = 500
    min_features: int = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RefinementResult:
    """Result of a refinement: the features that are associated with the clusters of a tree.

    Attributes
    ----------
    supported : bool or None
        Whether at least `min_features` features are associated with the clusters. If fewer features
        are associated, and the start set itself has fewer than `min_features` features or there
        are fewer than seven samples, the value is None rather than False.
    features : ndarray of int
        Indices of the features from which the final tree is built, in increasing order. These are
        the features of the start set unless `supported` is True.
    associated : ndarray of int
        Indices of all associated features, in increasing order; empty unless `supported` is True.
    strength : float
        Sum, over the associated features, of the sum of squares between clusters; zero unless
        `supported` is True.
    p_values : ndarray of shape (p,)
        P-values of all p features in the last round; 1 if a feature could not be tested. In the
        results of `refine_feature_sets`, a p-value above the limit of q-values may be NaN, which
        means that it has not been computed (`complete_p_values`).
    n_rounds : int
        Number of rounds that were carried out.
    tested : ndarray of int
        Indices of the features of the set that was tested in the last round.
    """

    supported: bool | None
    features: Index
    associated: Index
    strength: float
    p_values: Float
    n_rounds: int
    tested: Index

    @property
    def q_values(self) -> Float:
        """Q-values of all p features in the last round; 1 if a feature could not be tested.

        All p-values must have been computed.
        """
        q_values, is_tested = np.ones(self.p_values.size), self.p_values < 1.0
        q_values[is_tested] = benjamini_hochberg(self.p_values[is_tested])
        return q_values


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


def refine_feature_set(
    matrix: CentredMatrix, start: Index, settings: RefinementSettings
) -> RefinementResult:
    """Refine one feature set and compute all p-values; see `refine_feature_sets`."""
    refined = refine_feature_sets(matrix, [start], settings)[0]
    return complete_p_values(matrix, refined, settings)


def complete_p_values(
    matrix: CentredMatrix,
    refined: RefinementResult,
    settings: RefinementSettings,
    *,
    n_jobs: int | None = None,
) -> RefinementResult:
    """Return the result of a refinement with the p-values of all features.

    If some p-values of the last round have not been computed, all are computed in one pass over the
    data. The parameters are those of `refine_feature_sets`.
    """
    if not np.isnan(refined.p_values).any():
        return refined
    [scores] = association_scores(matrix, [refined.tested], settings, n_jobs=n_jobs)
    return replace(refined, p_values=scores.p_values)


def refine_feature_sets(
    matrix: CentredMatrix,
    starts: Sequence[Index],
    settings: RefinementSettings,
    *,
    n_continued: int | None = None,
    n_jobs: int | None = None,
) -> list[RefinementResult]:
    """Refine several feature sets by repeated tests of association, and return the results.

    In each round, every feature outside the current set is tested for association with the clusters
    of the tree that is built from the set. The current set is divided into at most ten folds, and
    the features of a fold are tested with a tree that is built from the other folds. The associated
    features form the next set. If there are more than `max_features` of them, those with the
    largest sum of squares between clusters are used. Rounds end when 95 % of the features stay the
    same, when the set is equal to an earlier set, when fewer than `min_features` features are
    associated, or after six rounds.

    The sets are refined independently of each other. One round of all sets needs one pass over the
    data.

    Parameters
    ----------
    matrix : CentredMatrix
        The data, with n samples and p features.
    starts : sequence of ndarray of int
        Indices of the features of each start set.
    settings : RefinementSettings
        Settings of the trees and of the tests.
    n_continued : int or None, default=None
        Number of sets for which there is more than one round: those with the largest strength in
        the first round. None means all sets.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    list of RefinementResult
        For each start set, the new feature set, the associated features, and the p-values.
    """
    n_samples, n_features = matrix.shape
    refinements = [_Refinement(start, settings, n_samples=n_samples) for start in starts]
    ranks = DeviceRanks()
    while active := [refinement for refinement in refinements if refinement.result is None]:
        # Different starts often lead to the same set, which is tested only once.
        sets = {refinement.present.tobytes(): refinement.present for refinement in active}
        are_few = len(sets) <= _MAX_SETS_WITH_ALL_P_VALUES or n_features < _MIN_BOUNDED_FEATURES
        tested = association_scores(
            matrix,
            [*sets.values()],
            settings,
            has_all_p_values=are_few,
            ranks=ranks,
            n_jobs=n_jobs,
        )
        scores = dict(zip(sets, tested, strict=True))
        rounds = [{"refinement": r, "scores": scores[r.present.tobytes()]} for r in active]
        deque(run_in_parallel(_advance, rounds, n_jobs=n_jobs, share_memory=True), maxlen=0)
        if n_continued is not None:
            # The sort is stable: of several sets with equal strengths, the first are continued.
            for refinement in sorted(refinements, key=lambda r: -r.strength)[n_continued:]:
                refinement.end()
            n_continued = None  # the other sets are refined to their end
    return [refinement.result for refinement in refinements if refinement.result is not None]


def _advance(refinement: _Refinement, scores: FeatureScores) -> None:
    """Call the method `advance`, which sorts the p-values of all features, in another thread."""
    refinement.advance(scores)


class _Refinement:
    """The state of the refinement of one feature set.

    Attributes
    ----------
    present : ndarray of int
        Indices of the features of the current set, in increasing order.
    associated : ndarray of int
        Indices of the features that were associated in the last round, in increasing order.
    strength : float
        Sum over these features of the sum of squares between clusters.
    result : RefinementResult or None
        The result; None until the refinement has ended.
    """

    def __init__(self, start: Index, settings: RefinementSettings, *, n_samples: int) -> None:
        self.present: Index = np.sort(start)
        self._tested = self.present
        self.associated: Index = np.empty(0, np.intp)
        self.result: RefinementResult | None = None
        self.strength = 0.0
        self._p_values: Float = np.empty(0)
        self._start = self.present
        self._settings = settings
        self._previous = set[bytes]()
        self._n_rounds = 0
        self._can_decide = start.size >= settings.min_features and n_samples >= MIN_TESTED_SAMPLES

    def advance(self, scores: FeatureScores) -> None:
        """Replace the current set by the associated features, given the scores for this set."""
        settings = self._settings
        self._n_rounds += 1
        self._tested, self._p_values = self.present, scores.p_values
        self.associated = _associated_features(scores.p_values, settings.alpha)
        if self.associated.size < settings.min_features:
            self.end()
            return
        # The features with the smallest p-values would all show the same clusters, namely those
        # that are easiest to see. Features with large sums of squares show several kinds of
        # clusters.
        self.strength = float(scores.strengths[self.associated].sum())
        strongest = np.argsort(-scores.strengths[self.associated], kind="stable")
        following = np.sort(self.associated[strongest[: settings.max_features]])
        n_common = np.intersect1d(self.present, following, assume_unique=True).size
        is_settled = n_common >= _SETTLED_SHARE * max(self.present.size, following.size)
        self._previous.add(self.present.tobytes())
        self.present = following
        # If a set has occurred before, the same rounds would be repeated.
        is_repeated = following.tobytes() in self._previous
        if is_settled or is_repeated or self._n_rounds == _MAX_ROUNDS:
            self.end()

    def end(self) -> None:
        """Set the result; this has no effect if the refinement has already ended."""
        if self.result is not None:
            return
        has_enough = self.associated.size >= self._settings.min_features
        unsupported = False if self._can_decide else None
        self.result = RefinementResult(
            supported=True if has_enough else unsupported,
            features=self.present if has_enough else self._start,
            associated=self.associated if has_enough else np.empty(0, np.intp),
            strength=self.strength if has_enough else 0.0,
            p_values=self._p_values,
            n_rounds=self._n_rounds,
            tested=self._tested,
        )


def _associated_features(p_values: Float, alpha: float) -> Index:
    """Return the indices of the features whose q-value is at most alpha, in increasing order.

    P-values above alpha may be NaN.
    """
    # A combined p-value of 1 means that no test was possible, as for a constant feature. Such a
    # feature is not one of the tested hypotheses.
    n_tested = int(np.count_nonzero(p_values != 1.0))
    # A q-value is at least as large as its p-value. Features with larger p-values therefore cannot
    # be associated, and are not sorted.
    candidates = np.flatnonzero((p_values <= alpha) & (p_values < 1.0))
    q_values = benjamini_hochberg(p_values[candidates], n_hypotheses=n_tested)
    associated: Index = candidates[q_values <= alpha]
    return associated


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
