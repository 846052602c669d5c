"""Detection of the separator and the decimal mark of a text."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from mrshc.errors import Sentence, Setting
from mrshc.io.raw_table import is_missing, parse_number
from mrshc.io.streams import FlawError

# If several explain a text equally well, the first is chosen: a tab or a semicolon is seldom part
# of a name, a comma may be a decimal mark, and a space separates only where nothing else does.
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "vertical bars", " ": "spaces"}
# Rows that are inspected: the header and twenty rows of data. Each candidate separator splits them
# again, so they are kept few.
_N_INSPECTED_ROWS = 21
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The separator of cells and the decimal mark of a text."""

    separator: str  # a single character; a space stands for any number of them
    decimal: str  # "." or ","


def detect_dialect(head: str, *, separator: str | None, decimal: str | None) -> Dialect:
    """Return the dialect of a text.

    Parameters
    ----------
    head : str
        The first lines of the text.
    separator, decimal : str or None
        The separator and the decimal mark, if they are known; None: they are detected.
    """
    lines = head.splitlines(keepends=True)
    while lines and (not lines[0].strip() or is_comment(lines[0])):
        del lines[0]
    if separator is None:
        separator = max(SEPARATORS, key=lambda s: _score_separator(lines, s))
    if decimal is None:
        cells = [cell for row in _split_rows(lines, separator) for cell in row]
        decimal = _detect_decimal_mark(cells)
    return Dialect(separator=separator, decimal=decimal)


def _detect_decimal_mark(cells: list[str]) -> str:
    """Return the decimal mark of most cells; refuse cells whose comma is ambiguous."""
    with_comma = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    n_with_point = sum(bool(_DECIMAL_POINT.fullmatch(cell)) for cell in cells)
    if len(with_comma) <= n_with_point:
        return "."
    # "1,234" is wrong by a factor of a thousand if the comma is misread, so it is never guessed.
    if all(_THOUSANDS.fullmatch(cell) for cell in with_comma):
        raise FlawError(
            Sentence(
                "holds numbers such as {number!r}, whose comma may mark thousands or decimals. "
                "Remove the commas, or give {decimal} if they mark decimals",
                number=with_comma[0].strip(),
                decimal=Setting("decimal", ","),
            )
        )
    return ","


def _score_separator(lines: Sequence[str], separator: str) -> tuple[bool, float, float]:
    """Return how well a separator explains lines; a larger tuple is better.

    Returns
    -------
    has_several_cells : bool
        Whether most rows have more than one cell.
    agreement : float
        Share of the rows that have the most frequent number of cells.
    share_of_numbers : float
        Share of the cells, but for the first of each row, that are numbers or missing.
    """
    rows = _split_rows(lines, separator)
    rows = rows[1:] or rows  # the header holds names and, if R wrote it, one cell less
    counts = Counter(map(len, rows))
    (width, agreeing), *_ = counts.most_common(1) or [(1, 0)]
    cells = [cell for row in rows for cell in row[1:]]
    n_numbers = sum(_is_number_or_missing(cell) for cell in cells)
    return width > 1, agreeing / max(1, len(rows)), n_numbers / max(1, len(cells))


def _is_number_or_missing(cell: str) -> bool:
    """Return whether a cell is missing or a number with either decimal mark."""
    return is_missing(cell) or any(parse_number(cell, mark) is not None for mark in ".,")


def _split_rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of the first rows; a quoted cell may extend over several lines."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        rows = islice(reader, _N_INSPECTED_ROWS)
        return [row for row in rows if any(cell.strip() for cell in row)]
    except csv.Error:  # the separator does not fit; the row is reported if it is chosen anyway
        return []


def is_comment(line: str) -> bool:
    """Return whether a line is a comment; in GEO's series matrices, comments begin with "!"."""
    return line.startswith(("#", "!"))
