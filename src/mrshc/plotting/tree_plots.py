"""Plots of trees: dendrograms with annotation bars, and trees with the outcomes of gap tests.

The gap test of a node is the test, by the gap statistic, of whether the samples of the node form
two clusters rather than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_axes, check_model, check_size, check_title
from mrshc.plotting.branch_marks import BranchMark, branch_marks, significance_note
from mrshc.plotting.colours import (
    MISSING_COLOUR,
    NEUTRAL_COLOUR,
    AnnotationBar,
    annotation_bars,
    cluster_colours,
    cluster_legend_entries,
    is_light,
    outlier_bars,
    text_colour,
)
from mrshc.plotting.dendrogram_layout import (
    POINTS_PER_INCH,
    DendrogramLines,
    clusters_of_merges,
    cut_height,
    dendrogram_lines,
    estimate_text_width,
    fitting_labels,
    height_label,
    order_by_leaves,
    shortened,
    shortened_names,
    singleton_branches,
    with_max_height,
)
from mrshc.plotting.fitted_names import resolve_sample_names
from mrshc.plotting.node_marks import (
    MARK_SIZE,
    branch_legend_section,
    draw_branch_marks,
    label_nodes,
)
from mrshc.plotting.picture_files import own_style
from mrshc.plotting.split_verdicts import SplitMark, Verdict, split_marks
from mrshc.shell.sample_alignment import align_square, sample_names
from mrshc.shell.wording import format_count

# Width of a leaf, in inches. It is sufficient for a rotated name of 8 points and the space to the
# next name.
_INCHES_PER_LEAF = 0.16
# Heights of the tree and of an annotation bar, in inches. Both heights were chosen by eye; they do
# not affect any result.
_TREE_INCHES = 3.4
_BAR_INCHES = 0.17
# Distance between an annotation bar and its name, in points: that of matplotlib's tick labels.
_BAR_NAME_GAP = 3.5
# Height of the axes as a multiple of the height of the tree. There is a margin above the tree, so
# the root does not touch the border.
_HEADROOM = 1.06
# The same if there are labels at nodes, such that the label of the root stays inside the axes.
_LABEL_HEADROOM = 1.12
# For each verdict on a split: the text in the legend, and the appearance of the marker.
_VERDICT_MARKERS: dict[Verdict, tuple[str, dict[str, Any]]] = {
    "made": (
        "split: test passed",
        {"marker": "o", "markerfacecolor": "#000000"},
    ),
    "made, not supported": (
        "split: made, but not supported\nby the gap statistic",
        {"marker": "D", "markerfacecolor": "#000000"},
    ),
    "not supported": (
        "no split: test not passed",
        {"marker": "o", "markerfacecolor": "#FFFFFF"},
    ),
    "supported, not made": (
        "no split: test passed, but the\nnumber of clusters is reached",
        {"marker": "D", "markerfacecolor": "#E69F00"},
    ),
}
_EXCESS_NOTE = (
    "Numbers: decrease of the log\ndispersion by the split, minus the\ndecrease expected without "
    "clusters,\nin standard errors. A split passes\nthe test if it exceeds 1. The test uses\nthe "
    "features that the tree is built on,\nso it is not evidence for the clusters."
)


@own_style()
def dendrogram(
    model: Any,
    *,
    annotations: Any = None,
    names: Iterable[Any] | None = None,
    title: str | None = None,
    colour_branches: bool = True,
    cut: int | None = None,
    distances: ArrayLike | None = None,
    significance: Any = None,
    stability: Any = None,
    palette: Any = None,
    colours: Any = None,
    max_height: float | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the tree of a fitted estimator, with annotations of the samples below the leaves.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator with the attribute `linkage_matrix_`, such as a fitted
        :class:`mrshc.MrSHC`, or a result. If the model has the attribute `outlier_samples_`, a
        separate bar marks the outlying samples.
    annotations : mapping, DataFrame, Series or None, default=None
        Maps the name of each annotation to its values, one value for each sample. A Series is a
        single annotation. A DataFrame or a Series is matched to the samples by name: its index must
        contain the index of the fitted data, or `names`. Other values must be in the order of the
        samples. Each annotation is drawn as a bar below the leaves. The names of the samples are
        written in the colours of the first categorical annotation.
    names : iterable of length n_samples or None, default=None
        Names of the samples. If None, the names are the index of the fitted DataFrame, or 0, 1, ...
        if the model was not fitted to a DataFrame. A Series is aligned by its index.
    title : str or None, default=None
        Title of the plot.
    colour_branches : bool, default=True
        Whether branches inside a cluster are drawn in the colour of the cluster. Branches are not
        coloured if the model has no attribute `labels_`.
    cut : int or None, default=None
        If given, a horizontal line shows the cut of the tree into this number of clusters.
    distances : array-like of shape (n_samples, n_samples) or None, default=None
        Distances between the samples. If given, the left and right branches of merges are swapped
        such that neighbouring leaves are as similar as possible. A DataFrame is aligned by its
        index and columns.
    significance : BranchSignificance, mapping, DataFrame or None, default=None
        Result of :func:`mrshc.branch_significance`, or a table with the columns `node` (row of the
        linkage matrix), `p_value` and `significant`. The p-value is written at each tested node,
        with a filled marker if the split is significant and an open marker otherwise. If the split
        of a node between the clusters is not significant, the title contains a note.
    stability : StabilityResult, array-like of shape (n_samples - 1,) or None, default=None
        Result of :func:`mrshc.stability`, or the support of each row of the linkage matrix. The
        support is written in percent at the nodes that join clusters and at the top node of each
        cluster.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, as in :func:`cluster_colours`.
    colours : mapping or None, default=None
        Colours of annotations by their names, as in :func:`annotation_bars`, such as
        `{"class": {"a": "orange", "b": "#1B9E77"}, "age": "viridis"}`.
    max_height : float or None, default=None
        Upper end of the scale of heights, at least the height of the root. With the same value,
        several trees have the same scale. If None, the scale ends at the root.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the size depends on the number of
        samples and on the legend.
    ax : matplotlib Axes or None, default=None
        Axes to draw in. If None, a new figure is created.

    Returns
    -------
    ax : matplotlib Axes
        Axes with the tree; the figure is `ax.figure`. Notebooks show axes of a new figure as a
        picture.

    Examples
    --------
    >>> from mrshc import HighVarianceHC
    >>> from mrshc.plotting import dendrogram
    >>> model = HighVarianceHC(1, n_clusters=2).fit([[0, 0], [0, 1], [9, 0], [9, 1]])
    >>> ax = dendrogram(model, annotations={"class": ["a", "a", "b", "b"]}, names="wxyz")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['class', 'a', 'b', '', 'clusters', 'cluster 1', 'cluster 2']
    """
    check_model(model, "linkage_matrix_")
    ax, title, size = check_axes(ax), check_title(title), check_size(size, ax=ax)
    distances = align_square(distances, sample_names(model), what="distances")
    lines = dendrogram_lines(model.linkage_matrix_, distances=distances)
    lines = with_max_height(lines, max_height)
    n = lines.order.size
    names = resolve_sample_names(model, names)
    samples = sample_names(model, names=names)
    bars = (
        *outlier_bars(model, n),
        *annotation_bars(annotations, n, samples=samples, colours=colours),
    )
    clusters = colour_clusters(model, palette)
    if not colour_branches:
        clusters = None
    shown = order_by_leaves("names", range(n) if names is None else names, order=lines.order)
    # `cut_height` raises an error if `cut` is not valid. The function is called before anything is
    # drawn, so the axes of the caller are unchanged in this case.
    height = None if cut is None else cut_height(model.linkage_matrix_, cut)
    marks, title = _branch_marks_and_title(
        model, title=title, significance=significance, stability=stability
    )
    sections = tree_legend_sections(bars, clusters)
    if marks:
        sections.insert(0, branch_legend_section(marks))
    if ax is None:
        ax = _create_axes(shown, n_bars=len(bars), sections=sections, size=size)
    draw_tree(ax, lines, linkage_matrix=model.linkage_matrix_, clusters=clusters)
    _draw_height_axis(ax, lines, label=height_label(model))
    draw_annotation_bars(ax, bars, lines=lines)
    _write_coloured_leaf_names(ax, shown, bars=bars, order=lines.order)
    if cut is not None and height is not None:
        _draw_cut(ax, cut, height=height)
    figure_parts.draw_side_legend(ax, sections)
    figure_parts.set_heading(ax, title)
    if marks:
        # The labels at the root need space above the tree.
        ax.set_ylim(top=_LABEL_HEADROOM * lines.top)
        draw_branch_marks(ax, marks, lines=lines, obstacles=[*ax.texts])
    _centre_height_label(ax, lines)
    return ax


