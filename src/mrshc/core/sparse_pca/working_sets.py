"""Working sets: the subsets of columns on which sparse components are computed.

Most loadings of a sparse component are zero, so the component can be computed from a subset of the
columns. A column x has a non-zero loading only if |x'u| exceeds a soft threshold, where u is the
score vector. The first working set of a component consists of the columns with the largest |x'u|,
where u is the left singular vector from which the computation starts. At further L1 bounds, the
computation starts from the working sets with which the component was certified at the neighbouring
bounds.
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

# The number of columns of the first working set is the first constant times the square of the L1
# bound, plus the second constant. If the L1 bound is active, its square is a lower limit for the
# number of columns with a non-zero loading. Both constants were chosen on one simulated data set.
# They affect the number of passes and the computation time, but not the result.
_COLUMNS_PER_SQUARED_BOUND, EXTRA_COLUMNS = 4.0, 500

# The number of columns that are selected from a block is proportional to the number of its columns.
# It is multiplied by this factor, since the columns with large inner products may be concentrated
# in some blocks. The factor has not been tuned. It does not affect the result, because
# certification adds the columns that are missing from the first working set.
_BLOCK_SURPLUS = 1.5


class WorkingSets:
    """The working sets of one data set. There is one for each L1 bound and each component.

    Parameters
    ----------
    largest : ndarray of shape (n_components, m)
        For each component, the indices of the m columns with the largest absolute inner products
        with the left singular vector from which the component is started. The columns are in
        decreasing order of these absolute inner products.
    """

    def __init__(self, largest: Index) -> None:
        self._largest = largest
        self._sets: dict[tuple[float, int], Index] = {}
        # For each component, the L1 bounds with a stored working set, in increasing order.
        self._bounds: list[list[float]] = [[] for _ in largest]
        self._lock = Lock()

    def initial_set(self, earlier: Sequence[Component], l1_bound: float) -> Index:
        """Return the columns from which to compute the component that follows `earlier`.

        The result is the union of the working sets that are stored for the neighbouring L1 bounds
        and the columns with a non-zero loading on a component in `earlier`. If no working set is
        stored for this component, the stored sets are replaced by the columns with the largest
        absolute inner products with the left singular vector from which the component is started.
        """
        position = len(earlier)
        with self._lock:
            if bounds := self._bounds[position]:
                above = bisect_left(bounds, l1_bound)
                # There are two neighbours, or one if `l1_bound` is not between two bounds of the
                # list.
                neighbours = {bounds[max(above - 1, 0)], bounds[min(above, len(bounds) - 1)]}
                sets = [self._sets[bound, position] for bound in sorted(neighbours)]
            else:
                count = int(_COLUMNS_PER_SQUARED_BOUND * l1_bound**2) + EXTRA_COLUMNS
                sets = [np.sort(self._largest[position][:count])]
        union = np.empty(0, np.intp)
        # The columns of earlier components are needed to subtract these components from the data.
        for columns in (*sets, *(c.indices for c in earlier)):
            union = sorted_union(union, columns)
        return union

    def update(self, l1_bound: float, position: int, columns: Index) -> None:
        """Store `columns` as the working set of the component at `position` for an L1 bound.

        A working set that is already stored is replaced. Positions are counted from zero.
        """
        with self._lock:
            if (l1_bound, position) not in self._sets:
                insort(self._bounds[position], l1_bound)
            self._sets[l1_bound, position] = columns


class InitialPass(NamedTuple):
    """The results of the initial pass over the data, which follows the pass for the Gram matrix."""

    starts: AlternationStarts  # start vectors of k components
    # (k, n_samples), for each start vector and each sample, the sum of the entries of the vector
    # over the features that are missing in the sample.
    sums_at_missing: Float
    working_sets: WorkingSets


def initial_pass(matrix: CentredBlocks, *, n_components: int, max_features: int) -> InitialPass:
    """Return start vectors and first working sets, computed in one pass over the data.

    The start vectors of the sparse components are the leading right singular vectors of the data.
    The first working sets are taken from the columns with the largest absolute entries in these
    vectors. Unless the data are on a device, these columns are stored in memory. The left singular
    vectors are computed from the Gram matrix, which takes another pass if the Gram matrix has not
    been computed before.

    Parameters
    ----------
    matrix : CentredBlocks
        The data. This object stores the selected columns in memory, unless they are on a device.
    n_components : int
        Number of singular vectors.
    max_features : int
        Approximate largest number of features that will be selected. The value affects the
        computation time, but not the result.
    """
    left = leading_eigenvectors(matrix.gram, n_components)
    # The bisection for q features computes components only at L1 bounds whose square is at most 2q,
    # unless fewer than 2q loadings are non-zero without any bound. At larger bounds, more than 2q
    # loadings are known to be non-zero, so components are not computed (see
    # `ComponentPath.features`).
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
        if columns is not None:
            matrix.store(indices, columns)
    right = np.concatenate(products, axis=1)
    # Columns are selected only among those that were selected in their block and are stored. A
    # selection among all columns might include columns that are not stored, for example if several
    # columns have equal products.
    selected = np.concatenate([indices for indices, _ in columns_of_blocks])
    largest = selected[_largest_positions_by_row(right[:, selected], count)]
    lengths = np.linalg.norm(right, axis=1)
    unit = np.where(lengths > 0, lengths, 1.0)[:, None]
    starts = starts_from_images(right / unit, images / unit)
    order = start_order_within_rank(starts)
    return InitialPass(
        replace_starts_beyond_rank(starts), (sums_at_missing / unit)[order], WorkingSets(largest)
    )


class _BlockProducts(NamedTuple):
    """Products of one block X of b columns with k left singular vectors u, and selected columns."""

    products: Float  # (k, b), X'u for each u
    images: Float  # (k, n_samples), XX'u for each u
    # (k, n_samples), for each u and each sample, the sum of the entries of X'u over the features
    # that are missing in the sample; the number zero if no value is missing.
    sums_at_missing: Float | float
    indices: Index  # (m,), indices of the columns with the largest |X'u| for at least one u
    # (n_samples, m), the columns at `indices`, before centring; None for data on a device, where
    # they can be copied later.
    columns: NDArray[Any] | None


def _block_products(
    block: Any, start: int, xp: Any, *, centring: Centring, left: Float, share: float
) -> _BlockProducts:
    """Return the products of a block of columns with left singular vectors, and selected columns.

    The rows of `left` are the singular vectors. For each vector, the columns with the largest
    absolute products are selected. `share` is the approximate proportion of columns to select.
    """
    centred = centring(block, start, xp)
    products = to_device_of(block, left, xp) @ centred
    images = to_host(products @ centred.T)
    sums_at_missing: Float | float = 0.0
    if centring.fill is not None:
        sums_at_missing = to_host(products @ xp.astype(xp.isnan(block), xp.float64).T)
    host_products = to_host(products)
    count = int(_BLOCK_SURPLUS * share * block.shape[1]) + EXTRA_COLUMNS
    largest = np.unique(_largest_positions_by_row(host_products, count))
    columns = block[:, largest] if xp is np else None
    return _BlockProducts(host_products, images, sums_at_missing, largest + start, columns)


def _largest_positions_by_row(products: Float, count: int) -> Index:
    """Return the positions of the `count` largest absolute entries of each row.

    The result has one row for each row of `products`. The positions in each row are in decreasing
    order of the absolute entries. If a row has fewer than `count` entries, all positions are
    returned.
    """
    magnitudes = np.abs(products)
    count = min(count, products.shape[1])
    # Partitioning takes linear time, and only the selected entries have to be sorted afterwards.
    positions = np.argpartition(-magnitudes, count - 1, axis=1)[:, :count]
    selected = np.take_along_axis(magnitudes, positions, axis=1)
    order = np.argsort(-selected, axis=1, kind="stable")
    return np.take_along_axis(positions, order, axis=1)
