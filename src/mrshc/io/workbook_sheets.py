"""Reading of the cells of one sheet of an Excel workbook (.xlsx or .xlsm)."""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mrshc.io.streams import FlawError
from mrshc.io.text_tables.lines import Row
from mrshc.shell.wording import Parameter, Sentence

# Number of bytes of a sheet that are searched at a time for merged cells (1 MiB). The number is not
# tuned: it does not affect the result.
_SEARCHED_BYTES = 1 << 20
# The range of merged cells, such as B1:D1. The name of the element may have a prefix.
_MERGED_RANGE = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+)([0-9]+):([A-Z]+)([0-9]+)"')
# Longest element that is searched for, so that none is missed at the end of a block.
_MAX_ELEMENT_BYTES = 200
# Largest number of sheets in a message. More names would hide the rest of the sentence.
_MAX_LISTED_SHEETS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetCells:
    """The cells of a sheet as text, from the header of its table to its last row.

    Attributes
    ----------
    name : str
        Name of the sheet.
    rows : list of Row
        The rows that are not empty, each with its number in the sheet. All rows have the same
        number of cells. Empty cells are empty strings, and dates have the form 2001-03-01.
    n_date_names : int
        Number of dates in the first column, below the header.
    notes : list of str
        Sentences that state which sheet and which rows were read.
    """

    name: str
    rows: list[Row]
    n_date_names: int = 0
    notes: list[str] = field(default_factory=list)


def read_sheet(
    content: Any, *, openpyxl: Any, sheet: str | None, parameter: str = "sheet"
) -> SheetCells:
    """Return the cells of one sheet."""
    with _open_workbook(content, openpyxl, data_only=True) as book:
        worksheet, notes = _find_sheet(book, sheet, parameter=parameter)
        name, part = worksheet.title, getattr(worksheet, "_worksheet_path", None)
        values = _read_values(worksheet)
    if not values:
        others = "" if len(book.sheetnames) == 1 else ". Name another sheet with {sheet}"
        message = Sentence(
            "holds no table: its sheet {name!r} is empty" + others,
            name=name,
            sheet=Parameter(parameter),
        )
        raise FlawError(message)
    first = _find_table(values)
    if part is not None:
        _refuse_merged_cells(content, part, name=name, first_row=values[first][0])
    if first:
        rows = "Row 1 is" if values[first][0] == 2 else f"Rows 1 to {values[first][0] - 1} are"
        notes.append(f"{rows} above the table and left out.")
    table = values[first:]
    n_columns = max(len(cells) for _, cells in table)
    if any(None in cells or len(cells) < n_columns for _, cells in table):
        with _open_workbook(content, openpyxl, data_only=False) as book:
            _refuse_formulas_without_values(table, book[name], n_columns=n_columns)
    n_dates = sum(isinstance(cells[0], datetime.date) for _, cells in table[1:])
    rows_as_text = [(number, _as_texts(cells, n_columns)) for number, cells in table]
    return SheetCells(name=name, rows=rows_as_text, n_date_names=n_dates, notes=notes)


@contextmanager
def _open_workbook(content: Any, openpyxl: Any, *, data_only: bool) -> Iterator[Any]:
    """Yield a workbook; with `data_only`, formulas are replaced by their stored values."""
    content.seek(0)
    with warnings.catch_warnings():
        # openpyxl warns of styles, extensions and data validation, which do not concern values.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(content, read_only=True, data_only=data_only)
        try:
            yield book
        finally:
            book.close()


def _find_sheet(book: Any, wanted: str | None, *, parameter: str) -> tuple[Any, list[str]]:
    """Return a sheet, and a note in a list if it is the first of several.

    Raise FlawError if there is no such sheet.
    """
    sheets = book.worksheets  # without charts
    titles = [sheet.title for sheet in sheets]
    if not sheets:
        raise FlawError("holds no sheet with cells")
    if wanted is None:
        if len(sheets) == 1:
            return sheets[0], []
        note = Sentence(
            "Sheet {name!r} is read, the first of {listed}; name another with {sheet}.",
            name=titles[0],
            listed=_list_sheets(titles),
            sheet=Parameter(parameter),
        )
        return sheets[0], [note]
    if wanted in titles:
        return sheets[titles.index(wanted)], []
    # A name takes precedence over a number, since sheets may be called 1, 2 and 3.
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(sheets):
        position = int(wanted)
        return sheets[position - 1], [f"Sheet {position} is {titles[position - 1]!r}."]
    raise FlawError(f"has no sheet {wanted!r}. Its sheets are {_list_sheets(titles)}")


