"""Plots with horizontal bars: silhouette widths of samples, markers of clusters, and loadings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import (
    check_axes,
    check_limits,
    check_names,
    check_numbers,
    check_size,
    check_title,
    check_top,
    refusal,
)
from mrshc.plotting.colours import cluster_colours
from mrshc.plotting.dendrogram_layout import (
    LINE_HEIGHT,
    POINTS_PER_INCH,
    estimate_text_width,
    fitting_labels,
    order_by_leaves,
    shortened,
)
from mrshc.plotting.fitted_names import resolve_sample_names
from mrshc.plotting.loading_order import largest_loadings
from mrshc.plotting.model_data import (
    is_model,
    loadings_of_model,
    markers_of_model,
    silhouettes_of_model,
)
from mrshc.plotting.palettes import check_palette
from mrshc.plotting.picture_files import own_style
from mrshc.plotting.silhouette_layout import SilhouetteRows, silhouette_rows
from mrshc.plotting.strongest_markers import marker_panels
from mrshc.shell.sample_alignment import align_together
from mrshc.shell.wording import format_count

# Colours of positive and negative values: blue and orange from the palette of annotations. Readers
# with colour vision deficiency can distinguish these two colours.
_POSITIVE_COLOUR, _NEGATIVE_COLOUR = "#0072B2", "#D55E00"
# Largest number of panels in a row. Four panels with names of usual length are about as wide as the
# widest figure.
_PANELS_PER_ROW = 4
# Largest number of panels of markers: five rows of four. A figure with more panels would be taller
# than a page.
_MAX_PANELS = 20
# Largest number of characters in the name of a marker. Names are the main content of the plot of
# markers, so they get more space than in other plots, where the limit is 18 characters.
_MARKER_NAME_LENGTH = 30
# Width, in inches, of axes in which the explanation of silhouette widths fits on one line.
_WIDE_INCHES = 5.5
# Width, in inches, of the space for the legend to the right of the panels of markers.
_LEGEND_INCHES = 1.5


@own_style()
def silhouettes(
    widths: Any,
    labels: Any = None,
    *,
    names: Iterable[Any] | None = None,
    title: str | None = None,
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the silhouette width of each sample, grouped by cluster.

    The silhouette width of a sample compares two mean distances: the mean distance to the other
    samples of its own cluster, and the mean distance to the samples of the nearest other cluster.
    The width is near 1 if the sample is much closer to its own cluster, 0 if the sample is midway
    between the two clusters, and negative if the sample is closer to the other cluster.

    Parameters
    ----------
    widths : fitted estimator, result or array-like of shape (n_samples,)
        Fitted estimator with clusters, or a result. Otherwise silhouette widths, such as those of
        `sklearn.metrics.silhouette_samples`.
    labels : array-like or None, default=None
        If the first argument is an estimator: the data of the fit, of shape (n_samples,
        n_features), from which the silhouette widths are computed. A result needs no second
        argument. If the first argument contains silhouette widths: cluster of each sample, of shape
        (n_samples,). Integer labels 0, 1, ... are shown as "cluster 1", "cluster 2", ...
    names : iterable of length n_samples or None, default=None
        Names of the samples, written next to the bars. If None, the names are the index of the
        fitted DataFrame; without an estimator or an index, there are no names. If two or more of
        `widths`, `labels` and `names` are Series, they are aligned by their indexes.
    title : str or None, default=None
        Title of the plot.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, as in :func:`cluster_colours`.
    limits : (float, float) or None, default=None
        Ends of the horizontal axis. If None, the axis ends at 1.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the height depends on the number of
        samples.
    ax : matplotlib Axes or None, default=None
        Axes to draw in. If None, a new figure is created.

    Returns
    -------
    ax : matplotlib Axes
        Axes with one bar for each sample; the figure is `ax.figure`. Notebooks show axes of a new
        figure as a picture.

    References
    ----------
    Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and validation of
    cluster analysis. Journal of Computational and Applied Mathematics 20, 53-65.
    https://doi.org/10.1016/0377-0427(87)90125-7

    Examples
    --------
    >>> from mrshc.plotting import silhouettes
    >>> ax = silhouettes([0.9, 0.2, 0.5], [0, 0, 1], names=["a", "b", "c"])
    >>> [float(bar.get_width()) for bar in ax.patches]
    [0.9, 0.2, 0.5]
    """
    ax, title, names = check_axes(ax), check_title(title), check_names("names", names)
    size, limits = check_size(size, ax=ax), check_limits(limits)
    if is_model(widths):
        names = resolve_sample_names(widths, names)
        widths, labels = silhouettes_of_model(widths, labels)
    aligned = align_together(widths=widths, labels=labels, names=names)
    widths, labels, names = aligned["widths"], aligned["labels"], aligned["names"]
    rows = silhouette_rows(widths, labels)
    colours = cluster_colours(len(rows.names), palette=palette)
    shown = None if names is None else order_by_leaves("names", names, order=rows.order)
    values = np.asarray(widths, dtype=np.float64)[rows.order]
    if ax is None:
        # A height of 0.11 inches for each sample is enough for a name of 5 to 6 points. The label
        # of the horizontal axis takes one inch.
        height = float(np.clip(0.11 * (rows.places[-1] + 1), 2.2, 8.0))
        ax = figure_parts.new_figure(8.0, height + 1.0, size=size).subplots()
    # More than 100 bars are drawn without gaps: gaps between thin bars would give moire patterns.
    bar_height = 0.9 if values.size <= 100 else 1.0
    ax.barh(rows.places, values, height=bar_height, color=[colours[k] for k in rows.clusters])
    _annotate_clusters(ax, rows)
    _draw_silhouette_axis(ax, values, limits=limits)
    ax.set_ylim(rows.places[-1] + 1, -1.0)
    ax.set_yticks([])
    if shown is not None:
        _label_samples(ax, rows, shown=shown)
    ax.tick_params(axis="x", labelsize=figure_parts.SMALL_FONT)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure_parts.set_heading(ax, title)
    return ax


