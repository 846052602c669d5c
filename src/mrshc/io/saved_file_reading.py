"""Reading of files that mrshc has written, with checks for damage and for changes by users."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.streams import FlawError
from mrshc.shell.text_cleaning import unguard_formula

Schema = Mapping[str, Any]

COMPARISON_SCHEMA = Path(__file__).with_name("comparison.schema.json")

# Largest numbers that fit into arrays of int64 and float64. Numbers in JSON and CSV files may be
# larger.
_MAX_INT64 = 2**63 - 1
_MAX_FLOAT64 = float(np.finfo(np.float64).max)
# Largest number of characters of a cell or a name in a message, so that the message fits on one
# line of a terminal.
_MAX_SHOWN_CHARACTERS = 40


def read_complete_text(path: Path) -> str:
    """Return the text of a UTF-8 file; raise FlawError if it cannot be read or is not complete.

    Every text file that mrshc writes ends with a line break, so a file without a final line break
    was cut off.
    """
    try:
        if path.exists() and not path.is_file():  # reading from a pipe might never end
            raise FlawError("is not a file")
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise FlawError("is not text in UTF-8") from None
    except OSError as error:
        raise FlawError(f"cannot be read: {error.strerror or error}") from None
    if not text.endswith("\n"):
        raise FlawError("is cut off")
    return text


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; raise FlawError if the file is not valid JSON."""
    text = read_complete_text(path)
    # This is stricter than Python's default, since repeated keys, NaN and Infinity are errors.
    try:
        return json.loads(text, object_pairs_hook=_dict_of_pairs, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise FlawError("is not JSON") from None


def _dict_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of a JSON object as a dict; raise ValueError if a key is repeated."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key is repeated")
    return entries


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@cache
def load_schema(path: Path) -> Schema:
    """Return a JSON schema that is part of this package, given the path of its file."""
    schema: Schema = json.loads(path.read_text(encoding="utf-8"))
    return schema


def check_schema(value: Any, schema: Schema) -> None:
    """Raise FlawError if a value does not conform to a JSON schema.

    This function implements only those keywords of JSON Schema that the schemas of this package
    use, because a full validator would be an additional dependency. The tests compare the function
    with a full validator. Numbers must also be finite, and whole numbers must fit into 64 bits,
    although the schemas do not state this.
    """
    if (violation := _find_violation(value, schema, root=schema, where="")) is not None:
        raise FlawError(violation)


def _find_violation(value: Any, schema: Schema, *, root: Schema, where: str) -> str | None:
    """Return a description of the first violation of a schema; None if there is no violation."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "const" in schema and value != schema["const"]:
        return f"has {_describe_entry(where)} other than {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"has {_describe_entry(where)} other than {' or '.join(map(repr, schema['enum']))}"
    if "type" in schema:
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(_TYPE_PREDICATES[name](value) for name in types):
            wanted = " or ".join(types)
            return f"has {_describe_entry(where)} of the wrong type, where {wanted} was expected"
    if isinstance(value, dict):
        return _find_violation_in_object(value, schema, root=root, where=where)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"has too few entries in {_describe_entry(where)}"
        items = schema.get("items", {})
        violations = (_find_violation(entry, items, root=root, where=where) for entry in value)
        return next(filter(None, violations), None)
    if isinstance(value, str):
        is_valid = "pattern" not in schema or re.search(schema["pattern"], value)
        return None if is_valid else f"has {_describe_entry(where)} of another form than expected"
    is_valid = value is None or (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    )
    return None if is_valid else f"has {_describe_entry(where)} out of range"


def _describe_entry(where: str) -> str:
    return shorten(where) if where else "content"


def _is_int64(value: Any) -> bool:
    # `isinstance` would accept bool, which is an int in Python but not an integer in JSON.
    return type(value) is int and abs(value) <= _MAX_INT64


# Functions that return whether a value has a type, by the name of the type in JSON Schema.
_TYPE_PREDICATES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": _is_int64,
    "number": lambda value: _is_int64(value) or (type(value) is float and isfinite(value)),
}


def _find_violation_in_object(
    value: dict[str, Any], schema: Schema, *, root: Schema, where: str
) -> str | None:
    """Return a description of the first violation in a JSON object; None if there is none."""
    prefix = f"{where}." if where else ""
    for key in schema.get("required", ()):
        if key not in value:
            return f"lacks {prefix + key!r}"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for key, entry in value.items():
        if key not in known and others is False:
            return f"has an entry that is not known, {shorten(prefix + key)}"
        violation = _find_violation(entry, known.get(key, others), root=root, where=prefix + key)
        if violation is not None:
            return violation
    return None


def shorten(text: str) -> str:
    """Return a text in quotation marks for a message; if the text is long, its end is cut off."""
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return repr(text)
    return repr(text[: _MAX_SHOWN_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The type of the cells in a column of a CSV file.

    Attributes
    ----------
    dtype : dtype
        Type of the array into which the column is read.
    parse : callable, str -> object
        Function that returns the value of a cell, and raises ValueError if the cell is not of this
        type.
    wanted : str
        Description of a valid cell for error messages, such as "a number in range".
    """

    dtype: Any
    parse: Callable[[str], Any]
    wanted: str