def _list_sheets(titles: Sequence[str]) -> str:
    shown = ", ".join(map(repr, titles[:_MAX_LISTED_SHEETS]))
    return shown + (", ..." if len(titles) > _MAX_LISTED_SHEETS else "")


def _read_values(worksheet: Any) -> list[tuple[int, list[Any]]]:
    """Return the numbers and values of the rows that are not empty; None marks an empty cell.

    Empty cells at the end of a row are left out.
    """
    # The size that a workbook declares may be wrong, so all its rows are read.
    worksheet.reset_dimensions()
    rows = []
    for number, values in enumerate(worksheet.iter_rows(values_only=True), start=1):
        cells = [None if isinstance(v, str) and not v.strip() else v for v in values]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            rows.append((number, cells))
    return rows


def _find_table(values: list[tuple[int, list[Any]]]) -> int:
    """Return the position of the first row with several cells; 0 if there is no such row.

    The rows above it, such as a title, do not belong to the table.
    """
    for position, (_, cells) in enumerate(values):
        if sum(value is not None for value in cells) > 1:
            return position
    return 0


def _refuse_merged_cells(content: Any, part: str, *, name: str, first_row: int) -> None:
    """Raise FlawError if cells are merged in a row of the table.

    Only the first of several merged cells has a value, so the others would be read as missing.
    """
    content.seek(0)
    with zipfile.ZipFile(content) as archive, archive.open(part.lstrip("/")) as stream:
        rest = b""
        while block := stream.read(_SEARCHED_BYTES):
            for column, row, last_column, last_row in _MERGED_RANGE.findall(rest + block):
                if int(last_row) >= first_row:
                    cells = (column + row + b":" + last_column + last_row).decode()
                    raise FlawError(
                        f"has merged cells, {cells} in sheet {name!r}, of which only the first has "
                        "a value. Unmerge them, and fill in every cell"
                    )
            rest = block[-_MAX_ELEMENT_BYTES:]


def _refuse_formulas_without_values(
    table: list[tuple[int, list[Any]]], worksheet: Any, *, n_columns: int
) -> None:
    """Raise FlawError if an empty cell contains a formula whose value is not stored.

    Excel stores the value of each formula, but other programs write formulas without values.
    """
    worksheet.reset_dimensions()
    known = dict(table)
    for number, formulas in enumerate(worksheet.iter_rows(values_only=True), start=1):
        values = known.get(number)
        if values is None:
            continue
        for j, formula in enumerate(formulas[:n_columns]):
            value = values[j] if j < len(values) else None
            is_blank = isinstance(formula, str) and not formula.strip()
            if value is None and formula is not None and not is_blank:
                raise FlawError(
                    f"holds a formula without a stored value, in cell {_column_letters(j)}{number} "
                    f"of sheet {worksheet.title!r}. Open it in Excel or LibreOffice, save it, and "
                    "read it again"
                )


def _column_letters(j: int) -> str:
    """Return the letters of column `j`, counted from 0, such as "A" or "AB"."""
    letters = ""
    while j >= 0:
        j, digit = divmod(j, 26)
        letters = chr(ord("A") + digit) + letters
        j -= 1
    return letters


def _as_texts(cells: list[Any], n_columns: int) -> list[str]:
    """Return the values of a row as text, filled up with empty strings to `n_columns` cells."""
    return [_as_text(value) for value in cells] + [""] * (n_columns - len(cells))


def _as_text(value: Any) -> str:
    """Return a value as text; numbers are written with all their digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()  # as Excel shows it
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return repr(value) if isinstance(value, int | float) else str(value).strip()
