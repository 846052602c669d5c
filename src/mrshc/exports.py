"""Trees in formats that other programs read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# What a Newick name may hold without quotes. An underscore would be read as a blank.
_PLAIN = re.compile(r"[A-Za-z0-9.+-]+")


def newick(linkage_matrix: ArrayLike, names: Sequence[Any]) -> str:
    """Return a tree in Newick format.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree in scipy's format, such as `linkage_matrix_`.
    names : sequence of length n_samples
        Names of the samples.

    Returns
    -------
    str
        One line. The length of a branch is the difference of the heights at its ends, so that all
        samples lie equally deep; with linkages that are not monotone (centroid, median) it may be
        negative.

    Examples
    --------
    >>> from mrshc.exports import newick
    >>> newick([[0, 1, 1.0, 2], [2, 3, 4.0, 3]], ["a", "b", "it's c"])
    "('it''s c':4,(a:1,b:1):3);"
    """
    merges = np.asarray(linkage_matrix, dtype=np.float64)
    n = len(names)
    if merges.ndim != 2 or merges.shape[1:] != (4,) or merges.shape[0] != n - 1:
        raise ValueError(
            f"linkage_matrix must have the shape {(n - 1, 4)} for {n} names, got {merges.shape}."
        )
    children = merges[:, :2].astype(np.intp)
    heights = np.append(np.zeros(n), merges[:, 2])
    parts: list[str] = []
    # What is still to be written, last first; a deep tree must not exhaust the call stack.
    waiting: list[int | str] = [";", 2 * n - 2]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item < n:
            parts.append(_quoted(str(names[item])))
        else:
            left, right = children[item - n]
            waiting += [")", _branch(heights, item, right), int(right), ","]
            waiting += [_branch(heights, item, left), int(left), "("]
    return "".join(parts)


def _branch(heights: Any, parent: int, child: int) -> str:
    return f":{heights[parent] - heights[child]:.12g}"


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return "'" + re.sub(r"\s", " ", name).replace("'", "''") + "'"