def _parse_bool(cell: str) -> bool:
    if cell not in ("True", "False"):
        raise ValueError("not a boolean")
    return cell == "True"


TEXT_TYPE = ColumnType(dtype=object, parse=lambda cell: cell or None, wanted="text")
BOOLEAN_TYPE = ColumnType(dtype=bool, parse=_parse_bool, wanted="True or False")


def choice_type(wanted: str, texts: Iterable[str]) -> ColumnType:
    """Return the type of a column in which each cell is one of the given strings.

    `texts` contains these strings. `wanted` describes a valid cell in error messages.
    """
    allowed = frozenset(texts)

    def parse(cell: str) -> str:
        if cell not in allowed:
            raise ValueError("not one of the texts")
        return cell

    return ColumnType(dtype=object, parse=parse, wanted=wanted)


OPTIONAL_BOOLEAN_TYPE = ColumnType(
    dtype=object,
    parse=lambda cell: _parse_bool(cell) if cell else None,
    wanted="True, False or nothing",
)


def integer_type(
    low: int = -_MAX_INT64, high: int = _MAX_INT64, *, allow_empty: bool = False
) -> ColumnType:
    """Return the type of a column of whole numbers from `low` to `high`, inclusive.

    If `allow_empty` is true, a cell may be empty. An empty cell is read as None, and the column is
    read into an array of objects, since arrays of integers have no missing values.
    """
    parse = _make_bounded_parser(int, low, high)
    return ColumnType(
        dtype=object if allow_empty else np.int64,
        parse=(lambda cell: parse(cell) if cell else None) if allow_empty else parse,
        wanted="a whole number in range",
    )


def float_type(
    low: float = -_MAX_FLOAT64, high: float = _MAX_FLOAT64, *, allow_empty: bool = False
) -> ColumnType:
    """Return the type of a column of numbers from `low` to `high`, inclusive."""
    parse = _make_bounded_parser(float, low, high)
    return ColumnType(
        dtype=np.float64,
        parse=(lambda cell: parse(cell) if cell else np.nan) if allow_empty else parse,
        wanted="a number in range",
    )


def _make_bounded_parser(
    convert: Callable[[str], Any], low: float, high: float
) -> Callable[[str], Any]:
    """Return a function that converts a cell; it raises ValueError if the value is out of range."""

    def parse(cell: str) -> Any:
        value = convert(cell)
        # The comparison is False for NaN, so the error is raised for NaN as well.
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    return parse


def read_csv_columns(
    path: Path, types: Mapping[str, ColumnType], *, n_rows: int
) -> dict[str, NDArray[Any]]:
    """Return the columns of a CSV file, given their titles and types and the number of rows.

    Text such as "NA" and "001" is returned unchanged, and numbers are read exactly. By default,
    `pandas.read_csv` guarantees neither.
    """
    # In strict mode, a quotation mark that is not closed is an error. In the default mode, the rest
    # of the file would be read as one cell.
    reader = csv.reader(io.StringIO(read_complete_text(path), newline=""), strict=True)
    try:
        header, *rows = reader
    except (csv.Error, ValueError):  # ValueError is raised if there is no header
        raise FlawError("is not CSV") from None
    if list(map(unguard_formula, header)) != list(types):
        raise FlawError("has other columns than expected")
    if len(rows) != n_rows:
        raise FlawError(f"has {len(rows):,} rows where {n_rows:,} were expected")
    if ragged := next((i for i, row in enumerate(rows, 1) if len(row) != len(header)), None):
        raise FlawError(f"has too many or too few cells in row {ragged}")
    cells = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {
        title: _parse_column(title, column, column_type)
        for (title, column_type), column in zip(types.items(), cells, strict=True)
    }


def _parse_column(title: str, cells: tuple[str, ...], column_type: ColumnType) -> NDArray[Any]:
    """Return the values of a column; raise FlawError at the first cell of the wrong type."""
    values = np.empty(len(cells), dtype=column_type.dtype)
    for i, cell in enumerate(cells):
        try:
            # `unguard_formula` changes only cells that begin with an apostrophe. Testing for the
            # apostrophe here saves a function call for all other cells.
            values[i] = column_type.parse(unguard_formula(cell) if cell[:1] == "'" else cell)
        except (ValueError, OverflowError):
            raise FlawError(
                f"holds {shorten(cell)} in row {i + 1} of the column {shorten(title)}, where "
                f"{column_type.wanted} was expected"
            ) from None
    return values
