"""Pictures of trees: with what is known of the samples below, or with the tests of the splits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from mrshc.core.array_types import Index
from mrshc.core.selection.explanation import counted
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_axes, check_model, check_names, check_title
from mrshc.plotting.colours import (
    MISSING_COLOUR,
    NEUTRAL_COLOUR,
    AnnotationBar,
    annotation_bars,
    cluster_colours,
    cluster_legend_entries,
    outlier_bars,
)
from mrshc.plotting.dendrogram_layout import (
    CHARACTER_WIDTH,
    POINTS_PER_INCH,
    DendrogramLines,
    clusters_of_merges,
    cut_height,
    dendrogram_lines,
    fitting_labels,
    free_places,
    order_by_leaves,
    singleton_branches,
    shortened,
    shortened_names,
    estimate_text_width,
)
from mrshc.plotting.split_verdicts import SplitMark, Verdict, split_marks
from mrshc.utils.sample_alignment import SampleNames, align_samples, align_square, sample_names

# A sample needs this much width for a name that can be read.
_INCHES_PER_LEAF = 0.16
_TREE_INCHES = 3.4
_BAR_INCHES = 0.17
_MARK_SIZE = 8.0
_VERDICT_MARKERS: dict[Verdict, tuple[str, dict[str, Any]]] = {
    "made": (
        "split: supported, and made",
        {"marker": "o", "markerfacecolor": "#000000"},
    ),
    "not supported": (
        "no split: not supported",
        {"marker": "o", "markerfacecolor": "#FFFFFF"},
    ),
    "supported, not made": (
        "supported, not made:\nenough clusters already",
        {"marker": "D", "markerfacecolor": "#E69F00"},
    ),
}
_EXCESS_NOTE = (
    "Numbers: how far the split lowers the\ndispersion beyond what chance does,\n"
    "in standard errors. Above 1 it is\nsupported."
)


def dendrogram(
    model: Any,
    *,
    annotations: Any = None,
    names: Iterable[Any] | None = None,
    title: str | None = None,
    colour_branches: bool = True,
    cut: int | None = None,
    distances: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the tree of a fitted estimator over what is known of its samples.

    Parameters
    ----------
    model : fitted estimator
        With `linkage_matrix_`, such as :class:`mrshc.MrSHC`, or a result that carries it. Samples
        of its `outlier_samples_` are marked by a bar of their own.
    annotations : mapping, DataFrame or None
        Values for each sample by the annotation's name. A DataFrame or Series is matched by its
        index to the index of the data that were fitted, or to `names`, and refused if it does not
        match; anything else must be in the order of the samples. Each annotation makes a bar under
        the leaves; names of samples take the colour of the first one with levels.
    names : iterable or None
        Names of the samples; their numbers by default. A Series is matched by its index, as
        annotations are.
    title : str or None
        Heading of the picture.
    colour_branches : bool
        Colour branches inside a cluster of `labels_`, if the model has them.
    cut : int or None
        Show where the tree would be cut into so many clusters.
    distances : array-like of shape (n_samples, n_samples) or None
        Turn forks so that neighbouring leaves are as close as the tree allows. A DataFrame is
        matched by its index and columns, as annotations are.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from mrshc import HighVarianceHC
    >>> from mrshc.plotting import dendrogram
    >>> model = HighVarianceHC(1, n_clusters=2).fit([[0, 0], [0, 1], [9, 0], [9, 1]])
    >>> ax = dendrogram(model, annotations={"class": ["a", "a", "b", "b"]}, names="wxyz")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['class', 'a', 'b', '', 'found clusters', 'cluster 1', 'cluster 2']
    """
    check_model(model, "linkage_matrix_")
    ax, title = check_axes(ax), check_title(title)
    known = sample_names(model)
    distances = align_square(distances, known, what="distances")
    lines = dendrogram_lines(model.linkage_matrix_, distances=distances)
    n = lines.order.size
    names = None if names is None else _align_names(names, known)
    samples = sample_names(model, names=names)
    bars = (*outlier_bars(model, n), *annotation_bars(annotations, n, samples=samples))
    labels = getattr(model, "labels_", None) if colour_branches else None
    shown = order_by_leaves("names", range(n) if names is None else names, order=lines.order)
    # Before anything is drawn: given axes stay as they are if an argument is refused.
    height = None if cut is None else cut_height(model.linkage_matrix_, cut)
    sections = tree_legend_sections(bars, labels)
    if ax is None:
        ax = _create_axes(shown, n_bars=len(bars), sections=sections)
    draw_tree(ax, lines, linkage_matrix=model.linkage_matrix_, labels=labels)
    _draw_height_axis(ax, lines)
    draw_annotation_bars(ax, bars, lines=lines)
    _label_leaves(ax, shown, bars=bars, order=lines.order)
    if cut is not None and height is not None:
        _draw_cut(ax, cut, height=height)
    figure_parts.draw_side_legend(ax, sections)
    figure_parts.set_heading(ax, title)
    return ax