def _draw_silhouette_axis(
    ax: Axes, values: NDArray[np.float64], *, limits: tuple[float, float] | None
) -> None:
    """Draw vertical lines at zero and at the average width, and label the horizontal axis."""
    average = float(values.mean())
    ax.axvline(average, color="#000000", linestyle=(0, (5, 3)), linewidth=1.0, label="average")
    ax.axvline(0.0, color="#000000", linewidth=0.6)
    ax.set_xlim(limits or (min(0.0, 1.1 * float(values.min())), 1.0))
    lines = (
        f"silhouette width (dashed line: average, {average:.2f})",
        "near 1: far from other clusters; 0: between two clusters; "
        "negative: closer to another cluster",
    )
    width = figure_parts.size_in_inches(ax)[0]
    if width >= _WIDE_INCHES:
        ax.set_xlabel("\n".join(lines), fontsize=9)
        return
    # In narrow axes, the text begins at the left end of the axes, so that it is not cut off there.
    text = figure_parts.wrap_text("\n".join(lines), inches=width, size=figure_parts.SMALL_FONT)
    ax.set_xlabel(text, fontsize=figure_parts.SMALL_FONT, loc="left")


def _label_samples(ax: Axes, rows: SilhouetteRows, *, shown: Sequence[Any]) -> None:
    """Write the names of the samples next to their bars, or every k-th name if space is short.

    `shown` are the names from top to bottom.
    """
    n_slots = int(np.ceil(rows.places[-1])) + 1
    fit = fitting_labels(n_slots, inches=figure_parts.size_in_inches(ax)[1])
    figure_parts.label_ticks(ax.yaxis, shown, fit=fit, places=rows.places)
    note = figure_parts.describe_step(fit.step)
    ax.set_ylabel(f"{format_count(rows.order.size, 'sample')}{note}", fontsize=9)