def _branch_marks_and_title(
    model: Any, *, title: str | None, significance: Any, stability: Any
) -> tuple[list[BranchMark], str | None]:
    """Return the marks at nodes, and the title with a note if clusters are not significant."""
    if significance is None and stability is None:
        return [], title
    labels = getattr(model, "labels_", None)
    marks = branch_marks(
        model.linkage_matrix_, labels=labels, significance=significance, stability=stability
    )
    note = significance_note(model.linkage_matrix_, labels, significance=significance)
    return marks, "; ".join(filter(None, [title, note])) or None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColouredClusters:
    """The clusters of a model and their colours in a plot."""

    labels: Any  # (n_samples,), cluster of each sample
    colours: tuple[str, ...]  # colour of cluster 0, 1, ...


def colour_clusters(model: Any, palette: Any) -> ColouredClusters | None:
    """Return the clusters of a model with the colours of a palette.

    None is returned if the model has no clusters. Raise ParameterError if the palette is not valid.
    """
    labels = getattr(model, "labels_", None)
    n_clusters = 0 if labels is None else int(np.max(labels)) + 1
    # The palette is checked even if there are no clusters.
    colours = cluster_colours(n_clusters, palette=palette)
    return None if labels is None else ColouredClusters(labels=labels, colours=colours)


