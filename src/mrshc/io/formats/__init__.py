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
    format_in_blocks,
    known_formats,
    listing,
    read_raw_table,
    register,
    unknown_format,
    unregister,
)
from mrshc.io.formats.zarr_store import ZARR

__all__ = [
    "InputFile",
    "ReadingOptions",
    "TableFormat",
    "format_in_blocks",
    "known_formats",
    "listing",
    "read_raw_table",
    "register",
    "unknown_format",
    "unregister",
]

# In the order in which lists name them. Those that come later are asked first whether an input is
# theirs, hence text, which almost anything could be, is the first.
for _known in (DELIMITED_TEXT, GCT, PARQUET, NPY, NPZ, H5AD, ZARR, EXCEL):
    register(_known)
