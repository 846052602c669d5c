"""Refinement of feature sets: selection of all features that are associated with their clusters.

The clusters of a feature set are the clusters of the tree that is built from its features. These
features differ between the clusters even if they are noise, because the tree was built from them. A
test of a feature for association with these clusters would therefore be biased. Here, a feature is
tested only for association with clusters of trees that were built without the feature.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.association import benjamini_hochberg
from mrshc.core.inference.device_association import DeviceRanks
from mrshc.core.inference.feature_scores import FeatureScores, association_scores
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.parallel import run_in_parallel

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


# With fewer samples, no p-value is below 5 %, not even if all features separate two clusters
# perfectly, so the absence of associated features is no evidence against clusters. If only some
# features differ between the clusters, more samples are needed.
MIN_TESTED_SAMPLES = 7


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
