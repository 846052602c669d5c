"""Matrices on a device, as arrays of the array API: torch, CuPy, JAX and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.read_errors import translate_read_errors
from mrshc.core.data.shape_and_dtype import check_two_dimensions, not_real_error

T = TypeVar("T")

# A block has 256 MB in single precision, or a quarter of X up to 1 GB: larger than in main memory,
# because a device needs more work per call to be busy. A device that holds four times as much in X
# has room for the temporaries of a block. Not tuned.
_BLOCK_CELLS, _LARGEST_BLOCK = 1 << 26, 1 << 28

_ADVICE = "Check that the device has free memory."


def is_device_array(X: Any) -> bool:
    """Tell whether X is an array of the array API."""
    package = _package_name(X)
    # The cheap test comes first: array_api_compat, which decides, is an optional package.
    may_be_array = package in ("torch", "cupy") or hasattr(X, "__array_namespace__")
    return may_be_array and bool(_import_array_api_compat(package).is_array_api_obj(X))


class DeviceMatrix(DataMatrix):
    """An array of the array API, on a device or in main memory.

    Blocks are slices of the array; only requested columns are copied to the host.

    Parameters
    ----------
    array : array of shape (n, p)
        The data, of any real type.
    """

    has_local_blocks = False
    certification = "immediate"

    def __init__(self, array: Any) -> None:
        package = _package_name(array)
        compat = _import_array_api_compat(package)
        xp = compat.array_namespace(array)
        self._name = f"the {package} array"
        self.shape = check_two_dimensions(tuple(array.shape), self._name)
        if xp.isdtype(array.dtype, "complex floating"):
            raise not_real_error(self._name, "c")
        is_single = xp.isdtype(array.dtype, "real floating") and xp.finfo(array.dtype).bits <= 32
        self.dtype = np.dtype(np.float32 if is_single else np.float64)
        self.holds_integers = bool(xp.isdtype(array.dtype, "integral"))
        # Operations on a tensor that requires gradients would be recorded.
        self._array = array.detach() if compat.is_torch_array(array) else array
        self._xp = xp

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks of columns in order."""
        n, p = self.shape
        n_cells = max(_BLOCK_CELLS, min(n * p // 4, _LARGEST_BLOCK))
        step = max(n_cells // max(n, 1), 1)
        for start in range(0, p, step):
            stop = min(start + step, p)
            with translate_read_errors(self._name, start=start, stop=stop, advice=_ADVICE):
                block = self._to_float(self._array[:, start:stop])
            # Outside of the context, since errors of the function must not be translated.
            yield function(block, start, self._xp)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the columns at m indices, (n, m), selected on the device."""
        compat = _import_array_api_compat(self._name)
        low, high = int(np.min(indices, initial=0)), int(np.max(indices, initial=0))
        with translate_read_errors(self._name, start=low, stop=high + 1, advice=_ADVICE):
            device_indices = self._xp.asarray(
                np.asarray(indices, dtype=np.int64), device=compat.device(self._array)
            )
            selected = self._to_float(self._xp.take(self._array, device_indices, axis=1))
            # torch and CuPy do not copy from a device to the host implicitly.
            if compat.is_torch_array(selected):
                selected = selected.cpu()
            elif compat.is_cupy_array(selected):
                selected = selected.get()
            return np.asarray(selected)

    def _to_float(self, block: Any) -> Any:
        return self._xp.astype(block, getattr(self._xp, self.dtype.name), copy=False)


def _package_name(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def _import_array_api_compat(package: str) -> Any:
    """Return the module array_api_compat; refuse arrays of a package if it is not installed."""
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            f"X is an array of {package}, which needs the extra 'gpu': pip install 'mrshc[gpu]'."
        ) from None
    return array_api_compat
