"""Excel workbooks, .xlsx: recognised in order to advise users, but not read."""

from __future__ import annotations

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import TableFormat


def _is_workbook(file: InputFile) -> bool:
    # The list of content types distinguishes a workbook from archives of numpy or Zarr that happen
    # to have a member "xl/...".
    members = file.members or ()
    return "[Content_Types].xml" in members and any(name.startswith("xl/") for name in members)


EXCEL = TableFormat(
    name="an Excel workbook",
    suffixes=(".xlsx", ".xlsm", ".xlsb"),
    recognise=_is_workbook,
    advice="Save the sheet as CSV or TSV, and name that file",
)
