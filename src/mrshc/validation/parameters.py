"""Validation of the values of parameters.

All functions raise ParameterError if a value is not allowed. Each message states which values are
allowed, which value was passed and, in most cases, what the user can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.errors import Parameter, ParameterError, PythonOnly, invalid_parameter_error

# Largest integer of type int64, to which numpy and compiled functions convert integers.
_LARGEST_INTEGER = 2**63 - 1
# Maximum number of repetitions, such as simulated reference data sets or permutations. The number
# is limited because arrays have one entry for each repetition. More repetitions would not be
# useful: with this number, the relative error of a standard error is already below 0.1 %.
MAX_REPETITIONS = 10**6


def check_dissimilarity(name: str, value: Any, *, n_samples: int) -> NDArray[np.float64]:
    """Return a dissimilarity matrix as an array; raise ParameterError if the matrix is invalid.

    Parameters
    ----------
    name : str
        Name of the parameter in the error message.
    value : array-like
        Value of the parameter.
    n_samples : int
        Number of samples.

    Returns
    -------
    dissimilarity : ndarray of shape (n_samples, n_samples)
        The matrix. It is symmetric and finite, its diagonal is zero, and it has at least one
        non-zero entry.
    """
    shape = (n_samples, n_samples)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)  # has the wrong shape, so an error is raised below
    is_valid = array.shape == shape and np.isfinite(array).all() and array.any()
    # Symmetry is checked only up to rounding, since the matrix may have been saved to a text file
    # and read again.
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
    """Return an integer after checking its type and range.

    Parameters
    ----------
    name : str
        Name of the parameter in the error message.
    value : object
        Value of the parameter.
    low : int
        Smallest value allowed.
    high : int or None
        Largest value allowed; None if the only limit is that of int64.
    advice : str
        Sentence in the message that says what the user can do.

    Returns
    -------
    value : int
        The value, as a Python integer.

    Raises
    ------
    ParameterError
        If the value is not an integer, or if it is less than `low` or greater than `high`.
    """
    largest = _LARGEST_INTEGER if high is None else high
    if not _is_integer(value) or not low <= value <= largest:
        # The message mentions the limit of int64 only if the value exceeds this limit.
        high = largest if _is_integer(value) and value > largest else high
        wanted = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise invalid_parameter_error(
            name, value, allowed=f"be a whole number {wanted}", advice=advice
        )
    return int(value)


def check_integer_or_keyword(
    name: str, value: Any, keyword: str | None, **limits: Any
) -> int | None:
    """Return an integer after checking its type and range, or None if the value is the keyword.

    Raise ParameterError if the value is neither the keyword nor an integer in the allowed range.

    Parameters
    ----------
    name : str
        Name of the parameter in the error message.
    value : object
        Value of the parameter.
    keyword : str or None
        Value that requests an automatic choice, such as "auto". If `keyword` is None, the value
        None requests an automatic choice.
    **limits
        Arguments `low`, `high` and `advice` of :func:`check_integer`.

    Returns
    -------
    value : int or None
        The integer, or None if an automatic choice is requested.
    """
    # The type is checked first, because comparing an array with a string would compare each element
    # of the array.
    if value is None if keyword is None else isinstance(value, str) and value == keyword:
        return None
    return check_integer(name, value, **limits)


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return the number of workers, `n_jobs`, as a Python integer or None.

    Raise ParameterError if `n_jobs` is neither None nor a non-zero integer.
    """
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
    """Return the random number generator for a value of `random_state`.

    Raise ParameterError unless the value is None, a valid seed or a RandomState instance.
    """
    # The import takes a second, and the command line needs other functions of this module before it
    # prints its first sentence.
    from sklearn.utils import check_random_state

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
    """Return a strictly increasing sequence of integers as a tuple.

    Raise ParameterError if the sequence is empty or not strictly increasing, or if a value is not
    an integer in the allowed range.

    Parameters
    ----------
    name : str
        Name of the parameter in the error message.
    values : iterable of int
        Value of the parameter.
    low, high : int
        Smallest and largest value allowed.
    advice : str
        Sentence in the message that says what the user can do if a value is not an integer in the
        allowed range.

    Returns
    -------
    values : tuple of int
        The values, as Python integers.
    """
    # A string is iterable, but the error message must name the whole string rather than its first
    # letter.
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
    """Return a value as a float; raise ParameterError if it is not a number in [low, high].

    NaN and values of type bool are not accepted.

    Parameters
    ----------
    name : str
        Name of the parameter in the error message.
    value : object
        Value of the parameter.
    low, high : float
        Smallest and largest value allowed.
    advice : str
        Sentence in the message that says what the user can do.

    Returns
    -------
    value : float
        The value, as a Python float.
    """
    # bool is a subclass of int, but a bool is probably not intended as a number.
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise invalid_parameter_error(
            name, value, allowed=f"be a number in [{low:g}, {high:.6g}]", advice=advice
        )
    return float(value)


def check_option(name: str, value: Any, options: Sequence[Any]) -> Any:
    """Return a value after checking that it is one of the allowed options.

    Raise ParameterError if no option has the same type as the value and is equal to the value.

    Parameters
    ----------
    name : str
        Name of the parameter in the error message.
    value : object
        Value of the parameter. A numpy scalar is converted to a Python object.
    options : sequence
        Allowed values.

    Returns
    -------
    value : object
        The value, as a Python object.
    """
    value = value.item() if isinstance(value, np.generic) else value
    # The types are compared as well, because True == 1 in Python.
    if not any(type(value) is type(option) and value == option for option in options):
        known = ", ".join(repr(option) for option in options)
        raise invalid_parameter_error(name, value, allowed=f"be one of {known}")
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
