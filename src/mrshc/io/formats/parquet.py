"""Reading of Parquet files, in which columns of text contain names or annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import damaged_file_error
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, rounding_notes
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.column_roles import are_class_labels
from mrshc.shell.text_cleaning import clean_text

if TYPE_CHECKING:  # pandas is imported only when a file is read, so that help texts load fast
    import pandas as pd

# Messages show at most this many characters of the name of a type. The names of simple types are
# shorter, but the names of record types list all fields and may be arbitrarily long.
_MAX_TYPE_CHARACTERS = 60


def _is_parquet(file: InputFile) -> bool:
    return file.head.startswith(b"PAR1")


def _read(file: InputFile, options: ReadingOptions) -> RawTable:
    content, parquet = file.content, PARQUET.import_library("pyarrow.parquet")
    try:
        # The types of the columns are checked before values are read, since pandas cannot represent
        # all types.
        _check_columns(parquet.read_schema(content))
        content.seek(0)
        frame = parquet.read_table(content).to_pandas()
        return _build_raw_table(frame, annotations=options.annotation_names)
    except FlawError:
        raise
    # pyarrow raises many types of errors, including MemoryError if a damaged header declares a huge
    # size.
    except Exception as error:
        raise damaged_file_error("Parquet file", error) from None


def _check_columns(schema: Any) -> None:
    """Raise FlawError if a column name is repeated, or if a column contains lists or records."""
    name, count = max(Counter(schema.names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise FlawError(
            f"has {count} columns with the name {name!r}, but the names of columns must differ. "
            "Rename them when it is written"
        )
    for field in schema:
        # The values of an extension type are stored as values of another type, the storage type.
        arrow_type = getattr(field.type, "storage_type", field.type)
        if arrow_type.num_fields:
            raise FlawError(
                f"holds {_shorten_type(arrow_type)} values in column {field.name!r}, but numbers "
                "or text were wanted. Leave that column out when it is written"
            )


def _shorten_type(arrow_type: Any) -> str:
    """Return the name of a type, cut off if it is too long for a message."""
    text = clean_text(str(arrow_type))
    return text if len(text) <= _MAX_TYPE_CHARACTERS else f"{text[:_MAX_TYPE_CHARACTERS]}..."


def _build_raw_table(frame: pd.DataFrame, *, annotations: Collection[str]) -> RawTable:
    """Return the content of a data frame as a table of numbers, with row names and annotations.

    Raise FlawError if no column contains numbers.
    """
    import pandas as pd

    columns = [str(name) for name in frame.columns]
    frame = frame.set_axis(columns, axis=1)
    is_number = [dtype.kind in "fiu" for dtype in frame.dtypes]
    numeric = [j for j, name in enumerate(columns) if is_number[j] and name not in annotations]
    others = [j for j in range(len(columns)) if j not in numeric]
    if not numeric:
        raise FlawError("holds no column of numbers")
    names = None
    # If the user has set an index, pandas stores the index in the file, and the index contains the
    # row names. Otherwise, the first column contains the row names if it is text and its values are
    # not class labels.
    if not isinstance(frame.index, pd.RangeIndex):
        names = [str(name) for name in frame.index]
    elif others[:1] == [0] and columns[0] not in annotations:
        names = [str(name) for name in frame.iloc[:, 0]]
        if are_class_labels(names):
            names = None
        else:
            del others[0]
    integers = [j for j in numeric if frame.dtypes.iloc[j].kind in "iu"]
    return RawTable(
        values=_float_values(frame.iloc[:, numeric]),
        row_names=names,
        column_names=[columns[j] for j in numeric],
        row_annotations={columns[j]: _list_with_none(frame.iloc[:, j]) for j in others},
        notes=rounding_notes(_float_values(frame.iloc[:, integers])),
    )


def _float_values(frame: pd.DataFrame) -> NDArray[Any]:
    """Return the values of a data frame as floats, with NaN for missing values.

    The type is float32 if all columns are float32, and float64 otherwise.
    """
    # The comparison ignores case, since the nullable type of pandas is called Float32.
    is_single = all(str(dtype).lower() == "float32" for dtype in frame.dtypes)
    dtype = np.float32 if is_single else np.float64
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def _list_with_none(column: pd.Series[Any]) -> list[Any]:
    """Return a column as a list in which each missing value of pandas (NaN, NaT or NA) is None."""
    import pandas as pd

    return [None if pd.isna(value) else value for value in column]


PARQUET = TableFormat(
    name="a Parquet file",
    labels=("Parquet",),
    suffixes=(".parquet",),
    extra="parquet",
    recognise=_is_parquet,
    read_stream=_read,
)
