"""Over-representation of sets in a list of genes: the upper tail of the hypergeometric law."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from mrshc.core.array_types import Float, Index


def over_representation_p_values(
    n_common: Index, n_set: Index, *, n_list: int, n_universe: int
) -> Float:
    """Return the probability of at least as many common genes if the list were drawn at random.

    Parameters
    ----------
    n_common : ndarray of shape (n_sets,)
        Number of genes of the list that belong to each set.
    n_set : ndarray of shape (n_sets,)
        Number of genes of each set, all of which belong to the universe.
    n_list : int
        Number of genes of the list, all of which belong to the universe.
    n_universe : int
        Number of genes from which the list is drawn, without replacement.

    Returns
    -------
    ndarray of shape (n_sets,)
        P-values of the hypergeometric test: P(N >= n_common), where N has the hypergeometric
        distribution with parameters n_universe, n_set and n_list.
    """
    k, sizes = (np.asarray(counts, dtype=np.float64) for counts in (n_common, n_set))
    law = {"n_list": n_list, "n_universe": n_universe}
    # A sum of terms that decrease from the first one is accurate. The terms decrease above the
    # mean. Below the mean, the lower tail is summed instead, and the p-value is its complement.
    is_upper = k > sizes * n_list / n_universe
    upper = _tail(np.where(is_upper, k, sizes + 1), sizes, step=1, **law)
    lower = _tail(np.where(is_upper, -1.0, k - 1), sizes, step=-1, **law)
    return np.clip(np.where(is_upper, upper, 1.0 - lower), 0.0, 1.0)


def _tail(k: Float, sizes: Float, *, step: int, n_list: int, n_universe: int) -> Float:
    """Return the sum of the probabilities of k, k + step, k + 2 * step and so on common genes.

    `step` is 1 or -1, and `sizes` contains the numbers of genes of the sets.
    """
    term = np.exp(
        _log_binomial(sizes, k)
        + _log_binomial(n_universe - sizes, n_list - k)
        - _log_binomial(np.full(k.shape, float(n_universe)), np.full(k.shape, float(n_list)))
    )
    total = term.copy()
    # Consecutive probabilities have a ratio of whole numbers. The ratio is zero, and remains so,
    # at the smallest and at the largest possible number of common genes.
    while (term > 0).any():
        low = np.minimum(k, k + step)  # the smaller of the two numbers of common genes
        above = (sizes - low) * (n_list - low)
        below = (low + 1) * (n_universe - sizes - n_list + low + 1)
        ratio = (above, below) if step > 0 else (below, above)
        term = np.divide(term * ratio[0], ratio[1], out=np.zeros_like(term), where=term > 0)
        total += term
        k = k + step
    return total


def _log_binomial(n: Float, k: Float) -> Float:
    """Return the logarithm of the number of subsets of size k of a set of size n.

    It is minus infinity if there are no such subsets.
    """
    is_possible = (k >= 0) & (k <= n)
    # The logarithm of the gamma function is not defined for negative numbers.
    chosen, rest = np.where(is_possible, k, 0.0), np.where(is_possible, n - k, 0.0)
    log_count = gammaln(n + 1) - gammaln(chosen + 1) - gammaln(rest + 1)
    return np.where(is_possible, log_count, -np.inf)
