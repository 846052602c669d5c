"""A table as a file has it, before it is known what is a sample and what a feature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mrshc.io.stored import Stored

Orientation = Literal["rows", "columns"]

# How tables write that a value is missing, in small letters.
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
# A number that is written as numbers are: no zeros in front, no more digits than it can hold.
_CANONICAL = re.compile(r"\s*-?(0|[1-9]\d{0,14})(\.\d{1,20})?([eE][+-]?\d{1,3})?\s*")
MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "<na>", "null"})


@dataclass(slots=True, kw_only=True, eq=False)
class Grid:
    """Rows and columns of numbers, with what is known about both."""

    values: NDArray[Any] | Stored  # (rows, columns)
    row_names: list[str] | None  # None: there are none
    column_names: list[str] | None
    row_annotations: dict[str, list[Any]] = field(default_factory=dict)
    column_annotations: dict[str, list[Any]] = field(default_factory=dict)
    features_in: Orientation | None = None  # None: the format does not say
    decimal: str = "."  # in annotations
    notes: list[str] = field(default_factory=list)  # sentences on what was understood


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that its value is missing."""
    return cell.strip().lower() in MISSING


def number_of(cell: str, decimal: str) -> float | None:
    """Return the number in a cell; None if it is not one."""
    if "_" in cell:
        return None
    cell = cell.replace("\N{MINUS SIGN}", "-")
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


def unique(names: Sequence[str], kind: str) -> list[str]:
    """Return names that differ: a number is added to those that were there before.

    Control characters, which no format carries safely, become blanks.
    """
    plain = [_CONTROL.sub(" ", name).strip() for name in names]
    plain = [name or f"{kind} {i + 1}" for i, name in enumerate(plain)]
    counts, taken, found = Counter[str](), set(plain), list[str]()
    for name in plain:
        counts[name] += 1
        candidate = name
        while counts[name] > 1 and candidate in taken:
            candidate = f"{name}.{counts[name]}"
            counts[name] += candidate in taken
        taken.add(candidate)
        found.append(candidate)
    return found


def tidy(column: Iterable[Any], decimal: str = ".") -> NDArray[Any]:
    """Return an annotation as numbers if all its values are, else as text with None for missing.

    What a number would not give back, such as "007" or a barcode of twenty digits, stays text.
    """
    cells = [None if v is None or is_missing(str(v)) else str(v) for v in column]
    given = [cell for cell in cells if cell is not None]
    if given and all(_CANONICAL.fullmatch(cell.replace(decimal, ".")) for cell in given):
        numbers = [np.nan if c is None else float(c.replace(decimal, ".")) for c in cells]
        whole = all(number.is_integer() for number in numbers)
        return np.array(numbers, dtype=np.int64 if whole else np.float64)
    text = np.empty(len(cells), dtype=object)
    text[:] = cells
    return text
