"""A table as a file holds it, before samples and features are told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mrshc.io.streams import FlawError, check_numeric_matrix
from mrshc.utils.text_cleaning import clean_text

if TYPE_CHECKING:
    from mrshc.io.stored_matrix import StoredMatrix

Orientation = Literal["rows", "columns"]

# As many characters as a cell of a spreadsheet can hold: names and annotations are written into
# tables that spreadsheets open.
_MAX_TEXT_LENGTH = 32_767
# Double precision represents every whole number below this one exactly.
_EXACT_INTEGER_LIMIT = 2.0**53
# Whole numbers below this one fit into 64-bit integers.
_INT64_LIMIT = 2.0**63
# A number in its usual spelling: no leading zeros, and no more than 15 digits before the decimal
# point, all of which double precision holds. Other spellings would not read back as they were.
_CANONICAL_NUMBER = re.compile(r"\s*-?(0|[1-9]\d{0,14})(\.\d{1,20})?([eE][+-]?\d{1,3})?\s*")
# Spellings of a missing value in tables, in lower case.
_MISSING_SPELLINGS = frozenset({"", "na", "nan", "n/a", "#n/a", "<na>", "null"})


@dataclass(slots=True, kw_only=True, eq=False)
class RawTable:
    """Rows and columns of numbers, with their names and annotations.

    Attributes
    ----------
    values : ndarray or StoredMatrix of shape (n_rows, n_columns)
        The numbers, NaN where they are missing, or the matrix in its file.
    row_names, column_names : list of str or None
        Names as the file has them; None if it has none.
    row_annotations, column_annotations : dict of str to list
        Annotations by title, with an entry for each row or column.
    features_in : {"rows", "columns"} or None
        The side of the features, if the format defines it.
    decimal : str
        Decimal mark of numbers in annotations.
    notes : list of str
        Sentences on how the file was interpreted.
    """

    values: NDArray[Any] | StoredMatrix
    row_names: list[str] | None
    column_names: list[str] | None
    row_annotations: dict[str, list[Any]] = field(default_factory=dict)
    column_annotations: dict[str, list[Any]] = field(default_factory=dict)
    features_in: Orientation | None = None
    decimal: str = "."
    notes: list[str] = field(default_factory=list)


def unnamed_table(array: NDArray[Any]) -> RawTable:
    """Return an array as a table without names; refuse one that is not a matrix of numbers."""
    check_numeric_matrix(array)
    values = as_floats(array)
    notes = rounding_notes(values) if array.dtype.kind in "iu" else []
    return RawTable(values=values, row_names=None, column_names=None, notes=notes)


def as_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as floats; arrays of single precision keep it."""
    # Compiled loops need the byte order of the machine.
    is_float = array.dtype in (np.float32, np.float64)
    return array if is_float and array.dtype.isnative else array.astype(np.float64)


def is_missing(cell: str) -> bool:
    """Return whether a cell marks its value as missing."""
    return cell.strip().lower() in _MISSING_SPELLINGS


def parse_number(cell: str, decimal: str) -> float | None:
    """Return the number in a cell; None if it holds no number."""
    # Python reads 1_000 as a number, other programs do not.
    if "_" in cell:
        return None
    cell = cell.replace("\N{MINUS SIGN}", "-")
    if decimal != ".":
        if "." in cell:  # it may separate thousands: the number is ambiguous
            return None
        cell = cell.replace(decimal, ".")
    try:
        return float(cell)
    except ValueError:
        return None


def are_numbers(cells: Iterable[str], decimal: str) -> bool:
    """Return whether all cells hold numbers or are missing, and at least one holds a number."""
    given = [cell for cell in cells if not is_missing(cell)]
    return bool(given) and all(parse_number(cell, decimal) is not None for cell in given)


def clean_unique_names(names: Sequence[str], kind: str) -> list[str]:
    """Return cleaned names that differ: a number is appended to repetitions of a name.

    Names that are too long are refused. All names of a table pass this function.

    Parameters
    ----------
    names : sequence of str
        The names as a file has them.
    kind : str
        The kind of object that they name, such as "sample"; empty names are replaced by it and
        their position.

    Returns
    -------
    list of str
        The names in the same order.
    """
    cleaned = [clean_text(name) for name in names]
    if (longest := max(map(len, cleaned), default=0)) > _MAX_TEXT_LENGTH:
        raise text_too_long_error(longest, f"the name of a {kind}")
    cleaned = [name or f"{kind} {i + 1}" for i, name in enumerate(cleaned)]
    counts, taken, result = Counter[str](), set(cleaned), list[str]()
    for name in cleaned:
        counts[name] += 1
        candidate = name
        # "a.2" may itself be among the given names: numbers are tried until one is free.
        while counts[name] > 1 and candidate in taken:
            candidate = f"{name}.{counts[name]}"
            counts[name] += candidate in taken
        taken.add(candidate)
        result.append(candidate)
    return result


def rounding_notes(values: NDArray[np.floating[Any]]) -> list[str]:
    """Return a list with one note if values are too large to be exact in double precision.

    Returns
    -------
    list of str
        Empty if all values are smaller than 2^53 in magnitude.
    """
    # Maximum and minimum that ignore NaN and need no array of the size of the data.
    largest = max(
        np.fmax.reduce(values, axis=None, initial=0.0),
        -np.fmin.reduce(values, axis=None, initial=0.0),
    )
    if largest < _EXACT_INTEGER_LIMIT:
        return []
    count = int(np.count_nonzero(np.abs(values) >= _EXACT_INTEGER_LIMIT))
    subject = "1 value is" if count == 1 else f"{count:,} values are"
    return [
        f"{subject} 2^53 or larger and held to 16 significant digits: identifiers or whole numbers "
        "of that size may be rounded."
    ]


def text_too_long_error(length: int, role: str) -> FlawError:
    """Return the error about a text that is too long for tables, plots and pages."""
    return FlawError(
        f"holds {length:,} characters as {role}, more than the {_MAX_TEXT_LENGTH:,} that are "
        "allowed. A quotation mark or a line break may be missing there"
    )


def parse_annotation(column: Iterable[Any], decimal: str = ".") -> NDArray[Any]:
    """Return an annotation as numbers if all its values are, else as text with None for missing.

    Texts that a number would not reproduce, such as "007" or a barcode of twenty digits, are kept
    as text. Whole numbers that 64 bits cannot hold, such as "1e20", become floating-point numbers.

    Parameters
    ----------
    column : iterable
        The values as the file has them: texts, numbers or None.
    decimal : str, default="."
        Decimal mark of numbers in texts.

    Returns
    -------
    ndarray of shape (n_values,)
        Of dtype int64, float64 or object.
    """
    cells = [None if v is None or is_missing(str(v)) else clean_text(str(v)) for v in column]
    longest = max((len(cell) for cell in cells if cell is not None), default=0)
    if longest > _MAX_TEXT_LENGTH:
        raise text_too_long_error(longest, "an annotation")
    given = [cell for cell in cells if cell is not None]
    if given and all(_CANONICAL_NUMBER.fullmatch(cell.replace(decimal, ".")) for cell in given):
        numbers = [np.nan if c is None else float(c.replace(decimal, ".")) for c in cells]
        # An exponent of three digits may overflow; such values are kept as text.
        if not np.isinf(numbers).any():
            are_integers = all(n.is_integer() and abs(n) < _INT64_LIMIT for n in numbers)
            return np.array(numbers, dtype=np.int64 if are_integers else np.float64)
    # Filled in place: np.array would give texts a fixed width.
    text = np.empty(len(cells), dtype=object)
    text[:] = cells
    return text
