"""Parquet files; their columns of text are names and annotations."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import damaged
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, rounding_notes
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.column_roles import are_classes

if TYPE_CHECKING:  # imported late: the list of formats must not wait for it
    import pandas as pd


def _is_parquet(file: InputFile) -> bool:
    return file.head.startswith(b"PAR1")


def _read(file: InputFile, options: ReadingOptions) -> RawTable:
    content, parquet = file.content, PARQUET.library("pyarrow.parquet")
    try:
        frame = parquet.read_table(content).to_pandas()
        return _raw_table(frame, annotations=options.annotating)
    except FlawError:
        raise
    except Exception as error:  # of many kinds, MemoryError where a header declares any size
        raise damaged("Parquet file", error) from None


def _raw_table(frame: pd.DataFrame, *, annotations: Collection[str]) -> RawTable:
    import pandas as pd

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
        if are_classes(names):
            names = None
        else:
            del texts[0]
    integers = [j for j in numeric if frame.dtypes.iloc[j].kind in "iu"]
    return RawTable(
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
    import pandas as pd

    return [None if pd.isna(value) else value for value in column]


PARQUET = TableFormat(
    name="a Parquet file",
    listed=("Parquet",),
    suffixes=(".parquet",),
    extra="parquet",
    recognise=_is_parquet,
    read_stream=_read,
)