def _align_names(names: Any, known: SampleNames) -> list[Any]:
    return list(align_samples(check_names("names", names), known, what="names"))


def tree_legend_sections(bars: Sequence[AnnotationBar], labels: Any) -> list[figure_parts.LegendSection]:
    """Return what the legend says of annotations and of coloured branches."""
    sections = [figure_parts.patch_section(shortened(bar.name, length=26), bar.legend) for bar in bars]
    if labels is not None:
        entries = cluster_legend_entries(int(np.max(labels)) + 1)
        sections.append(figure_parts.line_section("found clusters", entries))
    return sections


def _create_axes(
    names: Sequence[Any], *, n_bars: int, sections: Sequence[figure_parts.LegendSection]
) -> Axes:
    wide = float(np.clip(len(names) * _INCHES_PER_LEAF, 4.5, 13.0)) + 1.0 + 1.8 * bool(sections)
    room = estimate_text_width(shortened_names(names), size=figure_parts.SMALL_FONT)
    high = _TREE_INCHES + 0.7 + n_bars * _BAR_INCHES + room
    return figure_parts.new_figure(wide, max(high, figure_parts.estimate_legend_height(sections))).subplots()


def draw_tree(ax: Axes, lines: DendrogramLines, *, linkage_matrix: Any, labels: Any) -> None:
    """Draw the forks of a tree, those inside a cluster in its colour."""
    n_merges = len(lines.forks)
    colours = [NEUTRAL_COLOUR] * n_merges
    segments = [*lines.forks]
    if labels is not None:
        of_cluster = cluster_colours(int(np.max(labels)) + 1)
        inside = clusters_of_merges(linkage_matrix, labels)
        colours = [NEUTRAL_COLOUR if k < 0 else of_cluster[k] for k in inside]
        for k, merge, side in singleton_branches(linkage_matrix, labels):
            segments.append(lines.forks[merge, 2 * side : 2 * side + 2])
            colours.append(of_cluster[k])
    width = 1.2 if n_merges < 200 else 0.7
    ax.add_collection(LineCollection(segments, colors=colours, linewidths=width))
    ax.set_xlim(-0.7, n_merges + 0.7)
    ax.set_ylim(0.0, 1.06 * lines.top)


def _draw_height_axis(ax: Axes, lines: DendrogramLines) -> None:
    ticks = MaxNLocator(nbins=5).tick_values(0.0, lines.top)
    ax.set_yticks([tick for tick in ticks if 0 <= tick <= lines.top])
    ax.tick_params(axis="y", labelsize=figure_parts.SMALL_FONT)
    ax.set_ylabel("height of merge", fontsize=9)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_bounds(0.0, lines.top)


def draw_annotation_bars(ax: Axes, bars: Sequence[AnnotationBar], *, lines: DendrogramLines) -> None:
    """Draw a bar for each annotation under the leaves, below zero in the tree's own axes."""
    if not bars:
        return
    high = figure_parts.size_in_inches(ax)[1]
    # Bars keep their thickness unless they would take most of the picture.
    share = min(_BAR_INCHES / high, 0.6 / len(bars))
    unit = 1.06 * lines.top * share / (1 - share * (len(bars) + 0.4))
    left = np.arange(lines.order.size) - 0.5
    middles = -unit * (np.arange(len(bars)) + 0.9)
    for bar, middle in zip(bars, middles, strict=True):
        low, up = middle - 0.42 * unit, middle + 0.42 * unit
        boxes = [[(x, low), (x, up), (x + 1, up), (x + 1, low)] for x in left]
        colours = [bar.colours[i] for i in lines.order]
        ax.add_collection(
            PolyCollection(boxes, facecolors=colours, edgecolors="face", linewidths=0.2)
        )
    ax.set_ylim(-unit * (len(bars) + 0.4), 1.06 * lines.top)
    names = shortened_names([bar.name for bar in bars])
    ax.set_yticks(middles, names, minor=True, parse_math=False)
    ax.tick_params(axis="y", which="minor", length=0, labelsize=figure_parts.SMALL_FONT)


def _label_leaves(
    ax: Axes, names: Sequence[Any], *, bars: Sequence[AnnotationBar], order: Index
) -> None:
    fit = fitting_labels(len(names), inches=figure_parts.size_in_inches(ax)[0])
    shown = figure_parts.label_ticks(ax.xaxis, names, fit=fit)
    if fit.step > 1:
        ax.set_xlabel(
            f"{len(names)} samples{figure_parts.describe_step(fit.step)}", fontsize=figure_parts.SMALL_FONT
        )
    colours = next((bar.colours for bar in bars if bar.is_categorical), None)
    if colours is not None:
        for tick, i in zip(ax.get_xticklabels(), order[shown], strict=True):
            tick.set_color(colours[i] if colours[i] != MISSING_COLOUR else NEUTRAL_COLOUR)


