"""Finds out how a text separates its cells and which decimal mark it uses."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from mrshc.errors import Sentence, Setting
from mrshc.io.raw_table import is_missing, number_of
from mrshc.io.streams import FlawError

# In this order: a tab or a semicolon is seldom part of a name, a comma may be a decimal mark, and
# a blank separates only where nothing else does.
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars", " ": "blanks"}
# Rows from which the dialect is found out.
_ROWS = 21
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How cells are separated, and what marks the decimals."""

    separator: str
    decimal: str


def dialect_of(head: str, *, separator: str | None, decimal: str | None) -> Dialect:
    """Find out the dialect from the first lines of a file."""
    lines = head.splitlines(keepends=True)
    while lines and (not lines[0].strip() or is_remark(lines[0])):
        del lines[0]
    if separator is None:
        separator = max(SEPARATORS, key=lambda s: _agreement(lines, s))
    if decimal is None:
        cells = [cell for row in _rows(lines, separator) for cell in row]
        decimal = _decimal_mark(cells)
    return Dialect(separator=separator, decimal=decimal)


def _decimal_mark(cells: list[str]) -> str:
    with_comma = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    points = sum(bool(_DECIMAL_POINT.fullmatch(cell)) for cell in cells)
    if len(with_comma) <= points:
        return "."
    if all(_THOUSANDS.fullmatch(cell) for cell in with_comma):
        raise FlawError(
            Sentence(
                "holds numbers such as {number!r}, whose comma may mark thousands or decimals. "
                "Remove the commas, or say that they mark decimals with {decimal}",
                number=with_comma[0].strip(),
                decimal=Setting("decimal", ","),
            )
        )
    return ","


def _agreement(lines: Sequence[str], separator: str) -> tuple[bool, float, float]:
    """Tell how well a separator explains lines: several cells, as many in most, and numbers."""
    rows = _rows(lines, separator)
    rows = rows[1:] or rows
    counts = Counter(map(len, rows))
    (width, agreeing), *_ = counts.most_common(1) or [(1, 0)]
    cells = [cell for row in rows for cell in row[1:]]
    numbers = sum(_is_number_of_some_kind(cell) for cell in cells)
    return width > 1, agreeing / max(1, len(rows)), numbers / max(1, len(cells))


def _is_number_of_some_kind(cell: str) -> bool:
    return is_missing(cell) or any(number_of(cell, mark) is not None for mark in ".,")


def _rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the first rows; a quoted cell may go over several lines."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        return [row for row in islice(reader, _ROWS) if any(cell.strip() for cell in row)]
    except csv.Error:
        return []


def is_remark(line: str) -> bool:
    """Tell whether a line is a remark; GEO's series matrices begin theirs so."""
    return line.startswith(("#", "!"))
