"""Validate the values of parameters.

Each error says which values are allowed, which one was passed, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mrshc.errors import Parameter, ParameterError, PythonOnly, refused

# The largest integer that arrays and compiled functions take.
_LARGEST_INTEGER = 2**63 - 1
# The largest number of repetitions, such as reference samples. Arrays hold a number for each of
# them, and more of them would not change a standard error in any digit that is displayed.
MAX_REPETITIONS = 10**6


def check_dissimilarity(name: str, value: Any, *, n_samples: int) -> NDArray[np.float64]:
    """Return a symmetric matrix with a zero diagonal."""
    wanted = (n_samples, n_samples)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    fits = array.shape == wanted and np.isfinite(array).all() and array.any()
    if not fits or np.diag(array).any() or not np.allclose(array, array.T):
        what = f"shape {array.shape}" if array.size else repr(value)
        raise ParameterError(
            "{parameter} must be {allowed}, got {what}.",
            parameter=Parameter(name),
            value=value,
            allowed="the dissimilarity_ of an earlier fit: symmetric, finite, zero on the "
            f"diagonal, of shape {wanted}",
            what=what,
        )
    return array


def check_integer(name: str, value: Any, *, low: int, high: int | None, advice: str) -> int:
    """Return a whole number within [low, high]."""
    largest = _LARGEST_INTEGER if high is None else high
    if not _is_integer(value) or not low <= value <= largest:
        high = largest if _is_integer(value) and value > largest else high
        wanted = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise refused(name, value, allowed=f"be a whole number {wanted}", advice=advice)
    return int(value)


def check_integer_or_keyword(name: str, value: Any, word: str | None, **limits: Any) -> int | None:
    """Return a whole number, or None for the word that stands for 'choose it for me'."""
    if value is None if word is None else isinstance(value, str) and value == word:
        return None
    return check_integer(name, value, **limits)


def check_jobs(n_jobs: Any) -> int | None:
    """Return a number of workers as joblib takes it."""
    if n_jobs is None:
        return None
    if not _is_integer(n_jobs) or n_jobs == 0:
        raise ParameterError(
            "{n_jobs} must {allowed},{none} got {value!r}.",
            n_jobs=Parameter("n_jobs"),
            value=n_jobs,
            allowed="be a whole number of workers, -1 for every core",
            none=PythonOnly(" or None,"),
        )
    return int(n_jobs)


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the generator of random numbers that a seed stands for."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise refused(
            "random_state",
            random_state,
            allowed=f"be None, a whole number in [0, {2**32 - 1}] or a RandomState instance",
        ) from None


def check_increasing_integers(
    name: str, values: Any, *, low: int, high: int, advice: str
) -> tuple[int, ...]:
    """Return strictly increasing whole numbers within [low, high]."""
    listed = None if isinstance(values, str) or not np.iterable(values) else list(values)
    if not listed:
        raise refused(
            name, values, allowed="be a whole number, an increasing sequence of them or 'auto'"
        )
    checked = tuple(check_integer(name, v, low=low, high=high, advice=advice) for v in listed)
    if any(b <= a for a, b in pairwise(checked)):
        raise refused(
            name,
            list(checked),
            allowed="increase from candidate to candidate",
            advice="Sort them and drop duplicates.",
        )
    return checked


def check_number(name: str, value: Any, *, low: float, high: float, advice: str) -> float:
    """Return a number within [low, high]."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise refused(name, value, allowed=f"lie in [{low:g}, {high:.6g}]", advice=advice)
    return float(value)


def check_option(name: str, value: Any, options: Sequence[Any]) -> Any:
    """Return one of the options."""
    value = value.item() if isinstance(value, np.generic) else value
    # True == 1, so identity of type matters too.
    if not any(type(value) is type(option) and value == option for option in options):
        known = ", ".join(repr(option) for option in options)
        raise refused(name, value, allowed=f"be one of {known}")
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
