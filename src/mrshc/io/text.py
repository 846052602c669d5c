"""Tables in text files: separators, decimal marks, names and annotations are found out."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from mrshc.io.grid import Grid, all_numbers, is_missing, number_of, unique
from mrshc.io.source import FlawError

# In this order: a tab or a semicolon is seldom part of a name, a comma may be a decimal mark, and
# a blank separates only where nothing else does.
_SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars", " ": "blanks"}
# Lines from which the separator is found out, and rows that are looked at before it is decided
# which columns hold numbers.
_LINES, _ROWS = 21, 200
_MOST_CLASSES = 10
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")
# Text that was meant as a number: a limit of detection, a percentage, thousands set apart.
_NEARLY_A_NUMBER = re.compile(r"\s*[<>≤≥~]?\s*[+-]?\d[\d.,' ]*([eE][+-]?\d+)?\s*%?\s*")
# Columns of this name hold names even if those are numbers, and whole numbers in columns of those
# names describe features: as GEO, cBioPortal, featureCounts and Cluster 3.0 write them.
_NAMING = re.compile(
    r".*(id|id_ref|gene|probe|probeset|name|sample|symbol|entrez|accession|locus|clone|spot)s?",
    re.IGNORECASE,
)
_DESCRIBING = re.compile(
    r"entrez.*|.*gene_?ids?|chr|chrom|chromosome|start|end|stop|strand|length|pos|position|gweight",
    re.IGNORECASE,
)

Row = tuple[int, list[str]]  # the number of its line, and its cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How cells are separated, and what marks the decimals."""

    separator: str
    decimal: str


def dialect_of(head: str, *, separator: str | None, decimal: str | None) -> Dialect:
    """Find out the dialect from the first lines of a file."""
    lines = head.splitlines(keepends=True)
    while lines and (not lines[0].strip() or _is_remark(lines[0])):
        del lines[0]
    if separator is None:
        separator = max(_SEPARATORS, key=lambda s: _agreement(lines, s))
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
            f"holds numbers such as {with_comma[0].strip()!r}, whose comma may mark thousands or "
            "decimals. Remove the commas, or say that they mark decimals with --decimal ,"
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
        return [row for row in islice(reader, _LINES) if any(cell.strip() for cell in row)]
    except csv.Error:
        return []


def rows_of(text: TextIO, separator: str, *, quoted: bool = True) -> Iterator[Row]:
    """Yield the rows of a text that are not blank."""
    lines = _Lines(text)
    for line in lines:
        if quoted and '"' in line:
            cells = _quoted_cells(line, lines, separator)
        elif separator == " ":
            cells = line.split()
        else:  # three times faster than csv
            cells = line.rstrip("\r\n").split(separator)
        if any(cell and not cell.isspace() for cell in cells):
            yield lines.number, cells


