"""Algorithms 3 and 4: choose among candidates by their average silhouette, and the default K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen among candidates, and which had been removed on the way."""

    position: int
    removed: tuple[int, ...]  # positions of the local minima, in the order of their removal


def iterative_choice(silhouettes: Sequence[float]) -> Choice:
    """Choose among candidates that are given in increasing order of rank (or q).

    While the values rise and fall, the last of their local minima is removed: of two candidates
    that separate the clusters equally badly the larger is the less welcome. End points count as
    minima, or a single peak would never become monotone. When what is left falls, the first
    candidate is chosen; when it rises, the one just after the largest rise.
    """
    left, removed = list(range(len(silhouettes))), list[int]()
    while True:
        rises = np.diff([silhouettes[i] for i in left])
        if np.all(rises <= 0):
            return Choice(position=left[0], removed=tuple(removed))
        if np.all(rises >= 0):
            return Choice(position=left[int(np.argmax(rises)) + 1], removed=tuple(removed))
        removed.append(left.pop(_last_local_minimum(rises)))


def _last_local_minimum(rises: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    falls_into = np.append(True, rises <= 0)
    rises_from = np.append(rises >= 0, True)
    return int(np.flatnonzero(falls_into & rises_from)[-1])


def reference_number_of_clusters(leaf_counts: Sequence[int]) -> int:
    """Return the default K, from the largest leaf count that each candidate q reached.

    With several candidates it must be a number that at least two of them reach, since candidates
    are compared at the same K; and never less than two.
    """
    largest_first = sorted(leaf_counts, reverse=True)
    agreed = largest_first[min(1, len(largest_first) - 1)]
    return max(2, agreed)
