"""Reading of Excel workbooks; advice for workbooks that are encrypted or in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import convert_library_errors
from mrshc.io.formats.registry import ReadingOptions, TableFormat, refuse_reading_in_blocks
from mrshc.io.raw_table import RawTable, rounding_notes
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.column_roles import detect_header, detect_layout
from mrshc.io.text_tables.dialect import Dialect
from mrshc.io.text_tables.row_reading import RowReader
from mrshc.io.text_tables.table_building import build_raw_table
from mrshc.io.workbook_sheets import SheetCells, read_sheet
from mrshc.shell.wording import Parameter, Sentence

# First bytes of a compound file, in which Office stores workbooks of the format .xls and encrypted
# workbooks of any format.
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def is_workbook(file: InputFile) -> bool:
    """Return whether an input is an Excel workbook that can be read."""
    # The list of content types distinguishes a workbook from a numpy or Zarr archive that happens
    # to contain a member "xl/...".
    members = file.members or ()
    if "[Content_Types].xml" in members:
        return any(name.startswith("xl/") for name in members)
    # The members of a damaged archive cannot be listed, so the archive is recognised by its name.
    if file.members is None and file.is_archive and file.path is not None:
        return file.path.suffix.lower() in EXCEL.suffixes
    return False


def _is_binary_workbook(file: InputFile) -> bool:
    return "xl/workbook.bin" in (file.members or ())


def _is_compound_file(file: InputFile) -> bool:
    return file.head.startswith(_COMPOUND_FILE)


def read_workbook(content: Any, *, sheet: str | None, parameter: str = "sheet") -> SheetCells:
    """Return the cells of one sheet of a workbook."""
    openpyxl = EXCEL.import_library("openpyxl")
    with convert_library_errors("Excel workbook"):
        return read_sheet(content, openpyxl=openpyxl, sheet=sheet, parameter=parameter)


def _read_stream(file: InputFile, options: ReadingOptions) -> RawTable:
    return _read(file.content, options)


def _read_path(path: str, options: ReadingOptions) -> RawTable:
    refuse_reading_in_blocks(options)
    with Path(path).open("rb") as content:
        return _read(content, options)


def _read(content: Any, options: ReadingOptions) -> RawTable:
    sheet = read_workbook(content, sheet=options.sheet)
    # Numbers are stored as numbers, so there are no decimal commas. The separator is not used.
    dialect = Dialect(separator="\t", decimal=".", missing=options.missing_spellings)
    first, *others = sheet.rows
    columns, rows, has_header = detect_header(first, others, dialect)
    if not rows:
        raise FlawError(f"holds a header only in sheet {sheet.name!r}: there are no rows below it")
    try:
        layout = detect_layout(columns, rows, dialect=dialect, annotations=options.annotation_names)
    except FlawError as flaw:
        # The table may be in another sheet.
        raise FlawError(
            Sentence(
                "{flaw}. Sheet {name!r} was read; another one is named with {sheet}",
                flaw=flaw,
                name=sheet.name,
                sheet=Parameter("sheet"),
            )
        ) from None
    body = RowReader(layout)
    body.read_rows(rows)
    values = body.pop_values()
    table = build_raw_table(values, body, layout)
    table.notes = [*sheet.notes, *table.notes, *rounding_notes(values)]
    if not has_header:
        table.notes.append("There is no header: the first row holds numbers.")
    if sheet.n_date_names and layout.has_row_names:
        names = (
            "1 name is a date"
            if sheet.n_date_names == 1
            else f"{sheet.n_date_names} names are dates"
        )
        table.notes.append(
            f"{names}: Excel turns names of genes such as MARCH1 and SEPT2 into dates. Correct "
            "them in the workbook."
        )
    return table


EXCEL = TableFormat(
    name="an Excel workbook",
    labels=("Excel",),
    suffixes=(".xlsx", ".xlsm"),
    extra="excel",
    recognise=is_workbook,
    has_sheets=True,
    read_stream=_read_stream,
    # The path is needed to recognise a damaged workbook by its name.
    read_path=_read_path,
)
BINARY_WORKBOOK = TableFormat(
    name="an Excel workbook in binary format (.xlsb)",
    recognise=_is_binary_workbook,
    advice="Save it as .xlsx or CSV, and name that file",
)
COMPOUND_FILE = TableFormat(
    name="an Excel workbook that is encrypted or in the old format .xls",
    recognise=_is_compound_file,
    advice="Save it as .xlsx without a password, and name that file",
)
