import numpy as np
import pytest

import plain_twin
from mrshc.core.selection.silhouette_rule import (
    SilhouetteRule,
    iterative_choice,
    reference_number_of_clusters,
)


@pytest.mark.parametrize(
    ("silhouettes", "chosen"),
    [
        ([0.3], 0),
        ([0.5, 0.4, 0.3], 0),  # falling: the smallest
        ([0.1, 0.2, 0.5, 0.6], 2),  # rising: just after the largest rise
        ([0.5, 0.2, 0.4], 0),  # the local minimum is removed, the rest falls
        ([0.3, 0.5, 0.2], 1),  # a peak: the last end point is removed, the rest rises
        ([0.2, 0.5, 0.3, 0.6], 1),  # 0.2 0.5 0.6 remain: the first rise is the largest
        ([0.4, 0.4, 0.4], 0),  # no difference: the smallest
        ([0.4, 0.4, 0.6], 2),
    ],
)
def test_choice_agrees_with_hand_computed_cases(silhouettes, chosen):
    assert iterative_choice(silhouettes).position == chosen


def test_choice_always_ends_and_agrees_with_the_twin():
    rng = np.random.default_rng(0)
    for _ in range(500):
        # Few distinct values: ties and plateaus are frequent.
        values = rng.integers(6, size=rng.integers(1, 12)) / 10
        assert iterative_choice(list(values)).position == plain_twin.choose(list(values))


@pytest.mark.parametrize(
    ("leaf_counts", "k"),
    [([1], 2), ([4], 4), ([1, 1, 1], 2), ([3, 5, 3], 3), ([3, 5, 5, 2], 5), ([2, 7], 2)],
)
def test_reference_number_is_the_largest_that_two_candidates_reach(leaf_counts, k):
    assert reference_number_of_clusters(leaf_counts) == k


def test_the_reference_number_is_derived_from_the_three_lowest_ranks():
    ranks = [1, 2, 4, 5, 7]
    grid = [(q, rank) for q in (6, 20) for rank in ranks]
    expected = [(6, 1), (6, 2), (6, 4), (20, 1), (20, 2), (20, 4)]
    assert SilhouetteRule().reference_cells(grid, ranks) == expected
