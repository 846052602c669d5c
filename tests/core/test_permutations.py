import numpy as np

from mrshc.core.permutations import gap_over_permutations


def criteria_of(*, scale, permutation):
    return scale * np.exp([permutation, 2.0 * permutation])


def test_gap_is_the_log_criterion_minus_the_mean_over_permutations():
    steps = []
    found = gap_over_permutations(
        criteria_of,
        {"scale": np.e},
        criteria=[np.exp(5.0), np.exp(7.5)],
        n_permutations=4,
        n_jobs=2,
        share_memory=True,
        progress=lambda *counts: steps.append(counts),
    )
    # The logarithms are 1, 2, 3, 4 for the first bound and 1, 3, 5, 7 for the second.
    np.testing.assert_allclose(found.gap, [2.5, 3.5])
    deviation = np.std([1, 2, 3, 4], ddof=1)
    np.testing.assert_allclose(found.standard_deviation, [deviation, 2 * deviation])
    assert found.best_position == 1
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
