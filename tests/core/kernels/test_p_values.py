"""Tail probabilities of F distributions are those of scipy."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from mrshc.core.kernels.p_values import write_f_tail_probabilities

BETWEEN = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 30, 201]


def tail_probabilities(shares, freedom):
    """Return the probabilities for shares in an array of any shape, and their freedom."""
    probabilities = np.full(shares.shape, np.nan)
    write_f_tail_probabilities(shares, np.broadcast_to(freedom, (*shares.shape, 2)), probabilities)
    return probabilities


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("within", [1, 2, 5, 60, 1000])
def test_probabilities_are_those_of_scipy_for_all_f_ratios(between, within):
    ratios = np.concatenate([[0.0], np.logspace(-6, 4, 40)])
    shares = ratios * between / (ratios * between + within)
    found = tail_probabilities(shares[:, None], (between, within))[:, 0]
    expected = stats.f.sf(ratios, between, within)
    # The share close to 1 has lost digits of 1 - share, which the power multiplies.
    is_exact = shares < 0.99
    np.testing.assert_allclose(found[is_exact], expected[is_exact], rtol=1e-10)
    assert found.max() <= 1.0


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("within", [1, 2, 3, 10, 53, 54, 333, 5000])
def test_probabilities_are_incomplete_beta_functions_of_all_shares(between, within):
    # For multiples of a power of two, 1 - share has no rounding error.
    shares = np.concatenate([np.arange(257) / 256, 2.0 ** -np.arange(9, 50)])
    found = tail_probabilities(shares[:, None], (between, within))[:, 0]
    expected = betainc(within / 2, between / 2, 1.0 - shares)
    # Smaller probabilities of scipy itself have fewer than ten correct digits.
    is_normal = expected > 1e-250
    np.testing.assert_allclose(found[is_normal], expected[is_normal], rtol=1e-10)
    np.testing.assert_allclose(found[~is_normal], 0.0, atol=1e-249)


def test_probabilities_depend_only_on_their_own_degrees_of_freedom():
    rng = np.random.default_rng(0)
    shares, freedom = rng.random((40, 5)), rng.integers(1, 60, size=(40, 5, 2))
    expected = betainc(freedom[..., 1] / 2, freedom[..., 0] / 2, 1.0 - shares)
    np.testing.assert_allclose(tail_probabilities(shares, freedom), expected, rtol=1e-10)


@pytest.mark.parametrize("freedom", [(0, 5), (5, 0), (0, 0), (-1, 0), (-1, 1)])
def test_the_probability_is_one_without_degrees_of_freedom(freedom):
    assert np.all(tail_probabilities(np.array([[0.0], [0.5]]), freedom) == 1.0)


@pytest.mark.parametrize("between", [1, 2, 3, 12])
def test_probabilities_of_the_extreme_shares_are_exact(between):
    found = tail_probabilities(np.array([[0.0], [1.0]]), (between, 20))
    np.testing.assert_array_equal(found, [[1.0], [0.0]])
