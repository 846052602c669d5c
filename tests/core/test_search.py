"""The rule of Algorithms 3 and 4, and the number of clusters K that it compares candidates at."""

from itertools import pairwise

import numpy as np
import pytest

import plain_twin
from mrshc.core.search import choose, iterative_choice, ranks_for_k, reference_k


@pytest.mark.parametrize(
    ("silhouettes", "position", "removed"),
    [
        ([0.5], 0, []),
        ([0.5, 0.4, 0.4], 0, []),  # never rises: the first
        ([0.1, 0.2, 0.6, 0.7], 2, []),  # never falls: after the largest rise
        ([0.0, 0.25, 0.25, 0.5], 1, []),  # of equal rises, the first
        ([0.3, 0.3, 0.3], 0, []),
        ([0.5, 0.2, 0.6], 2, [1]),  # 0.5, 0.6
        ([0.2, 0.6, 0.4], 1, [2]),  # an end is a local minimum, too
        # .5 .2 .4 .6 remain, then .5 .4 .6, and at last .5 .6, which rise.
        ([0.5, 0.2, 0.4, 0.1, 0.6], 4, [3, 1, 2]),
        ([0.4, 0.4, 0.6], 2, []),
    ],
)
def test_local_minima_are_removed_from_the_last_until_the_rest_is_monotone(
    silhouettes, position, removed
):
    assert iterative_choice(silhouettes) == (position, removed)


def test_the_choice_is_that_of_the_plain_twin():
    rng = np.random.default_rng(0)
    for _ in range(500):
        silhouettes = (rng.integers(-3, 6, size=rng.integers(1, 12)) / 10).tolist()  # many ties
        position, removed = iterative_choice(silhouettes)
        assert position == plain_twin.choose(silhouettes)
        left = [s for i, s in enumerate(silhouettes) if i not in removed]
        assert len(left) == len(silhouettes) - len(removed)
        steps = [b - a for a, b in pairwise(left)]
        assert all(step >= 0 for step in steps) or all(step <= 0 for step in steps)


def test_the_trees_of_three_ranks_determine_k():
    assert ranks_for_k([1, 2, 3, 4, 5]) == (1, 2, 3)
    assert ranks_for_k([4]) == (4,)


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        ({(10, 1): 4, (10, 2): 6, (20, 1): 5, (20, 2): 3, (40, 1): 2}, 5),  # 6, 5 and 2 by q
        ({(10, 1): 7, (10, 2): 6, (20, 1): 1}, 2),  # at least two
        ({(10, 1): 7, (10, 2): 9}, 9),  # a single q
        ({(10, 1): 1}, 2),
        ({(10, 1): 4, (20, 1): 4, (40, 1): 9}, 4),
    ],
)
def test_k_is_the_second_largest_number_of_leaves_over_q(leaves, expected):
    assert reference_k(sorted({q for q, _ in leaves}), leaves) == expected


def table(**columns):
    return {name: np.array(values) for name, values in columns.items()}


def test_a_rank_is_chosen_for_each_q_and_then_a_q():
    found, best, removed = choose(
        table(
            n_features_target=[10, 10, 10, 20, 20, 40],
            silhouette=[0.3, 0.1, 0.5, 0.2, 0.1, 0.4],
            screened_out=[False] * 6,
        )
    )
    # q = 10: .3 .1 .5 becomes .3 .5; q = 20: .2; q = 40: .4. Then .5 .2 .4 becomes .5 .4.
    assert np.flatnonzero(best).tolist() == [2, 3, 5]
    assert np.flatnonzero(removed).tolist() == [1, 3]
    assert found == 2


def test_if_nothing_is_left_the_most_clusters_and_then_the_largest_silhouette_count():
    rows = table(
        n_features_target=[10, 20, 40, 60],
        silhouette=[0.9, 0.2, 0.3, 0.1],
        n_leaves=[2, 3, 3, 3],
        screened_out=[True] * 4,
    )
    found, best, removed = choose(rows)
    assert (found, best.any(), removed.any()) == (2, False, False)
    rows["silhouette"][:] = 0.5
    assert choose(rows)[0] == 1
