"""Transfer of arrays between a device, such as a GPU, and main memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_host(array: Any) -> NDArray[Any]:
    """Return an array of any package that follows the array API standard as a numpy array."""
    if isinstance(array, np.ndarray):
        return array
    # Arrays of CuPy and torch are copied to main memory only by their methods `get` and `cpu`.
    if hasattr(array, "get"):
        array = array.get()
    elif hasattr(array, "cpu"):
        array = array.cpu()
    return np.asarray(array) if isinstance(array, np.ndarray) else np.from_dlpack(array)


def to_device_of(block: Any, array: NDArray[Any], xp: Any) -> Any:
    """Return a numpy array as an array of the namespace `xp`, on the same device as `block`."""
    return array if xp is np else xp.asarray(array, device=block.device)
