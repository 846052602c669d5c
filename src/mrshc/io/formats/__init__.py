"""Formats of tables, one module each; this is where they are registered."""

from mrshc.io.formats.delimited_text import DELIMITED_TEXT
from mrshc.io.formats.excel import EXCEL
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

# In the order in which help texts and messages list them. The last one is asked first whether an
# input has its format; delimited text is the first, since almost any text could be a table.
for _table_format in (DELIMITED_TEXT, GCT, PARQUET, NPY, NPZ, H5AD, ZARR, EXCEL):
    register(_table_format)
