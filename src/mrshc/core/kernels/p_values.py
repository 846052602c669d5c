"""Tail probabilities of F distributions, and the combination of p-values."""

from __future__ import annotations

from math import atan2, exp, lgamma, log, log1p, pi, tan

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.kernels.jit import jit

# Largest number of degrees of freedom between groups for which the probability is computed as a
# finite sum. The sum then has at most four terms and is faster than the continued fraction.
_MAX_FREEDOM_OF_SUM = 8

# The continued fraction ends when a step changes its value by no more than this fraction, a few
# units in the last place of double precision.
CONVERGED = 1e-15

# Larger p-values are replaced by this value before p-values are combined. The Cauchy quantile of a
# p-value tends to minus infinity as the p-value approaches 1, and could cancel the quantiles of all
# other p-values. The quantile of 0.999 is -318, which cancels the quantile of only one p-value of
# 0.001.
LARGEST_COMBINED = 0.999


@jit()
def write_f_tail_probabilities(
    shares: Float, freedom: NDArray[np.intp], probabilities: Float
) -> None:
    """Write upper tail probabilities of F distributions, given shares of explained variance.

    Parameters
    ----------
    shares : array of shape (p, m)
        Sums of squares between groups, divided by the total sums of squares.
    freedom : array of int of shape (p, m, 2)
        Degrees of freedom between and within groups. The probability is 1 if one of them is zero.
    probabilities : array of shape (p, m)
        Output.
    """
    for k in range(shares.shape[1]):
        # The degrees of freedom of a partition are the same for all features without missing
        # values, so their beta function is rarely computed anew.
        between, within, log_beta = 0, 0, 0.0
        for j in range(shares.shape[0]):
            if freedom[j, k, 0] < 1 or freedom[j, k, 1] < 1:
                probabilities[j, k] = 1.0
                continue
            if freedom[j, k, 0] != between or freedom[j, k, 1] != within:
                between, within = freedom[j, k, 0], freedom[j, k, 1]
                a, b = 0.5 * between, 0.5 * within
                log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
            probabilities[j, k] = _f_tail_probability(shares[j, k], between, within, log_beta)


@jit()
def _f_tail_probability(share: float, between: int, within: int, log_beta: float) -> float:
    """Return the upper tail probability of an F distribution, given a share of explained variance.

    `between` and `within` are the degrees of freedom, at least one, and `log_beta` is the logarithm
    of the beta function of their halves.

    For the share s, and with a and b for the halves of the degrees of freedom between and within
    groups, the probability is the incomplete beta function I_{1 - s}(b, a). If a is an integer,
    this is the finite sum of (1 - s)^b (b)_i s^i / i! for i < a, where (b)_i is the rising
    factorial.
    """
    if share <= 0.0:
        return 1.0
    if share >= 1.0:
        return 0.0
    a, b = 0.5 * between, 0.5 * within
    if between % 2 == 0 and between <= _MAX_FREEDOM_OF_SUM:
        term, total = 1.0, 0.0
        for i in range(between // 2):
            total += term
            term *= share * (b + i) / (i + 1)
        # All terms are positive, so there is no cancellation. Rounding may exceed 1 slightly.
        return min((1.0 - share) ** b * total, 1.0)
    log_power = a * log(share) + b * log1p(-share) - log_beta
    # The fraction converges fast for an argument below the mean of the beta distribution. Above the
    # mean, the probability is not small, so the difference from 1 has no cancellation.
    if 1.0 - share < (b + 1.0) / (a + b + 2.0):
        return min(exp(log_power) * _beta_fraction(1.0 - share, b, a) / b, 1.0)
    return max(1.0 - exp(log_power) * _beta_fraction(share, a, b) / a, 0.0)


@jit(error_model="numpy")
def _beta_fraction(x: float, p: float, q: float) -> float:
    """Return the continued fraction of the incomplete beta function.

    The incomplete beta function I_x(p, q) is the fraction times x^p (1 - x)^q / (p B(p, q)), where
    B is the beta function. The fraction is 1 / (1 + d_1 / (1 + d_2 / (1 + ...))), with the
    coefficients d_i of https://dlmf.nist.gov/8.17#v. It converges for 0 <= x < 1, in a number of
    steps of the order of the square root of the larger parameter if x < (p + 1) / (p + q + 2).
    """
    # Numerators and denominators of the last two convergents. All are divided by the last
    # denominator after every second step, so that they neither overflow nor underflow. The last
    # denominator is then 1.
    scale = 1.0 / (1.0 - (p + q) * x / (p + 1.0))
    value, last_numerator, last_denominator = scale, scale, scale
    previous, m = 0.0, 0
    while abs(value - previous) > CONVERGED * value:
        m += 1
        previous = value
        even = m * (q - m) * x / ((p + 2 * m - 1.0) * (p + 2 * m))
        odd = -(p + m) * (p + q + m) * x / ((p + 2 * m) * (p + 2 * m + 1.0))
        numerator = value + even * last_numerator
        denominator = 1.0 + even * last_denominator
        scale = 1.0 / (denominator + odd)
        value = (numerator + odd * previous) * scale
        last_numerator, last_denominator = numerator * scale, denominator * scale
    return value


@jit()
def write_cauchy_combinations(p_values: Float, combined: Float) -> None:
    """Write the combination of each row of p-values by the Cauchy combination test.

    Parameters
    ----------
    p_values : array of shape (m, k)
        In each of m rows, the k p-values to combine. Values equal to 1 are ignored.
    combined : array of shape (m,)
        Output. The combined p-values; 1 for a row in which all p-values are 1.
    """
    for j in range(p_values.shape[0]):
        total, n_used = 0.0, 0
        for p_value in p_values[j]:
            if p_value < 1.0:
                # The quantile of a p-value of zero is infinite.
                quantile = np.inf
                if p_value > 0.0:
                    quantile = 1.0 / tan(pi * min(p_value, LARGEST_COMBINED))
                total += quantile
                n_used += 1
        # atan2(1, x) / pi equals 1/2 - arctan(x) / pi, but avoids cancellation for large x, that
        # is, for small p-values.
        combined[j] = atan2(1.0, total / n_used) / pi if n_used > 0 else 1.0
