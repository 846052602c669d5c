"""Heat map of the selected features, with a tree of the samples and a tree of the features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, to_rgba
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_limits, check_model, check_size, check_title
from mrshc.plotting.colours import (
    NEUTRAL_COLOUR,
    AnnotationBar,
    annotation_bars,
    annotation_names,
    count_levels,
    outlier_bars,
)
from mrshc.plotting.dendrogram_layout import (
    dendrogram_lines,
    estimate_text_width,
    fitting_labels,
    order_by_leaves,
    shortened_names,
)
from mrshc.plotting.fitted_names import resolve_sample_names
from mrshc.plotting.heatmap_data import feature_tree, standardised, usual_samples
from mrshc.plotting.heatmap_features import FeaturesToDraw, features_to_draw, values_of_result
from mrshc.plotting.palettes import check_annotation_colours, check_colour_map
from mrshc.plotting.picture_files import ignore_missing_glyphs, own_style
from mrshc.plotting.tree_plots import (
    colour_clusters,
    draw_annotation_bars,
    draw_tree,
    tree_legend_sections,
)
from mrshc.shell.sample_alignment import SampleNames, align_samples, sample_names
from mrshc.shell.wording import format_count

# By default, the colour scale ends at these numbers of standard deviations. Without a limit, a
# single outlier would make the colours of all other values pale. Nearly all values of a normally
# distributed feature are within three standard deviations of the mean.
_DEFAULT_LIMITS = (-3.0, 3.0)
# Colour of missing values: a grey that does not occur in the colour scale, which ranges from blue
# through white to red.
_MISSING_CELL_COLOUR = "#8C8C8C"
# Height of the sample tree, width of the feature tree and height of an annotation bar, in inches.
# The sizes were chosen by eye; they do not affect any result.
_TREE_INCHES, _FEATURE_TREE_INCHES, _BAR_INCHES = 1.3, 0.9, 0.17


@own_style()
def heatmap(
    model: Any,
    selected: ArrayLike | None = None,
    *,
    annotations: Any = None,
    feature_annotations: Any = None,
    names: Iterable[Any] | None = None,
    feature_names: Iterable[Any] | None = None,
    title: str | None = None,
    palette: Any = None,
    colours: Any = None,
    cmap: Any = "RdBu_r",
    limits: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw a heat map of the selected features, with samples in the order of their tree.

    Each column is a sample. Each row is a feature, standardised to mean zero and standard deviation
    one. The features are in the order of a second tree, which is built by average linkage with the
    distance 1 - correlation. Correlated features are therefore next to each other.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator or result with the attribute `linkage_matrix_`, as in :func:`dendrogram`.
    selected : array-like of shape (n_samples, n_features) or None, default=None
        The data of the fit, of which the selected features are drawn, or values of the features to
        draw, such as `model.transform(X)`; NaN marks a missing value. The rows of a DataFrame are
        matched to the samples by name: its index must contain the index of the fitted data, or
        `names`. A result contains the values of the selected features, so they need not be passed.
    annotations : mapping, DataFrame, Series or None, default=None
        Annotations of the samples, as in :func:`dendrogram`, drawn above the heat map.
    feature_annotations : mapping, DataFrame, Series or None, default=None
        Annotations of the features, drawn to the left of the heat map. A DataFrame or a Series is
        matched to the features by name: its index must contain the names of the features that are
        drawn. Other values must be in the order of the features.
    names : iterable of length n_samples or None, default=None
        Names of the samples, as in :func:`dendrogram`.
    feature_names : iterable of length n_features or None, default=None
        Names of the features. If None, the names are the column names of `selected` if it is a
        DataFrame, those of the fitted DataFrame if there was one, and 0, 1, ... otherwise.
    title : str or None, default=None
        Title of the plot.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, as in :func:`cluster_colours`.
    colours : mapping or None, default=None
        Colours of annotations of samples and features by their names, as in
        :func:`annotation_bars`, such as `{"class": {"a": "orange", "b": "#1B9E77"}}`.
    cmap : str or Colormap, default="RdBu_r"
        Colours of the values.
    limits : (float, float) or None, default=None
        Ends of the colour scale in standard deviations. If None, they are -3 and 3. Values outside
        the limits have the colours of the ends.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the size depends on the numbers of
        samples and features, and on the legend.

    Returns
    -------
    figure : matplotlib Figure
        Figure whose first three axes are the heat map, the tree of samples and the tree of
        features. Notebooks show the figure as a picture.

    Examples
    --------
    >>> from mrshc import HighVarianceHC
    >>> from mrshc.plotting import heatmap
    >>> X = [[0, 0, 5], [0, 1, 5], [9, 0, 1], [9, 1, 0]]
    >>> figure = heatmap(HighVarianceHC(3).fit(X), X, names="abcd")
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['a', 'b', 'c', 'd']
    """
    check_model(model, "linkage_matrix_")
    title, size, limits = check_title(title), check_size(size), check_limits(limits)
    colour_map = check_colour_map("cmap", cmap)
    lines = dendrogram_lines(model.linkage_matrix_)
    n = lines.order.size
    names = resolve_sample_names(model, names)
    selected = values_of_result(model) if selected is None else selected
    selected = align_samples(selected, sample_names(model, names=names), what="selected")
    features = features_to_draw(model, selected, n=n, names=feature_names)
    samples = order_by_leaves("names", range(n) if names is None else names, order=lines.order)
    known_names = sample_names(model, selected, names=names)
    bars, feature_bars = _make_bars(
        annotations,
        feature_annotations,
        samples=known_names,
        n=n,
        features=features,
        colours=colours,
    )
    bars = (*outlier_bars(model, n), *bars)
    clusters = colour_clusters(model, palette)
    sections = [*tree_legend_sections(bars, clusters), *tree_legend_sections(feature_bars, None)]
    if not np.isfinite(features.values).all():
        missing_cells = [("missing value", _MISSING_CELL_COLOUR)]
        sections.append(figure_parts.patch_section("heat map", missing_cells))
    panels = _create_panels(
        samples,
        features.names,
        n_bars=(len(bars), len(feature_bars)),
        sections=sections,
        size=size,
    )
    outlying = getattr(model, "outlier_samples_", None)
    rows = _draw_feature_tree(panels.feature_tree, usual_samples(features.values, outlying))
    cells = standardised(features.values, outlying=outlying)[np.ix_(lines.order, rows)].T
    _draw_cells(panels, cells, colour_map=colour_map, limits=limits or _DEFAULT_LIMITS)
    shown_features = [features.names[i] for i in rows]
    _label_cells(panels, samples=samples, features=shown_features)
    if panels.feature_bars is not None:
        _draw_feature_bars(panels.feature_bars, feature_bars, rows=rows)
    draw_tree(panels.sample_tree, lines, linkage_matrix=model.linkage_matrix_, clusters=clusters)
    # On the left, the names of the bars would overlap the tree of features.
    draw_annotation_bars(panels.sample_tree, bars, lines=lines, side="right")
    _hide_tree_axes(panels.sample_tree, n)
    figure_parts.set_heading(panels.sample_tree, title)
    if sections:
        figure_parts.draw_legend(panels.figure, sections, loc="outside right upper")
    if size is not None:
        # The space for names is known only after the layout of a figure of given size.
        panels = _measure_cells(panels)
        _label_cells(panels, samples=samples, features=shown_features)
    return panels.figure


