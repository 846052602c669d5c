"""Annotations of the samples from a second table, joined by their names."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TextIO

import pandas as pd

from mrshc.io.formats import unknown_format
from mrshc.io.raw_table import tidy, unique
from mrshc.io.streams import (
    FlawError,
    TableError,
    as_text,
    encoding_of,
    opened,
    shown,
    start_of,
    table_error,
)
from mrshc.io.table import Table
from mrshc.io.text_tables.dialect import Dialect, dialect_of
from mrshc.io.text_tables.lines import Lines, ragged, rows_of
from mrshc.utils.text_cleaning import clean_text

# Names of samples that an error lists at most.
_NAMED = 5


def read_annotations(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table, as text, in which every column is an annotation."""
    try:
        with opened(path) as stream:
            if encoding_of(start_of(stream)) is None:
                raise unknown_format()
            with as_text(stream) as text:
                dialect, header, rows = _read_cells(*text)
                titles = unique(header, "column")
    except FlawError as flaw:
        raise table_error(shown(path), flaw) from None
    # Cleaned as the names of the samples are, to which they are compared.
    cells = [[clean_text(cell) for cell in row] for row in rows]
    found = pd.DataFrame(cells, columns=titles, dtype=object)
    found.attrs["decimal"] = dialect.decimal
    return found


def _read_cells(text: TextIO, head: str) -> tuple[Dialect, list[str], list[list[str]]]:
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


def join(table: Table, annotations: pd.DataFrame, *, file_name: str) -> Table:
    """Add the annotations of a second table, in the column of which most samples are named."""
    names = set(table.sample_names)
    key = max(annotations.columns, key=lambda c: len(names & set(annotations[c])))
    absent = [name for name in table.sample_names if name not in set(annotations[key])]
    if absent:
        shown_names = ", ".join(absent[:_NAMED]) + (", ..." if len(absent) > _NAMED else "")
        raise TableError(
            f"{file_name} must have a row for each sample, but {len(absent)} of {len(names)} have "
            f"none in its column {key!r}: {shown_names}. Add them, or mend the names."
        )
    counts = Counter(annotations[key])
    twice = [name for name in table.sample_names if counts[name] > 1]
    if twice:
        raise TableError(
            f"{file_name} must have one row for each sample, but has {counts[twice[0]]} for "
            f"{twice[0]!r}. Drop the others."
        )
    found = annotations.set_index(key).loc[list(table.sample_names)]
    both = table.sample_annotations.copy()
    replaced = [title for title in found.columns if title in both]
    for title in found.columns:
        both[title] = tidy(found[title], annotations.attrs["decimal"])
    spare = len(annotations) - len(names)
    note = f"Annotations from {file_name}: {', '.join(map(str, found.columns)) or 'none'}" + (
        f"; {spare:,} of its rows are of other samples." if spare else "."
    )
    if replaced:
        note += f" They replace the table's own: {', '.join(replaced)}."
    return replace(table, sample_annotations=both, notes=(*table.notes, note))
