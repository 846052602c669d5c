"""Data in arrays that follow the array API standard (torch, CuPy, JAX and others).

These arrays are often in the memory of a device, such as a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.read_errors import column_span, translate_read_errors
from mrshc.core.data.shape_and_dtype import check_two_dimensions, not_real_error
from mrshc.errors import MissingPackageError

T = TypeVar("T")

# A block has about a quarter of the values of X, but at least the first of these numbers (256 MB in
# single precision) and at most the second (1 GB). Blocks on a device are larger than blocks in main
# memory, because a device is used efficiently only if each call processes many values. A device
# whose memory contains X is assumed to have enough memory for temporary arrays of a quarter of the
# size of X. The numbers have not been tuned.
_BLOCK_CELLS, _LARGEST_BLOCK = 1 << 26, 1 << 28

_ADVICE = "Check that the device has free memory."


def is_device_array(X: Any) -> bool:
    """Return whether X is an array of a package that follows the array API standard.

    Raise MissingPackageError if X may be such an array but array_api_compat is not installed.
    """
    package = _package_name(X)
    # This simple test comes first, so that the optional package array_api_compat is imported only
    # if X may be such an array.
    may_be_array = package in ("torch", "cupy") or hasattr(X, "__array_namespace__")
    return may_be_array and bool(_import_array_api_compat(package).is_array_api_obj(X))


class DeviceMatrix(DataMatrix):
    """Data matrix in an array that follows the array API standard, on a device or in main memory.

    A block is a slice of the array, converted to float32 or float64 if necessary. It stays on the
    device of the array. The method `columns` copies the columns that it returns to main memory.

    The constructor raises ValueError if the array is not a matrix of real numbers.

    Parameters
    ----------
    array : array of shape (n, p)
        The data, of any real type, for n samples and p features.
    """

    has_local_blocks = False
    is_on_device = True
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
        # torch would record all operations on a tensor that requires gradients, so the tensor is
        # detached.
        self._array = array.detach() if compat.is_torch_array(array) else array
        self._xp = xp

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for each block of columns, in order.

        `start` is the index of the first column of the block, and `xp` is the array namespace of
        the block. Raise UnreadableError if a block cannot be created, for example because the
        device has too little free memory.
        """
        n, p = self.shape
        n_cells = max(_BLOCK_CELLS, min(n * p // 4, _LARGEST_BLOCK))
        step = max(n_cells // max(n, 1), 1)
        for start in range(0, p, step):
            stop = min(start + step, p)
            with translate_read_errors(self._name, start=start, stop=stop, advice=_ADVICE):
                block = self._to_float(self._array[:, start:stop])
            # The function is called outside the context manager, so its errors are not translated.
            yield function(block, start, self._xp)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as a numpy array of shape (n, m), for n samples.

        The columns are selected on the device. Raise UnreadableError if they cannot be copied to
        main memory.
        """
        compat = _import_array_api_compat(self._name)
        selected, _ = self.columns_on_device(indices)
        start, stop = column_span(indices)
        with translate_read_errors(self._name, start=start, stop=stop, advice=_ADVICE):
            # torch and CuPy copy from a device to main memory only if requested explicitly.
            if compat.is_torch_array(selected):
                selected = selected.cpu()
            elif compat.is_cupy_array(selected):
                selected = selected.get()
            return np.asarray(selected)

    def columns_on_device(self, indices: Index) -> tuple[Any, Any]:
        """Return the m columns at `indices` as an array of shape (n, m), and its namespace.

        The array is on the device. Raise UnreadableError if there is too little memory for it.
        """
        compat = _import_array_api_compat(self._name)
        start, stop = column_span(indices)
        with translate_read_errors(self._name, start=start, stop=stop, advice=_ADVICE):
            device_indices = self._xp.asarray(
                np.asarray(indices, dtype=np.int64), device=compat.device(self._array)
            )
            # Rows of the transposed array are taken, so that each column is contiguous in memory.
            selected = self._to_float(self._xp.take(self._array.T, device_indices, axis=0))
            return selected.T, self._xp

    def _to_float(self, block: Any) -> Any:
        return self._xp.astype(block, getattr(self._xp, self.dtype.name), copy=False)


def _package_name(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def _import_array_api_compat(package: str) -> Any:
    """Return the module array_api_compat; raise MissingPackageError if it is not installed.

    `package` is the name of the package that defines the array, for the error message.
    """
    try:
        import array_api_compat
    except ImportError:
        raise MissingPackageError(
            f"X is an array of {package}, which needs the extra 'gpu': pip install 'mrshc[gpu]'."
        ) from None
    return array_api_compat
