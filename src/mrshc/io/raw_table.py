"""A table as it is stored in a file, before samples and features have been identified."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mrshc.io.streams import FlawError, check_numeric_matrix
from mrshc.shell.data_matrix import as_data_matrix
from mrshc.shell.text_cleaning import clean_text

if TYPE_CHECKING:
    import pandas as pd

    from mrshc.io.stored_matrix import StoredMatrix

Orientation = Literal["rows", "columns"]

# Largest number of characters in a name or an annotation. The limit is that of a cell in Excel,
# since names and annotations are written to tables that users may open in spreadsheets.
_MAX_TEXT_LENGTH = 32_767
# Double precision represents every whole number below this limit (in magnitude) exactly.
_EXACT_INTEGER_LIMIT = 2.0**53
# Whole numbers below this limit (in magnitude) fit into 64-bit integers.
_INT64_LIMIT = 2.0**63
# A number without leading zeros and with at most 15 digits before the decimal point. Whole numbers
# of 15 digits are exact in double precision. Other text, such as "007" or a longer number, might
# change if it were read as a number and written again.
_CANONICAL_NUMBER = re.compile(r"\s*-?(0|[1-9]\d{0,14})(\.\d{1,20})?([eE][+-]?\d{1,3})?\s*")
# Spellings of a missing value in tables, in lower case.
MISSING_SPELLINGS = frozenset({"", "na", "nan", "n/a", "#n/a", "<na>", "null"})


@dataclass(slots=True, kw_only=True, eq=False)
class RawTable:
    """A matrix of numbers, with names and annotations of its rows and columns.

    Attributes
    ----------
    values : ndarray or StoredMatrix of shape (n_rows, n_columns)
        The numbers, with NaN for missing values. A StoredMatrix is a matrix that stays in its file.
    row_names, column_names : list of str or None
        Names of the rows and of the columns as given in the file; None if the file has no such
        names.
    row_annotations, column_annotations : dict of str to list
        Annotations of the rows and of the columns, by title. Each list has one entry for each row
        or each column.
    annotation_rows : list of str
        Titles of the rows of the file that the user declared annotations, which are now among the
        annotations of the columns.
    features_in : {"rows", "columns"} or None
        Whether the features are in rows or in columns; None if the format does not define this.
    decimal : str
        Decimal mark of numbers in annotations.
    notes : list of str
        Sentences that state how the file was interpreted.
    """

    values: NDArray[Any] | StoredMatrix
    row_names: list[str] | None
    column_names: list[str] | None
    row_annotations: dict[str, list[Any]] = field(default_factory=dict)
    column_annotations: dict[str, list[Any]] = field(default_factory=dict)
    annotation_rows: list[str] = field(default_factory=list)
    features_in: Orientation | None = None
    decimal: str = "."
    notes: list[str] = field(default_factory=list)


def unnamed_table(array: NDArray[Any]) -> RawTable:
    """Return an array as a table without row names and column names.

    Raise FlawError if the array is not a matrix of real numbers.
    """
    check_numeric_matrix(array)
    values = as_floats(array)
    notes = rounding_notes(values) if array.dtype.kind in "iu" else []
    return RawTable(values=values, row_names=None, column_names=None, notes=notes)


def set_rows_aside(table: RawTable, titles: Collection[str]) -> None:
    """Make the rows of values with the given titles annotations of the columns.

    A table is not changed if its rows are samples by the definition of its format, or if its values
    stay in a file.
    """
    names, data = table.row_names or [], as_data_matrix(table.values)
    is_kept = np.array([name not in titles for name in names], dtype=bool)
    if is_kept.all() or table.features_in == "columns" or not data.in_memory:
        return
    for i in np.flatnonzero(~is_kept):
        add_annotation_row(table.column_annotations, names[i], data.values[i].tolist())
        table.annotation_rows.append(names[i])
    table.values = data.values[is_kept]
    table.row_names = list(compress(names, is_kept))
    for title, column in table.row_annotations.items():
        table.row_annotations[title] = list(compress(column, is_kept))


def add_annotation_row(annotations: dict[str, list[Any]], title: str, values: list[Any]) -> None:
    """Add an annotation; a number is appended to its title if the title exists already."""
    annotations[clean_unique_names([*annotations, title], "row")[-1]] = values


def as_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as float32 if it is float32, and otherwise as float64."""
    # Arrays in foreign byte order are also converted to float64, since compiled loops need the
    # native byte order.
    is_float = array.dtype in (np.float32, np.float64)
    return array if is_float and array.dtype.isnative else array.astype(np.float64)


