"""P-values from simulations that end as soon as the decision is clear."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import stdtr

from mrshc.core.array_types import Float

# Numbers of simulations after which the p-value is computed. Ten are the fewest from which a
# standard deviation is estimated with a useful precision (about 25 %). Later numbers are multiples
# of 20.
_FIRST_LOOKS = (10, 20)
_LOOK_STEP = 20
# The simulations end early if the p-value is larger than this value. With the usual threshold of
# 0.05, further simulations would rarely change the decision. Not tuned.
_CLEARLY_LARGE = 0.25
# They also end early if there are at least 20 simulations and the p-value is smaller than this
# share of the threshold. The small share keeps the error rate: p-values that are small by chance,
# because the standard deviation is underestimated, are rarely that small. Not tuned.
_CLEARLY_SMALL_SHARE = 0.1
_MIN_SIMULATIONS_OF_SMALL = 20


def sequential_p_value(
    observed: float,
    simulate: Callable[[range], Float],
    *,
    n_simulations: int,
    threshold: float,
) -> tuple[float, int]:
    """Return a p-value and the number of simulations from which it was computed.

    Parameters
    ----------
    observed : float
        Statistic of the data. Large values are extreme.
    simulate : callable
        Function that returns the statistics of simulated data sets, given a range of their numbers.
    n_simulations : int
        Largest number of simulated data sets.
    threshold : float
        Largest significant p-value.
    """
    simulated = np.empty(0)
    p_value = 1.0
    for n_wanted in _looks(n_simulations):
        simulated = np.concatenate([simulated, simulate(range(simulated.size, n_wanted))])
        p_value = upper_tail_p_value(observed, simulated)
        if _is_decided(p_value, n_simulated=simulated.size, threshold=threshold):
            break
    return p_value, simulated.size


def upper_tail_p_value(observed: float, simulated: Float) -> float:
    r"""Return the p-value of a statistic for which large values are extreme.

    Parameters
    ----------
    observed : float
        Statistic of the data.
    simulated : ndarray of shape (m,)
        Statistics of m simulated data sets, at least two. NaN are ignored.

    Notes
    -----
    A normal distribution is fitted to the simulated values, since m simulations could not show
    p-values below 1 / (m + 1). Its mean and its standard deviation s are estimates, so the p-value
    is that of the predictive distribution: :math:`(x - \bar x) / (s \sqrt{1 + 1 / m})` has
    Student's t distribution with m - 1 degrees of freedom.
    """
    values = simulated[~np.isnan(simulated)]
    m = values.size
    if m < 2:
        return 1.0
    scale = values.std(ddof=1) * np.sqrt(1.0 + 1.0 / m)
    if scale == 0.0:
        return 1.0 if observed <= values[0] else 0.0
    return float(stdtr(m - 1, -(observed - values.mean()) / scale))


def _looks(n_simulations: int) -> Iterator[int]:
    """Yield the numbers of simulations after which the p-value is computed, in increasing order."""
    numbers = [*_FIRST_LOOKS, *range(2 * _LOOK_STEP, n_simulations, _LOOK_STEP)]
    yield from (number for number in numbers if number < n_simulations)
    yield n_simulations


def _is_decided(p_value: float, *, n_simulated: int, threshold: float) -> bool:
    """Return whether further simulations would hardly change the decision about a node."""
    if p_value > max(_CLEARLY_LARGE, 2.0 * threshold):
        return True
    return n_simulated >= _MIN_SIMULATIONS_OF_SMALL and p_value < _CLEARLY_SMALL_SHARE * threshold