def tree_legend_sections(
    bars: Sequence[AnnotationBar], clusters: ColouredClusters | None
) -> list[figure_parts.LegendSection]:
    """Return the legend sections that explain the annotation bars and the colours of clusters."""
    sections = [
        figure_parts.patch_section(shortened(bar.name, length=26), bar.legend) for bar in bars
    ]
    if clusters is not None:
        entries = cluster_legend_entries(clusters.colours)
        sections.append(figure_parts.line_section("clusters", entries))
    return sections


def _create_axes(
    names: Sequence[Any],
    *,
    n_bars: int,
    sections: Sequence[figure_parts.LegendSection],
    size: tuple[float, float] | None,
) -> Axes:
    """Return new axes with space for a tree, annotation bars, names of leaves and a legend."""
    # The figure is wider than the leaves by one inch for the scale of heights, and by the width of
    # the legend.
    leaves_width = float(np.clip(len(names) * _INCHES_PER_LEAF, 4.5, 13.0))
    legend_width, legend_height = figure_parts.estimate_legend_size(sections)
    width = leaves_width + 1.0 + legend_width
    # The names are rotated, so the height that they need is the width of the longest name.
    names_height = estimate_text_width(shortened_names(names), size=figure_parts.SMALL_FONT)
    height = _TREE_INCHES + 0.7 + n_bars * _BAR_INCHES + names_height
    return figure_parts.new_figure(width, max(height, legend_height), size=size).subplots()


def draw_tree(
    ax: Axes, lines: DendrogramLines, *, linkage_matrix: Any, clusters: ColouredClusters | None
) -> None:
    """Draw the brackets of a tree, in the colours of the clusters if `clusters` is given."""
    n_merges = len(lines.forks)
    colours = [NEUTRAL_COLOUR] * n_merges
    segments = [*lines.forks]
    if clusters is not None:
        palette = clusters.colours
        inside = clusters_of_merges(linkage_matrix, clusters.labels)
        colours = [NEUTRAL_COLOUR if k < 0 else palette[k] for k in inside]
        for k, merge, side in singleton_branches(linkage_matrix, clusters.labels):
            segments.append(lines.forks[merge, 2 * side : 2 * side + 2])
            colours.append(palette[k])
    # With 200 or more merges, lines of the usual width would run together near the leaves.
    width = 1.2 if n_merges < 200 else 0.7
    ax.add_collection(LineCollection(segments, colors=colours, linewidths=width))
    ax.set_xlim(-0.7, n_merges + 0.7)
    ax.set_ylim(0.0, _HEADROOM * lines.top)


def _draw_height_axis(ax: Axes, lines: DendrogramLines, *, label: str) -> None:
    """Draw the scale of heights, from zero at the leaves to the height of the root.

    The scale does not extend below zero, since annotation bars are drawn there.
    """
    ticks = MaxNLocator(nbins=5).tick_values(0.0, lines.top)
    ax.set_yticks([tick for tick in ticks if 0 <= tick <= lines.top])
    ax.tick_params(axis="y", labelsize=figure_parts.SMALL_FONT)
    ax.set_ylabel(label, fontsize=9)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_bounds(0.0, lines.top)


def _centre_height_label(ax: Axes, lines: DendrogramLines) -> None:
    """Move the label of the scale of heights to the middle of the scale.

    By default, the label is in the middle of the axes, which also contain the annotation bars.
    """
    low, high = ax.get_ylim()
    ax.yaxis.label.set_y((lines.top / 2 - low) / (high - low))


