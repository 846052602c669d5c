"""Reading of numpy's .npz files, which contain a matrix and may contain names and annotations."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import damaged_file_error
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import Orientation, RawTable, unnamed_table
from mrshc.io.streams import FlawError
from mrshc.shell.text_cleaning import clean_text

# Largest number of characters of a member's name that are shown in a message.
_MAX_SHOWN_CHARACTERS = 80


def _is_zip_archive(file: InputFile) -> bool:
    # Zarr and Excel archives need not be excluded here, because those formats are tried first.
    return file.is_archive


def _read(file: InputFile, _: ReadingOptions) -> RawTable:
    """Return the matrix called 'X', or the only matrix, as a table with names and annotations.

    Raise FlawError if there is no such matrix, or if the numbers of names do not fit its shape.
    Arrays with one value for each row or each column are annotations.
    """
    arrays = _load_arrays(file.content)
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" in matrices:
        matrices = ["X"]
    if len(matrices) != 1:
        raise FlawError(
            f"must hold a matrix called 'X' or a single one, but holds {len(matrices)} of them"
        )
    table = unnamed_table(arrays.pop(matrices[0]))
    n, p = table.values.shape
    samples, features = (arrays.pop(name, None) for name in ("sample_names", "feature_names"))
    table.features_in = _find_feature_side(samples, features, shape=(n, p))
    row_names, column_names = (
        (features, samples) if table.features_in == "rows" else (samples, features)
    )
    table.row_names = _names_as_text(row_names, n)
    table.column_names = _names_as_text(column_names, p)
    for name, array in arrays.items():
        if array.shape == (n,):
            table.row_annotations[name] = list(array)
        elif array.shape == (p,):
            table.column_annotations[name] = list(array)
    return table


def _find_feature_side(
    samples: NDArray[Any] | None, features: NDArray[Any] | None, *, shape: tuple[int, int]
) -> Orientation | None:
    """Return where the features are, "rows" or "columns"; None if the file has no names.

    The numbers of sample names and feature names are compared with the shape of the matrix. Raise
    FlawError if the numbers fit neither orientation.
    """
    given = {"sample_names": samples, "feature_names": features}
    shapes = {name: array.shape for name, array in given.items() if array is not None}
    lengths = [len(a) if a is not None and a.ndim == 1 else None for a in (samples, features)]
    # Expected numbers of samples and features if the features are in columns or in rows. Features
    # in columns are tried first. If the matrix is square, both orientations fit, and the features
    # are assumed to be in columns, as in scikit-learn.
    candidates: dict[Orientation, tuple[int, int]] = {"columns": shape, "rows": shape[::-1]}
    for side, expected in candidates.items():
        if any(lengths) and all(n in (None, e) for n, e in zip(lengths, expected, strict=True)):
            return side
    if shapes:
        listed = " and ".join(f"{name} of shape {one}" for name, one in shapes.items())
        raise FlawError(
            f"holds {listed} for a matrix of shape {shape}. Give a name to each sample and each "
            "feature, or none"
        )
    return None


def _load_arrays(content: BinaryIO) -> dict[str, NDArray[Any]]:
    """Return all arrays in a file by name; raise FlawError if the file is not an .npz file."""
    try:
        # numpy raises an error for arrays of Python objects. Unpickling such objects could run any
        # code.
        archive = np.load(content, allow_pickle=False)
        arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # numpy raises many types of errors for damaged content
        raise damaged_file_error(".npz file of numbers and names", error) from None
    # If a member is not an array, numpy returns it as bytes. An archive with such a member is not
    # an .npz file.
    if others := [name for name, array in arrays.items() if not hasattr(array, "dtype")]:
        raise _not_numpy_archive_error(others)
    return arrays


def _not_numpy_archive_error(members: list[str]) -> FlawError:
    """Return the error for an archive with members that are not arrays of numpy."""
    shown = clean_text(members[0])[:_MAX_SHOWN_CHARACTERS]
    return FlawError(
        f"is an archive with {shown!r} in it, but a table or a .npz file of numpy was wanted. "
        "Unpack it, and name the file inside"
    )


def _names_as_text(names: NDArray[Any] | None, length: int) -> list[str] | None:
    """Return names as a list of strings; None if there are no names.

    None is also returned if the names are not a vector of the given length.
    """
    return None if names is None or names.shape != (length,) else [str(name) for name in names]


NPZ = TableFormat(
    name="a .npz file",
    labels=(".npz",),
    suffixes=(".npz",),
    recognise=_is_zip_archive,
    read_stream=_read,
)
