"""Reading of the folders that Cell Ranger of 10x Genomics writes.

A folder contains a sparse matrix (matrix.mtx), the barcodes of the cells (barcodes.tsv), and the
features (features.tsv, or genes.tsv before version 3 of Cell Ranger). The files may be compressed,
and all their names may begin with the same text, such as the name of a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import ReadingOptions, TableFormat, refuse_reading_in_blocks
from mrshc.io.formats.tenx_h5 import feature_type_notes
from mrshc.io.memory import refuse_larger_than_memory
from mrshc.io.raw_table import RawTable
from mrshc.io.streams import FlawError, display_name, open_stream, open_text
from mrshc.io.text_tables.lines import LineReader, iterate_rows

_MATRIX = "matrix.mtx"
_SIGNATURE = b"%%MatrixMarket"
_COMPRESSED = ("", ".gz", ".bz2", ".xz")
# Messages show at most this many characters of a damaged line.
_MAX_SHOWN_CHARACTERS = 60


def _is_tenx_folder(file: InputFile) -> bool:
    if file.path is None:
        return False
    if file.is_folder:
        return any(file.has_entry(_MATRIX + suffix) for suffix in _COMPRESSED)
    # The matrix itself may be named, and its other files are then beside it. A compressed matrix is
    # recognised by its name.
    is_matrix = file.path.name.endswith(tuple(_MATRIX + suffix for suffix in _COMPRESSED))
    return is_matrix and (file.head.startswith(_SIGNATURE) or file.path.suffix != ".mtx")


def _read(path: str, options: ReadingOptions) -> RawTable:
    refuse_reading_in_blocks(options)
    folder, prefix = Path(path), ""
    if not folder.is_dir():
        prefix = folder.name[: folder.name.rindex(_MATRIX)]
        folder = folder.parent
    matrix = _find_file(folder, prefix, _MATRIX)
    barcodes = [cells[0] for cells in _read_names(_find_file(folder, prefix, "barcodes.tsv"))]
    listed = _read_names(_find_file(folder, prefix, "features.tsv", "genes.tsv"))
    n_cells = min(map(len, listed), default=0)
    # Columns of the list of features: identifier, name (usually a gene symbol), type.
    names = [cells[1 if n_cells > 1 else 0] for cells in listed]
    titles = ("id", "name", "feature_type")[: n_cells if n_cells > 1 else 0]
    annotations: dict[str, list[Any]] = {
        title: [cells[j] for cells in listed] for j, title in enumerate(titles) if title != "name"
    }
    values = _read_matrix(matrix, n_features=len(names), n_barcodes=len(barcodes))
    return RawTable(
        values=values,
        row_names=names,
        column_names=barcodes,
        row_annotations=annotations,
        features_in="rows",
        notes=feature_type_notes(annotations.get("feature_type", [])),
    )


def _find_file(folder: Path, prefix: str, *names: str) -> Path:
    """Return the path of a file with one of the names, which may be compressed.

    Raise FlawError if there is no such file.
    """
    for name in names:
        for suffix in _COMPRESSED:
            if (path := folder / f"{prefix}{name}{suffix}").is_file():
                return path
    wanted = " or ".join(prefix + name for name in names)
    raise FlawError(
        "must have the files matrix.mtx, barcodes.tsv and features.tsv in one folder, but there is "
        f"no {wanted} (also compressed). Add it"
    )


def _read_names(path: Path) -> list[list[str]]:
    """Return the cells of the rows of a list of barcodes or features."""
    with open_stream(path) as stream, open_text(stream) as (text, _):
        rows = iterate_rows(LineReader(text), "\t", has_quotes=False)
        return [[cell.strip() for cell in cells] for _, cells in rows]


def _read_matrix(path: Path, *, n_features: int, n_barcodes: int) -> NDArray[np.float64]:
    """Return the matrix, with features in rows; raise FlawError if the file is damaged.

    FlawError is also raised if the shape of the matrix does not fit the numbers of names.
    """
    with _naming(path), open_stream(path) as stream:
        shape, n_values = _read_header(stream)
        if shape not in ((n_features, n_barcodes), (n_barcodes, n_features)):
            raise FlawError(
                f"has {shape[0]:,} rows and {shape[1]:,} columns, but its folder lists "
                f"{n_features:,} features and {n_barcodes:,} barcodes. The files may be of "
                "different data, or cut off"
            )
        refuse_larger_than_memory(shape, np.dtype(np.float64))
        entries = _read_entries(stream, n_values)
        _check_indices(entries, shape)
    values = np.zeros(shape)
    # Several entries for the same cell are added up, as in other programs.
    np.add.at(values, (entries["row"] - 1, entries["column"] - 1), entries["value"])
    # Some programs write cells in rows. A square matrix is assumed to have features in rows.
    return values if shape == (n_features, n_barcodes) else values.T


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Within this context, a FlawError is about a file in the folder, which its message names."""
    try:
        yield
    except FlawError as flaw:
        raise FlawError(f"holds {display_name(path.name)}, which {flaw}") from None


