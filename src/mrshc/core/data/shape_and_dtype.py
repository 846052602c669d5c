"""Shapes and types of numbers that X may have, and the type that its blocks are converted to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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
