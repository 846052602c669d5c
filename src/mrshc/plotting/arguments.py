"""Validation of the arguments of plotting functions.

Each function returns its argument if the argument is valid. Otherwise the function raises an error
whose message states what is allowed, what was passed, and how to correct the argument. Plotting
functions check their arguments before they draw, so axes passed by the caller are not changed if an
argument is not valid.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mrshc.shell.wording import Parameter, ParameterError, invalid_parameter_error
from mrshc.validation import check_integer

# Largest number of clusters or levels that is accepted. A tree of more than 10**6 samples would
# need more memory than computers have, so there cannot be more clusters. The limit is not tuned: it
# does not affect any plot. Because of the limit, a typing error such as 10**30 raises an error;
# without the limit, creating that many colours or panels would never finish.
_MAX_CLUSTERS = 10**6
# Smallest and largest side of a figure in inches. Below one inch there is no space for labels; with
# 100 inches, a picture for print is 30,000 pixels wide, which matplotlib can still draw.
_MIN_SIDE, _MAX_SIDE = 1.0, 100.0
# Largest number of characters of a value in an error message.
_MAX_VALUE_LENGTH = 60


def refusal(name: str, value: Any, *, allowed: str, advice: str) -> ParameterError:
    """Return, without raising it, the error for an argument that is not valid.

    The message has one line. If the value is long, such as a table, the message names its type.
    """
    text = repr(value)
    if len(text) > _MAX_VALUE_LENGTH or "\n" in text:
        text = f"a {type(value).__name__}"
    return ParameterError(
        "{parameter} must {allowed}, got {shown}. {advice}",
        parameter=Parameter(name),
        value=value,
        allowed=allowed,
        shown=text,
        advice=advice,
    )


def check_axes(ax: Any) -> Axes | None:
    """Return `ax` if it is a matplotlib Axes or None; otherwise raise ParameterError."""
    if ax is not None and not isinstance(ax, Axes):
        raise invalid_parameter_error(
            "ax",
            ax,
            allowed="be a matplotlib Axes or None",
            advice="Create axes with matplotlib.pyplot.subplots, or leave ax out.",
        )
    return ax


def check_size(size: Any, *, ax: Axes | None = None) -> tuple[float, float] | None:
    """Return the size of a figure, or None if the user gave no size.

    Raise ParameterError if `size` is not a pair of numbers from 1 to 100, or if the user also gave
    axes, whose figure already has a size.
    """
    if size is None:
        return None
    if ax is not None:
        raise refusal(
            "size",
            size,
            allowed="be None if ax is given",
            advice="Set the size of the figure in which ax was created.",
        )
    return _check_pair(
        "size",
        size,
        low=_MIN_SIDE,
        high=_MAX_SIDE,
        allowed="be the width and height of the figure in inches, each from 1 to 100",
        advice="Pass a pair such as (7, 5).",
    )


def check_limits(limits: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest number of a scale, or None if the user gave no limits.

    Raise ParameterError if `limits` is not a pair of finite numbers in increasing order.
    """
    if limits is None:
        return None
    allowed = "be two finite numbers, the lower one first"
    advice = "Pass a pair such as (-2, 2)."
    largest = np.finfo(np.float64).max / 4  # the difference of two such numbers does not overflow
    low, high = _check_pair(
        "limits", limits, low=-largest, high=largest, allowed=allowed, advice=advice
    )
    if not low < high:
        raise refusal("limits", limits, allowed=allowed, advice=advice)
    return low, high


def _check_pair(
    name: str, pair: Any, *, low: float, high: float, allowed: str, advice: str
) -> tuple[float, float]:
    """Return two numbers as floats; raise ParameterError if one is outside [low, high]."""
    try:
        first, second = pair
        numbers = [first, second]
        # bool is a subclass of int, but True is not a size.
        are_numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in numbers)
        # A comparison with NaN is false, so NaN is refused.
        if are_numbers and all(low <= float(v) <= high for v in numbers):
            return float(first), float(second)
    except (TypeError, ValueError, OverflowError):
        pass
    raise refusal(name, pair, allowed=allowed, advice=advice)


def check_title(title: Any) -> str | None:
    """Return `title` if it is a string or None; otherwise raise ParameterError."""
    if title is not None and not isinstance(title, str):
        raise invalid_parameter_error(
            "title", title, allowed="be a string or None", advice="Convert it with str() first."
        )
    return title


def check_names(name: str, names: Any) -> Any:
    """Return `names` if it is an iterable or None; otherwise raise ParameterError.

    The error message calls the argument `name`. The iterable is not converted to a list, since
    callers align a Series by its index. A string is valid: its characters are the names.
    """
    if names is not None and not isinstance(names, Iterable):
        raise invalid_parameter_error(
            name,
            names,
            allowed="be a list of names or None",
            advice="Pass one name for each entry, in the order of the entries.",
        )
    return names


def check_model(model: Any, attribute: str) -> Any:
    """Return `model` if it has the given fitted attribute; otherwise raise ValueError."""
    if not hasattr(model, attribute):
        raise ValueError(
            f"model must be a fitted estimator or a result with the attribute {attribute}, got a "
            f"{type(model).__name__} without it. Call the method fit first."
        )
    return model


def check_table(name: str, table: Any, *, columns: Iterable[str]) -> Any:
    """Return `table` if it is a mapping or a DataFrame that contains all of `columns`.

    Otherwise raise ValueError. The error message calls the argument `name`.
    """
    is_table = isinstance(table, Mapping) or hasattr(table, "columns")
    missing = [column for column in columns if not is_table or column not in table]
    if missing:
        required = ", ".join(map(repr, columns))
        got = f"a table without {missing[0]!r}" if is_table else f"a {type(table).__name__}"
        raise ValueError(
            f"{name} must be a table with the columns {required}, got {got}. Pass the table of a "
            "fitted estimator or of a result."
        )
    return table


def check_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return `values` as a float64 array; raise ValueError if a value is not a real number.

    The error message calls the argument `name`.
    """
    try:
        # numpy converts complex numbers (kind "c"), time spans ("m") and dates ("M") to float, in
        # some cases without a warning. Values of these kinds are excluded before the conversion.
        if np.asarray(values).dtype.kind not in "cmM":
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"{name} must hold real numbers, got a {type(values).__name__} that cannot be converted to "
        "them. Pass an array of numbers."
    )


def check_n_clusters(name: str, n: Any, *, low: int = 1) -> int:
    """Return `n`, a number of clusters or levels, as an int.

    Raise ParameterError if `n` is not an integer from `low` to 10**6. The error message calls the
    argument `name`.
    """
    advice = "Pass the number of clusters or levels in the data."
    return check_integer(name, n, low=low, high=_MAX_CLUSTERS, advice=advice)


def check_top(top: Any) -> int:
    """Return `top`, the largest number of entries in a panel of a plot, as an int.

    Raise ParameterError if `top` is not a positive integer.
    """
    advice = "It is the largest number of entries that a panel shows."
    return check_integer("top", top, low=1, high=None, advice=advice)


def check_path(path: Any) -> Any:
    """Return `path` if it is a string or path-like; otherwise raise ParameterError."""
    if not isinstance(path, str | os.PathLike):
        raise invalid_parameter_error(
            "path", path, allowed="be the path of a file", advice="Pass a string or a Path."
        )
    return path
