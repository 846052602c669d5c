"""Reading of numpy's .npy files, which contain a matrix without names of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import convert_library_errors, damaged_file_error
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, unnamed_table
from mrshc.io.stored_matrix import StoredMatrix, out_of_core_note

_DESCRIPTION = ".npy file of numbers"


def _is_npy(file: InputFile) -> bool:
    return file.head.startswith(b"\x93NUMPY")


def _read_stream(file: InputFile, _: ReadingOptions) -> RawTable:
    """Return the array in a stream as a table.

    Raise FlawError if the file is damaged or does not contain a matrix of numbers. Arrays of Python
    objects are not read, since unpickling objects could run any code.
    """
    content = file.content
    try:
        array = np.load(content, allow_pickle=False)
    # numpy raises many types of errors, including MemoryError if a damaged header declares a huge
    # size.
    except Exception as error:
        raise damaged_file_error(_DESCRIPTION, error) from None
    return unnamed_table(array)


def _read_path(path: str, options: ReadingOptions) -> RawTable:
    with convert_library_errors(_DESCRIPTION):
        # The file is memory-mapped, so no values are read yet. `read_array` decides whether the
        # values are read into memory.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return read_array(array, StoredMatrix(path, _open_matrix), in_memory=options.in_memory)


def read_array(array: Any, X: StoredMatrix, *, in_memory: bool | None) -> RawTable:
    """Return the table in a file that contains one array."""
    if (note := out_of_core_note(X, in_memory)) is None:
        return unnamed_table(np.array(array))
    return RawTable(values=X, row_names=None, column_names=None, notes=[note])


def _open_matrix(path: str, _: str) -> Any:
    return np.lib.format.open_memmap(path, mode="r")


NPY = TableFormat(
    name="a .npy file",
    labels=(".npy",),
    suffixes=(".npy",),
    recognise=_is_npy,
    read_stream=_read_stream,
    read_path=_read_path,
    open_matrix=_open_matrix,
)