def is_missing(cell: str, spellings: frozenset[str] = MISSING_SPELLINGS) -> bool:
    """Return whether the text of a cell stands for a missing value.

    `spellings` contains the texts that stand for a missing value, in lower case.
    """
    return cell.strip().lower() in spellings


def parse_number(cell: str, decimal: str) -> float | None:
    """Return the number in a cell; None if the cell does not contain a number."""
    # Python accepts 1_000 as a number, but other programs do not.
    if "_" in cell:
        return None
    cell = cell.replace("\N{MINUS SIGN}", "-")
    if decimal != ".":
        if "." in cell:  # the point may separate thousands, so the number is ambiguous
            return None
        cell = cell.replace(decimal, ".")
    try:
        return float(cell)
    except ValueError:
        return None


def are_numbers(
    cells: Iterable[str], decimal: str, spellings: frozenset[str] = MISSING_SPELLINGS
) -> bool:
    """Return whether all cells are numbers or missing values, and at least one is a number."""
    given = [cell for cell in cells if not is_missing(cell, spellings)]
    return bool(given) and all(parse_number(cell, decimal) is not None for cell in given)


def clean_unique_names(names: Sequence[str], kind: str) -> list[str]:
    """Return cleaned and distinct names; a number is appended to each repetition of a name.

    Cleaning replaces control characters by blanks and removes characters that change the direction
    of text.
    """
    cleaned = [clean_text(name) for name in names]
    if (longest := max(map(len, cleaned), default=0)) > _MAX_TEXT_LENGTH:
        raise text_too_long_error(longest, f"the name of a {kind}")
    cleaned = [name or f"{kind} {i + 1}" for i, name in enumerate(cleaned)]
    counts, taken, result = Counter[str](), set(cleaned), list[str]()
    for name in cleaned:
        counts[name] += 1
        candidate = name
        # A name such as "a.2" may be among the given names, so numbers are tried until the
        # resulting name is unused.
        while counts[name] > 1 and candidate in taken:
            candidate = f"{name}.{counts[name]}"
            counts[name] += candidate in taken
        taken.add(candidate)
        result.append(candidate)
    return result


def rounding_notes(values: NDArray[np.floating[Any]]) -> list[str]:
    """Return a note, in a list, if some values are 2^53 or larger in magnitude.

    Double precision does not represent every whole number of this magnitude exactly.
    """
    # fmax and fmin ignore NaN, and their method `reduce` needs no temporary array as large as the
    # data.
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
    """Return the error for a name or an annotation that is too long.

    `role` is the phrase that says in the message what the text is, such as "an annotation".
    """
    return FlawError(
        f"holds {length:,} characters as {role}, more than the {_MAX_TEXT_LENGTH:,} that are "
        "allowed. A quotation mark or a line break may be missing there"
    )


def parse_annotation(
    column: Iterable[Any], decimal: str = "."
) -> NDArray[Any] | pd.arrays.IntegerArray:
    """Return an annotation as numbers if all its values are numbers, and otherwise as text.

    Values such as "007" or a barcode of twenty digits would change if they were read as numbers. An
    annotation with such a value is therefore returned as text. Whole numbers are returned as
    float64 if a value such as "1e20" does not fit into 64 bits.
    """
    cells = [None if v is None or is_missing(str(v)) else clean_text(str(v)) for v in column]
    longest = max((len(cell) for cell in cells if cell is not None), default=0)
    if longest > _MAX_TEXT_LENGTH:
        raise text_too_long_error(longest, "an annotation")
    given = [cell for cell in cells if cell is not None]
    if given and all(_CANONICAL_NUMBER.fullmatch(cell.replace(decimal, ".")) for cell in given):
        numbers = [np.nan if c is None else float(c.replace(decimal, ".")) for c in cells]
        # A number with an exponent of three digits may overflow. The annotation is then returned as
        # text.
        if not np.isinf(numbers).any():
            return _typed_numbers(np.array(numbers, dtype=np.float64))
    # An array of objects is created, since `np.array` without a dtype could return an array of
    # fixed-width text.
    text = np.empty(len(cells), dtype=object)
    text[:] = cells
    return text


def _typed_numbers(numbers: NDArray[np.float64]) -> NDArray[Any] | pd.arrays.IntegerArray:
    """Return whole numbers as integers, with NA for missing values, and other numbers as floats."""
    import pandas as pd  # imported here so that help texts, which list formats, load fast

    is_missing_value = np.isnan(numbers)
    given = numbers[~is_missing_value]
    if not np.all((given == np.rint(given)) & (np.abs(given) < _INT64_LIMIT)):
        return numbers
    integers = np.where(is_missing_value, 0.0, numbers).astype(np.int64)
    if not is_missing_value.any():
        return integers
    return pd.arrays.IntegerArray(integers, is_missing_value)
