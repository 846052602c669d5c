"""Formats of tables: each format is defined in one module and registered in this package."""

from mrshc.io.formats.delimited_text import DELIMITED_TEXT
from mrshc.io.formats.excel import BINARY_WORKBOOK, COMPOUND_FILE, EXCEL
from mrshc.io.formats.gct import GCT
from mrshc.io.formats.h5ad import H5AD
from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.npy import NPY
from mrshc.io.formats.npz import NPZ
from mrshc.io.formats.parquet import PARQUET
from mrshc.io.formats.registry import (
    ReadingOptions,
    TableFormat,
    find_format_in_blocks,
    known_formats,
    list_formats,
    read_raw_table,
    register,
    unknown_format_error,
    unregister,
)
from mrshc.io.formats.tenx_folder import TENX_FOLDER
from mrshc.io.formats.tenx_h5 import TENX_H5
from mrshc.io.formats.zarr_store import ZARR

__all__ = [
    "InputFile",
    "ReadingOptions",
    "TableFormat",
    "find_format_in_blocks",
    "known_formats",
    "list_formats",
    "read_raw_table",
    "register",
    "unknown_format_error",
    "unregister",
]

# Help texts and messages list the formats in this order. To recognise the format of an input,
# formats are tried in reverse order. Delimited text is tried last, since almost any text could be a
# table.
for _table_format in (
    *(DELIMITED_TEXT, GCT, PARQUET, NPY, NPZ, H5AD, ZARR, EXCEL, TENX_H5, TENX_FOLDER),
    *(BINARY_WORKBOOK, COMPOUND_FILE),
):
    register(_table_format)