def _annotate_clusters(ax: Axes, rows: SilhouetteRows) -> None:
    """Write the name, size and average width of each cluster to the right of its bars.

    The text of a cluster is left out if it would overlap the text above it.
    """
    sizes = np.bincount(rows.clusters)
    # In narrow axes, the text has three lines, since one line would take the space of the bars.
    is_wide = figure_parts.size_in_inches(ax)[0] >= _WIDE_INCHES
    separators = (": ", ", ") if is_wide else ("\n", "\n")
    line_height = LINE_HEIGHT * figure_parts.SMALL_FONT * (1 if is_wide else 3)
    points_per_row = figure_parts.size_in_inches(ax)[1] * POINTS_PER_INCH / (rows.places[-1] + 2)
    previous = -np.inf
    for k, (name, centre) in enumerate(zip(rows.names, rows.centres, strict=True)):
        # Skip this cluster if its text would overlap the text of the previous cluster.
        if (centre - previous) * points_per_row < line_height:
            continue
        previous = centre
        size = format_count(int(sizes[k]), "sample")
        ax.annotate(
            f"{shortened(name)}{separators[0]}{size}{separators[1]}average {rows.averages[k]:.2f}",
            (1.0, centre),
            xycoords=ax.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=figure_parts.SMALL_FONT,
            annotation_clip=False,
            parse_math=False,
        )