class _Lines:
    """The lines of a text, counted."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._text)
        self.number += 1
        return line


def _quoted_cells(line: str, lines: _Lines, separator: str) -> list[str]:
    """Return the cells of a row that begins with a line; a quoted cell may go on in the next."""
    first = lines.number
    try:
        return next(csv.reader(chain([line], lines), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise FlawError(
            f"cannot be read from line {first} on: {error}. A quotation mark may be left open there"
        ) from None


def ragged(row: Row, n_cells: int) -> FlawError:
    """Return what is wrong with a row that has too many cells or too few."""
    line, cells = row
    return FlawError(
        f"has {len(cells)} cells in line {line} where {n_cells} were expected. Mend that line, or "
        "name the separator"
    )


def read_cells(text: TextIO, head: str) -> tuple[Dialect, list[str], list[list[str]]]:
    """Read a table of texts that begins with the lines of `head`: its header and its rows."""
    dialect = dialect_of(head, separator=None, decimal=None)
    (_, header), *rows = [*rows_of(text, dialect.separator)] or [(0, [])]
    if rows and all(len(cells) == len(header) + 1 for _, cells in rows):
        header = ["", *header]  # as R writes it: no name above the names
    for row in rows:
        if len(row[1]) != len(header):
            raise ragged(row, len(header))
    if not rows:
        raise FlawError("must hold a header and rows below it")
    return dialect, header, [[c.strip() for c in cells] for _, cells in rows]


def read_text(
    text: TextIO,
    head: str,
    *,
    separator: str | None,
    decimal: str | None,
    annotations: Collection[str],
) -> Grid:
    """Read a table of numbers that begins with the lines of `head`.

    Columns named in `annotations` are taken as such even if they hold numbers.
    """
    dialect = dialect_of(head, separator=separator, decimal=decimal)
    rows = _without_remarks(rows_of(text, dialect.separator))
    first = next(rows, None)
    if first is None:
        raise FlawError("holds no table, only blanks or remarks")
    looked_at = list(islice(rows, _ROWS))
    columns, looked_at, has_header = _columns(first, looked_at, dialect)
    if not looked_at:
        raise FlawError("holds a header only: there are no rows with numbers below it")
    layout = _layout(columns, looked_at, decimal=dialect.decimal, annotations=annotations)
    grid = _read_rows(chain(looked_at, rows), layout)
    separated = _SEPARATORS.get(dialect.separator, repr(dialect.separator))
    marks = ", numbers have decimal commas" if dialect.decimal == "," else ""
    grid.notes.insert(0, f"Cells are separated by {separated}{marks}.")
    if not has_header:
        grid.notes.append("There is no header: the first line holds numbers.")
    grid.decimal = dialect.decimal
    return grid


def _is_remark(line: str) -> bool:
    # GEO's series matrices begin their remarks with an exclamation mark.
    return line.startswith(("#", "!"))


def _without_remarks(rows: Iterator[Row]) -> Iterator[Row]:
    """Leave out remarks above the table, but not a header that begins like one."""
    remark: Row | None = None
    begun = False
    for line, cells in rows:
        if not begun and _is_remark(cells[0]):
            remark = (line, cells) if cells[0].startswith("#") else None
            continue
        if not begun and remark is not None and len(remark[1]) == len(cells) > 1:
            yield remark[0], [remark[1][0].lstrip("# "), *remark[1][1:]]
        begun = True
        if len(cells) == 1 and cells[0].startswith("!"):  # how GEO ends a table
            continue
        yield line, cells


def _columns(
    first: Row, looked_at: list[Row], dialect: Dialect
) -> tuple[list[str], list[Row], bool]:
    """Return the names of all columns, the rows that hold data, and whether there is a header."""
    header = first[1]
    widths = Counter(len(cells) for _, cells in looked_at).most_common(1)
    n_columns = widths[0][0] if widths else len(header)
    if n_columns == 1 and len(header) == 1:
        raise FlawError(
            "has a single column. Separate the cells by tabs, commas or semicolons, or name the "
            "separator"
        )
    if len(header) == n_columns and _is_data(header, dialect.decimal):
        named = not all_numbers(header[:1], dialect.decimal)
        numbers = [str(j + 1) for j in range(n_columns - named)]
        return [""] * named + numbers, [first, *looked_at], False
    if n_columns == len(header) + 1 and not all(cells[-1] == "" for _, cells in looked_at):
        return ["", *header], looked_at, True  # as R writes it: no name above the names
    return header, looked_at, True


def _is_data(header: list[str], decimal: str) -> bool:
    """Tell whether the first row holds numbers that are not names of columns."""
    counted = [str(j) for j in range(len(header) + 1)]
    if header in (counted[1:], counted[:-1]):  # columns that have been numbered
        return False
    if all_numbers(header[:1], decimal):
        return all_numbers(header, decimal)
    # Below a title or a blank corner, numbers are names too: doses, times, patients.
    if is_missing(header[0]) or _NAMING.fullmatch(header[0].strip()):
        return False
    return all_numbers(header[1:], decimal) and any(decimal in cell for cell in header[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Which columns of a text hold what."""

    columns: list[str]
    n_cells: int  # of each row
    naming: bool  # the first column names the rows
    annotating: list[int]
    numeric: list[int]
    odd: list[str]  # columns of whole numbers among others
    decimal: str

    def numbers(self, cells: list[str]) -> list[str]:
        """Return the cells that should hold numbers."""
        first, last = self.numeric[0], self.numeric[-1]
        if last - first + 1 == len(self.numeric):  # as in most tables; it saves a loop
            return cells[first : last + 1]
        return [cells[j] for j in self.numeric]


def _layout(
    columns: list[str], looked_at: list[Row], *, decimal: str, annotations: Collection[str]
) -> _Layout:
    """Find out what the columns hold, from the first rows."""
    columns = [name.strip() for name in columns]
    longer = [cells for _, cells in looked_at if len(cells) == len(columns) + 1]
    ends = len(longer) == len(looked_at) and all(cells[-1] == "" for cells in longer)
    n_cells = len(columns) + ends  # one more where each row ends with a separator
    whole = [cells[: len(columns)] for _, cells in looked_at if len(cells) == n_cells]
    if not whole:
        raise ragged(looked_at[0], n_cells)
    by_column = list(zip(*whole, strict=True))
    kinds = [_kind(cells, decimal) for cells in by_column]
    named_by_hand = [name in annotations for name in columns]
    naming = not named_by_hand[0] and _names_rows(columns, kinds, by_column[0])
    others = range(1 if naming else 0, len(columns))
    describes = [
        k == "whole" and bool(_DESCRIBING.fullmatch(c)) for k, c in zip(kinds, columns, strict=True)
    ]
    annotating = [j for j in others if kinds[j] == "text" or named_by_hand[j] or describes[j]]
    empty = [j for j in others if kinds[j] == "missing" and not columns[j]]
    numeric = sorted(set(others) - {*annotating, *empty})
    if not numeric:
        raise FlawError(
            "holds no column of numbers. If its numbers look unusual, name the decimal mark or the "
            "separator"
        )
    fractions = sum(kinds[j] == "numbers" for j in numeric)
    odd = [columns[j] for j in numeric if kinds[j] == "whole" and fractions > len(numeric) / 2]
    return _Layout(
        odd=odd,
        columns=columns,
        n_cells=n_cells,
        naming=naming,
        annotating=annotating,
        numeric=numeric,
        decimal=decimal,
    )