def draw_annotation_bars(
    ax: Axes,
    bars: Sequence[AnnotationBar],
    *,
    lines: DendrogramLines,
    side: Literal["left", "right"] = "left",
) -> None:
    """Draw a bar for each annotation below the leaves, with its name next to it.

    The bars are drawn in the same axes as the tree, below height zero, so they stay aligned with
    the leaves when the figure is resized.
    """
    if not bars:
        return
    width, height = figure_parts.size_in_inches(ax)
    # Neighbouring rectangles overlap by the width of their edges, in points. Without overlap, light
    # seams would be visible in SVG files. The edges take at most 30 % of narrow rectangles.
    overlap = min(0.8, 0.3 * width * POINTS_PER_INCH / lines.order.size)
    # Height of a bar as a proportion of the height of the axes. All bars together take at most
    # 60 % of the height of the axes.
    share = min(_BAR_INCHES / height, 0.6 / len(bars))
    # Height of a bar in data coordinates. The axes are extended downwards by the height of all bars
    # and an additional space of 0.4 bars.
    unit = _HEADROOM * lines.top * share / (1 - share * (len(bars) + 0.4))
    left = np.arange(lines.order.size) - 0.5
    middles = -unit * (np.arange(len(bars)) + 0.9)
    for bar, middle in zip(bars, middles, strict=True):
        # The coloured part is 0.84 units high. The rest of the unit is a gap between the bars.
        low, up = middle - 0.42 * unit, middle + 0.42 * unit
        boxes = [[(x, low), (x, up), (x + 1, up), (x + 1, low)] for x in left]
        colours = [bar.colours[i] for i in lines.order]
        ax.add_collection(
            PolyCollection(boxes, facecolors=colours, edgecolors="face", linewidths=overlap)
        )
        if any(colour != "none" and is_light(colour) for colour in colours):
            ax.add_patch(
                Rectangle(
                    (left[0], low),
                    left.size,
                    up - low,
                    fill=False,
                    edgecolor=figure_parts.OUTLINE_COLOUR,
                    linewidth=0.5,
                    zorder=2,
                )
            )
    ax.set_ylim(-unit * (len(bars) + 0.4), _HEADROOM * lines.top)
    _write_bar_names(ax, bars, middles=middles, side=side)


def _write_bar_names(
    ax: Axes, bars: Sequence[AnnotationBar], *, middles: Any, side: Literal["left", "right"]
) -> None:
    """Write the names of the annotation bars next to them; `middles` are their vertical positions.

    The names are not tick labels, since matplotlib would then write the label of the scale of
    heights to the left of the longest name, far from the scale.
    """
    is_left = side == "left"
    for name, middle in zip(shortened_names([bar.name for bar in bars]), middles, strict=True):
        ax.annotate(
            name,
            (0.0 if is_left else 1.0, middle),
            xycoords=ax.get_yaxis_transform(),
            xytext=(-_BAR_NAME_GAP if is_left else _BAR_NAME_GAP, 0),
            textcoords="offset points",
            ha="right" if is_left else "left",
            va="center",
            fontsize=figure_parts.SMALL_FONT,
            annotation_clip=False,
            parse_math=False,
        )


def _write_coloured_leaf_names(
    ax: Axes, names: Sequence[Any], *, bars: Sequence[AnnotationBar], order: NDArray[np.intp]
) -> None:
    """Write the names of the samples below the leaves, in colour.

    The colour of a name is the colour of the sample in the first categorical annotation, or grey if
    the value of the sample is missing. If there is no categorical annotation, all names have the
    default colour.
    """
    fit = fitting_labels(len(names), inches=figure_parts.size_in_inches(ax)[0])
    shown = figure_parts.label_ticks(ax.xaxis, names, fit=fit)
    if fit.step > 1:
        ax.set_xlabel(
            f"{len(names)} samples{figure_parts.describe_step(fit.step)}",
            fontsize=figure_parts.SMALL_FONT,
        )
    colours = next((bar.colours for bar in bars if bar.is_categorical), None)
    if colours is not None:
        for tick, i in zip(ax.get_xticklabels(), order[shown], strict=True):
            is_missing = colours[i] == MISSING_COLOUR
            tick.set_color(NEUTRAL_COLOUR if is_missing else text_colour(colours[i]))


def _draw_cut(ax: Axes, k: int, *, height: float) -> None:
    """Draw a dashed line at the given height, with the label "cut into k clusters"."""
    ax.axhline(height, color="#000000", linestyle=(0, (5, 3)), linewidth=1.0, label="cut")
    ax.annotate(
        f"cut into {format_count(k, 'cluster')}",
        (1.0, height),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=figure_parts.SMALL_FONT,
        bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        zorder=0.9,  # below the branches (zorder 1), which the label must not hide
    )


