"""Shapes and numeric types that X may have, and the type that its blocks are converted to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# Description and advice for the kinds of values that are refused, by numpy's code for the kind.
_REFUSED_KINDS = {
    "c": "complex numbers. Take their real parts or their absolute values",
    "m": "times. Drop or encode them",
    "M": "dates. Drop or encode them",
    "S": "text. Drop or encode it",
    "U": "text. Drop or encode it",
    "T": "text. Drop or encode it",
    "O": "text or other objects. Drop or encode them",
}


class OutOfRangeError(ValueError):
    """A number of extended precision is too large for double precision."""

    def __init__(self) -> None:
        super().__init__("X holds a number that is too large for double precision. Rescale it.")


@contextmanager
def refuse_overflow() -> Iterator[None]:
    """Refuse numbers that a conversion to double precision would make infinite."""
    try:
        with np.errstate(over="raise"):
            yield
    # numpy raises the first for arrays, Python the second for its integers.
    except (FloatingPointError, OverflowError):
        raise OutOfRangeError from None


def block_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the type that blocks are converted to; refuse values that are not real numbers.

    It is float32 for floats of at most 32 bits, float64 for other numbers.

    Parameters
    ----------
    dtype : dtype
        Type of the stored values.
    name : str
        Name of the data in messages.
    """
    # Integers become float64: float32 represents them exactly only up to 2**24.
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    raise not_real_error(name, dtype.kind)


def is_integer_dtype(dtype: np.dtype[Any]) -> bool:
    """Tell whether the values of a type are integers, signed or unsigned."""
    return dtype.kind in "iu"


def not_real_error(name: str, kind: str) -> ValueError:
    """Return the error that data hold values of a kind, given by numpy's code, that is refused."""
    # The remaining kind of numpy is "V", the records of structured arrays.
    description = _REFUSED_KINDS.get(kind, "records. Pass one field of them")
    return ValueError(f"X must hold real numbers, but {name} holds {description}.")


def check_two_dimensions(shape: tuple[Any, ...], name: str) -> tuple[int, int]:
    """Return the shape of a matrix as integers of Python; refuse other numbers of dimensions."""
    if len(shape) != 2:
        raise ValueError(
            "X must be a matrix with samples in rows and features in columns, but "
            f"{name} has {len(shape)} dimensions. Reshape it or pass a part of it."
        )
    return int(shape[0]), int(shape[1])
