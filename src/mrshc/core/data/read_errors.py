"""What all kinds of X have in common: which numbers they may hold, what is said of failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_groups import OutsideError

WHOLE_FILE = "Check that the file is whole, and copy or write it again if it is not."

_REFUSED = {
    "c": "complex numbers. Take their real parts or their absolute values",
    "m": "times. Drop or encode them",
    "M": "dates. Drop or encode them",
    "S": "text. Drop or encode it",
    "U": "text. Drop or encode it",
    "T": "text. Drop or encode it",
    "O": "text or other objects. Drop or encode them",
}


class OutOfRangeError(ValueError):
    """A number of extended precision that double precision cannot hold."""

    def __init__(self) -> None:
        super().__init__("X holds a number that is too large for double precision. Rescale it.")


@contextmanager
def in_range() -> Iterator[None]:
    """Refuse numbers that a conversion to double precision would make infinite."""
    try:
        with np.errstate(over="raise"):
            yield
    except (FloatingPointError, OverflowError):  # of arrays, and of whole numbers of Python
        raise OutOfRangeError from None


def block_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return what blocks are converted to: float32 for no more digits than that, or float64."""
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    raise not_real(name, dtype.kind)


def are_integers(dtype: np.dtype[Any]) -> bool:
    """Tell whether values of a type are integers, signed or not."""
    return dtype.kind in "iu"


def not_real(name: str, kind: str) -> ValueError:
    """Return a refusal of values of some kind, by numpy's letter for it."""
    what = _REFUSED.get(kind, "records. Pass one field of them")
    return ValueError(f"X must hold real numbers, but {name} holds {what}.")


def matrix_shape(shape: tuple[Any, ...], name: str) -> tuple[int, int]:
    """Return the shape of a matrix; refuse others."""
    if len(shape) != 2:
        raise ValueError(
            "X must be a matrix with samples in rows and features in columns, but "
            f"{name} has {len(shape)} dimensions. Reshape it or pass a part of it."
        )
    return int(shape[0]), int(shape[1])


@contextmanager
def reading(name: str, start: int, stop: int, advice: str) -> Iterator[None]:
    """Turn any failure to read columns start..stop-1 into one sentence; ours must not be inside."""
    try:
        yield
    except (MemoryError, OutOfRangeError, OutsideError, UnreadableError):  # sentences already
        raise
    except Exception as error:  # of many kinds: each library has its own
        raise unreadable(name, start, stop, advice, error) from error


def unreadable(
    name: str, start: int, stop: int, advice: str, error: BaseException
) -> UnreadableError:
    """Return the sentence about columns start..stop-1 that could not be read."""
    columns = f"Column {start}" if stop - start == 1 else f"Columns {start} to {stop - 1}"
    return UnreadableError(f"{columns} of {name} cannot be read: {_brief(error)}. {advice}")


def _brief(error: BaseException) -> str:
    """Return the first sentence of what a library says."""
    said = str(error).strip().splitlines()
    return said[0].split(". ")[0].rstrip(".") if said else type(error).__name__
