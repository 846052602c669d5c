"""Delimited text: CSV, TSV and the like; separators, decimal marks and headers are found out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from mrshc.errors import Parameter, Sentence
from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, rounding_notes, unique
from mrshc.io.streams import FlawError, encoding_of
from mrshc.io.text_tables.column_roles import Layout, are_classes, columns_of, layout_of
from mrshc.io.text_tables.dialect import SEPARATORS, dialect_of, is_remark
from mrshc.io.text_tables.lines import Lines, Row, rows_of
from mrshc.io.text_tables.row_reading import RowReader

# Rows that are looked at before it is decided which columns hold numbers.
_ROWS = 200


def _is_text(file: InputFile) -> bool:
    return encoding_of(file.head) is not None


def _read(file: InputFile, options: ReadingOptions) -> RawTable:
    with file.text() as (text, head):
        table = _read_text(text, head, options)
    if absent := sorted(set(options.annotations) - set(table.row_annotations)):
        raise FlawError(f"has no column {absent[0]!r} that could be an annotation")
    return table


def _read_text(text: TextIO, head: str, options: ReadingOptions) -> RawTable:
    """Read a table of numbers that begins with the lines of `head`."""
    dialect = dialect_of(head, separator=options.separator, decimal=options.decimal)
    lines = Lines(text)
    rows = _without_remarks(rows_of(lines, dialect.separator))
    first = next(rows, None)
    if first is None:
        raise FlawError("holds no table, only blanks or remarks")
    looked_at = list(islice(rows, _ROWS))
    columns, looked_at, has_header = columns_of(first, looked_at, dialect)
    if not looked_at:
        raise FlawError("holds a header only: there are no rows with numbers below it")
    layout = layout_of(columns, looked_at, dialect=dialect, annotations=options.annotating)
    body = RowReader(layout)
    body.read(looked_at, lines, rows)
    values = body.take_values()
    table = _raw_table(values, body, layout)
    separated = SEPARATORS.get(dialect.separator, repr(dialect.separator))
    marks = ", numbers have decimal commas" if dialect.decimal == "," else ""
    table.notes.insert(0, f"Cells are separated by {separated}{marks}.")
    table.notes += rounding_notes(values)
    if not has_header:
        table.notes.append("There is no header: the first line holds numbers.")
    return table


def _without_remarks(rows: Iterator[Row]) -> Iterator[Row]:
    """Leave out remarks above the table, but not a header that begins like one."""
    remark: Row | None = None
    begun = False
    for line, cells in rows:
        if not begun and is_remark(cells[0]):
            remark = (line, cells) if cells[0].startswith("#") else None
            continue
        if not begun and remark is not None and len(remark[1]) == len(cells) > 1:
            yield remark[0], [remark[1][0].lstrip("# "), *remark[1][1:]]
        begun = True
        if len(cells) == 1 and cells[0].startswith("!"):  # how GEO ends a table
            continue
        yield line, cells


def _raw_table(values: NDArray[np.float64], body: RowReader, layout: Layout) -> RawTable:
    titles = unique([layout.columns[j] for j in layout.annotating], "column")
    table = RawTable(
        values=values,
        row_names=body.names if layout.naming else None,
        column_names=[layout.columns[j] for j in layout.numeric],
        row_annotations=dict(zip(titles, body.annotations, strict=True)),
        decimal=layout.decimal,
    )
    if layout.naming and are_classes(body.names):
        title = unique([*titles, layout.columns[0] or "column 1"], "column")[-1]
        table.row_annotations = {title: body.names, **table.row_annotations}
        table.row_names = None
        table.notes.append(f"The first column, {title!r}, repeats itself: it is an annotation.")
    if layout.odd:
        shown = ", ".join(map(repr, layout.odd[:3])) + (", ..." if len(layout.odd) > 3 else "")
        table.notes.append(
            Sentence(
                "Only whole numbers in {shown}, unlike the other columns: {annotations} would set "
                "such a column aside.",
                shown=shown,
                annotations=Parameter("annotations"),
            )
        )
    return table


DELIMITED_TEXT = TableFormat(
    name="a table as text",
    listed=("CSV", "TSV"),
    suffixes=(".csv", ".tsv", ".txt"),
    recognise=_is_text,
    read_stream=_read,
)
