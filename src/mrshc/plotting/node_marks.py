"""Markers and labels at the nodes of a drawn tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mrshc.plotting import figure_parts
from mrshc.plotting.branch_marks import BranchMark
from mrshc.plotting.colours import NEUTRAL_COLOUR
from mrshc.plotting.dendrogram_layout import (
    CHARACTER_WIDTH,
    LINE_HEIGHT,
    POINTS_PER_INCH,
    Box,
    DendrogramLines,
    free_places,
)
from mrshc.plotting.picture_files import ignore_missing_glyphs

# Diameter of the marker of a tested node, in points. A marker is wider than the lines of the tree
# and narrower than a label.
MARK_SIZE = 8.0
# Diameter of the dot at a node with support that was not tested. It only shows to which node a
# number belongs.
_DOT_SIZE = 3.5
# For each kind of node: the text in the legend, and the appearance of the marker.
_BRANCH_MARKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "significant": (
        "split significant",
        {"markerfacecolor": "#000000", "markeredgecolor": "#000000", "markersize": MARK_SIZE},
    ),
    "not significant": (
        "split not significant",
        {"markerfacecolor": "#FFFFFF", "markeredgecolor": "#000000", "markersize": MARK_SIZE},
    ),
    "support": (
        "support of the branch",
        {
            "markerfacecolor": NEUTRAL_COLOUR,
            "markeredgecolor": NEUTRAL_COLOUR,
            "markersize": _DOT_SIZE,
        },
    ),
}
_P_VALUE_NOTE = "p: test of one Gaussian group\nagainst several groups"
_SUPPORT_NOTE = (
    "%: support of the branch below the\nnode; 100 % if it exists in the trees\nof all subsamples"
)


def draw_branch_marks(
    ax: Axes, marks: Sequence[BranchMark], *, lines: DendrogramLines, obstacles: Sequence[Any] = ()
) -> None:
    """Draw a marker at each node with a p-value or a support, and write these values next to it."""
    n = lines.order.size
    tips = [lines.tip(n + mark.node) for mark in marks]
    for mark, (x, y) in zip(marks, tips, strict=True):
        kind = _kind_of(mark)
        ax.plot(
            [x],
            [y],
            marker="o",
            linestyle="",
            zorder=3,
            clip_on=False,
            label=kind,
            **_BRANCH_MARKERS[kind][1],
        )
    # The layout of the figure determines the size of the axes, and so the space for the labels.
    figure = ax.figure.canvas.figure  # the whole figure, even if the axes are in a subfigure
    if figure.get_layout_engine() is not None:
        with ignore_missing_glyphs():
            figure.draw_without_rendering()
    low, high = ax.get_ylim()
    points = figure_parts.size_in_inches(ax)[1] * POINTS_PER_INCH
    # Labels stay above the leaves, where the names and the annotation bars of the samples begin.
    leaves: Box = (-np.inf, -np.inf, np.inf, -low / (high - low) * points)
    boxes = [_box_in_points(ax, text) for text in obstacles]
    label_nodes(ax, [mark.label for mark in marks], tips=tips, obstacles=[leaves, *boxes])


def _kind_of(mark: BranchMark) -> str:
    if not mark.is_tested:
        return "support"
    return "significant" if mark.significant else "not significant"


def _box_in_points(ax: Axes, text: Any) -> Box:
    """Return the box of a text in points, from the lower left corner of the axes."""
    box, corner = text.get_window_extent(), ax.get_window_extent()
    shift = np.array([corner.x0, corner.y0, corner.x0, corner.y0])
    left, low, right, top = (
        (np.array(box.extents) - shift) * POINTS_PER_INCH / ax.figure.dpi
    ).tolist()
    return left, low, right, top


def label_nodes(
    ax: Axes,
    labels: Sequence[str],
    *,
    tips: Sequence[tuple[float, float]],
    obstacles: Sequence[Box] = (),
) -> None:
    """Write a label at each node where it overlaps neither another label nor a marker.

    If there is no such position, the label is left out.
    """
    # Overlaps are computed in points, since the two axes have different units.
    points = np.array(figure_parts.size_in_inches(ax)) * POINTS_PER_INCH
    low, high = ax.get_ylim()
    left, right = ax.get_xlim()
    scale = points / (right - left, high - low)
    anchors = [((x - left) * scale[0], (y - low) * scale[1]) for x, y in tips]
    font = figure_parts.SMALL_FONT
    sizes = [_label_size(label, font=font) for label in labels]
    positions = free_places(
        anchors, sizes, width=points[0], marker=MARK_SIZE / 2 + 1, obstacles=obstacles
    )
    for label, tip, anchor, position in zip(labels, tips, anchors, positions, strict=True):
        if position is not None:
            ax.annotate(
                label,
                tip,
                xytext=(position[0] - anchor[0] + 1, position[1] - anchor[1] + 1),
                textcoords="offset points",
                fontsize=font,
                annotation_clip=False,
                zorder=4,
                bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
            )


def _label_size(label: str, *, font: float) -> tuple[float, float]:
    """Return width and height of a label in points, with a margin of one point on each side."""
    lines = label.split("\n")
    width = max(map(len, lines)) * font * CHARACTER_WIDTH
    return width + 2, font * (1 + LINE_HEIGHT * (len(lines) - 1)) + 2


def branch_legend_section(marks: Sequence[BranchMark]) -> figure_parts.LegendSection:
    """Return a legend section that explains the markers, the p-values and the support."""
    present = {_kind_of(mark) for mark in marks}
    entries = [
        (text, Line2D([], [], marker="o", linestyle="", **appearance))
        for kind, (text, appearance) in _BRANCH_MARKERS.items()
        if kind in present and kind != "support"
    ]
    blank = Line2D([], [], linestyle="")
    if any(mark.is_tested for mark in marks):
        entries.append((_P_VALUE_NOTE, blank))
    if not all(np.isnan(mark.support) for mark in marks):
        entries.append((_SUPPORT_NOTE, blank))
    return figure_parts.LegendSection(title="branches", entries=tuple(entries))
