"""Where things stand in a picture: trees, cuts, names. No drawing here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mrshc.core.array_types import Float, Index
from mrshc.core.trees.tree import Tree, check_linkage
from mrshc.plotting.arguments import check_numbers
from mrshc.utils.text_cleaning import clean_text
from mrshc.validation.parameters import check_integer

POINTS_PER_INCH = 72.0
# A line of text is as high as its size in points times this, with air to the next line.
LINE_HEIGHT = 1.25
# A character is as wide as its size in points times this, on average.
CHARACTER_WIDTH = 0.6
_MAX_FONT_SIZE, _MIN_FONT_SIZE = 8.0, 5.0
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DendrogramLines:
    """Where to draw a tree: leaves stand at 0, 1, ... from left to right."""

    order: Index  # (n,), samples from left to right
    forks: Float  # (n - 1, 4, 2), corners of each merge's fork

    @property
    def top(self) -> float:
        """Height of the tree; one where all merges lie at zero, so that there is something."""
        highest = float(self.forks[:, :, 1].max())
        return highest if highest > 0 else 1.0

    def tip(self, node: int) -> tuple[float, float]:
        """Return where a merge, numbered as in scipy, has its fork's middle."""
        fork = self.forks[node - self.order.size]
        return float(fork[1:3, 0].mean()), float(fork[1, 1])


def dendrogram_lines(
    linkage_matrix: ArrayLike, *, distances: ArrayLike | None = None
) -> DendrogramLines:
    """Lay out a tree in scipy's format.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree, such as `linkage_matrix_`.
    distances : array-like of shape (n_samples, n_samples) or None
        Turn forks so that neighbouring leaves are as close as the tree allows. The tree stays the
        same.

    Examples
    --------
    >>> from mrshc.plotting import dendrogram_lines
    >>> lines = dendrogram_lines([[0, 2, 1.0, 2], [1, 3, 4.0, 3]])
    >>> lines.order
    array([1, 0, 2])
    >>> lines.forks[0].tolist()
    [[1.0, 0.0], [1.0, 1.0], [2.0, 1.0], [2.0, 0.0]]
    """
    merges = check_linkage(linkage_matrix)
    n = merges.shape[0] + 1
    if distances is not None:
        merges = hierarchy.optimal_leaf_ordering(merges, _condensed_distances(distances, n))
    order = Tree(linkage_matrix=merges).leaf_order
    position = np.append(np.argsort(order).astype(np.float64), np.empty(n - 1))
    height = np.append(np.zeros(n), merges[:, 2])
    forks = np.empty((n - 1, 4, 2))
    # Merges come after the nodes they join, so that one pass finds every position.
    for merge, (left, right) in enumerate(merges[:, :2].astype(np.intp)):
        top = height[n + merge]
        forks[merge, :, 0] = np.repeat(position[[left, right]], 2)
        forks[merge, :, 1] = height[left], top, top, height[right]
        position[n + merge] = (position[left] + position[right]) / 2
    return DendrogramLines(order=order, forks=forks)


def _condensed_distances(distances: ArrayLike, n: int) -> Float:
    square = check_numbers("distances", distances)
    if square.shape != (n, n):
        raise ValueError(
            f"distances must have the shape {(n, n)}, got {square.shape}. Give those between all "
            "samples of the tree, or None to leave the leaves in the order of the merges."
        )
    condensed: Float = squareform(square, checks=False)
    return condensed


def clusters_of_merges(linkage_matrix: ArrayLike, labels: ArrayLike) -> Index:
    """Return the cluster in which each merge lies, -1 for those that join clusters.

    Examples
    --------
    >>> from mrshc.plotting import clusters_of_merges
    >>> clusters_of_merges([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], [0, 1, 0])
    array([ 0, -1])
    """
    merges = check_linkage(linkage_matrix)[:, :2].astype(np.intp)
    n = len(merges) + 1
    known = np.asarray(labels)
    if known.shape != (n,):
        raise ValueError(
            f"labels_ must hold one cluster for each of the {n} samples of the tree, got the "
            f"shape {known.shape}. Tree and labels must come from the same fit."
        )
    cluster = np.append(known.astype(np.intp), np.empty(n - 1, dtype=np.intp))
    for merge, (left, right) in enumerate(merges):
        cluster[n + merge] = cluster[left] if cluster[left] == cluster[right] else -1
    return cluster[n:]


def singleton_branches(linkage_matrix: ArrayLike, labels: ArrayLike) -> list[tuple[int, int, int]]:
    """Return (cluster, merge, side) of the branch to each sample that is alone in its cluster.

    Side 0 is the fork's left leg, 1 its right one. Such a cluster has no fork of its own.
    """
    merges = check_linkage(linkage_matrix)[:, :2].astype(np.intp)
    known = np.asarray(labels).astype(np.intp)
    levels, first, sizes = np.unique(known, return_index=True, return_counts=True)
    alone = {int(i): int(k) for k, i, size in zip(levels, first, sizes, strict=True) if size == 1}
    return [
        (alone[int(child)], merge, side)
        for merge, pair in enumerate(merges)
        for side, child in enumerate(pair)
        if int(child) in alone
    ]


