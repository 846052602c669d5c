"""Data in arrays of the array API standard (torch, CuPy and others), usually on a graphics card."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.core.data.files import explain_read_errors
from mrshc.core.data.matrix import DataMatrix, namespace, to_device, to_host


class DeviceMatrix(DataMatrix):
    """Data in an array of the array API standard; blocks are arrays on the device."""

    on_device = True

    def __init__(self, array: Any) -> None:
        package = type(array).__module__.partition(".")[0]
        self._name = f"the {package} array"
        self._array = array.detach() if hasattr(array, "detach") else array
        xp = namespace(array)
        if len(array.shape) != 2:
            raise ValueError(
                "X must be a matrix with samples in rows and features in columns, but "
                f"{self._name} has {len(array.shape)} dimensions. Reshape it or pass a part of it."
            )
        if xp.isdtype(array.dtype, "complex floating"):
            raise ValueError(
                f"X must hold real numbers, but {self._name} holds complex numbers. Take their "
                "real parts or their absolute values."
            )
        is_single = xp.isdtype(array.dtype, "real floating") and xp.finfo(array.dtype).bits <= 32
        self.dtype = np.dtype(np.float32 if is_single else np.float64)
        n, p = array.shape
        self.shape = int(n), int(p)

    def columns(self, index: np.ndarray) -> np.ndarray:
        xp = namespace(self._array)
        with explain_read_errors(self._name, 0, self.shape[1], "Check the memory of the device."):
            index = to_device(np.asarray(index, dtype=np.int64), self._array)
            # Rows of the transposed array are taken, so that columns are contiguous.
            return to_host(xp.take(self._array.T, index, axis=0)).T.astype(np.float64)

    def place(self, array: np.ndarray) -> Any:
        return to_device(array, self._array)

    def _read(self, start: int, stop: int) -> Any:
        xp = namespace(self._array)
        with explain_read_errors(self._name, start, stop, "Check the memory of the device."):
            return xp.astype(self._array[:, start:stop], getattr(xp, self.dtype.name), copy=False)


def is_device_array(X: Any) -> bool:
    """Return whether X is an array of the array API standard."""
    package = type(X).__module__.partition(".")[0]
    if package not in ("torch", "cupy") and not hasattr(X, "__array_namespace__"):
        return False
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            f"X is an array of {package}, which needs the extra 'gpu': pip install 'mrshc[gpu]'."
        ) from None
    return array_api_compat.is_array_api_obj(X)