def _make_bars(
    annotations: Any,
    feature_annotations: Any,
    *,
    samples: SampleNames,
    n: int,
    features: FeaturesToDraw,
    colours: Any,
) -> tuple[tuple[AnnotationBar, ...], tuple[AnnotationBar, ...]]:
    """Return the annotation bars of the n samples, and those of the features.

    `colours` may contain the colours of both kinds of annotations.
    """
    of_samples, of_features = map(annotation_names, (annotations, feature_annotations))
    given = check_annotation_colours(colours, names=[*of_samples, *of_features])
    bars = annotation_bars(
        annotations,
        n,
        samples=samples,
        colours={name: given[name] for name in of_samples if name in given},
    )
    feature_bars = annotation_bars(
        features.pick_annotations(feature_annotations),
        len(features.names),
        samples=features.known_names,
        colours={name: given[name] for name in of_features if name in given},
        # Annotations of samples and of features have different colours, since their levels differ.
        start=count_levels(bars),
        unit="feature",
    )
    return bars, feature_bars


def _hide_tree_axes(ax: Axes, n: int) -> None:
    """Align the tree of samples with the heat map, and hide its scale of heights and its frame."""
    ax.set_xlim(-0.5, n - 0.5)
    ax.spines[:].set_visible(False)
    ax.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _HeatmapPanels:
    """The figure of a heat map, and the axes of its three panels."""

    figure: Figure
    cells: Axes  # the heat map without the trees
    sample_tree: Axes  # above the cells
    feature_tree: Axes  # to the left of the cells
    feature_bars: Axes | None  # between the feature tree and the cells; None without annotations
    # Width and height of the cells in inches. The final size is known only when the figure is
    # drawn, so this is the planned size.
    cells_size: tuple[float, float]


