"""Archives of numpy, .npz: a matrix, and arrays with a value for each of its rows or columns."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import damaged
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, unnamed_table
from mrshc.io.streams import FlawError
from mrshc.utils.text_cleaning import clean_text


def _is_archive(file: InputFile) -> bool:
    return file.is_archive


def _read(file: InputFile, _: ReadingOptions) -> RawTable:
    arrays = _arrays(file.content)
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" in matrices:
        matrices = ["X"]
    if len(matrices) != 1:
        raise FlawError(
            f"must hold a matrix called 'X' or a single one, but holds {len(matrices)} of them"
        )
    table = unnamed_table(arrays.pop(matrices[0]))
    n, p = table.values.shape
    names = {name: arrays.pop(name, None) for name in ("sample_names", "feature_names")}
    samples, features = names["sample_names"], names["feature_names"]
    lengths = {"rows": (p, n), "columns": (n, p)}  # of samples and features
    for features_in, wanted in lengths.items():
        found = [len(a) if a is not None and a.ndim == 1 else None for a in (samples, features)]
        if any(found) and all(f in (None, w) for f, w in zip(found, wanted, strict=True)):
            table.features_in = "rows" if features_in == "rows" else "columns"
    _refuse_other_names(samples, features, fits=table.features_in is not None, shape=(n, p))
    sides = (features, samples) if table.features_in == "rows" else (samples, features)
    table.row_names = _texts(sides[0], n)
    table.column_names = _texts(sides[1], p)
    for name, array in arrays.items():
        if array.shape == (n,):
            table.row_annotations[name] = list(array)
        elif array.shape == (p,):
            table.column_annotations[name] = list(array)
    return table


def _refuse_other_names(
    samples: NDArray[Any] | None,
    features: NDArray[Any] | None,
    *,
    fits: bool,
    shape: tuple[int, int],
) -> None:
    """Refuse names of another number than there are samples and features, either way round."""
    given = {"sample_names": samples, "feature_names": features}
    found = {name: array.shape for name, array in given.items() if array is not None}
    if found and not fits:
        shapes = " and ".join(f"{name} of shape {one}" for name, one in found.items())
        raise FlawError(
            f"holds {shapes} for a matrix of shape {shape}. Give a name to each sample and each "
            "feature, or none"
        )


def _arrays(content: BinaryIO) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(content, allow_pickle=False)
        arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # of many kinds: the file may hold anything
        raise damaged(".npz file of numbers and names", error) from None
    # Members that are not arrays come as bytes: the archive is of another kind.
    if others := [name for name, array in arrays.items() if not hasattr(array, "dtype")]:
        raise _other_archive(others)
    return arrays


def _other_archive(members: list[str]) -> FlawError:
    """Return what to do with an archive that numpy did not write."""
    return FlawError(
        f"is an archive with {clean_text(members[0])[:80]!r} in it, but a table or a .npz file of "
        "numpy was wanted. Unpack it, and name the file inside"
    )


def _texts(names: NDArray[Any] | None, length: int) -> list[str] | None:
    return None if names is None or names.shape != (length,) else [str(name) for name in names]


NPZ = TableFormat(
    name="a .npz file",
    listed=(".npz",),
    suffixes=(".npz",),
    recognise=_is_archive,
    read_stream=_read,
)