def _read_header(stream: Any) -> tuple[tuple[int, int], int]:
    """Return the shape and the number of values that a Matrix Market file declares.

    Raise FlawError if the file is not a sparse matrix of real numbers.
    """
    kind = stream.readline().decode("utf-8", "replace").lower().split()
    wanted = ["%%matrixmarket", "matrix", "coordinate"]
    if kind[:3] != wanted or kind[3:4] not in (["integer"], ["real"]) or kind[4:] != ["general"]:
        raise FlawError(
            "must begin with '%%MatrixMarket matrix coordinate integer general', or real in place "
            f"of integer, but begins with {' '.join(kind)[:_MAX_SHOWN_CHARACTERS]!r}"
        )
    line = stream.readline()
    while line.startswith(b"%") or (line and not line.strip()):
        line = stream.readline()
    sizes = line.decode("utf-8", "replace").split()
    if len(sizes) != 3 or not all(s.isascii() and s.isdigit() and len(s) < 19 for s in sizes):
        raise FlawError(
            "must give its numbers of rows, columns and values after the comments, but has "
            f"{' '.join(sizes)[:_MAX_SHOWN_CHARACTERS]!r} there. It may be cut off"
        )
    n_rows, n_columns, n_values = map(int, sizes)
    return (n_rows, n_columns), n_values


def _read_entries(stream: Any, n_values: int) -> dict[str, NDArray[Any]]:
    """Return the row numbers, column numbers and values; raise FlawError if some are damaged."""
    import pandas as pd  # imported here so that help texts, which list formats, load fast

    titles = ["row", "column", "value"]
    try:
        frame = pd.read_csv(stream, sep=r"\s+", header=None, names=titles, dtype=np.float64)
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame({title: np.empty(0) for title in titles})
    except ValueError as error:  # parser errors of pandas are also ValueErrors
        reason = str(error).splitlines()[0].rstrip(".")
        raise FlawError(f"must have three numbers in each line, but has not: {reason}") from None
    if len(frame) != n_values or frame.isna().to_numpy().any():
        complete = int((~frame.isna().any(axis=1)).sum())
        raise FlawError(
            f"declares {n_values:,} values, but has {complete:,}. It may be cut off: copy or "
            "download it again"
        )
    return {title: frame[title].to_numpy() for title in titles}


def _check_indices(entries: dict[str, NDArray[Any]], shape: tuple[int, int]) -> None:
    """Convert row and column numbers to integers; raise FlawError if one is out of range."""
    for axis, size in zip(("row", "column"), shape, strict=True):
        numbers = entries[axis]
        is_wrong = (numbers < 1) | (numbers > size) | (numbers != np.rint(numbers))
        if is_wrong.any():
            first = int(is_wrong.argmax())
            raise FlawError(
                f"has the {axis} number {numbers[first]:.10g} in entry {first + 1:,}, but {axis}s "
                f"are numbered from 1 to {size:,}. Write it again"
            )
        entries[axis] = numbers.astype(np.intp)


TENX_FOLDER = TableFormat(
    name="a 10x Genomics folder",
    labels=("10x matrix.mtx",),
    suffixes=("matrix.mtx",),
    container="a folder with barcodes.tsv and features.tsv",
    recognise=_is_tenx_folder,
    read_path=_read,
)
