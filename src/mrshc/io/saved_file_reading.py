"""Reading of files that mrshc wrote and that may have been damaged or edited since."""

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
from mrshc.utils.text_cleaning import unguard_formula

Schema = Mapping[str, Any]

COMPARISON_SCHEMA = Path(__file__).with_name("comparison.schema.json")

# Whole numbers of JSON have no bounds, those of arrays do.
_LARGEST_WHOLE = 2**63 - 1
_LARGEST = float(np.finfo(np.float64).max)


def read_whole(path: Path) -> str:
    """Return a text that ends with a line break: without, it was cut off in its last line."""
    try:
        if path.exists() and not path.is_file():  # a pipe would wait for ever
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
    """Return the content of a JSON file."""
    text = read_whole(path)
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise FlawError("is not JSON") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


@cache
def load_schema(path: Path) -> Schema:
    """Return a schema of this package."""
    schema: Schema = json.loads(path.read_text(encoding="utf-8"))
    return schema


def check_schema(value: Any, schema: Schema) -> None:
    """Refuse a value that a JSON schema does not allow.

    This covers the keywords that the schemas of this package use; the tests compare it with a full
    validator. Numbers must be finite in addition, and whole numbers must fit into 64 bits.
    """
    if (flaw := _flaw(value, schema, root=schema, where="")) is not None:
        raise FlawError(flaw)


def _flaw(value: Any, schema: Schema, *, root: Schema, where: str) -> str | None:
    """Return what is wrong with a value; None if nothing is."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "const" in schema and value != schema["const"]:
        return f"has {_named(where)} other than {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"has {_named(where)} other than {' or '.join(map(repr, schema['enum']))}"
    if "type" in schema:
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(_IS[kind](value) for kind in kinds):
            return f"has {_named(where)} of the wrong type, where {' or '.join(kinds)} was expected"
    if isinstance(value, dict):
        return _flaw_inside(value, schema, root=root, where=where)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"has too few entries in {_named(where)}"
        inside = schema.get("items", {})
        flaws = (_flaw(entry, inside, root=root, where=where) for entry in value)
        return next(filter(None, flaws), None)
    if isinstance(value, str):
        fits = "pattern" not in schema or re.search(schema["pattern"], value)
        return None if fits else f"has {_named(where)} of another form than expected"
    fits = value is None or schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return None if fits else f"has {_named(where)} out of range"


def _named(where: str) -> str:
    return shortened(where) if where else "a content"


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= _LARGEST_WHOLE


_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": _is_whole,
    "number": lambda value: _is_whole(value) or (type(value) is float and isfinite(value)),
}


def _flaw_inside(value: dict[str, Any], schema: Schema, *, root: Schema, where: str) -> str | None:
    """Return what is wrong with the entries of an object."""
    inside = f"{where}." if where else ""
    for key in schema.get("required", ()):
        if key not in value:
            return f"lacks {inside + key!r}"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for key, entry in value.items():
        if key not in known and others is False:
            return f"has an entry that is not known, {shortened(inside + key)}"
        flaw = _flaw(entry, known.get(key, others), root=root, where=inside + key)
        if flaw is not None:
            return flaw
    return None


def shortened(text: str) -> str:
    """Return a text as an error shows it."""
    return repr(text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What the cells of a column hold."""

    dtype: Any
    read: Callable[[str], Any]  # raises ValueError for a cell of another kind
    wanted: str  # for the sentence


def _flag(cell: str) -> bool:
    if cell not in ("True", "False"):
        raise ValueError("no flag")
    return cell == "True"


TEXT = Kind(dtype=object, read=lambda cell: cell or None, wanted="text")
FLAG = Kind(dtype=bool, read=_flag, wanted="True or False")


def choice(wanted: str, texts: Iterable[str]) -> Kind:
    """Return a column of some texts."""
    known = frozenset(texts)

    def read(cell: str) -> str:
        if cell not in known:
            raise ValueError("another text")
        return cell

    return Kind(dtype=object, read=read, wanted=wanted)


def whole(low: int = -_LARGEST_WHOLE, high: int = _LARGEST_WHOLE) -> Kind:
    """Return a column of whole numbers within bounds."""
    return Kind(dtype=np.int64, read=_bounded(int, low, high), wanted="a whole number in range")


def number(low: float = -_LARGEST, high: float = _LARGEST, *, gaps: bool = False) -> Kind:
    """Return a column of numbers within bounds; with gaps, a cell may be empty."""
    read = _bounded(float, low, high)
    return Kind(
        dtype=np.float64,
        read=(lambda cell: read(cell) if cell else np.nan) if gaps else read,
        wanted="a number in range",
    )


def _bounded(convert: Callable[[str], Any], low: float, high: float) -> Callable[[str], Any]:
    def read(cell: str) -> Any:
        value = convert(cell)
        if not low <= value <= high:  # NaN is in no range
            raise ValueError("out of range")
        return value

    return read


def read_columns(path: Path, kinds: Mapping[str, Kind], *, n_rows: int) -> dict[str, NDArray[Any]]:
    """Read a CSV file of known columns and a known number of rows.

    Texts may look like anything, "NA" and "001" included, and numbers must read back exactly:
    pandas' own reader does not see to both.
    """
    # Strict: a quotation mark that is left open would take the rest of the file as one cell.
    reader = csv.reader(io.StringIO(read_whole(path), newline=""), strict=True)
    try:
        header, *rows = reader
    except (csv.Error, ValueError):
        raise FlawError("is not CSV") from None
    if list(map(unguard_formula, header)) != list(kinds):
        raise FlawError("has other columns than expected")
    if len(rows) != n_rows:
        raise FlawError(f"has {len(rows):,} rows where {n_rows:,} were expected")
    if ragged := next((i for i, row in enumerate(rows, 1) if len(row) != len(header)), None):
        raise FlawError(f"has too many or too few cells in row {ragged}")
    cells = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {
        title: _column(title, column, kind)
        for (title, kind), column in zip(kinds.items(), cells, strict=True)
    }


def _column(title: str, cells: tuple[str, ...], kind: Kind) -> NDArray[Any]:
    values = np.empty(len(cells), dtype=kind.dtype)
    for i, cell in enumerate(cells):
        try:
            values[i] = kind.read(unguard_formula(cell) if cell[:1] == "'" else cell)
        except (ValueError, OverflowError):
            raise FlawError(
                f"holds {shortened(cell)} in row {i + 1} of the column {shortened(title)}, where "
                f"{kind.wanted} was expected"
            ) from None
    return values
