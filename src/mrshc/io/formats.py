"""Tables in other formats than plain text: GCT, numpy's, Parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.io.raw_table import Grid, is_missing, number_of, rounding_notes, unique
from mrshc.io.streams import FlawError, refuse_other_than_numbers
from mrshc.io.text_columns import kept_apart
from mrshc.io.text_dialect import Lines, Row, ragged, rows_of
from mrshc.utils.text_cleaning import clean_text, unguard_formula

_GCT_VERSIONS = ("#1.2", "#1.3")
# A size in ASCII digits, and no larger than an array can be.
_SIZE = re.compile(r"[0-9]{1,18}")


def is_gct(head: str) -> bool:
    """Tell whether a text says that it is a GCT file."""
    return head.startswith(_GCT_VERSIONS)


def read_gct(text: TextIO) -> Grid:
    """Read GCT 1.2 or 1.3: features in rows, annotations of both."""
    rows = rows_of(Lines(text), "\t", quoted=False)
    version, sizes = next(rows, (1, [""]))[1][0].strip(), next(rows, (2, []))[1]
    numbers = [int(cell) for cell in map(str.strip, sizes) if _SIZE.fullmatch(cell)]
    if len(numbers) != (2 if version == "#1.2" else 4):
        raise FlawError("is a GCT file whose second line does not give its size")
    n_rows, n_columns = numbers[:2]
    n_notes, n_sample_rows = (1, 0) if version == "#1.2" else numbers[2:]
    _, header = next(rows, (3, []))
    width = 1 + n_notes + n_columns
    if len(header) != width:
        raise FlawError(
            f"is a GCT file whose second line asks for {width} columns, but its header has "
            f"{len(header)}"
        )
    column_annotations: dict[str, list[Any]] = {}
    header = list(map(unguard_formula, header))
    for _ in range(n_sample_rows):
        cells = list(map(unguard_formula, _gct_row(next(rows, None), width)[1]))
        title = unique([*column_annotations, cells[0]], "annotation")[-1]
        column_annotations[title] = cells[1 + n_notes :]
    content = [_gct_row(row, width) for row in rows]
    if len(content) != n_rows:
        raise FlawError(
            f"is a GCT file whose second line gives {n_rows} rows, but it has {len(content)}. It "
            "may be cut off"
        )
    return Grid(
        values=_gct_values(content, first=1 + n_notes, header=header),
        row_names=[unguard_formula(cells[0]) for _, cells in content],
        column_names=header[1 + n_notes :],
        row_annotations={
            title: [unguard_formula(cells[j]) for _, cells in content]
            for j, title in enumerate(unique(header[1 : 1 + n_notes], "annotation"), start=1)
        },
        column_annotations=column_annotations,
        features_in="rows",
        notes=[f"It is a GCT {version[1:]} file."],
    )


def _gct_row(row: Row | None, width: int) -> Row:
    if row is None:
        raise FlawError("is a GCT file that ends before its second line says")
    if len(row[1]) != width:
        raise ragged(row, width)
    return row


def _gct_values(content: list[Row], *, first: int, header: list[str]) -> NDArray[np.float64]:
    values = np.empty((len(content), len(header) - first))
    for row, (line, cells) in zip(values, content, strict=True):
        for j, cell in enumerate(cells[first:]):
            number = np.nan if is_missing(cell) else number_of(cell, ".")
            if number is None:
                raise FlawError(
                    f"holds the text {cell[:40]!r} where a number should be: line {line}, row "
                    f"{cells[0]!r}, column {header[first + j]!r}. Mend that cell"
                )
            row[j] = number
    return values


def read_numpy(content: io.BufferedReader) -> Grid:
    """Read a .npy file: an array without names."""
    try:
        array = np.load(content, allow_pickle=False)
    except Exception as error:  # of many kinds: the file may hold anything
        raise FlawError(f"is not a whole .npy file of numbers: {brief(error)}") from None
    return unnamed(array)


def read_numpy_archive(content: io.BufferedReader) -> Grid:
    """Read a .npz file: a matrix, and what else has a value for each of its rows or columns."""
    arrays = _arrays(content)
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" in matrices:
        matrices = ["X"]
    if len(matrices) != 1:
        raise FlawError(
            f"must hold a matrix called 'X' or a single one, but holds {len(matrices)} of them"
        )
    grid = unnamed(arrays.pop(matrices[0]))
    n, p = grid.values.shape
    names = {name: arrays.pop(name, None) for name in ("sample_names", "feature_names")}
    samples, features = names["sample_names"], names["feature_names"]
    lengths = {"rows": (p, n), "columns": (n, p)}  # of samples and features
    for features_in, wanted in lengths.items():
        found = [len(a) if a is not None and a.ndim == 1 else None for a in (samples, features)]
        if any(found) and all(f in (None, w) for f, w in zip(found, wanted, strict=True)):
            grid.features_in = "rows" if features_in == "rows" else "columns"
    in_rows, in_columns = (features, samples) if grid.features_in == "rows" else (samples, features)
    grid.row_names = _texts(in_rows, n)
    grid.column_names = _texts(in_columns, p)
    for name, array in arrays.items():
        if array.shape == (n,):
            grid.row_annotations[name] = list(array)
        elif array.shape == (p,):
            grid.column_annotations[name] = list(array)
    return grid


def _arrays(content: io.BufferedReader) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(content, allow_pickle=False)
        arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # of many kinds: the file may hold anything
        raise FlawError(f"is not a whole .npz file of numbers and names: {brief(error)}") from None
    # Members that are not arrays come as bytes: the archive is of another kind.
    if others := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise _other_archive(others)
    return arrays


def _other_archive(members: list[str]) -> FlawError:
    """Return what to do with an archive that numpy did not write."""
    if any(name.startswith("xl/") for name in members):
        return FlawError("is an Excel workbook. Save the sheet as CSV or TSV, and name that file")
    return FlawError(
        f"is an archive with {clean_text(members[0])[:80]!r} in it, but a table or a .npz file of "
        "numpy was wanted. Unpack it, and name the file inside"
    )


def _texts(names: NDArray[Any] | None, length: int) -> list[str] | None:
    return None if names is None or names.shape != (length,) else [str(name) for name in names]


def unnamed(array: NDArray[Any]) -> Grid:
    """Return an array as a table without names."""
    refuse_other_than_numbers(array)
    values = floats(array)
    notes = rounding_notes(values) if array.dtype.kind in "iu" else []
    return Grid(values=values, row_names=None, column_names=None, notes=notes)


def floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as floats; those of single precision stay so."""
    is_float = array.dtype in (np.float32, np.float64)
    return array if is_float and array.dtype.isnative else array.astype(np.float64)