def cut_height(linkage_matrix: ArrayLike, k: int) -> float:
    """Return the height at which a line cuts the tree into k clusters.

    It lies midway between the highest merge that is kept and the lowest that is undone.

    Examples
    --------
    >>> from mrshc.plotting import cut_height
    >>> cut_height([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], 2)
    2.5
    """
    heights = check_linkage(linkage_matrix)[:, 2]
    n = heights.size + 1
    k = check_integer("cut", k, low=1, high=n, advice="A tree has no more clusters than samples.")
    # Nothing lies above the root: one cluster is cut off just over it.
    padded = np.concatenate([[0.0], heights, [1.03 * heights[-1]]])
    return float(padded[n - k : n - k + 2].mean()) if k > 1 else float(padded[-1])


def order_by_leaves(what: str, values: Iterable[Any], *, order: Index) -> list[Any]:
    """Return one value for each leaf, from left to right."""
    listed = list(values)
    if len(listed) != order.size:
        raise ValueError(
            f"{what} must hold one entry for each of the {order.size} samples, got {len(listed)}. "
            "Give them in the order of the samples."
        )
    return [listed[i] for i in order]


def shortened(name: Any, *, length: int = 18) -> str:
    """Return a name in at most so many characters: what names share often stands in the middle.

    Examples
    --------
    >>> from mrshc.plotting import shortened
    >>> shortened("GSM1234567_tumour_of_the_breast_07", length=16)
    'GSM12345…east_07'
    """
    text = " ".join(clean_text(str(name)).split())
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return text[: length - 1 - tail] + _ELLIPSIS + text[len(text) - tail :]


def shortened_names(names: Iterable[Any], *, length: int = 18) -> list[str]:
    """Shorten names; different ones that would look the same are numbered."""
    full = [str(name) for name in names]
    short = {name: shortened(name, length=length) for name in full}
    looks = Counter(short.values())
    numbers = {text: count(1) for text, times in looks.items() if times > 1}
    for name, text in short.items():
        if text in numbers and len(name) > length:
            mark = f"({next(numbers[text])})"
            short[name] = shortened(name, length=length - len(mark)) + mark
    return [short[name] for name in full]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFit:
    """How names fit side by side: their size in points, and every which of them is shown."""

    size: float
    step: int


def fitting_labels(n: int, *, inches: float) -> LabelFit:
    """Return how n names fit beside each other: smaller while they can be read, then fewer.

    Examples
    --------
    >>> from mrshc.plotting import fitting_labels
    >>> fitting_labels(20, inches=8.0)
    LabelFit(size=8.0, step=1)
    >>> fitting_labels(500, inches=8.0)
    LabelFit(size=5.0, step=6)
    """
    room = inches * POINTS_PER_INCH / max(n, 1)
    size = float(np.clip(room / LINE_HEIGHT, _MIN_FONT_SIZE, _MAX_FONT_SIZE))
    return LabelFit(size=size, step=max(1, int(np.ceil(LINE_HEIGHT * size / room - 1e-9))))


def estimate_text_width(texts: Iterable[str], *, size: float) -> float:
    """Estimate the width of the longest of some texts."""
    longest = max((len(text) for text in texts), default=0)
    return longest * size * CHARACTER_WIDTH / POINTS_PER_INCH


def free_places(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    *,
    width: float,
    marker: float,
) -> list[tuple[float, float] | None]:
    """Find room for a label beside each mark, the first mark first.

    Parameters
    ----------
    anchors : sequence of (x, y)
        Centres of the marks.
    sizes : sequence of (width, height)
        Of the labels.
    width : float
        Labels stay between 0 and this.
    marker : float
        Half the size of a mark; no label covers one.

    Returns
    -------
    list of (x, y) or None
        Lower left corner of each label; None where there is no room left.

    Examples
    --------
    >>> from mrshc.plotting import free_places
    >>> free_places([(0, 0), (4, 0)], [(8, 4), (8, 4)], width=15, marker=2)
    [(2, 2), (6, -6)]
    """
    taken: list[Box] = [(x - marker, y - marker, x + marker, y + marker) for x, y in anchors]
    places: list[tuple[float, float] | None] = []
    for (x, y), (w, h) in zip(anchors, sizes, strict=True):
        corners = [
            (x + marker, y + marker),
            (x - marker - w, y + marker),
            (x + marker, y - marker - h),
            (x - marker - w, y - marker - h),
            (x - w / 2, y + marker),
        ]
        boxes = [(left, low, left + w, low + h) for left, low in corners]
        inside = [box for box in boxes if box[0] >= 0 and box[2] <= width]
        free = next((box for box in inside if not any(_are_overlapping(box, t) for t in taken)), None)
        places.append(None if free is None else free[:2])
        if free is not None:
            taken.append(free)
    return places


def _are_overlapping(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
