"""Arrays of numpy, .npy: numbers without names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import damaged, whole_file
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, unnamed_table
from mrshc.io.stored_matrix import Stored, stays

_WHAT = ".npy file of numbers"


def _is_npy(file: InputFile) -> bool:
    return file.head.startswith(b"\x93NUMPY")


def _read_stream(file: InputFile, _: ReadingOptions) -> RawTable:
    content = file.content
    try:
        array = np.load(content, allow_pickle=False)
    except Exception as error:  # of many kinds, MemoryError where a header declares any size
        raise damaged(_WHAT, error) from None
    return unnamed_table(array)


def _read_path(path: str, options: ReadingOptions) -> RawTable:
    with whole_file(_WHAT):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return read_array(array, Stored(path, _open_matrix), in_memory=options.in_memory)


def read_array(array: Any, X: Stored, *, in_memory: bool | None) -> RawTable:
    """Read the single array of a file, or leave it there, as X, if that is asked for or needed."""
    if (note := stays(X, in_memory)) is None:
        return unnamed_table(np.array(array))
    return RawTable(values=X, row_names=None, column_names=None, notes=[note])


def _open_matrix(path: str, _: str) -> Any:
    return np.lib.format.open_memmap(path, mode="r")


NPY = TableFormat(
    name="a .npy file",
    listed=(".npy",),
    suffixes=(".npy",),
    recognise=_is_npy,
    read_stream=_read_stream,
    read_path=_read_path,
    open_matrix=_open_matrix,
)
