"""Compiled loops. Imported with the first call (`core.compiled`): numba takes its time.

Loops that call each other live in one file: the cache of numba does not see changes in another.
"""

from mrshc.core.kernels.alternation import (
    Patch,
    Record,
    Residual,
    Trace,
    alternate,
    cells_of_product,
    column_lengths,
    sparse_direction,
    times,
    transposed_times,
    union,
)
from mrshc.core.kernels.association import consolidated, rank_shares
from mrshc.core.kernels.column_sets import sets_contain
from mrshc.core.kernels.completion import complete
from mrshc.core.kernels.gap import dispersion, gap_test, top_dispersions
from mrshc.core.kernels.grouping import grouped, largest_products
from mrshc.core.kernels.pairs import absolute_forms, add_absolute
from mrshc.core.kernels.tree import starts_of_nodes

__all__ = [
    "Patch",
    "Record",
    "Residual",
    "Trace",
    "absolute_forms",
    "add_absolute",
    "alternate",
    "cells_of_product",
    "column_lengths",
    "complete",
    "consolidated",
    "dispersion",
    "gap_test",
    "grouped",
    "largest_products",
    "rank_shares",
    "sets_contain",
    "sparse_direction",
    "starts_of_nodes",
    "times",
    "top_dispersions",
    "transposed_times",
    "union",
]
