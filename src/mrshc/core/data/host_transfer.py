"""Arrays of other namespaces than numpy's (the array API): to the host and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_host(array: Any) -> NDArray[Any]:
    """Return an array of any namespace as one of numpy's."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get"):  # CuPy copies to the host in no other way
        array = array.get()
    elif hasattr(array, "cpu"):  # nor torch
        array = array.cpu()
    return np.asarray(array) if isinstance(array, np.ndarray) else np.from_dlpack(array)


def to_device_of(block: Any, array: NDArray[Any], xp: Any) -> Any:
    """Return a numpy array as one of the block's namespace, on the block's device."""
    return array if xp is np else xp.asarray(array, device=block.device)