def _cells_size(n: int, q: int) -> tuple[float, float]:
    """Return the width and height, in inches, of a heat map of n samples and q features."""
    # The name of a sample or a feature needs about 0.15 inches. With these limits, a figure with
    # trees, names and a legend is usually not wider than 16 inches.
    return float(np.clip(0.16 * n, 3.5, 10.5)), float(np.clip(0.15 * q, 0.3, 8.5))


def _create_panels(
    samples: list[Any],
    features: list[Any],
    *,
    n_bars: tuple[int, int],
    sections: list[figure_parts.LegendSection],
    size: tuple[float, float] | None,
) -> _HeatmapPanels:
    """Return a new figure with axes for the cells and both trees, and space for a legend."""
    width, height = _cells_size(len(samples), len(features))
    legend_width, legend_height = figure_parts.estimate_legend_size(sections)
    # The names of the samples are below the heat map, together with the axis label and the colour
    # bar, which need 0.9 inches. The names of the features are on the right, together with the
    # legend, which needs at least 2.2 inches with the names of annotations.
    below = estimate_text_width(shortened_names(samples), size=figure_parts.SMALL_FONT) + 0.9
    right = estimate_text_width(shortened_names(features), size=figure_parts.SMALL_FONT)
    right += max(2.2, legend_width + 0.4)
    top = _TREE_INCHES + _BAR_INCHES * n_bars[0]
    left = _FEATURE_TREE_INCHES, _BAR_INCHES * n_bars[1]
    if size is not None:
        # Half an inch is not enough for the cells, but with less, matplotlib cannot draw them.
        width = max(0.5, size[0] - sum(left) - right - 0.3)
        height = max(0.5, size[1] - top - below - 0.4)
    total = max(top + height + below + 0.4, legend_height)
    figure = figure_parts.new_figure(sum(left) + width + right + 0.3, total, size=size)
    # There is no space between the panels, since the leaves of both trees must touch the cells.
    figure.set_layout_engine("constrained", w_pad=0.03, h_pad=0.05, wspace=0.0, hspace=0.0)
    columns = [inches for inches in (*left, width) if inches > 0]
    grid = figure.add_gridspec(2, len(columns), width_ratios=columns, height_ratios=(top, height))
    cells = figure.add_subplot(grid[1, -1])
    sample_tree, tree = figure.add_subplot(grid[0, -1]), figure.add_subplot(grid[1, 0])
    return _HeatmapPanels(
        figure=figure,
        cells=cells,
        sample_tree=sample_tree,
        feature_tree=tree,
        feature_bars=figure.add_subplot(grid[1, 1]) if n_bars[1] else None,
        cells_size=(width, height),
    )


def _measure_cells(panels: _HeatmapPanels) -> _HeatmapPanels:
    """Return the panels with the size that the cells have after the layout of the figure."""
    with ignore_missing_glyphs():
        panels.figure.draw_without_rendering()
    return replace(panels, cells_size=figure_parts.size_in_inches(panels.cells))


