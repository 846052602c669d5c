"""A table as a file has it, before it is known what is a sample and what a feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Orientation = Literal["rows", "columns"]

# How tables write that a value is missing, in small letters.
MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "<na>", "null"})


@dataclass(slots=True, kw_only=True, eq=False)
class Grid:
    """Rows and columns of numbers, with what is known about both."""

    values: NDArray[Any]  # (rows, columns)
    row_names: list[str] | None  # None: there are none
    column_names: list[str] | None
    row_annotations: dict[str, list[Any]] = field(default_factory=dict)
    column_annotations: dict[str, list[Any]] = field(default_factory=dict)
    features_in: Orientation | None = None  # None: the format does not say
    notes: list[str] = field(default_factory=list)  # sentences on what was understood


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that its value is missing."""
    return cell.strip().lower() in MISSING


def number_of(cell: str, decimal: str) -> float | None:
    """Return the number in a cell; None if it is not one."""
    if "_" in cell:
        return None
    if decimal != ".":
        if "." in cell:
            return None
        cell = cell.replace(decimal, ".")
    try:
        return float(cell)
    except ValueError:
        return None


def all_numbers(cells: Iterable[str], decimal: str) -> bool:
    """Tell whether cells hold numbers, or nothing, and at least one of them a number."""
    given = [cell for cell in cells if not is_missing(cell)]
    return bool(given) and all(number_of(cell, decimal) is not None for cell in given)


def tidy(column: Iterable[Any]) -> NDArray[Any]:
    """Return an annotation as numbers if all its values are, else as text with None for missing."""
    cells = [None if value is None else str(value) for value in column]
    given = [cell for cell in cells if cell is not None and not is_missing(cell)]
    numbers = [number_of(cell, ".") for cell in given]
    if given and None not in numbers:
        found = iter(numbers)
        absent = (cell is None or is_missing(cell) for cell in cells)
        return np.array([np.nan if a else next(found) for a in absent], dtype=np.float64)
    text = np.empty(len(cells), dtype=object)
    text[:] = [None if cell is None or is_missing(cell) else cell for cell in cells]
    return text
