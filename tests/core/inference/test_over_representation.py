"""The upper tail of the hypergeometric law, against scipy, exact fractions and known numbers."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import fisher_exact, hypergeom

from mrshc.core.inference.over_representation import over_representation_p_values


def p_value(k, size, *, n_list, n_universe):
    counts = np.array([k]), np.array([size])
    return over_representation_p_values(*counts, n_list=n_list, n_universe=n_universe)[0]


def exact(k, size, *, n_list, n_universe):
    ways = [comb(size, i) * comb(n_universe - size, n_list - i) for i in range(k, n_list + 1)]
    return Fraction(sum(ways), comb(n_universe, n_list))


def test_two_of_two_out_of_six():
    # Of the 15 pairs out of 6 genes, one is the set itself.
    assert p_value(2, 2, n_list=2, n_universe=6) == pytest.approx(1 / 15, rel=1e-14)
    assert p_value(1, 2, n_list=2, n_universe=6) == pytest.approx(9 / 15, rel=1e-14)


@pytest.mark.parametrize("n_universe", [5, 60, 900])
def test_equal_to_scipy_for_all_possible_counts(n_universe):
    rng = np.random.default_rng(n_universe)
    for n_list in rng.integers(1, n_universe + 1, size=20).tolist():
        sizes = rng.integers(1, n_universe + 1, size=30)
        low, high = np.maximum(0, n_list + sizes - n_universe), np.minimum(sizes, n_list)
        common = rng.integers(low, high + 1)
        found = over_representation_p_values(common, sizes, n_list=n_list, n_universe=n_universe)
        expected = hypergeom.sf(common - 1, n_universe, sizes, n_list)
        # scipy adds up logarithms: below this value it has fewer digits.
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-280)


@pytest.mark.parametrize(
    ("k", "size", "n_list", "n_universe"),
    [(30, 66, 538, 1937), (40, 40, 400, 20_000), (1, 500, 500, 20_000), (200, 500, 900, 2000)],
)
def test_equal_to_exact_fractions(k, size, n_list, n_universe):
    given = {"n_list": n_list, "n_universe": n_universe}
    assert p_value(k, size, **given) == pytest.approx(float(exact(k, size, **given)), rel=1e-9)


def test_it_is_the_one_sided_test_of_fisher():
    table = [[7, 3], [13, 77]]  # in the set and in the list, and so on
    expected = fisher_exact(table, alternative="greater").pvalue
    assert p_value(7, 20, n_list=10, n_universe=100) == pytest.approx(expected, rel=1e-12)


def test_extreme_counts_have_no_rounding_errors_or_warnings():
    assert p_value(0, 5, n_list=5, n_universe=20_000) == 1.0
    assert p_value(10, 10, n_list=10, n_universe=10) == 1.0
    tiny = p_value(300, 300, n_list=300, n_universe=30_000)
    assert 0 <= tiny < 1e-300
    # Far below the mean, the probabilities of single counts are too small for floating point.
    assert p_value(1, 10_000, n_list=10_000, n_universe=20_001) == 1.0
