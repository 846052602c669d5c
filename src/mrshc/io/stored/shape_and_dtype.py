"""Types of the values of an array in a file."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_integer_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is a signed or unsigned integer type."""
    return dtype.kind in "iu"
