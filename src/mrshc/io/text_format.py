"""Tables in text files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from mrshc.errors import Parameter, Sentence
from mrshc.io.raw_table import Grid, rounding_notes, unique
from mrshc.io.streams import FlawError
from mrshc.io.text_columns import Layout, columns_of, kept_apart, layout_of
from mrshc.io.text_dialect import (
    SEPARATORS,
    Dialect,
    Lines,
    Row,
    dialect_of,
    is_remark,
    ragged,
    rows_of,
)
from mrshc.io.text_rows import Body

# Rows that are looked at before it is decided which columns hold numbers.
_ROWS = 200


def read_cells(text: TextIO, head: str) -> tuple[Dialect, list[str], list[list[str]]]:
    """Read a table of texts that begins with the lines of `head`: its header and its rows."""
    dialect = dialect_of(head, separator=None, decimal=None)
    (_, header), *rows = [*rows_of(Lines(text), dialect.separator)] or [(0, [])]
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
    lines = Lines(text)
    rows = _without_remarks(rows_of(lines, dialect.separator))
    first = next(rows, None)
    if first is None:
        raise FlawError("holds no table, only blanks or remarks")
    looked_at = list(islice(rows, _ROWS))
    columns, looked_at, has_header = columns_of(first, looked_at, dialect)
    if not looked_at:
        raise FlawError("holds a header only: there are no rows with numbers below it")
    layout = layout_of(columns, looked_at, dialect=dialect, annotations=annotations)
    body = Body(layout)
    body.read(looked_at, lines, rows)
    values = body.take_values()
    grid = _grid(values, body, layout)
    separated = SEPARATORS.get(dialect.separator, repr(dialect.separator))
    marks = ", numbers have decimal commas" if dialect.decimal == "," else ""
    grid.notes.insert(0, f"Cells are separated by {separated}{marks}.")
    grid.notes += rounding_notes(values)
    if not has_header:
        grid.notes.append("There is no header: the first line holds numbers.")
    return grid


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


def _grid(values: NDArray[np.float64], body: Body, layout: Layout) -> Grid:
    titles = unique([layout.columns[j] for j in layout.annotating], "column")
    grid = Grid(
        values=values,
        row_names=body.names if layout.naming else None,
        column_names=[layout.columns[j] for j in layout.numeric],
        row_annotations=dict(zip(titles, body.annotations, strict=True)),
        decimal=layout.decimal,
    )
    if layout.naming and kept_apart(body.names):
        title = unique([*titles, layout.columns[0] or "column 1"], "column")[-1]
        grid.row_annotations = {title: body.names, **grid.row_annotations}
        grid.row_names = None
        grid.notes.append(f"The first column, {title!r}, repeats itself: it is an annotation.")
    if layout.odd:
        shown = ", ".join(map(repr, layout.odd[:3])) + (", ..." if len(layout.odd) > 3 else "")
        grid.notes.append(
            Sentence(
                "Only whole numbers in {shown}, unlike the other columns: {annotations} would set "
                "such a column aside.",
                shown=shown,
                annotations=Parameter("annotations"),
            )
        )
    return grid