def read_parquet(content: io.BufferedReader, *, annotations: Collection[str]) -> Grid:
    """Read a Parquet file; its columns of text are names and annotations."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise FlawError(
            "is a Parquet file, which needs the extra 'parquet': pip install 'mrshc[parquet]'"
        ) from None
    try:
        frame = pyarrow.parquet.read_table(content).to_pandas()
        return _of_frame(frame, annotations=annotations)
    except FlawError:
        raise
    except Exception as error:  # of many kinds: the file may hold anything
        raise FlawError(f"is not a whole Parquet file: {brief(error)}") from None


def _of_frame(frame: pd.DataFrame, *, annotations: Collection[str]) -> Grid:
    columns = [str(name) for name in frame.columns]
    frame = frame.set_axis(columns, axis=1)
    for name, column in frame.items():
        if (example := _nested(column)) is not None:
            raise FlawError(
                f"holds {type(example).__name__} values in column {name!r}, but numbers or text "
                "were wanted. Leave that column out when it is written"
            )
    is_number = [dtype.kind in "fiu" for dtype in frame.dtypes]
    numeric = [j for j, name in enumerate(columns) if is_number[j] and name not in annotations]
    texts = [j for j in range(len(columns)) if j not in numeric]
    if not numeric:
        raise FlawError("holds no column of numbers")
    names = None
    if not isinstance(frame.index, pd.RangeIndex):
        names = [str(name) for name in frame.index]
    elif texts[:1] == [0] and columns[0] not in annotations:
        names = [str(name) for name in frame.iloc[:, 0]]
        if kept_apart(names):
            names = None
        else:
            del texts[0]
    integers = [j for j in numeric if frame.dtypes.iloc[j].kind in "iu"]
    return Grid(
        values=_values(frame.iloc[:, numeric]),
        row_names=names,
        column_names=[columns[j] for j in numeric],
        row_annotations={columns[j]: _plain(frame.iloc[:, j]) for j in texts},
        notes=rounding_notes(_values(frame.iloc[:, integers])),
    )


def _nested(column: pd.Series[Any]) -> Any:
    """Return a list, struct or map in a column of objects; None if there is none."""
    if column.dtype != object:
        return None
    kinds = (list, tuple, dict, np.ndarray)
    return next((value for value in column if isinstance(value, kinds)), None)


def _values(frame: pd.DataFrame) -> NDArray[Any]:
    """Return numbers, NaN where there is none; single precision stays if all columns have it."""
    single = all(str(dtype).lower() == "float32" for dtype in frame.dtypes)
    dtype = np.float32 if single else np.float64
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def _plain(column: pd.Series[Any]) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


def brief(error: Exception) -> str:
    """Return the first line of a library's message."""
    lines = str(error).strip().splitlines()
    return clean_text(lines[0]).rstrip(".") if lines else type(error).__name__