def _draw_feature_bars(ax: Axes, bars: Sequence[AnnotationBar], *, rows: NDArray[np.intp]) -> None:
    """Draw a vertical bar for each annotation of the features, with its name above the bar.

    `rows` are the indices of the features from top to bottom.
    """
    colours = np.array([[to_rgba(bar.colours[i]) for bar in bars] for i in rows])
    ax.imshow(colours, aspect="auto", interpolation="nearest", origin="upper")
    ax.set_yticks([])
    ax.set_xticks([])
    for position, name in enumerate(shortened_names([bar.name for bar in bars])):
        label = ax.annotate(
            name,
            ((position + 0.5) / len(bars), 1.0),
            xycoords="axes fraction",
            xytext=(0, 3),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=figure_parts.SMALL_FONT,
            parse_math=False,
            annotation_clip=False,
        )
        # The corner above the bars is empty. If the layout made space for the names, there would be
        # a gap between the tree of samples and the heat map.
        label.set_in_layout(False)
    # White lines separate the bars.
    for boundary in np.arange(1, len(bars)) - 0.5:
        ax.axvline(boundary, color="#FFFFFF", linewidth=1.5)
    ax.spines[:].set_visible(False)


def _draw_feature_tree(ax: Axes, X: NDArray[np.float64]) -> NDArray[np.intp]:
    """Draw the tree of features with its root on the left, and return the order of its leaves.

    The order consists of the indices of the features from top to bottom. If there is only one
    feature, there is no tree, and nothing is drawn.
    """
    ax.set_axis_off()
    q = X.shape[1]
    if q == 1:
        return np.zeros(1, dtype=np.intp)
    lines = dendrogram_lines(feature_tree(X))
    # The coordinates are swapped and the heights are negated. This rotates the tree: its leaves are
    # on the right.
    forks = lines.forks[:, :, ::-1] * (-1.0, 1.0)
    # With 150 or more features, lines of the usual width would run together.
    width = 1.0 if q < 150 else 0.4
    ax.add_collection(LineCollection(list(forks), colors=NEUTRAL_COLOUR, linewidths=width))
    ax.set_xlim(-1.05 * lines.top, 0.0)
    ax.set_ylim(q - 0.5, -0.5)
    return lines.order


def _draw_cells(
    panels: _HeatmapPanels,
    cells: NDArray[np.float64],
    *,
    colour_map: Colormap,
    limits: tuple[float, float],
) -> None:
    """Draw standardised values as colours, and a colour bar below the heat map."""
    ax = panels.cells
    image = ax.imshow(
        np.ma.masked_invalid(cells),
        aspect="auto",
        interpolation="nearest",
        origin="upper",
        cmap=colour_map.with_extremes(bad=_MISSING_CELL_COLOUR),
        vmin=limits[0],
        vmax=limits[1],
    )
    ax.spines[:].set_visible(False)
    # matplotlib expects the distance between the axes and the colour bar as a fraction of the
    # height of the axes. The distance of 0.15 inches is therefore divided by this height.
    pad = 0.15 / panels.cells_size[1]
    bar = ax.figure.colorbar(
        image, ax=ax, location="bottom", shrink=0.5, aspect=30, pad=pad, extend="both"
    )
    bar.set_label(
        "deviation from the feature's mean (standard deviations)", fontsize=figure_parts.SMALL_FONT
    )
    bar.ax.tick_params(labelsize=figure_parts.SMALL_FONT)


def _label_cells(panels: _HeatmapPanels, *, samples: list[Any], features: list[Any]) -> None:
    """Write the names of samples and features along the heat map; leave out some if necessary."""
    ax = panels.cells
    width, height = panels.cells_size
    sample_fit = fitting_labels(len(samples), inches=width)
    feature_fit = fitting_labels(len(features), inches=height)
    figure_parts.label_ticks(ax.xaxis, samples, fit=sample_fit)
    ax.yaxis.tick_right()
    figure_parts.label_ticks(ax.yaxis, features, fit=feature_fit)
    ax.set_xlabel(
        f"{format_count(len(samples), 'sample')}{figure_parts.describe_step(sample_fit.step)}, "
        f"{format_count(len(features), 'selected feature')}"
        f"{figure_parts.describe_step(feature_fit.step)}",
        fontsize=figure_parts.SMALL_FONT,
    )
