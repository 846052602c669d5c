"""Parquet files; their columns of text are names and annotations."""

from __future__ import annotations

from collections import Counter
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
from mrshc.utils.text_cleaning import clean_text

if TYPE_CHECKING:  # imported late: the list of formats must not wait for it
    import pandas as pd

# Characters of a type in a message: not tuned, simple types are shorter.
_LONGEST_TYPE = 60


def _is_parquet(file: InputFile) -> bool:
    return file.head.startswith(b"PAR1")


def _read(file: InputFile, options: ReadingOptions) -> RawTable:
    content, parquet = file.content, PARQUET.library("pyarrow.parquet")
    try:
        _check_columns(parquet.read_schema(content))
        content.seek(0)
        frame = parquet.read_table(content).to_pandas()
        return _raw_table(frame, annotations=options.annotating)
    except FlawError:
        raise
    except Exception as error:  # of many kinds, MemoryError where a header declares any size
        raise damaged("Parquet file", error) from None


def _check_columns(schema: Any) -> None:
    """Refuse names of several columns, and columns of other than single values."""
    name, count = max(Counter(schema.names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise FlawError(
            f"has {count} columns with the name {name!r}, but the names of columns must differ. "
            "Rename them when it is written"
        )
    for field in schema:
        kind = getattr(field.type, "storage_type", field.type)  # of an extension type
        if kind.num_fields:
            raise FlawError(
                f"holds {_brief(kind)} values in column {field.name!r}, but numbers or text were "
                "wanted. Leave that column out when it is written"
            )


def _brief(kind: Any) -> str:
    """Return a type as text; one of records, which lists all its fields, is cut off."""
    text = clean_text(str(kind))
    return text if len(text) <= _LONGEST_TYPE else f"{text[:_LONGEST_TYPE]}..."


def _raw_table(frame: pd.DataFrame, *, annotations: Collection[str]) -> RawTable:
    import pandas as pd

    columns = [str(name) for name in frame.columns]
    frame = frame.set_axis(columns, axis=1)
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
