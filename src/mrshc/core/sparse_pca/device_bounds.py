"""Upper bounds of inner products with columns on a device, computed in low precision.

On a device, the time of a check of certificates is the time in which the data are read and written.
Centred columns in double precision take three times as long as those in single precision, and
copies in half precision, which GPUs multiply by separate units, take a fraction of that time.
Bounds are therefore computed in low precision, and exact inner products only for columns with a
large bound.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from mrshc.core.array_types import Float
from mrshc.core.data.host_transfer import to_device_of

# Some devices round the factors of a matrix product in single precision to 8 significant bits
# (bfloat16) or to 11 (TF32), with relative errors of at most 2**-9 for each factor, and add the
# terms in single precision. The sum of the errors of both factors is doubled, which also covers the
# conversion of the vectors and the rounding of the norms. In half precision, which has 11
# significant bits, the factors and the result have relative errors of 2**-11 each. The bound leaves
# room for devices that add partial sums in half precision.
_FACTOR_ERROR = 2.0**-7
# Error of each term of a sum, and of an offset that is converted and subtracted; doubled as well.
_SINGLE_ERROR = 2.0**-23

# Unit vectors are multiplied by this number before they are converted to half precision. Their
# inner products then are at most 2**14, which is within its range.
_HALF_SCALE = 2.0**7
# Some devices replace numbers below 2**-14 by zero. This is the sum of these errors of two factors.
_HALF_UNDERFLOW = 2.0 * 2.0**-14 / _HALF_SCALE

# Largest number of inner products that are computed at one time. They take 1 GB, which fits into
# the memory of common devices. The value does not affect the result.
_MAX_PRODUCTS = 1 << 28


class ScaledVectors(NamedTuple):
    """Vectors as unit vectors times their lengths, of which the largest is a separate factor."""

    units: Any  # (m, n), unit vectors in double precision
    shares: Any  # (m, 1), lengths of the vectors, divided by the largest
    longest: Any  # (), largest length

    @classmethod
    def from_vectors(cls, vectors: Any, xp: Any) -> ScaledVectors:
        """Return an array of vectors, of shape (m, n) and in double precision, in this form."""
        lengths = xp.sqrt(xp.sum(vectors**2, axis=1))[:, None]
        lengths = xp.where(lengths > 0.0, lengths, 1.0)
        longest = xp.max(lengths)
        return cls(vectors / lengths, lengths / longest, longest)


class ColumnBounds:
    """Bounds of the inner products of centred columns with given vectors.

    For each block of columns, the object stores arrays on the device: the offsets and bounds of
    rounding errors, which take 8 bytes for each column, or copies of the columns in half precision,
    which take 2 bytes for each value.

    Parameters
    ----------
    offsets : ndarray of shape (p,)
        The numbers that are subtracted from the p columns of the data when they are centred.
    uses_half : callable, default=None
        Function that returns whether copies in half precision are made of a block. By default, they
        are made on GPUs.
    """

    def __init__(self, offsets: Float, uses_half: Callable[[Any], bool] | None = None) -> None:
        self._offsets = offsets
        self._uses_half = _multiplies_half_precision if uses_half is None else uses_half
        self._stored: dict[int, _SinglePrecisionBounds] = {}
        self._copies: _HalfPrecisionBounds | None = None

    def may_exceed(
        self, limit: float, vectors: ScaledVectors, *, block: Any, start: int, xp: Any
    ) -> Any:
        """Return for which columns an inner product with one of the vectors may exceed a limit.

        Parameters
        ----------
        limit : float
            The limit for absolute inner products.
        vectors : ScaledVectors
            The vectors, on the device of the block.
        block : array of shape (n, b)
            Columns in single precision, before centring and without missing values.
        start : int
            Index of the first column of the block in the data.
        xp : module
            Array namespace of the block, such as torch.

        Returns
        -------
        array of uint8 of shape (b,)
            One for each column with a large bound, and zero for the others. If copies of all
            columns are stored, the result for the first block contains all columns, and the results
            for the other blocks are empty: the computation of many columns at once needs fewer
            calls. The array is on the device, whose computations may not have ended yet.
        """
        # The pass that completes the copies is still made block by block.
        is_joined = self._copies is not None and self._copies.is_complete
        if is_joined and start > 0:
            return xp.zeros((0,), dtype=xp.uint8, device=block.device)
        if (copies := self._copies_with(block, start, xp)) is not None:
            stop = self._offsets.size if is_joined else start + int(block.shape[1])
            are_small = copies.are_small(slice(start, stop), vectors, limit, xp)
        else:
            if start not in self._stored:
                offsets = self._offsets_of(block, start, xp)
                self._stored[start] = _SinglePrecisionBounds(block, offsets, xp)
            are_small = self._stored[start].are_small(block, vectors, limit, xp)
        return xp.astype(~are_small, xp.uint8)

    def discard(self) -> None:
        """Release the memory on the device; what later calls need is computed again."""
        self._stored.clear()
        self._copies = None

    def _offsets_of(self, block: Any, start: int, xp: Any) -> Any:
        return to_device_of(block, self._offsets[start : start + int(block.shape[1])], xp)

    def _copies_with(self, block: Any, start: int, xp: Any) -> _HalfPrecisionBounds | None:
        """Return the copies in half precision, which contain the block; None if there are none."""
        if not self._uses_half(block):
            return None
        try:
            if self._copies is None:
                self._copies = _HalfPrecisionBounds(block, self._offsets.size, xp)
            if not self._copies.contains(start):
                self._copies.add(block, start, self._offsets_of(block, start, xp), xp)
        except (MemoryError, RuntimeError):
            # The exception of torch for too little memory is a RuntimeError.
            self._copies, self._uses_half = None, _never
        return self._copies


class _SinglePrecisionBounds:
    """Bounds of columns that are centred in single precision at each use.

    Parameters
    ----------
    block : array of shape (n, b)
        The columns, before centring.
    offsets : array of shape (b,)
        Offsets of the columns, in double precision.
    xp : module
        Array namespace.
    """

    def __init__(self, block: Any, offsets: Any, xp: Any) -> None:
        self._offsets, _, norms = _centre(block, offsets, xp)
        errors = _relative_error(block) * norms + _offset_errors(block, offsets, xp)
        self._errors = xp.astype(errors, xp.float32)

    def are_small(self, block: Any, vectors: ScaledVectors, limit: float, xp: Any) -> Any:
        """Return for which columns no inner product can exceed a limit, as array of bool.

        The parameters are those of `ColumnBounds.may_exceed`.
        """
        centred = block - self._offsets
        units = xp.astype(vectors.units, xp.float32)
        highest = xp.astype(limit / vectors.longest, xp.float32)
        shares = xp.astype(vectors.shares, xp.float32)
        are_small = self._errors < xp.inf
        for part in _parts(block, units):
            # NaN, from values that overflow in single precision, does not count as small.
            bounds = (xp.abs(units[part, :] @ centred) + self._errors) * shares[part, :]
            are_small = are_small & xp.all(bounds <= highest, axis=0)
        return are_small


class _HalfPrecisionBounds:
    """Bounds of columns whose centred unit vectors are stored in half precision.

    Parameters
    ----------
    block : array of shape (n, b)
        Some of the columns.
    p : int
        Number of all columns.
    xp : module
        Array namespace.
    """

    def __init__(self, block: Any, p: int, xp: Any) -> None:
        self._p = p
        self._widths: dict[int, int] = {}  # number of columns of each block that has been added
        new = partial(xp.empty, device=block.device)
        self._columns = new((block.shape[0], p), dtype=xp.float16)
        self._norms, self._errors = (new((p,), dtype=xp.float64) for _ in range(2))

    def add(self, block: Any, start: int, offsets: Any, xp: Any) -> None:
        """Copy a block of columns, which must not have been copied before.

        `start` is the index of its first column, and `offsets` are subtracted from its columns.
        """
        width = int(block.shape[1])
        place = slice(start, start + width)
        _, centred, norms = _centre(block, offsets, xp)
        # A column without variation has no inner products. Its limit is infinite.
        divisors = xp.where(norms > 0.0, norms, 1.0)
        self._columns[:, place] = xp.astype(centred * (_HALF_SCALE / divisors), xp.float16)
        errors = _relative_error(block) + _HALF_UNDERFLOW * block.shape[0] ** 0.5
        self._errors[place] = errors + _offset_errors(block, offsets, xp) / divisors
        self._norms[place] = norms
        self._widths[start] = width

    def contains(self, start: int) -> bool:
        """Return whether the block has been copied whose first column has the index `start`."""
        return start in self._widths

    @property
    def is_complete(self) -> bool:
        """Whether all columns have been copied."""
        return sum(self._widths.values()) == self._p

    def are_small(self, place: slice, vectors: ScaledVectors, limit: float, xp: Any) -> Any:
        """Return for which columns no inner product can exceed a limit, as array of bool.

        `place` contains the indices of the columns. The other parameters are those of
        `ColumnBounds.may_exceed`.
        """
        # Few operations on large arrays: each is a call for which the thread may have to wait.
        units = xp.astype(vectors.units * vectors.shares * _HALF_SCALE, xp.float16)
        scaled_limit = limit / vectors.longest
        limits = (scaled_limit / self._norms[place] - self._errors[place]) * _HALF_SCALE**2
        columns = self._columns[:, place]
        parts = [xp.max(xp.abs(units[p, :] @ columns), axis=0) for p in _parts(columns, units)]
        # The maximum with NaN is NaN, which does not count as small.
        return xp.all(xp.stack(parts) <= limits, axis=0)


def _centre(block: Any, offsets: Any, xp: Any) -> tuple[Any, Any, Any]:
    """Return rounded offsets, columns centred in single precision, and their norms.

    The columns are returned in double precision, since squares of small values would underflow in
    single precision.
    """
    rounded = xp.astype(offsets, xp.float32)
    centred = xp.astype(block - rounded, xp.float64)
    return rounded, centred, xp.linalg.vector_norm(centred, axis=0)


def _relative_error(block: Any) -> float:
    """Return a bound of rounding errors of the inner product of two unit vectors."""
    return float(_FACTOR_ERROR + block.shape[0] * _SINGLE_ERROR)


def _offset_errors(block: Any, offsets: Any, xp: Any) -> Any:
    """Return bounds of the effect of rounded offsets on inner products with a unit vector."""
    return block.shape[0] ** 0.5 * _SINGLE_ERROR * xp.abs(offsets)


def _parts(block: Any, vectors: Any) -> list[slice]:
    """Return slices of the vectors, such that the inner products with a block fit into memory."""
    n_vectors, step = int(vectors.shape[0]), max(1, _MAX_PRODUCTS // int(block.shape[1]))
    return [slice(a, min(a + step, n_vectors)) for a in range(0, n_vectors, step)]


def _multiplies_half_precision(block: Any) -> bool:
    """Return whether the device multiplies numbers in half precision and adds in single precision.

    This is known of GPUs with torch, unless the user has asked for sums in half precision.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(block, torch.Tensor) or not block.is_cuda:
        return False
    return not getattr(torch.backends.cuda.matmul, "allow_fp16_accumulation", False)


def _never(_: Any) -> bool:
    return False
