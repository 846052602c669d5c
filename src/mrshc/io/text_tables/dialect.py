"""Detection of the separator and the decimal mark of a text."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from mrshc.io.raw_table import MISSING_SPELLINGS, is_missing, parse_number
from mrshc.io.streams import FlawError
from mrshc.shell.wording import Sentence, Setting

# Separators, with their names in messages. If several separators fit a text equally well, the first
# of them in this order is used. Tabs and semicolons come first, since they are seldom part of a
# name. A comma may be a decimal mark. Spaces come last, since they often occur within names.
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "vertical bars", " ": "spaces"}
# Number of rows that are inspected: the header and twenty rows of data. The number is small because
# the rows are split once for each possible separator.
_N_INSPECTED_ROWS = 21
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The separator of cells, the decimal mark and the spellings of missing values of a text."""

    separator: str  # one character; a space stands for one or more spaces
    decimal: str  # "." or ","
    missing: frozenset[str] = MISSING_SPELLINGS  # in lower case


def detect_dialect(
    head: str,
    *,
    separator: str | None,
    decimal: str | None,
    missing: frozenset[str] = MISSING_SPELLINGS,
) -> Dialect:
    """Return the separator and the decimal mark of a text."""
    lines = head.splitlines(keepends=True)
    while lines and (not lines[0].strip() or is_comment(lines[0])):
        del lines[0]
    if separator is None:
        separator = max(SEPARATORS, key=lambda s: _score_separator(lines, s))
    if decimal is None:
        cells = [cell for row in _split_rows(lines, separator) for cell in row]
        decimal = _detect_decimal_mark(cells)
    return Dialect(separator=separator, decimal=decimal, missing=missing)


def _detect_decimal_mark(cells: list[str]) -> str:
    """Return the more frequent decimal mark; raise FlawError if commas are ambiguous."""
    with_comma = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    n_with_point = sum(bool(_DECIMAL_POINT.fullmatch(cell)) for cell in cells)
    if len(with_comma) <= n_with_point:
        return "."
    # The meaning of the comma in a number such as "1,234" is not guessed, since the wrong meaning
    # would change the number by a factor of 1000.
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
    """Return how well a separator splits lines into a table; larger tuples are better."""
    rows = _split_rows(lines, separator)
    rows = rows[1:] or rows  # without the header, which may have one cell fewer than the rows
    counts = Counter(map(len, rows))
    (width, agreeing), *_ = counts.most_common(1) or [(1, 0)]
    cells = [cell for row in rows for cell in row[1:]]
    n_numbers = sum(_is_number_or_missing(cell) for cell in cells)
    return width > 1, agreeing / max(1, len(rows)), n_numbers / max(1, len(cells))


def _is_number_or_missing(cell: str) -> bool:
    """Return whether a cell is missing or is a number, with a decimal point or a decimal comma."""
    return is_missing(cell) or any(parse_number(cell, mark) is not None for mark in ".,")


def _split_rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of the first rows; an empty list if the lines cannot be split.

    A quoted cell may extend over several lines.
    """
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        rows = islice(reader, _N_INSPECTED_ROWS)
        return [row for row in rows if any(cell.strip() for cell in row)]
    except csv.Error:  # if this separator is used anyway, the error is reported later
        return []


def is_comment(line: str) -> bool:
    """Return whether a line is a comment, that is, begins with "#" or with "!" (used by GEO)."""
    return line.startswith(("#", "!"))
