"""Reading of delimited text, such as CSV; separator, decimal mark and header are detected."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TextIO

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, rounding_notes
from mrshc.io.streams import FlawError, detect_encoding
from mrshc.io.text_tables.column_roles import detect_header, detect_layout
from mrshc.io.text_tables.dialect import SEPARATORS, Dialect, detect_dialect, is_comment
from mrshc.io.text_tables.lines import LineReader, Row, iterate_rows
from mrshc.io.text_tables.row_reading import RowReader
from mrshc.io.text_tables.table_building import build_raw_table

# Number of rows that are inspected to decide which columns contain numbers. This number is large
# enough to include most kinds of cells. It is small enough to keep the rows in memory as text, even
# if each row has one cell per feature.
_N_INSPECTED_ROWS = 200


def _is_text(file: InputFile) -> bool:
    return detect_encoding(file.head) is not None


def _read(file: InputFile, options: ReadingOptions) -> RawTable:
    with file.text() as (text, head):
        return _read_text(text, head, options)


def _read_text(text: TextIO, head: str, options: ReadingOptions) -> RawTable:
    """Return the table of numbers in a text; `head` contains the first lines of the text.

    Raise FlawError if there is no table, if the table has no rows of numbers, or if a row or a cell
    is not valid.
    """
    dialect = detect_dialect(
        head,
        separator=options.separator,
        decimal=options.decimal,
        missing=options.missing_spellings,
    )
    lines = LineReader(text)
    rows = _skip_comments(iterate_rows(lines, dialect.separator))
    first = next(rows, None)
    if first is None:
        raise FlawError("holds no table, only blank lines or comments")
    inspected = list(islice(rows, _N_INSPECTED_ROWS))
    columns, inspected, has_header = detect_header(first, inspected, dialect)
    if not inspected:
        raise FlawError("holds a header only: there are no rows with numbers below it")
    layout = detect_layout(
        columns, inspected, dialect=dialect, annotations=options.annotation_names
    )
    body = RowReader(layout)
    body.read(inspected, lines, rows)
    values = body.pop_values()
    table = build_raw_table(values, body, layout)
    table.notes.insert(0, _dialect_note(dialect))
    table.notes += rounding_notes(values)
    if not has_header:
        table.notes.append("There is no header: the first line holds numbers.")
    return table


def _dialect_note(dialect: Dialect) -> str:
    separator = SEPARATORS.get(dialect.separator, repr(dialect.separator))
    decimals = ", numbers have decimal commas" if dialect.decimal == "," else ""
    return f"Cells are separated by {separator}{decimals}."


def _skip_comments(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of a table without the comments before and after the table.

    The last comment before the table is yielded as the header if it begins with "#" and has as many
    cells as the row below it.
    """
    comment: Row | None = None
    is_in_table = False
    for line, cells in rows:
        if not is_in_table and is_comment(cells[0]):
            comment = (line, cells) if cells[0].startswith("#") else None
            continue
        if not is_in_table and comment is not None and len(comment[1]) == len(cells) > 1:
            yield comment[0], [comment[1][0].lstrip("# "), *comment[1][1:]]
        is_in_table = True
        if len(cells) == 1 and cells[0].startswith("!"):  # the last line of a GEO series matrix
            continue
        yield line, cells


DELIMITED_TEXT = TableFormat(
    name="a table as text",
    labels=("CSV", "TSV"),
    suffixes=(".csv", ".tsv", ".txt"),
    recognise=_is_text,
    has_dialects=True,
    read_stream=_read,
)
