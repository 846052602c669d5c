"""Pictures of results. Each takes a fitted estimator and an optional axes, and returns the axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from mrshc.core.tree import Tree
from mrshc.files import replacing

# Okabe and Ito's palette, told apart by colour-blind readers too; yellow is left out, it vanishes
# on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# A sample needs this much width for a name that can be read.
_INCHES_PER_LEAF = 0.16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DendrogramLines:
    """Where to draw a tree: leaves stand at 0, 1, ... from left to right."""

    order: NDArray[np.intp]  # (n,), samples from left to right
    forks: NDArray[np.float64]  # (n - 1, 4, 2), corners of each merge's fork


def dendrogram_lines(linkage_matrix: NDArray[np.float64]) -> DendrogramLines:
    """Lay out a tree in scipy's format."""
    order = Tree(linkage_matrix=linkage_matrix).leaf_order
    n = order.size
    # Merges come after the nodes they join, so that one pass finds every position.
    position = np.append(np.argsort(order).astype(np.float64), np.empty(n - 1))
    height = np.append(np.zeros(n), linkage_matrix[:, 2])
    forks = np.empty((n - 1, 4, 2))
    for merge, (left, right) in enumerate(linkage_matrix[:, :2].astype(np.intp)):
        x, y = position[[left, right]], height[[left, right]]
        top = height[n + merge]
        forks[merge] = [(x[0], y[0]), (x[0], top), (x[1], top), (x[1], y[1])]
        position[n + merge] = x.mean()
    return DendrogramLines(order=order, forks=forks)


def dendrogram(
    model: Any,
    *,
    classes: Iterable[Any] | None = None,
    class_title: str | None = None,
    names: Iterable[Any] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the tree of a fitted estimator, its leaves coloured by class.

    Parameters
    ----------
    model : fitted estimator
        With `linkage_matrix_`, such as :class:`mrshc.MrSHC`.
    classes : iterable or None
        A class for each sample, in the order of the samples, shown by colour and in the legend.
    class_title : str or None
        Heading of the legend.
    names : iterable or None
        Names of the samples; their numbers by default.
    title : str or None
        Heading of the picture.
    ax : matplotlib Axes or None
        Where to draw; a new figure, wide enough for the names, by default.
    """
    lines = dendrogram_lines(model.linkage_matrix_)
    n = lines.order.size
    if ax is None:
        figure = Figure(figsize=(max(6.0, n * _INCHES_PER_LEAF + 1.5), 4.5), layout="constrained")
        ax = figure.subplots()
    ax.add_collection(LineCollection(list(lines.forks), colors="0.35", linewidths=1.0))
    top = float(lines.forks[:, :, 1].max())
    ax.set_xlim(-0.7, n - 0.3)
    ax.set_ylim(0.0, 1.05 * top if top > 0 else 1.0)
    ax.set_ylabel("height of merge")
    shown = _in_order("names", range(n) if names is None else names, lines.order)
    ax.set_xticks(range(n), [str(name) for name in shown], rotation=90, fontsize=8)
    ax.tick_params(axis="x", length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    if classes is not None:
        _colour_leaves(ax, _in_order("classes", classes, lines.order), title=class_title)
    if title is not None:
        ax.set_title(title, loc="left")
    return ax


def _in_order(what: str, values: Iterable[Any], order: NDArray[np.intp]) -> list[Any]:
    """Return one value for each leaf, from left to right."""
    listed = list(values)
    if len(listed) != order.size:
        raise ValueError(
            f"{what} must hold one entry for each of the {order.size} samples, got {len(listed)}."
        )
    return [listed[i] for i in order]


def _colour_leaves(ax: Axes, classes: Sequence[Any], *, title: str | None) -> None:
    levels = sorted(set(classes), key=str)
    colours = {level: PALETTE[i % len(PALETTE)] for i, level in enumerate(levels)}
    for tick, level in zip(ax.get_xticklabels(), classes, strict=True):
        tick.set_color(colours[level])
    ax.scatter(
        np.arange(len(classes)),
        np.zeros(len(classes)),
        c=[colours[level] for level in classes],
        s=22,
        clip_on=False,
        zorder=3,
    )
    handles = [
        Line2D([], [], linestyle="", marker="o", color=colours[level], label=str(level))
        for level in levels
    ]
    # Beside the tree: inside, it would cover branches.
    ax.legend(
        handles=handles, title=title, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )


def write_picture(figure: Any, path: Path, *, dpi: int = 150) -> None:
    """Write a PNG; interrupted, the old picture stays whole."""
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=dpi)
