"""Checks of the shape and dtype of X, and the dtype to which blocks of X are converted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# Parts of error messages for values that are not real numbers: a description and advice. The keys
# are values of numpy's attribute `dtype.kind`.
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
    """Error raised if a number in X is too large for the dtype to which X is converted."""

    def __init__(self) -> None:
        super().__init__("X holds a number that is too large for double precision. Rescale it.")


@contextmanager
def refuse_overflow() -> Iterator[None]:
    """Within this context, raise OutOfRangeError if a number is too large for its new dtype."""
    try:
        with np.errstate(over="raise"):
            yield
    # numpy raises FloatingPointError for arrays, and Python raises OverflowError for integers.
    except (FloatingPointError, OverflowError):
        raise OutOfRangeError from None


def block_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the dtype to which blocks are converted; raise ValueError if `dtype` is not real.

    The result is float32 for floating-point types of at most 32 bits, and float64 for other
    floating-point types, integers and booleans.

    Parameters
    ----------
    dtype : dtype
        Type of the stored values.
    name : str
        Name of the data in messages.
    """
    # Integers are converted to float64, because float32 represents integers exactly only up to
    # 2**24.
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    raise not_real_error(name, dtype.kind)


def is_integer_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is a signed or unsigned integer type."""
    return dtype.kind in "iu"


def not_real_error(name: str, kind: str) -> ValueError:
    """Return the error for data whose values are not real numbers.

    Parameters
    ----------
    name : str
        Name of the data in the message.
    kind : str
        Attribute `kind` of the dtype of the values, such as "U" for text.
    """
    # The only other kind in numpy is "V", the records of structured arrays.
    description = _REFUSED_KINDS.get(kind, "records. Pass one field of them")
    return ValueError(f"X must hold real numbers, but {name} holds {description}.")


def check_two_dimensions(shape: tuple[Any, ...], name: str) -> tuple[int, int]:
    """Return a shape as two Python integers; raise ValueError if there are not two dimensions.

    `name` is the name of the data in the message.
    """
    if len(shape) != 2:
        raise ValueError(
            "X must be a matrix with samples in rows and features in columns, but "
            f"{name} has {len(shape)} dimensions. Reshape it or pass a part of it."
        )
    return int(shape[0]), int(shape[1])