def _kind(cells: Sequence[str], decimal: str) -> str:
    """Tell what a column holds, from some of its cells: a few texts among numbers are mistakes."""
    given = [cell for cell in cells if not is_missing(cell)]
    if not given:
        return "missing"
    numbers = [number_of(cell, decimal) for cell in given]
    meant = sum(
        n is not None or bool(_NEARLY_A_NUMBER.fullmatch(cell))
        for n, cell in zip(numbers, given, strict=True)
    )
    if 2 * meant <= len(given):
        return "text"
    return "whole" if all(n is not None and n.is_integer() for n in numbers) else "numbers"


def _names_rows(columns: list[str], kinds: list[str], first: Sequence[str]) -> bool:
    """Tell whether the first column names the rows."""
    if len(columns) < 2:
        return False
    if columns[0] == "" or kinds[0] == "text":
        return True
    if len(set(first)) < len(first):
        return False
    beside_fractions = kinds[1:].count("numbers") > len(columns) / 2
    return bool(_NAMING.fullmatch(columns[0])) or (kinds[0] == "whole" and beside_fractions)


def _read_rows(rows: Iterable[Row], layout: _Layout) -> Grid:
    """Return all rows as numbers, with their names and annotations."""
    names: list[str] = []
    values: list[NDArray[np.float64]] = []
    annotations: list[list[str]] = [[] for _ in layout.annotating]
    for row in rows:
        cells = row[1]
        if len(cells) != layout.n_cells:
            raise ragged(row, layout.n_cells)
        names.append(cells[0].strip())
        for column, j in zip(annotations, layout.annotating, strict=True):
            column.append(cells[j].strip())
        values.append(_numbers(row, layout))
    titles = unique([layout.columns[j] for j in layout.annotating], "column")
    grid = Grid(
        values=np.array(values),
        row_names=names if layout.naming else None,
        column_names=[layout.columns[j] for j in layout.numeric],
        row_annotations=dict(zip(titles, annotations, strict=True)),
    )
    if layout.naming and kept_apart(names):
        title = unique([*titles, layout.columns[0] or "column 1"], "column")[-1]
        grid.row_annotations = {title: names, **grid.row_annotations}
        grid.row_names = None
        grid.notes.append(f"The first column, {title!r}, repeats itself: it is an annotation.")
    if layout.odd:
        shown = ", ".join(map(repr, layout.odd[:3])) + (", ..." if len(layout.odd) > 3 else "")
        grid.notes.append(
            f"Only whole numbers in {shown}, unlike the other columns: --annotation would set such "
            "a column aside."
        )
    return grid


def kept_apart(names: Sequence[str]) -> bool:
    """Tell whether what stands in place of names are classes: few, and each of them often."""
    distinct = len(set(names))
    return distinct <= _MOST_CLASSES and 2 * distinct < len(names)


def _numbers(row: Row, layout: _Layout) -> NDArray[np.float64]:
    cells = layout.numbers(row[1])
    # Python reads 1_000 as a number; a table that holds it means something else.
    if layout.decimal == "." and "_" not in "".join(cells):
        try:
            return np.array(list(map(float, cells)))
        except ValueError:
            pass  # missing, or to be named
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        number = np.nan if is_missing(cell) else number_of(cell, layout.decimal)
        if number is None:
            raise _text_in_place_of_number(row, layout, layout.numeric[i])
        numbers[i] = number
    return numbers


def _text_in_place_of_number(row: Row, layout: _Layout, j: int) -> FlawError:
    line, cells = row
    named = f", row {cells[0]!r}" if layout.naming else ""
    column = repr(layout.columns[j]) if layout.columns[j] else f"number {j + 1}"
    return FlawError(
        f"holds the text {cells[j].strip()[:40]!r} where a number should be: line {line}{named}, "
        f"column {column}. Mend that cell, or say that the column is an annotation"
    )
