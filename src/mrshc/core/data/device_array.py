"""Matrices on a device, as arrays of the array API: torch, CuPy, JAX and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.read_errors import reading
from mrshc.core.data.shape_and_dtype import matrix_shape, not_real

T = TypeVar("T")

# A device is worth larger blocks, of 256 MB in single precision, or a quarter of X up to 1 GB:
# where there is room for that much, there is room for what is made of a block.
_BLOCK_CELLS, _LARGEST_BLOCK = 1 << 26, 1 << 28

_ADVICE = "Check that the device has memory left."


def is_device_array(X: Any) -> bool:
    """Tell whether X is an array of the array API."""
    package = type(X).__module__.partition(".")[0]
    looks_so = package in ("torch", "cupy") or hasattr(X, "__array_namespace__")
    return looks_so and bool(_compat(package).is_array_api_obj(X))


class DeviceMatrix(DataMatrix):
    """An array on a device. Blocks are slices of it; nothing leaves but columns that are asked for.

    Also arrays of such packages that live in main memory.
    """

    has_local_blocks = False
    certification = "immediate"

    def __init__(self, array: Any) -> None:
        package = type(array).__module__.partition(".")[0]
        compat = _compat(package)
        xp = compat.array_namespace(array)
        self._name = f"the {package} array"
        self.shape = matrix_shape(tuple(array.shape), self._name)
        if xp.isdtype(array.dtype, "complex floating"):
            raise not_real(self._name, "c")
        single = xp.isdtype(array.dtype, "real floating") and xp.finfo(array.dtype).bits <= 32
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.holds_integers = bool(xp.isdtype(array.dtype, "integral"))
        self._array = array.detach() if compat.is_torch_array(array) else array
        self._xp = xp

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for blocks of columns, with the array's own xp."""
        n, p = self.shape
        cells = max(_BLOCK_CELLS, min(n * p // 4, _LARGEST_BLOCK))
        step = max(cells // max(n, 1), 1)
        for start in range(0, p, step):
            stop = min(start + step, p)
            with reading(self._name, start, stop, _ADVICE):
                block = self._as_float(self._array[:, start:stop])
            yield function(block, start, self._xp)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns, which are picked on the device."""
        compat = _compat(self._name)
        low, high = int(np.min(indices, initial=0)), int(np.max(indices, initial=0))
        with reading(self._name, low, high + 1, _ADVICE):
            places = self._xp.asarray(
                np.asarray(indices, dtype=np.int64), device=compat.device(self._array)
            )
            picked = self._as_float(self._xp.take(self._array, places, axis=1))
            if compat.is_torch_array(picked):
                picked = picked.cpu()
            elif compat.is_cupy_array(picked):
                picked = picked.get()
            return np.asarray(picked)

    def _as_float(self, block: Any) -> Any:
        return self._xp.astype(block, getattr(self._xp, self.dtype.name), copy=False)


def _compat(package: str) -> Any:
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            f"X is an array of {package}, which needs the extra 'gpu': pip install 'mrshc[gpu]'."
        ) from None
    return array_api_compat
