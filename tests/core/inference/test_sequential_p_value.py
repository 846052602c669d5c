"""P-values from a varying number of simulations."""

import numpy as np
import pytest
from scipy import stats

from mrshc.core.inference.sequential_p_value import sequential_p_value, upper_tail_p_value


def run(observed, *, n_simulations=100, threshold=0.05, seed=0):
    """Return the p-value, the number of simulations, and the requested ranges."""
    values = np.random.default_rng(seed).normal(size=n_simulations)
    asked = []

    def simulate(numbers):
        asked.append(numbers)
        return values[numbers.start : numbers.stop]

    return (
        *sequential_p_value(observed, simulate, n_simulations=n_simulations, threshold=threshold),
        asked,
    )


def test_p_value_is_that_of_a_new_observation():
    values = np.random.default_rng(0).normal(2.0, 3.0, size=15)
    # The t test of two samples of which one has a single value and no estimate of the variance.
    scale = values.std(ddof=1) * np.sqrt(1 + 1 / 15)
    expected = stats.t.sf((6.0 - values.mean()) / scale, df=14)
    assert upper_tail_p_value(6.0, values) == pytest.approx(expected)


def test_p_values_are_uniform_under_the_null_hypothesis():
    rng = np.random.default_rng(1)
    p_values = [upper_tail_p_value(rng.normal(), rng.normal(size=10)) for _ in range(3000)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_missing_statistics_are_ignored():
    values = np.array([0.0, np.nan, 1.0, 2.0])
    assert upper_tail_p_value(1.5, values) == upper_tail_p_value(1.5, values[[0, 2, 3]])
    assert upper_tail_p_value(1.5, np.array([np.nan, 1.0])) == 1.0


@pytest.mark.parametrize(("observed", "expected"), [(1.0, 1.0), (2.0, 0.0)])
def test_equal_statistics(observed, expected):
    assert upper_tail_p_value(observed, np.ones(10)) == expected


def test_a_large_p_value_ends_the_simulations_at_once():
    p_value, n_simulated, _ = run(-1.0)
    assert p_value > 0.25
    assert n_simulated == 10


def test_a_small_p_value_needs_twenty_simulations():
    p_value, n_simulated, _ = run(8.0)
    assert p_value < 0.005
    assert n_simulated == 20


def test_an_unclear_p_value_needs_all_simulations():
    p_value, n_simulated, asked = run(1.7, n_simulations=90)
    assert 0.005 < p_value < 0.25
    assert n_simulated == 90
    assert [*asked] == [
        range(10),
        range(10, 20),
        *(range(k, k + 20) for k in (20, 40, 60)),
        range(80, 90),
    ]


def test_the_level_is_kept_although_the_simulations_may_end_early():
    rng = np.random.default_rng(2)
    n_sets = 4000
    rejected = [
        sequential_p_value(
            rng.normal(),
            lambda numbers: rng.normal(size=len(numbers)),
            n_simulations=100,
            threshold=0.05,
        )[0]
        <= 0.05
        for _ in range(n_sets)
    ]
    # Three standard errors above 0.05.
    assert np.mean(rejected) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_sets)
