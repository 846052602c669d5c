"""Transfer of arrays of the array API from a device to the host and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_host(array: Any) -> NDArray[Any]:
    """Return an array of any namespace as an array of numpy."""
    if isinstance(array, np.ndarray):
        return array
    # CuPy and torch copy to the host only by these methods of their own.
    if hasattr(array, "get"):
        array = array.get()
    elif hasattr(array, "cpu"):
        array = array.cpu()
    return np.asarray(array) if isinstance(array, np.ndarray) else np.from_dlpack(array)


def to_device_of(block: Any, array: NDArray[Any], xp: Any) -> Any:
    """Return an array of numpy as one of the namespace `xp` on the device of the block."""
    return array if xp is np else xp.asarray(array, device=block.device)
