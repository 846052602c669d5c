"""Checks of the arguments of pictures; each refusal says what was wanted and what came."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from mrshc.core.array_types import Float
from mrshc.errors import refused
from mrshc.validation.parameters import check_integer

# More than the samples of any tree that fits into memory: not tuned, it ends endless loops.
_MOST_CLUSTERS = 10**6


def check_axes(ax: Any) -> Axes | None:
    """Return axes to draw in, or None for new ones."""
    if ax is not None and not isinstance(ax, Axes):
        raise refused(
            "ax",
            ax,
            allowed="be a matplotlib Axes or None",
            advice="Make them by matplotlib.pyplot.subplots, or leave ax out.",
        )
    return ax


def check_title(title: Any) -> str | None:
    """Return a heading, or None."""
    if title is not None and not isinstance(title, str):
        raise refused(
            "title", title, allowed="be a text or None", advice="Convert it by str() first."
        )
    return title


def check_names(what: str, names: Any) -> Any:
    """Return names of samples or features, or None; they may be a Series, or a text of letters."""
    if names is not None and not isinstance(names, Iterable):
        raise refused(
            what, names, allowed="hold names, or be None", advice="Give a list of them, in order."
        )
    return names


def check_model(model: Any, attribute: str) -> Any:
    """Return a fitted estimator, or a result, that has an attribute of the fit."""
    if not hasattr(model, attribute):
        raise ValueError(
            f"model must be a fitted estimator or a result with {attribute}, got a "
            f"{type(model).__name__} without it. Call its method fit first."
        )
    return model


def check_table(what: str, table: Any, columns: Iterable[str]) -> Any:
    """Return a mapping or a DataFrame that has some columns."""
    is_table = isinstance(table, Mapping) or hasattr(table, "columns")
    absent = [name for name in columns if not is_table or name not in table]
    if absent:
        wanted = ", ".join(map(repr, columns))
        got = f"no {absent[0]!r}" if is_table else f"a {type(table).__name__}"
        raise ValueError(
            f"{what} must be a table with the columns {wanted}, got {got}. Give that of a fitted "
            "estimator or of a result."
        )
    return table


def check_numbers(what: str, values: Any) -> Float:
    """Return real numbers as an array."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "cmM":
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"{what} must hold real numbers, got a {type(values).__name__} of other values. Give an "
        "array of numbers."
    )


def check_n_clusters(what: str, n: Any, *, low: int = 1) -> int:
    """Return a number of clusters or of levels."""
    advice = "Count the clusters that are there."
    return check_integer(what, n, low=low, high=_MOST_CLUSTERS, advice=advice)


def check_top(top: Any) -> int:
    """Return how many of the largest are shown."""
    return check_integer("top", top, low=1, high=None, advice="It is how many are shown, at most.")


def check_path(path: Any) -> Any:
    """Return the path of a file."""
    if not isinstance(path, str | os.PathLike):
        raise refused("path", path, allowed="be the path of a file", advice="Give a text or Path.")
    return path