def _draw_cut(ax: Axes, k: int, *, height: float) -> None:
    ax.axhline(height, color="#000000", linestyle=(0, (5, 3)), linewidth=1.0, label="cut")
    ax.annotate(
        f"cut into {counted(k, 'cluster')}",
        (1.0, height),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=figure_parts.SMALL_FONT,
        bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def gap_tests(model: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the tree with every node that the gap statistic tested, and its verdict.

    Parameters
    ----------
    model : fitted estimator
        With `linkage_matrix_` and `split_tests_`, such as :class:`mrshc.MrSHC`.
    title : str or None
        Heading of the picture.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
        Beside each mark: how far the split lowers the log dispersion beyond what it does in
        samples without clusters, in standard errors.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from mrshc.plotting import gap_tests
    >>> tests = {"node": [4], "height": [5.0], "drop": [0.5], "expected_drop": [0.3],
    ...          "standard_error": [0.1], "supported": [True], "split": [True]}
    >>> tree = [[0, 1, 1.0, 2], [2, 3, 5.0, 3]]
    >>> ax = gap_tests(SimpleNamespace(linkage_matrix_=tree, split_tests_=tests))
    >>> [text.get_text() for text in ax.texts]
    ['+2.0']
    """
    if not hasattr(model, "split_tests_"):
        raise ValueError(
            "gap_tests needs a model with split_tests_, as MrSHC has after fit, got "
            f"{type(model).__name__}. Draw its dendrogram instead."
        )
    check_model(model, "linkage_matrix_")
    ax, title = check_axes(ax), check_title(title)
    lines = dendrogram_lines(model.linkage_matrix_)
    n = lines.order.size
    if ax is None:
        wide = float(np.clip(n * 0.1, 6.0, 12.0))
        ax = figure_parts.new_figure(wide + 3.0, _TREE_INCHES + 1.0).subplots()
    labels = getattr(model, "labels_", None)
    draw_tree(ax, lines, linkage_matrix=model.linkage_matrix_, labels=labels)
    _draw_height_axis(ax, lines)
    # Marks at the root and at the leaves keep their numbers inside.
    ax.set_ylim(-0.06 * lines.top, 1.12 * lines.top)
    ax.set_xticks([])
    ax.set_xlabel(f"{n} samples", fontsize=figure_parts.SMALL_FONT)
    marks = split_marks(model.split_tests_)
    _draw_marks(ax, marks, lines=lines)
    figure_parts.draw_side_legend(ax, [_mark_legend_section(marks), *tree_legend_sections((), labels)])
    figure_parts.set_heading(ax, title)
    return ax


def _draw_marks(ax: Axes, marks: Sequence[SplitMark], *, lines: DendrogramLines) -> None:
    tips = [lines.tip(mark.node) for mark in marks]
    for mark, (x, y) in zip(marks, tips, strict=True):
        look = _VERDICT_MARKERS[mark.verdict][1]
        ax.plot(
            [x],
            [y],
            markersize=_MARK_SIZE,
            markeredgecolor="#000000",
            zorder=3,
            clip_on=False,
            label=mark.verdict,
            linestyle="",
            **look,
        )
    _label_marks(ax, marks, tips=tips)


def _label_marks(
    ax: Axes, marks: Sequence[SplitMark], *, tips: Sequence[tuple[float, float]]
) -> None:
    # Labels are placed in points, where both directions measure the same.
    points = np.array(figure_parts.size_in_inches(ax)) * POINTS_PER_INCH
    low, high = ax.get_ylim()
    left, right = ax.get_xlim()
    scale = points / (right - left, high - low)
    anchors = [((x - left) * scale[0], (y - low) * scale[1]) for x, y in tips]
    size = figure_parts.SMALL_FONT
    sizes = [(len(m.label) * size * CHARACTER_WIDTH + 2, size + 2) for m in marks]
    places = free_places(anchors, sizes, width=points[0], marker=_MARK_SIZE / 2 + 1)
    for mark, tip, anchor, place in zip(marks, tips, anchors, places, strict=True):
        if place is not None:
            ax.annotate(
                mark.label,
                tip,
                xytext=(place[0] - anchor[0] + 1, place[1] - anchor[1] + 1),
                textcoords="offset points",
                fontsize=size,
                annotation_clip=False,
                zorder=4,
                bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
            )


def _mark_legend_section(marks: Sequence[SplitMark]) -> figure_parts.LegendSection:
    present = {mark.verdict for mark in marks}
    entries = [
        (words, Line2D([], [], linestyle="", markeredgecolor="#000000", markersize=7, **look))
        for verdict, (words, look) in _VERDICT_MARKERS.items()
        if verdict in present
    ]
    entries.append((_EXCESS_NOTE if marks else "none was tested", Line2D([], [], linestyle="")))
    return figure_parts.LegendSection(title="tested nodes of the tree", entries=tuple(entries))
