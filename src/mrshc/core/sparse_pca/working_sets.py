"""Working sets: the columns on which a sparse component is computed.

Components are sparse: few columns of a large data set ever come near the soft threshold. The first
working set of a component consists of the columns with the largest inner products with its start.
Later ones are those that sufficed at neighbouring L1 bounds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centring import Centring
from mrshc.core.data.host_transfer import to_device_of, to_host
from mrshc.core.kernels.vectors import sorted_union
from mrshc.core.sparse_pca.next_component import (
    AlternationStarts,
    Component,
    leading_eigenvectors,
    replace_starts_beyond_rank,
    start_order_within_rank,
    starts_from_images,
)

# Size of the first working set: the square of the L1 bound, which is the least number of columns
# with a loading, times the first constant, plus the second. Chosen on one simulated data set. They
# affect the number of passes and the time, not the result.
_COLUMNS_PER_SQUARED_BOUND, EXTRA_COLUMNS = 4.0, 500

# Each block returns its share of the columns with the largest products, times this factor, since
# large products may be concentrated in some blocks. Not tuned: columns that are missing from the
# first working set are added by certification, so results do not depend on it.
_BLOCK_SURPLUS = 1.5


class WorkingSets:
    """The working sets of one data set, by L1 bound and position of the component.

    Parameters
    ----------
    largest : ndarray of shape (n_components, m)
        For each component the columns with the largest products with its start, the largest
        first.
    """

    def __init__(self, largest: Index) -> None:
        self._largest = largest
        self._sets: dict[tuple[float, int], Index] = {}
        self._bounds: list[list[float]] = [[] for _ in largest]  # by position, increasing
        self._lock = Lock()

    def initial_set(self, earlier: Sequence[Component], l1_bound: float) -> Index:
        """Return the columns on which to compute the component that follows `earlier`.

        These are the working sets of the neighbouring L1 bounds, or the columns with the largest
        products with the start if there are none, and the columns that load on `earlier`.
        """
        position = len(earlier)
        with self._lock:
            if bounds := self._bounds[position]:
                above = bisect_left(bounds, l1_bound)
                # One bound at either end of the list, two in between.
                neighbours = {bounds[max(above - 1, 0)], bounds[min(above, len(bounds) - 1)]}
                sets = [self._sets[bound, position] for bound in sorted(neighbours)]
            else:
                count = int(_COLUMNS_PER_SQUARED_BOUND * l1_bound**2) + EXTRA_COLUMNS
                sets = [np.sort(self._largest[position][:count])]
        union = np.empty(0, np.intp)
        # Columns of earlier components are needed to subtract these from the data.
        for columns in (*sets, *(c.indices for c in earlier)):
            union = sorted_union(union, columns)
        return union

    def update(self, l1_bound: float, position: int, columns: Index) -> None:
        """Store the working set of a component."""
        with self._lock:
            if (l1_bound, position) not in self._sets:
                insort(self._bounds[position], l1_bound)
            self._sets[l1_bound, position] = columns


class InitialPass(NamedTuple):
    """The result of the first pass after that for the Gram matrix."""

    starts: AlternationStarts
    sums_at_missing: Float  # (k, n), for each sample the sum of a start over its missing cells
    working_sets: WorkingSets


def initial_pass(matrix: CentredBlocks, *, n_components: int, max_features: int) -> InitialPass:
    """Compute the right singular vectors in one pass, and store their columns of largest entries.

    Parameters
    ----------
    matrix : CentredBlocks
        The data. Columns with large entries are stored in it.
    n_components : int
        Number of singular vectors.
    max_features : int
        About the largest number of features that will be asked for.
    """
    left = leading_eigenvectors(matrix.gram, n_components)
    # The bisection for q features solves bounds whose square is at most 2 q: at larger ones, too
    # many features have a loading (see `ComponentPath.features`).
    count = int(_COLUMNS_PER_SQUARED_BOUND * 2 * max_features) + EXTRA_COLUMNS
    products, columns_of_blocks = [], []
    images, sums_at_missing = np.zeros(left.shape), np.zeros(left.shape)
    share = count / matrix.shape[1]
    function = partial(_block_products, centring=matrix.centring, left=left, share=share)
    for part in matrix.map_blocks(function):
        products.append(part.products)
        images += part.images
        sums_at_missing += part.sums_at_missing
        columns_of_blocks.append((part.indices, part.columns))
    for indices, columns in columns_of_blocks:
        matrix.store(indices, columns)
    right = np.concatenate(products, axis=1)
    # Among stored columns only: of columns that tie, blocks may have returned others than a
    # selection among all columns would.
    stored = np.flatnonzero(matrix.is_stored)
    largest = stored[_largest_positions_by_row(right[:, stored], count)]
    lengths = np.linalg.norm(right, axis=1)
    unit = np.where(lengths > 0, lengths, 1.0)[:, None]
    starts = starts_from_images(right / unit, images / unit)
    order = start_order_within_rank(starts)
    return InitialPass(
        replace_starts_beyond_rank(starts), (sums_at_missing / unit)[order], WorkingSets(largest)
    )


class _BlockProducts(NamedTuple):
    """The contribution of a block of columns to the initial pass."""

    products: Float  # (k, b), X'u
    images: Float  # (k, n), the block's part of XX'u
    sums_at_missing: Float | float  # (k, n), or zero if no cell is missing
    indices: Index  # (m,), columns with the largest products
    columns: NDArray[Any]  # (n, m), these columns as given


def _block_products(
    block: Any, start: int, xp: Any, *, centring: Centring, left: Float, share: float
) -> _BlockProducts:
    """Return the products of a block of columns with the left singular vectors."""
    centred = centring(block, start, xp)
    products = to_device_of(block, left, xp) @ centred
    images = to_host(products @ centred.T)
    sums_at_missing: Float | float = 0.0
    if centring.fill is not None:
        sums_at_missing = to_host(products @ xp.astype(xp.isnan(block), xp.float64).T)
    host_products = to_host(products)
    count = int(_BLOCK_SURPLUS * share * block.shape[1]) + EXTRA_COLUMNS
    largest = np.unique(_largest_positions_by_row(host_products, count))
    return _BlockProducts(
        host_products, images, sums_at_missing, largest + start, take_columns(block, largest, xp)
    )


def take_columns(block: Any, indices: Index, xp: Any) -> NDArray[Any]:
    """Return some columns of a block as a numpy array.

    Parameters
    ----------
    block : array of shape (n_samples, b)
        Array of the namespace `xp`.
    indices : ndarray of shape (m,)
        Positions in the block.
    xp : module
        Array namespace of the block.
    """
    if xp is np:
        return block[:, indices]
    # Selected on the device: only these columns are transferred.
    return to_host(xp.take(block, to_device_of(block, indices, xp), axis=1))


def _largest_positions_by_row(products: Float, count: int) -> Index:
    """Return the positions of the largest absolute entries of each row, the largest first."""
    magnitudes = np.abs(products)
    count = min(count, products.shape[1])
    # Partition first, in linear time: only the selected entries have to be sorted.
    positions = np.argpartition(-magnitudes, count - 1, axis=1)[:, :count]
    selected = np.take_along_axis(magnitudes, positions, axis=1)
    order = np.argsort(-selected, axis=1, kind="stable")
    return np.take_along_axis(positions, order, axis=1)
