import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mrshc.metrics import (
    SCORE_EXPLANATIONS,
    adjusted_rand_index,
    classification_error_rate,
    feature_precision,
    feature_recall,
    purity,
)


def test_error_rate_is_the_share_of_pairs_that_disagree():
    one, other = [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]
    pairs = [(i, j) for i in range(5) for j in range(i)]
    disagree = [(one[i] == one[j]) != (other[i] == other[j]) for i, j in pairs]
    assert classification_error_rate(one, other) == pytest.approx(np.mean(disagree))


def test_error_rate_ignores_names_of_labels():
    assert classification_error_rate(["a", "b", "b"], [2, 0, 0]) == 0.0


def test_the_adjusted_rand_index_is_that_of_scikit_learn():
    """Two pairs are together in both partitions, of 4 in each; 4 * 4 / 10 is expected by chance."""
    one, other = [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]
    assert adjusted_rand_index(one, other) == adjusted_rand_score(one, other)
    assert adjusted_rand_index(one, other) == pytest.approx((2 - 1.6) / (4 - 1.6))


def test_the_error_rate_is_explained_by_pairs_of_samples():
    assert SCORE_EXPLANATIONS["cer"] == (
        "classification error rate, the share of pairs of samples that one partition puts together "
        "and the other apart; 0 is best"
    )


def test_purity_counts_majorities():
    assert purity([0, 0, 1, 1, 1], [0, 0, 0, 1, 1]) == pytest.approx(4 / 5)


def test_recall_and_precision_count_hits():
    truth = np.array([True, True, True, False, False])
    found = np.array([True, False, False, True, False])
    assert feature_recall(truth, found) == pytest.approx(1 / 3)
    assert feature_precision(truth, found) == pytest.approx(1 / 2)


def test_scores_without_informative_or_selected_features_are_one():
    nothing, all_of_them = np.zeros(3, dtype=bool), np.ones(3, dtype=bool)
    assert feature_recall(nothing, all_of_them) == 1.0
    assert feature_precision(all_of_them, nothing) == 1.0


def test_indices_in_place_of_masks_are_refused():
    with pytest.raises(ValueError, match="must be boolean masks over the same features"):
        feature_recall([0, 1], [1, 2])