@own_style()
def markers(
    table: Any,
    n_clusters: Any = None,
    *,
    top: int = 8,
    title: str | None = None,
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw the strongest markers of each cluster with their effect sizes.

    A marker is a feature that differs between one cluster and all other samples. The effect size of
    a marker is the difference between its means inside and outside the cluster, in units of the
    standard deviation within the two groups. The length of a bar is the absolute effect size, and
    the colour of the bar shows the sign.

    Parameters
    ----------
    table : fitted estimator, result or DataFrame
        Fitted estimator with clusters, or a result. Otherwise a table of markers: the return value
        of `model.markers(X)`, or the attribute `markers` of a result.
    n_clusters : int, array-like or None, default=None
        If the first argument is an estimator: the data of the fit, of shape (n_samples,
        n_features), in which markers are tested. A result needs no second argument. If the first
        argument is a table: number of clusters.
    top : int, default=8
        Largest number of markers shown for each cluster.
    title : str or None, default=None
        Title of the plot.
    palette : str, Colormap, list of two colours or None, default=None
        Colours of features that are higher and lower in the cluster.
    limits : (float, float) or None, default=None
        Ends of the horizontal axes. If None, the axes begin at 0.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the size depends on the number of
        markers and panels.

    Returns
    -------
    figure : matplotlib Figure
        Figure with one panel for each cluster, but at most twenty panels. If there are two
        clusters, they share one panel, since a marker of one cluster is also a marker of the other
        cluster, with the opposite sign. Notebooks show the figure as a picture.

    Examples
    --------
    >>> import pandas as pd
    >>> from mrshc.plotting import markers
    >>> table = pd.DataFrame({"contrast": ["cluster"], "inside": ["2"], "feature": ["gene 7"],
    ...                       "effect_size": [-2.0]})
    >>> figure = markers(table, 3)
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['cluster 1', 'cluster 2', 'cluster 3']
    """
    title, size, limits = check_title(title), check_size(size), check_limits(limits)
    colours = _check_sign_colours(palette)
    if is_model(table):
        table, n_clusters = markers_of_model(table, n_clusters)
    panels = marker_panels(table, n_clusters, top=top)[:_MAX_PANELS]
    # Each panel has space for at least two bars, since a single bar would fill the whole panel.
    n_bars = max(2, *(len(panel.features) for panel in panels))
    height = 0.18 * n_bars  # inches: one line of small text for each bar
    names = (
        shortened(name, length=_MARKER_NAME_LENGTH) for panel in panels for name in panel.features
    )
    width = 2.7 + estimate_text_width(names, size=figure_parts.SMALL_FONT)
    full_width = figure_parts.MAX_FIGURE_WIDTH if size is None else size[0]
    n_fitting = max(1, int((full_width - _LEGEND_INCHES) / width))
    n_rows, n_columns = _panel_grid(len(panels), widest=min(_PANELS_PER_ROW, n_fitting))
    # In addition to the bars, each panel needs a height of 0.8 inches for its title and axis.
    inches = width * n_columns + _LEGEND_INCHES if size is None else size[0]
    above = figure_parts.heading_height(title, inches=inches)
    figure = figure_parts.new_figure(inches, (height + 0.8) * n_rows + above, size=size)
    if size is not None:
        height = max(0.1, (size[1] - above) / n_rows - 0.8)
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    # All panels have the same scale, so effect sizes can be compared between clusters.
    limit = max((float(np.abs(panel.effects).max(initial=0.0)) for panel in panels), default=0.0)
    for ax, panel in zip(grid, panels, strict=False):
        _draw_signed_bars(
            ax,
            panel.effects,
            names=panel.features,
            inches=height,
            n_bars=n_bars,
            length=_MARKER_NAME_LENGTH,
            colours=colours,
        )
        if not panel.features:
            ax.text(0.5, 0.5, "no markers", ha="center", transform=ax.transAxes, size=9)
            ax.set_yticks([])
        ax.set_xlim(limits or (0.0, 1.05 * limit or 1.0))
        ax.set_xlabel("difference of means (standard deviations)", fontsize=figure_parts.SMALL_FONT)
        n_shown = len(panel.features)
        note = f": {n_shown} of {panel.n_all:,} markers" if panel.n_all > n_shown else ""
        figure_parts.set_heading(ax, panel.heading + note)
    for ax in grid[len(panels) :]:
        ax.remove()
    if title is not None:
        figure_parts.set_figure_heading(figure, title)
    cluster = "cluster 1" if n_clusters == 2 else "the cluster"
    signs = [(f"higher in {cluster}", colours[0]), (f"lower in {cluster}", colours[1])]
    section = figure_parts.patch_section("mean of the feature", signs)
    figure_parts.draw_side_legend(grid[n_columns - 1], [section])
    return figure


def _check_sign_colours(palette: Any) -> tuple[str, str]:
    """Return the colours of positive and negative values; raise ParameterError if not valid."""
    if palette is None:
        return _POSITIVE_COLOUR, _NEGATIVE_COLOUR
    colours = check_palette("palette", palette, n=2)
    if len(colours) < 2:
        raise refusal(
            "palette",
            palette,
            allowed="hold two colours, of positive and of negative values",
            advice="Pass a list such as ['#0072B2', '#D55E00'].",
        )
    return colours[0], colours[1]


@own_style()
def loadings(
    components: Any,
    feature_names: Any = None,
    *,
    title: str | None = None,
    top: int = 30,
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw the largest loadings of each sparse component.

    The length of a bar is the absolute value of the loading, and the colour of the bar shows the
    sign of the loading. The sign of a component is arbitrary: reversing the signs of all its
    loadings gives an equivalent component. Only the relative signs of loadings on the same
    component are meaningful.

    Parameters
    ----------
    components : fitted estimator, result or array-like of shape (rank, n_features)
        Fitted estimator with sparse components or with one weight for each feature, such as a
        fitted :class:`mrshc.MrSHC` or :class:`mrshc.SHC`, or a result. Otherwise loadings of the
        sparse components, such as the attribute `components_` of an estimator.
    feature_names : sequence of length n_features or None, default=None
        Names of all features, not only of the selected features. If None, the names are the columns
        of the DataFrame to which the estimator was fitted, or 0, 1, ... If there is an estimator, a
        Series is aligned by its index.
    title : str or None, default=None
        Title of the plot.
    top : int, default=30
        Largest number of loadings shown for each component.
    palette : str, Colormap, list of two colours or None, default=None
        Colours of positive and of negative loadings.
    limits : (float, float) or None, default=None
        Ends of the horizontal axes. If None, the axes begin at 0.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the size depends on the number of
        loadings and components.

    Returns
    -------
    figure : matplotlib Figure
        Figure with one panel for each component; notebooks show the figure as a picture.

    Examples
    --------
    >>> from mrshc.plotting import loadings
    >>> ax, = loadings([[0.6, 0.0, -0.8]], ["a", "b", "c"]).axes
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['c', 'a']
    """
    title, top = check_title(title), check_top(top)
    size, limits, colours = check_size(size), check_limits(limits), _check_sign_colours(palette)
    check_names("feature_names", feature_names)
    if is_model(components):
        components, feature_names = loadings_of_model(components, feature_names)
    elif feature_names is None:
        feature_names = getattr(components, "columns", None)
    values, names = _check_loadings(components, feature_names)
    features_by_component = [largest_loadings(component, top) for component in values]
    n_bars = max(1, *(len(features) for features in features_by_component))
    n_rows, n_columns = _panel_grid(len(values), widest=_PANELS_PER_ROW)
    # The height allows one line of small text for each bar, but is at most the height of a page.
    height = float(np.clip(0.16 * n_bars, 0.8, 9.0))
    figure = figure_parts.new_figure(
        3.4 * n_columns + 0.6, (height + 0.9) * n_rows + 0.6, size=size
    )
    if size is not None:
        height = max(0.1, (size[1] - 0.6) / n_rows - 0.9)
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    for number, (ax, component, features) in enumerate(
        zip(panels, values, features_by_component, strict=False), start=1
    ):
        shown_names = [names[i] for i in features]
        _draw_signed_bars(
            ax,
            component[features],
            names=shown_names,
            inches=height,
            n_bars=n_bars,
            colours=colours,
        )
        if limits is not None:
            ax.set_xlim(limits)
        ax.set_xlabel("absolute loading", fontsize=9)
        n_all, n_shown = int(np.count_nonzero(component)), len(features)
        note = f"{n_shown} largest of {n_all} nonzero" if n_all > n_shown else f"{n_all} nonzero"
        figure_parts.set_heading(ax, f"component {number}\n{note} {_plural('loading', n_all)}")
    for ax in panels[len(values) :]:
        ax.remove()
    if title is not None:
        figure_parts.set_figure_heading(figure, title)
    signs = [("positive", colours[0]), ("negative", colours[1])]
    section = figure_parts.patch_section("loading", signs)
    figure_parts.draw_side_legend(panels[n_columns - 1], [section])
    return figure


def _check_loadings(
    components: ArrayLike, feature_names: Any
) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the components as a matrix, and the names of its columns as a list.

    Raise ValueError if there is no component, or if the number of names differs from the number of
    columns.
    """
    values = np.atleast_2d(check_numbers("components", components))
    names = list(range(values.shape[-1]) if feature_names is None else feature_names)
    if values.ndim != 2 or not len(values):
        raise ValueError(
            "components must hold at least one component, one in each row, got the shape "
            f"{values.shape}. Pass components_ of a fitted MrSHC."
        )
    if values.shape[1] != len(names):
        raise ValueError(
            f"feature_names must hold one name for each of the {values.shape[1]} features, got "
            f"{len(names)}. Pass the names of all features, not only of the selected ones."
        )
    return values, names


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def _draw_signed_bars(
    ax: Axes,
    values: NDArray[np.float64],
    *,
    names: Sequence[Any],
    inches: float,
    n_bars: int,
    colours: tuple[str, str],
    length: int = 18,
) -> None:
    """Draw horizontal bars, with absolute values as lengths and signs as colours."""
    bar_colours = np.where(values > 0, *colours)
    ax.barh(np.arange(values.size), np.abs(values), color=list(bar_colours), height=0.8)
    ax.set_ylim(n_bars - 0.4, -0.6)
    # By default, panels that share an axis have tick labels only in the lowest row. `labelbottom`
    # adds tick labels to the other panels.
    ax.tick_params(axis="x", labelsize=figure_parts.SMALL_FONT, labelbottom=True)
    fit = fitting_labels(n_bars, inches=inches)
    figure_parts.label_ticks(ax.yaxis, names, fit=fit, length=length)
    ax.spines[["top", "right"]].set_visible(False)


def _panel_grid(n: int, *, widest: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of a grid for n panels.

    The number of rows is the smallest with which `widest` columns suffice. The number of columns is
    then the smallest that suffices for this number of rows.
    """
    rows = -(-n // widest)
    return rows, -(-n // rows)
