"""Recognition of Excel workbooks, which cannot be read; users are advised to save them as CSV."""

from __future__ import annotations

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import TableFormat


def _is_workbook(file: InputFile) -> bool:
    # The list of content types distinguishes a workbook from a numpy or Zarr archive that happens
    # to contain a member "xl/...".
    members = file.members or ()
    return "[Content_Types].xml" in members and any(name.startswith("xl/") for name in members)


EXCEL = TableFormat(
    name="an Excel workbook",
    suffixes=(".xlsx", ".xlsm", ".xlsb"),
    recognise=_is_workbook,
    advice="Save the sheet as CSV or TSV, and name that file",
)
