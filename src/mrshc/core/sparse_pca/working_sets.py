"""Working sets: the few columns on which a sparse component is sought.

Components are sparse: few of a million columns ever come near a threshold. The first working set of
a component are the columns with the largest inner products with its start; later ones are those
that sufficed at neighbouring L1 bounds.
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
    Component,
    Starts,
    existing,
    existing_order,
    leading_eigenvectors,
    starts_with,
)

# The first working set: this multiple of the squared bound, which is the least number of columns
# that load, and some more. Chosen on one simulated data set; they change the time, not the result.
_MULTIPLE, MORE_COLUMNS = 4.0, 500

# A block may hold more than its share of the largest products: it returns a few more.
_SPARE = 1.5


class WorkingSets:
    """The working sets of one data set, by L1 bound and position of the component."""

    def __init__(self, largest: Index) -> None:
        self._largest = largest  # (components, m), columns with the largest products, in order
        self._sets: dict[tuple[float, int], Index] = {}
        self._bounds: list[list[float]] = [[] for _ in largest]  # of the sets, by position, sorted
        self._lock = Lock()

    def columns_for(self, earlier: Sequence[Component], l1_bound: float) -> Index:
        """Return the columns to begin with: those of neighbouring bounds, and those loaded."""
        position = len(earlier)
        with self._lock:
            if bounds := self._bounds[position]:
                above = bisect_left(bounds, l1_bound)
                neighbours = {bounds[max(above - 1, 0)], bounds[min(above, len(bounds) - 1)]}
                sets = [self._sets[bound, position] for bound in sorted(neighbours)]
            else:
                count = int(_MULTIPLE * l1_bound**2) + MORE_COLUMNS
                sets = [np.sort(self._largest[position][:count])]
        union = np.empty(0, np.intp)
        for columns in (*sets, *(c.indices for c in earlier)):
            union = sorted_union(union, columns)
        return union

    def update(self, l1_bound: float, position: int, columns: Index) -> None:
        """Remember the working set of a component."""
        with self._lock:
            if (l1_bound, position) not in self._sets:
                insort(self._bounds[position], l1_bound)
            self._sets[l1_bound, position] = columns


class InitialPass(NamedTuple):
    """What the first pass after the Gram matrix gives."""

    starts: Starts
    at_gaps: Float  # (k, n), sums of the entries of each start where a sample has missing cells
    working_sets: WorkingSets


def initial_pass(matrix: CentredBlocks, *, n_components: int, max_features: int) -> InitialPass:
    """Find the right singular vectors, and keep the columns where they are largest.

    Where nothing is selected, bounds up to the root of twice the number of features are tried.
    """
    left = leading_eigenvectors(matrix.gram, n_components)
    count = int(_MULTIPLE * 2 * max_features) + MORE_COLUMNS
    products, read = [], []
    images, at_gaps = np.zeros(left.shape), np.zeros(left.shape)
    share = count / matrix.shape[1]
    block_part = partial(_initial_part, centring=matrix.centring, left=left, share=share)
    for part in matrix.map_blocks(block_part):
        products.append(part.products)
        images += part.images
        at_gaps += part.at_gaps
        read.append((part.indices, part.columns))
    for indices, columns in read:
        matrix.store(indices, columns)
    right = np.concatenate(products, axis=1)
    stored = np.flatnonzero(matrix.is_stored)
    largest = stored[_largest(right[:, stored], count)]
    lengths = np.linalg.norm(right, axis=1)
    unit = np.where(lengths > 0, lengths, 1.0)[:, None]
    starts = starts_with(right / unit, images / unit)
    order = existing_order(starts)
    return InitialPass(existing(starts), (at_gaps / unit)[order], WorkingSets(largest))


class _InitialPart(NamedTuple):
    products: Float  # X'u
    images: Float  # the block's part of XX'u
    at_gaps: Float | float
    indices: Index  # of the columns with the largest products
    columns: NDArray[Any]


def _initial_part(
    block: Any, start: int, xp: Any, *, centring: Centring, left: Float, share: float
) -> _InitialPart:
    part = centring(block, start, xp)
    products = to_device_of(block, left, xp) @ part
    images = to_host(products @ part.T)
    at_gaps: Float | float = 0.0
    if centring.fill is not None:
        at_gaps = to_host(products @ xp.astype(xp.isnan(block), xp.float64).T)
    on_host = to_host(products)
    near = np.unique(_largest(on_host, int(_SPARE * share * block.shape[1]) + MORE_COLUMNS))
    return _InitialPart(on_host, images, at_gaps, near + start, some_columns(block, near, xp))


def some_columns(block: Any, indices: Index, xp: Any) -> NDArray[Any]:
    """Return some columns of a block as an array of numpy."""
    if xp is np:
        return block[:, indices]
    return to_host(xp.take(block, to_device_of(block, indices, xp), axis=1))


def _largest(products: Float, count: int) -> Index:
    """Return where each row has its largest entries, in absolute value, the largest first."""
    size = np.abs(products)
    count = min(count, products.shape[1])
    some = np.argpartition(-size, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(size, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)
