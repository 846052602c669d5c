"""Counting the groups of a partition of the samples."""

from __future__ import annotations

from mrshc.core.array_types import Index
from mrshc.core.kernels.jit import jit


@jit()
def count_groups(groups: Index) -> int:
    """Return the largest number of a group plus one, and at least zero.

    `groups` contains the group of each sample, numbered from 0, or a negative number for samples
    without a group.
    """
    largest = -1
    for group in groups:
        largest = max(largest, group)
    return largest + 1
