"""Upper bounds of inner products with columns on a device, computed in single precision.

On a device, the time of a check of certificates is the time in which the data are read and written.
Centred columns in double precision take three times as long as those in single precision. Bounds
are therefore computed in single precision, and exact inner products only for columns with a large
bound.
"""

from __future__ import annotations

from typing import Any

from mrshc.core.array_types import Float
from mrshc.core.data.host_transfer import to_device_of

# Some devices round the factors of a matrix product in single precision to 8 significant bits
# (bfloat16) or to 11 (TF32), with relative errors of at most 2**-9 for each factor, and add the
# terms in single precision. The sum of the errors of both factors is doubled, which also covers the
# conversion of the vectors and the rounding of the norms.
_FACTOR_ERROR = 2.0**-7
# Error of each term of a sum, and of an offset that is converted and subtracted; doubled as well.
_SINGLE_ERROR = 2.0**-23

# Largest number of inner products that are computed at one time. They take 1 GB, which fits into
# the memory of common devices. The value does not affect the result.
_MAX_PRODUCTS = 1 << 28


class ColumnBounds:
    """Bounds of the inner products of centred columns in single precision with given vectors.

    The offsets of the columns of each block and bounds of rounding errors are stored on the device,
    where they need 8 bytes for each column.

    Parameters
    ----------
    offsets : ndarray of shape (p,)
        The numbers that are subtracted from the p columns of the data when they are centred.
    """

    def __init__(self, offsets: Float) -> None:
        self._offsets = offsets
        self._stored: dict[int, tuple[Any, Any]] = {}

    def may_exceed(self, limit: float, vectors: Any, *, block: Any, start: int, xp: Any) -> Any:
        """Return for which columns an inner product with one of the vectors may exceed a limit.

        Parameters
        ----------
        limit : float
            The limit for absolute inner products.
        vectors : array of shape (m, n)
            Vectors in double precision, on the device of the block.
        block : array of shape (n, b)
            Columns in single precision, before centring and without missing values.
        start : int
            Index of the first column of the block in the data.
        xp : module
            Array namespace of the block, such as torch.

        Returns
        -------
        array of uint8 of shape (b,)
            One for each column with a large bound, and zero for the others. The array is on the
            device, whose computations may not have ended yet.
        """
        offsets, errors = self._offsets_and_errors(block, start, xp)
        centred = block - offsets
        lengths = xp.astype(xp.sqrt(xp.sum(vectors**2, axis=1)), xp.float32)[:, None]
        vectors = xp.astype(vectors, xp.float32)
        n_vectors, n_columns = int(vectors.shape[0]), int(block.shape[1])
        step = max(1, _MAX_PRODUCTS // n_columns)
        is_small = errors < xp.inf
        for first in range(0, n_vectors, step):
            part = slice(first, min(first + step, n_vectors))
            bounds = xp.abs(vectors[part, :] @ centred) + lengths[part, :] * errors
            # A vector that overflows in single precision gives NaN, which does not count as small.
            is_small = is_small & xp.all(bounds <= limit, axis=0)
        return xp.astype(~is_small, xp.uint8)

    def _offsets_and_errors(self, block: Any, start: int, xp: Any) -> tuple[Any, Any]:
        """Return the offsets of the columns of a block, and bounds of rounding errors.

        The bounds apply to the inner product of the centred column and a unit vector. Both are
        computed when they are first needed.
        """
        if start not in self._stored:
            n, n_columns = (int(size) for size in block.shape)
            offsets = to_device_of(block, self._offsets[start : start + n_columns], xp)
            rounded = xp.astype(offsets, xp.float32)
            # In single precision, squares of small values would underflow.
            centred = xp.astype(block - rounded, xp.float64)
            errors = (_FACTOR_ERROR + n * _SINGLE_ERROR) * xp.linalg.vector_norm(centred, axis=0)
            errors = errors + n**0.5 * _SINGLE_ERROR * xp.abs(offsets)
            self._stored[start] = (rounded, xp.astype(errors, xp.float32))
        return self._stored[start]
