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

from mrshc.errors import Parameter, ParameterError, PythonOnly, invalid_parameter_error

# Largest integer of type int64, to which numpy and compiled functions convert.
_LARGEST_INTEGER = 2**63 - 1
# Largest number of repetitions, such as reference samples or permutations. Arrays hold a number for
# each of them, and at this number the relative error of a standard error is below 0.1 %.
MAX_REPETITIONS = 10**6


def check_dissimilarity(name: str, value: Any, *, n_samples: int) -> NDArray[np.float64]:
    """Return a dissimilarity matrix after checking its shape and symmetry.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : array-like
        Value of the parameter.
    n_samples : int
        Number of samples.

    Returns
    -------
    dissimilarity : ndarray of shape (n_samples, n_samples)
        Symmetric, finite, zero on the diagonal and not zero everywhere.
    """
    shape = (n_samples, n_samples)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)  # has not the required shape, and is refused below
    is_valid = array.shape == shape and np.isfinite(array).all() and array.any()
    # Symmetric up to rounding: the matrix may have been written to a text file in between.
    if not is_valid or np.diag(array).any() or not np.allclose(array, array.T):
        shown = f"shape {array.shape}" if array.size else repr(value)
        raise ParameterError(
            "{parameter} must be {allowed}, got {shown}.",
            parameter=Parameter(name),
            value=value,
            allowed="the dissimilarity_ of an earlier fit: symmetric, finite, zero on the "
            f"diagonal, of shape {shape}",
            shown=shown,
        )
    return array


def check_integer(name: str, value: Any, *, low: int, high: int | None, advice: str) -> int:
    """Return an integer after checking its range.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Value of the parameter.
    low : int
        Smallest value allowed.
    high : int or None
        Largest value allowed; None for no limit other than that of int64.
    advice : str
        Sentence that tells the user what to do.

    Returns
    -------
    value : int

    Raises
    ------
    ParameterError
        If the value is no integer, or out of range.
    """
    largest = _LARGEST_INTEGER if high is None else high
    if not _is_integer(value) or not low <= value <= largest:
        # The limit of int64 is mentioned only where it is the reason.
        high = largest if _is_integer(value) and value > largest else high
        wanted = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise invalid_parameter_error(
            name, value, allowed=f"be a whole number {wanted}", advice=advice
        )
    return int(value)


def check_integer_or_keyword(
    name: str, value: Any, keyword: str | None, **limits: Any
) -> int | None:
    """Return an integer after checking its range, or None for a keyword such as "auto".

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Value of the parameter.
    keyword : str or None
        Value that requests an automatic choice; None if None itself does.
    **limits
        Arguments `low`, `high` and `advice` of :func:`check_integer`.

    Returns
    -------
    value : int or None
    """
    # Types first: comparing an array with a string would compare each of its elements.
    if value is None if keyword is None else isinstance(value, str) and value == keyword:
        return None
    return check_integer(name, value, **limits)


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return the number of workers after checking that joblib accepts it."""
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
    """Return the random number generator for a value of `random_state`."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise invalid_parameter_error(
            "random_state",
            random_state,
            allowed=f"be None, a whole number in [0, {2**32 - 1}] or a RandomState instance",
        ) from None


def check_increasing_integers(
    name: str, values: Any, *, low: int, high: int, advice: str
) -> tuple[int, ...]:
    """Return a strictly increasing sequence of integers after checking their range.

    Parameters
    ----------
    name : str
        Name of the parameter.
    values : iterable of int
        Value of the parameter.
    low, high : int
        Smallest and largest value allowed.
    advice : str
        Sentence that tells the user what to do if a value is out of range.

    Returns
    -------
    values : tuple of int
    """
    # A string is iterable too, and is refused as a whole rather than letter by letter.
    candidates = None if isinstance(values, str) or not np.iterable(values) else list(values)
    if not candidates:
        raise invalid_parameter_error(
            name, values, allowed="be a whole number, an increasing sequence of them or 'auto'"
        )
    checked = tuple(check_integer(name, v, low=low, high=high, advice=advice) for v in candidates)
    if any(b <= a for a, b in pairwise(checked)):
        raise invalid_parameter_error(
            name,
            list(checked),
            allowed="increase from candidate to candidate",
            advice="Sort them and drop duplicates.",
        )
    return checked


def check_number(name: str, value: Any, *, low: float, high: float, advice: str) -> float:
    """Return a number after checking that it is within [low, high]; NaN is refused.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Value of the parameter.
    low, high : float
        Smallest and largest value allowed.
    advice : str
        Sentence that tells the user what to do.

    Returns
    -------
    value : float
    """
    # bool is a subclass of int, but True is hardly meant as a number.
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise invalid_parameter_error(
            name, value, allowed=f"be a number in [{low:g}, {high:.6g}]", advice=advice
        )
    return float(value)


def check_option(name: str, value: Any, options: Sequence[Any]) -> Any:
    """Return the value after checking that it is one of the options.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Value of the parameter; numpy scalars are converted to Python objects.
    options : sequence
        Values allowed.

    Returns
    -------
    value : object
    """
    value = value.item() if isinstance(value, np.generic) else value
    # True == 1 in Python, so the types must agree too.
    if not any(type(value) is type(option) and value == option for option in options):
        known = ", ".join(repr(option) for option in options)
        raise invalid_parameter_error(name, value, allowed=f"be one of {known}")
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
