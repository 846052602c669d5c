"""Pictures made of horizontal bars: silhouettes of samples, loadings of features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from mrshc.core.array_types import Float
from mrshc.core.selection.explanation import counted
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import (
    check_axes,
    check_names,
    check_numbers,
    check_title,
    check_top,
)
from mrshc.plotting.colours import cluster_colours
from mrshc.plotting.dendrogram_layout import (
    fitting_labels,
    order_by_leaves,
    shortened,
    estimate_text_width,
)
from mrshc.plotting.loading_order import largest_loadings
from mrshc.plotting.silhouette_layout import SilhouetteRows, silhouette_rows
from mrshc.plotting.strongest_markers import marker_panels
from mrshc.utils.sample_alignment import align_together

_POSITIVE_COLOUR, _NEGATIVE_COLOUR = "#0072B2", "#D55E00"
_PANELS_PER_ROW, _MAX_PANELS = 4, 20
_MARKER_NAME_LENGTH, _LEGEND_INCHES = 30, 1.5


def silhouettes(
    widths: ArrayLike,
    labels: ArrayLike,
    *,
    names: Iterable[Any] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how well each sample lies in its cluster.

    Parameters
    ----------
    widths : array-like of shape (n_samples,)
        Silhouette widths, such as those of `sklearn.metrics.silhouette_samples`.
    labels : array-like of shape (n_samples,)
        Clusters; those numbered from zero are counted from one in the picture.
    names : iterable or None
        Names of the samples; without them only the clusters are named. Where several of `widths`,
        `labels` and `names` are a Series, they are matched by their index.
    title : str or None
        Heading of the picture.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from mrshc.plotting import silhouettes
    >>> ax = silhouettes([0.9, 0.2, 0.5], [0, 0, 1], names=["a", "b", "c"])
    >>> [float(bar.get_width()) for bar in ax.patches]
    [0.9, 0.2, 0.5]
    """
    ax, title, names = check_axes(ax), check_title(title), check_names("names", names)
    aligned = align_together(widths=widths, labels=labels, names=names)
    widths, labels, names = aligned["widths"], aligned["labels"], aligned["names"]
    rows = silhouette_rows(widths, labels)
    values = np.asarray(widths, dtype=np.float64)[rows.order]
    n = values.size
    if ax is None:
        high = float(np.clip(0.11 * (rows.places[-1] + 1), 2.2, 8.0))
        ax = figure_parts.new_figure(8.0, high + 1.0).subplots()
    colours = cluster_colours(len(rows.names))
    # Air between many thin bars would only flicker.
    thick = 0.9 if n <= 100 else 1.0
    ax.barh(rows.places, values, height=thick, color=[colours[k] for k in rows.clusters])
    _annotate_clusters(ax, rows)
    average = float(values.mean())
    ax.axvline(average, color="#000000", linestyle=(0, (5, 3)), linewidth=1.0, label="average")
    ax.axvline(0.0, color="#000000", linewidth=0.6)
    ax.set_ylim(rows.places[-1] + 1, -1.0)
    ax.set_xlim(min(0.0, 1.1 * float(values.min())), 1.0)
    ax.set_xlabel(
        f"silhouette width (average {average:.2f}, dashed)\n"
        "1: far from other clusters, 0: between two, below 0: nearer to another",
        fontsize=9,
    )
    ax.set_yticks([])
    if names is not None:
        shown = order_by_leaves("names", names, order=rows.order)
        fit = fitting_labels(
            int(np.ceil(rows.places[-1])) + 1, inches=figure_parts.size_in_inches(ax)[1]
        )
        figure_parts.label_ticks(ax.yaxis, shown, fit=fit, places=rows.places)
        ax.set_ylabel(f"{counted(n, 'sample')}{figure_parts.describe_step(fit.step)}", fontsize=9)
    ax.tick_params(axis="x", labelsize=figure_parts.SMALL_FONT)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure_parts.set_heading(ax, title)
    return ax


def _annotate_clusters(ax: Axes, rows: SilhouetteRows) -> None:
    sizes = np.bincount(rows.clusters)
    # Clusters of few samples among many would write over each other.
    tall = figure_parts.size_in_inches(ax)[1] * 72 / (rows.places[-1] + 2)
    last = -np.inf
    for k, (name, place) in enumerate(zip(rows.names, rows.centres, strict=True)):
        if (place - last) * tall < 1.25 * figure_parts.SMALL_FONT:
            continue
        last = place
        words = f"{shortened(name)}: {counted(int(sizes[k]), 'sample')}, average "
        words += f"{rows.averages[k]:.2f}"
        ax.annotate(
            words,
            (1.0, place),
            xycoords=ax.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=figure_parts.SMALL_FONT,
            annotation_clip=False,
            parse_math=False,
        )


