"""A table as a file has it, before it is known what is a sample and what a feature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mrshc.io.streams import FlawError, refuse_other_than_numbers
from mrshc.utils.text_cleaning import clean_text

if TYPE_CHECKING:
    from mrshc.io.stored_matrix import Stored

Orientation = Literal["rows", "columns"]

# As many characters as a cell of a spreadsheet holds: names and annotations go into tables.
_LONGEST = 32_767
# The limit up to which double precision holds every whole number.
_EXACT = 2.0**53
# The limit below which whole numbers are held as such.
_INT64 = 2.0**63
# A number that is written as numbers are: no zeros in front, no more digits than it can hold.
_CANONICAL = re.compile(r"\s*-?(0|[1-9]\d{0,14})(\.\d{1,20})?([eE][+-]?\d{1,3})?\s*")
# How tables write that a value is missing, in small letters.
MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "<na>", "null"})


@dataclass(slots=True, kw_only=True, eq=False)
class RawTable:
    """Rows and columns of numbers, with what is known about both."""

    values: NDArray[Any] | Stored  # (rows, columns)
    row_names: list[str] | None  # None: there are none
    column_names: list[str] | None
    row_annotations: dict[str, list[Any]] = field(default_factory=dict)
    column_annotations: dict[str, list[Any]] = field(default_factory=dict)
    features_in: Orientation | None = None  # None: the format does not say
    decimal: str = "."  # in annotations
    notes: list[str] = field(default_factory=list)  # sentences on what was understood


def unnamed_table(array: NDArray[Any]) -> RawTable:
    """Return an array as a table without names."""
    refuse_other_than_numbers(array)
    values = floats(array)
    notes = rounding_notes(values) if array.dtype.kind in "iu" else []
    return RawTable(values=values, row_names=None, column_names=None, notes=notes)


def floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as floats; those of single precision stay so."""
    is_float = array.dtype in (np.float32, np.float64)
    return array if is_float and array.dtype.isnative else array.astype(np.float64)


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

    They are cleaned, and too long ones refused: this is where names enter.
    """
    plain = [clean_text(name) for name in names]
    if (longest := max(map(len, plain), default=0)) > _LONGEST:
        raise too_long(longest, f"the name of a {kind}")
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


def rounding_notes(values: NDArray[np.floating[Any]]) -> list[str]:
    """Return a note if whole numbers were too large to be held exactly in double precision."""
    largest = max(
        np.fmax.reduce(values, axis=None, initial=0.0),
        -np.fmin.reduce(values, axis=None, initial=0.0),
    )
    if largest < _EXACT:
        return []
    count = int(np.count_nonzero(np.abs(values) >= _EXACT))
    subject = "1 value is" if count == 1 else f"{count:,} values are"
    return [
        f"{subject} 2^53 or larger and held to 16 significant digits: identifiers or whole numbers "
        "of that size may be rounded."
    ]


def too_long(length: int, what: str) -> FlawError:
    """Return what is wrong with a text that no table, picture or page can show."""
    return FlawError(
        f"holds {length:,} characters as {what}, more than the {_LONGEST:,} that are allowed. A "
        "quotation mark or a line break may be missing there"
    )


def tidy(column: Iterable[Any], decimal: str = ".") -> NDArray[Any]:
    """Return an annotation as numbers if all its values are, else as text with None for missing.

    What a number would not give back, such as "007" or a barcode of twenty digits, stays text.
    Whole numbers that 64 bits cannot hold, such as "1e20", become floating-point numbers.
    """
    cells = [None if v is None or is_missing(str(v)) else clean_text(str(v)) for v in column]
    if (longest := max((len(cell) for cell in cells if cell is not None), default=0)) > _LONGEST:
        raise too_long(longest, "an annotation")
    given = [cell for cell in cells if cell is not None]
    if given and all(_CANONICAL.fullmatch(cell.replace(decimal, ".")) for cell in given):
        numbers = [np.nan if c is None else float(c.replace(decimal, ".")) for c in cells]
        if not np.isinf(numbers).any():
            whole = all(n.is_integer() and abs(n) < _INT64 for n in numbers)
            return np.array(numbers, dtype=np.int64 if whole else np.float64)
    text = np.empty(len(cells), dtype=object)
    text[:] = cells
    return text
