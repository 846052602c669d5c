"""Coordinates of trees, cuts and labels in a plot. Nothing is drawn here."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mrshc.core.linkages import EUCLIDEAN_LINKAGES
from mrshc.core.trees import Tree, check_linkage
from mrshc.plotting.arguments import check_numbers, refusal
from mrshc.shell.text_cleaning import clean_text
from mrshc.validation import check_integer

POINTS_PER_INCH = 72.0
# Height of a line of text as a multiple of the font size. A factor of 1.2 is usual for consecutive
# lines. A slightly larger factor is used here to separate the labels of neighbouring ticks.
LINE_HEIGHT = 1.25
# Mean width of a character as a multiple of the font size, for matplotlib's default font. The width
# of text is estimated, since the size of a figure is chosen before the figure is drawn, and
# matplotlib measures text only when it draws the figure.
CHARACTER_WIDTH = 0.6
# Largest and smallest font size of tick labels, in points. The largest size is also the font size
# of legends. Smaller text than the smallest size is not legible.
_MAX_FONT_SIZE, _MIN_FONT_SIZE = 8.0, 5.0
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DendrogramLines:
    """Coordinates of a dendrogram with leaves at positions 0, 1, ... from left to right.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Indices of the samples from left to right.
    forks : ndarray of shape (n_samples - 1, 4, 2)
        Corners (x, y) of the bracket that represents each merge. A bracket has two vertical legs
        and a horizontal line. The order of the corners is: lower and upper end of the left leg,
        upper and lower end of the right leg.
    max_height : float or None, default=None
        Upper end of the scale of heights; None for the height of the highest merge.
    """

    order: NDArray[np.intp]
    forks: NDArray[np.float64]
    max_height: float | None = None

    @property
    def top(self) -> float:
        """Upper end of the scale of heights; 1 if all merges have height zero.

        The value is always positive, so it can be used as the length of an axis.
        """
        highest = float(self.forks[:, :, 1].max()) if self.max_height is None else self.max_height
        return highest if highest > 0 else 1.0

    def tip(self, node: int) -> tuple[float, float]:
        """Return the coordinates of a merge: the middle of the horizontal line of its bracket.

        Parameters
        ----------
        node : int
            Number of the merge as in scipy, where the first merge has the number n_samples.

        Returns
        -------
        x, y : float
            Horizontal position and height of the merge. Leaves are at the horizontal positions 0,
            1, ... from left to right.
        """
        fork = self.forks[node - self.order.size]
        return float(fork[1:3, 0].mean()), float(fork[1, 1])


def dendrogram_lines(
    linkage_matrix: ArrayLike, *, distances: ArrayLike | None = None
) -> DendrogramLines:
    """Return the coordinates of a dendrogram.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree in scipy's format, such as `linkage_matrix_`.
    distances : array-like of shape (n_samples, n_samples) or None, default=None
        Distances between the samples. If given, the left and right branches of merges are swapped
        such that neighbouring leaves are as similar as possible (optimal leaf ordering). Swapping
        branches does not change the tree.

    Returns
    -------
    lines : DendrogramLines
        Order of the leaves, and corners of the bracket that represents each merge.

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
    # Each merge comes after the two nodes that it joins, so a single loop computes all positions.
    # In a deep tree, a recursive function could exceed Python's recursion limit.
    for merge, (left, right) in enumerate(merges[:, :2].astype(np.intp)):
        top = height[n + merge]
        forks[merge, :, 0] = np.repeat(position[[left, right]], 2)
        forks[merge, :, 1] = height[left], top, top, height[right]
        position[n + merge] = (position[left] + position[right]) / 2
    return DendrogramLines(order=order, forks=forks)


def with_max_height(lines: DendrogramLines, max_height: Any) -> DendrogramLines:
    """Return a dendrogram whose scale of heights ends at `max_height`, if it is not None.

    Raise ParameterError if `max_height` is not a number, or is less than the height of the root,
    since a part of the tree would then be outside the plot.
    """
    if max_height is None:
        return lines
    is_number = isinstance(max_height, Real) and not isinstance(max_height, bool)
    # The largest number is not tuned. With larger ones, the margin above the tree could overflow.
    if not is_number or not lines.top <= max_height <= sys.float_info.max / 4:
        raise refusal(
            "max_height",
            max_height,
            allowed=f"be a number at least {lines.top:.6g}, the height of the root",
            advice="The scale must contain the whole tree.",
        )
    return replace(lines, max_height=float(max_height))