def markers(table: Any, n_clusters: int, *, top: int = 8, title: str | None = None) -> Figure:
    """Draw the strongest markers of each cluster with their effect sizes.

    Parameters
    ----------
    table : DataFrame
        Such as `model.markers(X)`, or `markers` of a result.
    n_clusters : int
        Number of clusters.
    top : int
        Markers shown of each cluster, at most.
    title : str or None
        Heading of the picture.

    Returns
    -------
    figure : matplotlib Figure
        A panel for each of the first twenty clusters; one for both if there are two.

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
    title = check_title(title)
    panels = marker_panels(table, n_clusters, top=top)[:_MAX_PANELS]
    most = max(2, *(len(panel.features) for panel in panels))
    high = 0.18 * most
    # Names of markers are what the picture is for: they have more room than elsewhere.
    names = (shortened(name, length=_MARKER_NAME_LENGTH) for panel in panels for name in panel.features)
    wide = 2.7 + estimate_text_width(names, size=figure_parts.SMALL_FONT)
    fitting = int((figure_parts.MAX_FIGURE_WIDTH - _LEGEND_INCHES) / wide)
    n_rows, n_columns = _panel_grid(len(panels), widest=min(_PANELS_PER_ROW, fitting))
    figure = figure_parts.new_figure(wide * n_columns + _LEGEND_INCHES, (high + 0.8) * n_rows + 0.6)
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    widest = max((float(np.abs(panel.effects).max(initial=0.0)) for panel in panels), default=0.0)
    for ax, panel in zip(grid, panels, strict=False):
        shape: Any = {"inches": high, "most": most, "length": _MARKER_NAME_LENGTH}
        _draw_signed_bars(ax, panel.effects, names=panel.features, **shape)
        if not panel.features:
            ax.text(0.5, 0.5, "no feature marks it", ha="center", transform=ax.transAxes, size=9)
            ax.set_yticks([])
        ax.set_xlim(0.0, 1.05 * widest or 1.0)
        ax.set_xlabel(
            "difference of means, in standard deviations", fontsize=figure_parts.SMALL_FONT
        )
        n_shown = len(panel.features)
        said = f": {n_shown} of {panel.n_all:,} markers" if panel.n_all > n_shown else ""
        figure_parts.set_heading(ax, panel.heading + said)
    for ax in grid[len(panels) :]:
        ax.remove()
    if title is not None:
        figure_parts.set_figure_heading(figure, title)
    where = "cluster 1" if n_clusters == 2 else "the cluster"
    signs = [(f"higher in {where}", _POSITIVE_COLOUR), (f"lower in {where}", _NEGATIVE_COLOUR)]
    figure_parts.draw_side_legend(grid[n_columns - 1], [figure_parts.patch_section("mean of the feature", signs)])
    return figure


def loadings(
    components: ArrayLike,
    feature_names: Sequence[Any],
    *,
    title: str | None = None,
    top: int = 30,
) -> Figure:
    """Draw the largest loadings of each sparse component.

    Parameters
    ----------
    components : array-like of shape (rank, n_features)
        Such as `components_`.
    feature_names : sequence of length n_features
        Names of all features.
    title : str or None
        Heading of the picture.
    top : int
        Loadings shown of each component, at most.

    Returns
    -------
    figure : matplotlib Figure
        A panel for each component; the sign of a whole component has no meaning.

    Examples
    --------
    >>> from mrshc.plotting import loadings
    >>> ax, = loadings([[0.6, 0.0, -0.8]], ["a", "b", "c"]).axes
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['c', 'a']
    """
    title, top = check_title(title), check_top(top)
    values = np.atleast_2d(check_numbers("components", components))
    names = [] if feature_names is None else list(check_names("feature_names", feature_names))
    if values.ndim != 2 or not len(values):
        raise ValueError(
            "components must hold one component in each row, at least one, got the shape "
            f"{values.shape}. Give components_ of a fitted MrSHC."
        )
    if values.shape[1] != len(names):
        raise ValueError(
            f"feature_names must hold one name for each of the {values.shape[1]} features, got "
            f"{len(names)}. Give the names of all features, not of the selected ones."
        )
    picked = [largest_loadings(component, top) for component in values]
    most = max(1, *(len(rows) for rows in picked))
    n_rows, n_columns = _panel_grid(len(values), widest=_PANELS_PER_ROW)
    high = float(np.clip(0.16 * most, 0.8, 9.0))
    figure = figure_parts.new_figure(3.4 * n_columns + 0.6, (high + 0.9) * n_rows + 0.6)
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    for number, (ax, component, rows) in enumerate(
        zip(panels, values, picked, strict=False), start=1
    ):
        _draw_signed_bars(ax, component[rows], names=[names[i] for i in rows], inches=high, most=most)
        ax.set_xlabel("size of loading", fontsize=9)
        n_all = int(np.count_nonzero(component))
        said = f"{len(rows)} largest of {n_all}" if n_all > len(rows) else f"all {n_all}"
        figure_parts.set_heading(ax, f"component {number}\n{said} loadings")
    for ax in panels[len(values) :]:
        ax.remove()
    if title is not None:
        figure_parts.set_figure_heading(figure, title)
    signs = [("positive", _POSITIVE_COLOUR), ("negative", _NEGATIVE_COLOUR)]
    figure_parts.draw_side_legend(panels[n_columns - 1], [figure_parts.patch_section("loading", signs)])
    return figure


def _draw_signed_bars(
    ax: Axes,
    values: Float,
    *,
    names: Sequence[Any],
    inches: float,
    most: int,
    length: int = 18,
) -> None:
    """Draw the sizes of numbers, their signs as colours."""
    colours = np.where(values > 0, _POSITIVE_COLOUR, _NEGATIVE_COLOUR)
    ax.barh(np.arange(values.size), np.abs(values), color=list(colours), height=0.8)
    ax.set_ylim(most - 0.4, -0.6)
    ax.tick_params(axis="x", labelsize=figure_parts.SMALL_FONT, labelbottom=True)
    figure_parts.label_ticks(ax.yaxis, names, fit=fitting_labels(most, inches=inches), length=length)
    ax.spines[["top", "right"]].set_visible(False)


def _panel_grid(n: int, *, widest: int) -> tuple[int, int]:
    """Return rows and columns of a grid that holds n panels."""
    rows = -(-n // widest)
    return rows, -(-n // rows)