@own_style()
def gap_tests(
    model: Any,
    *,
    title: str | None = None,
    palette: Any = None,
    max_height: float | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the tree with the outcomes of its gap tests.

    The gap test of a node decides whether the split of the node into two clusters is supported. The
    marker of the node shows whether the split is supported and whether it was made. The number next
    to the marker is the decrease in the log of the within-cluster dispersion due to the split,
    minus the decrease expected in data without clusters, in units of the standard error.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator or result with the attributes `linkage_matrix_` and `split_tests_`, such as
        a fitted :class:`mrshc.MrSHC`.
    title : str or None, default=None
        Title of the plot.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, as in :func:`cluster_colours`.
    max_height : float or None, default=None
        Upper end of the scale of heights, as in :func:`dendrogram`.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the size depends on the number of
        samples.
    ax : matplotlib Axes or None, default=None
        Axes to draw in. If None, a new figure is created.

    Returns
    -------
    ax : matplotlib Axes
        Axes with the tree; the figure is `ax.figure`. Numbers for which there is no space are left
        out.

    References
    ----------
    Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a data
    set via the gap statistic. Journal of the Royal Statistical Society B 63(2), 411-423.
    https://doi.org/10.1111/1467-9868.00293

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
    _refuse_model_without_tests(model)
    check_model(model, "linkage_matrix_")
    ax, title, size = check_axes(ax), check_title(title), check_size(size, ax=ax)
    lines = with_max_height(dendrogram_lines(model.linkage_matrix_), max_height)
    clusters = colour_clusters(model, palette)
    marks = split_marks(model.split_tests_)
    n = lines.order.size
    if ax is None:
        # The leaves have no names here, so they need less space than in a dendrogram. The legend
        # takes three inches.
        width = float(np.clip(n * 0.1, 6.0, 12.0))
        ax = figure_parts.new_figure(width + 3.0, _TREE_INCHES + 1.0, size=size).subplots()
    draw_tree(ax, lines, linkage_matrix=model.linkage_matrix_, clusters=clusters)
    _draw_height_axis(ax, lines, label=height_label(model))
    # The vertical range is larger than the tree, so numbers at the root and near the leaves stay
    # inside the axes.
    ax.set_ylim(-0.06 * lines.top, _LABEL_HEADROOM * lines.top)
    _centre_height_label(ax, lines)
    ax.set_xticks([])
    ax.set_xlabel(f"{n} samples", fontsize=figure_parts.SMALL_FONT)
    _draw_marks(ax, marks, lines=lines)
    figure_parts.draw_side_legend(
        ax, [_mark_legend_section(marks), *tree_legend_sections((), clusters)]
    )
    figure_parts.set_heading(ax, title)
    return ax


def _refuse_model_without_tests(model: Any) -> None:
    """Raise ValueError if a model has no gap tests, which would give a plot without outcomes."""
    if not hasattr(model, "split_tests_"):
        raise ValueError(
            "gap_tests needs a model with split_tests_, such as a fitted MrSHC, got a "
            f"{type(model).__name__} without it. Use dendrogram to draw the tree alone."
        )
    tests = model.split_tests_
    if not len(tests) or ("node" in tests and not len(tests["node"])):
        raise ValueError(
            "gap_tests needs nodes that were tested with the gap statistic, but no node of this "
            "model was tested. Use dendrogram to draw the tree, or fit MrSHC."
        )


def _draw_marks(ax: Axes, marks: Sequence[SplitMark], *, lines: DendrogramLines) -> None:
    """Draw a marker at each tested node, and write the excess of the test next to the marker."""
    tips = [lines.tip(mark.node) for mark in marks]
    for mark, (x, y) in zip(marks, tips, strict=True):
        appearance = _VERDICT_MARKERS[mark.verdict][1]
        ax.plot(
            [x],
            [y],
            markersize=MARK_SIZE,
            markeredgecolor="#000000",
            zorder=3,
            clip_on=False,
            label=mark.verdict,
            linestyle="",
            **appearance,
        )
    label_nodes(ax, [mark.label for mark in marks], tips=tips)


def _mark_legend_section(marks: Sequence[SplitMark]) -> figure_parts.LegendSection:
    """Return a legend section that explains the markers and the numbers of the gap tests."""
    present = {mark.verdict for mark in marks}
    marker: dict[str, Any] = {"linestyle": "", "markeredgecolor": "#000000", "markersize": 7}
    entries = [
        (text, Line2D([], [], **marker, **appearance))
        for verdict, (text, appearance) in _VERDICT_MARKERS.items()
        if verdict in present
    ]
    entries.append((_EXCESS_NOTE, Line2D([], [], linestyle="")))
    return figure_parts.LegendSection(title="gap tests of nodes", entries=tuple(entries))