def _condensed_distances(distances: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return a square matrix of distances in scipy's condensed form.

    Raise ValueError if the shape of the matrix is not (n, n).
    """
    square = check_numbers("distances", distances)
    if square.shape != (n, n):
        raise ValueError(
            f"distances must have the shape {(n, n)}, got {square.shape}. Pass the distances "
            "between all samples of the tree, or None to keep the order of the merges."
        )
    condensed: NDArray[np.float64] = squareform(square, checks=False)
    return condensed


def clusters_of_merges(linkage_matrix: ArrayLike, labels: ArrayLike) -> NDArray[np.intp]:
    """Return the cluster that contains each merge, or -1 if the merge joins several clusters.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree in scipy's format.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    clusters : ndarray of shape (n_samples - 1,)
        For each merge, the common label of all samples below the merge; -1 if these samples have
        different labels.

    Examples
    --------
    >>> from mrshc.plotting import clusters_of_merges
    >>> clusters_of_merges([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], [0, 1, 0])
    array([ 0, -1])
    """
    merges = check_linkage(linkage_matrix)[:, :2].astype(np.intp)
    n = len(merges) + 1
    sample_labels = np.asarray(labels)
    if sample_labels.shape != (n,):
        raise ValueError(
            f"labels_ must hold one cluster for each of the {n} samples of the tree, got the "
            f"shape {sample_labels.shape}. Tree and labels must come from the same fit."
        )
    cluster = np.append(sample_labels.astype(np.intp), np.empty(n - 1, dtype=np.intp))
    # Both children of a merge come before the merge, so their clusters have already been computed.
    for merge, (left, right) in enumerate(merges):
        cluster[n + merge] = cluster[left] if cluster[left] == cluster[right] else -1
    return cluster[n:]


def singleton_branches(linkage_matrix: ArrayLike, labels: ArrayLike) -> list[tuple[int, int, int]]:
    """Return the branches that lead to clusters of a single sample.

    A cluster of one sample contains no merge. Its colour can therefore be shown only by the leg
    above the sample, which belongs to the bracket of the merge that joins the sample to the tree.
    """
    merges = check_linkage(linkage_matrix)[:, :2].astype(np.intp)
    sample_labels = np.asarray(labels).astype(np.intp)
    levels, first, sizes = np.unique(sample_labels, return_index=True, return_counts=True)
    cluster_of_singleton = {
        int(i): int(k) for k, i, size in zip(levels, first, sizes, strict=True) if size == 1
    }
    return [
        (cluster_of_singleton[int(child)], merge, side)
        for merge, children in enumerate(merges)
        for side, child in enumerate(children)
        if int(child) in cluster_of_singleton
    ]


def height_label(model: Any) -> str:
    """Return the label of the scale of heights of a tree."""
    # The heights of Ward's, centroid and median linkage are on the scale of square roots.
    has_square_roots = getattr(model, "linkage", None) in EUCLIDEAN_LINKAGES
    is_correlation = getattr(model, "metric", None) == "correlation" and not has_square_roots
    return "1 - correlation" if is_correlation else "height of merge"


def cut_height(linkage_matrix: ArrayLike, k: int) -> float:
    """Return the height of a horizontal line that cuts the tree into k clusters.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree in scipy's format.
    k : int
        Number of clusters, from 1 to n_samples.

    Returns
    -------
    height : float
        Height midway between two consecutive merges: the last merge that the cut keeps (or height
        0 if k = n_samples), and the first merge that the cut undoes. For k = 1, the height is
        slightly above the root.

    Examples
    --------
    >>> from mrshc.plotting import cut_height
    >>> cut_height([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], 2)
    2.5
    """
    heights = check_linkage(linkage_matrix)[:, 2]
    n = heights.size + 1
    k = check_integer("cut", k, low=1, high=n, advice="A tree has no more clusters than samples.")
    # For k = 1, the line is 3 % above the root: far enough to be distinguished from the root, but
    # within the margin of 6 % above the tree.
    padded = np.concatenate([[0.0], heights, [1.03 * heights[-1]]])
    return float(padded[n - k : n - k + 2].mean()) if k > 1 else float(padded[-1])


def order_by_leaves(name: str, values: Iterable[Any], *, order: NDArray[np.intp]) -> list[Any]:
    """Return the values of the samples in the order of the leaves, from left to right."""
    listed = list(values)
    if len(listed) != order.size:
        raise ValueError(
            f"{name} must hold one entry for each of the {order.size} samples, got {len(listed)}. "
            "Pass the entries in the order of the samples."
        )
    return [listed[i] for i in order]


def shortened(name: Any, *, length: int = 18) -> str:
    """Return a name, with its middle replaced by an ellipsis if the name is too long.

    Both ends of the name are kept, since similar names usually differ at the beginning or at the
    end.

    Parameters
    ----------
    name : object
        Name, which is converted with `str`. Line breaks and control characters are replaced by
        spaces.
    length : int, default=18
        Largest number of characters in the result.

    Returns
    -------
    text : str
        Text of at most `length` characters.

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
    """Return shortened names, with numbers where different names would become equal.

    Parameters
    ----------
    names : iterable
        Names, which are converted with `str`.
    length : int, default=18
        Largest number of characters in a shortened name, including its number.

    Returns
    -------
    texts : list of str
        Shortened names, in the order of `names`. Equal names stay equal.

    Examples
    --------
    >>> from mrshc.plotting import shortened_names
    >>> shortened_names(["left_breast_1_sample", "left_breast_2_sample", "liver"], length=12)
    ['left…mple(1)', 'left…mple(2)', 'liver']
    """
    full_names = [str(name) for name in names]
    short = {name: shortened(name, length=length) for name in full_names}
    n_uses = Counter(short.values())
    counters = {text: count(1) for text, times in n_uses.items() if times > 1}
    for name, text in short.items():
        # Only names that are too long get a number. A name that is short enough is not changed,
        # even if it equals the shortened form of another name.
        if text in counters and len(name) > length:
            number = f"({next(counters[text])})"
            short[name] = shortened(name, length=length - len(number)) + number
    return [short[name] for name in full_names]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFit:
    """Font size and spacing at which labels fit along an axis.

    Attributes
    ----------
    size : float
        Font size in points.
    step : int
        Spacing of the labels: every `step`-th label is shown.
    """

    size: float
    step: int


def fitting_labels(n: int, *, inches: float) -> LabelFit:
    """Return the font size and spacing at which labels fit along an axis.

    If space is short, the font size is reduced. If even the smallest legible size does not fit,
    labels are left out at regular intervals.

    Parameters
    ----------
    n : int
        Number of labels.
    inches : float
        Length of the axis in inches.

    Returns
    -------
    fit : LabelFit
        Font size in points, and the number `step`: every `step`-th label is shown.

    Examples
    --------
    >>> from mrshc.plotting import fitting_labels
    >>> fitting_labels(20, inches=8.0)
    LabelFit(size=8.0, step=1)
    >>> fitting_labels(500, inches=8.0)
    LabelFit(size=5.0, step=6)
    """
    points_per_label = inches * POINTS_PER_INCH / max(n, 1)
    size = float(np.clip(points_per_label / LINE_HEIGHT, _MIN_FONT_SIZE, _MAX_FONT_SIZE))
    # If the labels fit exactly, a rounding error could give a step of 2 instead of 1. A small
    # number is subtracted to avoid this.
    step = int(np.ceil(LINE_HEIGHT * size / points_per_label - 1e-9))
    return LabelFit(size=size, step=max(1, step))


def estimate_text_width(texts: Iterable[str], *, size: float) -> float:
    """Return the approximate width, in inches, of the longest of several strings.

    `size` is the font size in points.
    """
    longest = max((len(text) for text in texts), default=0)
    return longest * size * CHARACTER_WIDTH / POINTS_PER_INCH


def free_places(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    *,
    width: float,
    marker: float,
    obstacles: Sequence[Box] = (),
) -> list[tuple[float, float] | None]:
    """Return a position for the label of each marker, such that no labels overlap.

    Labels are placed in the given order. Five positions next to the marker are tried for each
    label. The label is placed at the first position where it overlaps neither an earlier label nor
    a marker. All coordinates and sizes are in the same unit.

    Parameters
    ----------
    anchors : sequence of (x, y)
        Centres of the markers.
    sizes : sequence of (width, height)
        Sizes of the labels.
    width : float
        Width of the plot. Labels stay between the horizontal positions 0 and `width`.
    marker : float
        Half the width of a marker, which is equal to half its height.
    obstacles : sequence of (left, bottom, right, top), default=()
        Boxes that no label may overlap.

    Returns
    -------
    places : list of (x, y) or None
        Lower left corner of each label; None if none of the five positions is free.

    Examples
    --------
    >>> from mrshc.plotting import free_places
    >>> free_places([(0, 0), (4, 0)], [(8, 4), (8, 4)], width=15, marker=2)
    [(2, 2), (6, -6)]
    """
    markers = [(x - marker, y - marker, x + marker, y + marker) for x, y in anchors]
    occupied: list[Box] = [*obstacles, *markers]
    places: list[tuple[float, float] | None] = []
    for (x, y), (w, h) in zip(anchors, sizes, strict=True):
        # The upper right position is tried first, since the bracket of the node is below the
        # marker.
        corners = [
            (x + marker, y + marker),
            (x - marker - w, y + marker),
            (x + marker, y - marker - h),
            (x - marker - w, y - marker - h),
            (x - w / 2, y + marker),
        ]
        boxes = [(left, low, left + w, low + h) for left, low in corners]
        inside = [box for box in boxes if box[0] >= 0 and box[2] <= width]
        free = next(
            (box for box in inside if not any(_are_overlapping(box, o) for o in occupied)), None
        )
        places.append(None if free is None else free[:2])
        if free is not None:
            occupied.append(free)
    return places


def _are_overlapping(a: Box, b: Box) -> bool:
    """Return whether two boxes overlap; boxes that only touch do not overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
