"""Heat map of the selected features, with the tree of samples above and of features at the left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from mrshc.core.array_types import Float, Index
from mrshc.core.selection.explanation import format_count
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_model, check_names, check_numbers, check_title
from mrshc.plotting.colours import NEUTRAL_COLOUR, annotation_bars, outlier_bars
from mrshc.plotting.dendrogram_layout import (
    dendrogram_lines,
    estimate_text_width,
    fitting_labels,
    order_by_leaves,
    shortened_names,
)
from mrshc.plotting.heatmap_data import feature_tree, standardised, usual_samples
from mrshc.plotting.tree_plots import draw_annotation_bars, draw_tree, tree_legend_sections
from mrshc.utils.sample_alignment import align_samples, sample_names

# The colour scale ends at plus and minus this number of standard deviations. Without a limit, a
# single outlier would make all other values pale. Three standard deviations include nearly all
# values of a normally distributed feature.
_COLOUR_LIMIT = 3.0
# Colour of missing values: a grey that does not occur in the colour scale from blue over white to
# red.
_MISSING_CELL_COLOUR = "#8C8C8C"
# Height of the sample tree, width of the feature tree and height of an annotation bar, in inches.
# The sizes were chosen by eye; they do not affect any result.
_TREE_INCHES, _FEATURE_TREE_INCHES, _BAR_INCHES = 1.3, 0.9, 0.17


def heatmap(
    model: Any,
    selected: ArrayLike,
    *,
    annotations: Any = None,
    names: Iterable[Any] | None = None,
    feature_names: Iterable[Any] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a heat map of the selected features, with samples in the order of their tree.

    Each column is a sample, and each row is a feature that is standardised to mean zero and
    standard deviation one. The order of the features is that of a second tree, computed by average
    linkage on 1 - correlation, so that correlated features are next to each other.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator with the attribute `linkage_matrix_`, as in :func:`dendrogram`.
    selected : array-like of shape (n_samples, n_features)
        Values of the selected features, such as `model.transform(X)`; NaN marks a missing value. A
        DataFrame is aligned by its index with the samples of the fit, or with `names`.
    annotations : mapping, DataFrame or None, default=None
        Annotations of the samples, as in :func:`dendrogram`.
    names : iterable of length n_samples or None, default=None
        Names of the samples, as in :func:`dendrogram`.
    feature_names : iterable of length n_features or None, default=None
        Names of the selected features; by default the column names of a DataFrame, or 0, 1, ...
    title : str or None, default=None
        Title of the plot.

    Returns
    -------
    figure : matplotlib Figure
        Figure whose first three axes are the heat map, the tree of samples and the tree of
        features.

    Raises
    ------
    ValueError
        If the model has no tree, if an index does not match the samples, or if another argument
        is not valid.
    TypeError
        If `annotations` is neither a mapping nor a DataFrame.

    See Also
    --------
    dendrogram : Draw only the tree of samples.
    standardised : Return the values that the heat map shows.
    feature_tree : Return the tree of the features.

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
    title, names = check_title(title), check_names("names", names)
    lines = dendrogram_lines(model.linkage_matrix_)
    n = lines.order.size
    names = None if names is None else list(align_samples(names, sample_names(model), what="names"))
    selected = align_samples(selected, sample_names(model, names=names), what="selected")
    X = _check_selected(selected, n)
    features = _resolve_feature_names(selected, feature_names, q=X.shape[1])
    samples = order_by_leaves("names", range(n) if names is None else names, order=lines.order)
    known_names = sample_names(model, selected, names=names)
    bars = (*outlier_bars(model, n), *annotation_bars(annotations, n, samples=known_names))
    labels = getattr(model, "labels_", None)
    sections = tree_legend_sections(bars, labels)
    if not np.isfinite(X).all():
        missing_cells = [("missing value", _MISSING_CELL_COLOUR)]
        sections.append(figure_parts.patch_section("heat map", missing_cells))
    panels = _create_panels(samples, features, n_bars=len(bars), sections=sections)
    outlying = getattr(model, "outlier_samples_", None)
    rows = _draw_feature_tree(panels.feature_tree, usual_samples(X, outlying))
    cells = standardised(X, outlying=outlying)
    _draw_cells(panels.cells, cells[np.ix_(lines.order, rows)].T)
    _label_cells(panels.cells, samples=samples, features=[features[i] for i in rows])
    draw_tree(panels.sample_tree, lines, linkage_matrix=model.linkage_matrix_, labels=labels)
    draw_annotation_bars(panels.sample_tree, bars, lines=lines)
    _hide_tree_axes(panels.sample_tree, n)
    figure_parts.set_heading(panels.sample_tree, title)
    if sections:
        figure_parts.draw_legend(panels.figure, sections, loc="outside right upper")
    return panels.figure


def _hide_tree_axes(ax: Axes, n: int) -> None:
    """Align the tree of samples with the heat map, and hide all ticks but the names of bars."""
    ax.set_xlim(-0.5, n - 0.5)
    # The names of the bars are on the right, since they would overlap the tree of features on the
    # left.
    ax.yaxis.tick_right()
    ax.spines[:].set_visible(False)
    ax.tick_params(which="major", right=False, labelright=False, bottom=False, labelbottom=False)


def _check_selected(selected: ArrayLike, n: int) -> Float:
    """Return the values of the selected features of n samples as a float64 matrix.

    Raise ValueError if there are not n rows and at least one column of real numbers.
    """
    X = check_numbers("selected", selected)
    if X.ndim != 2 or X.shape[0] != n or not X.shape[1]:
        raise ValueError(
            f"selected must hold the {n} samples of the tree in rows and at least one feature in "
            f"columns, got the shape {X.shape}. Pass only the selected features, such as "
            "model.transform(X)."
        )
    return X


def _resolve_feature_names(selected: Any, given: Iterable[Any] | None, *, q: int) -> list[Any]:
    """Return the names of q features: the given names, the columns of a DataFrame, or 0, 1, ...

    Raise ValueError if the number of names is not q.
    """
    given = check_names("feature_names", given)
    names = list(getattr(selected, "columns", range(q)) if given is None else given)
    if len(names) != q:
        raise ValueError(
            f"feature_names must hold one name for each of the {q} selected features, got "
            f"{len(names)}. Pass only the names of the selected features."
        )
    return names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _HeatmapPanels:
    """The figure of a heat map, and its axes."""

    figure: Figure
    cells: Axes
    sample_tree: Axes  # above the cells
    feature_tree: Axes  # on the left of the cells


def _cells_size(n: int, q: int) -> tuple[float, float]:
    """Return the width and height in inches of a heat map of n samples and q features."""
    # The name of a sample or a feature needs about 0.15 inches. The limits keep a figure with
    # trees, names and legend within 16 inches.
    return float(np.clip(0.16 * n, 3.5, 10.5)), float(np.clip(0.15 * q, 0.3, 8.5))


def _create_panels(
    samples: list[Any],
    features: list[Any],
    *,
    n_bars: int,
    sections: list[figure_parts.LegendSection],
) -> _HeatmapPanels:
    """Return a new figure with axes for cells and trees, and space for names and legend.

    Parameters
    ----------
    samples, features : list
        Names of the samples and of the features.
    n_bars : int
        Number of annotation bars below the tree of samples.
    sections : list of LegendSection
        Sections of the legend.
    """
    width, height = _cells_size(len(samples), len(features))
    # In addition to the names, the axis label and the colour bar need 0.9 inches below the heat
    # map, and the legend needs 2.2 inches on the right.
    below = estimate_text_width(shortened_names(samples), size=figure_parts.SMALL_FONT) + 0.9
    right = estimate_text_width(shortened_names(features), size=figure_parts.SMALL_FONT) + 2.2
    top = _TREE_INCHES + _BAR_INCHES * n_bars
    total = max(top + height + below + 0.4, figure_parts.estimate_legend_height(sections))
    figure = figure_parts.new_figure(_FEATURE_TREE_INCHES + width + right + 0.3, total)
    # There is no space between the panels, since the leaves of both trees must touch the cells.
    figure.set_layout_engine("constrained", w_pad=0.03, h_pad=0.05, wspace=0.0, hspace=0.0)
    grid = figure.add_gridspec(
        2, 2, width_ratios=(_FEATURE_TREE_INCHES, width), height_ratios=(top, height)
    )
    return _HeatmapPanels(
        figure=figure,
        cells=figure.add_subplot(grid[1, 1]),
        sample_tree=figure.add_subplot(grid[0, 1]),
        feature_tree=figure.add_subplot(grid[1, 0]),
    )


def _draw_feature_tree(ax: Axes, X: Float) -> Index:
    """Draw the tree of features with its root on the left, and return the order of its leaves.

    The order contains the indices of the features from top to bottom. A single feature has no tree,
    so nothing is drawn for it.
    """
    ax.set_axis_off()
    q = X.shape[1]
    if q == 1:
        return np.zeros(1, dtype=np.intp)
    lines = dendrogram_lines(feature_tree(X))
    # Swapping the coordinates and negating the heights rotates the tree, so that its leaves are on
    # the right.
    forks = lines.forks[:, :, ::-1] * (-1.0, 1.0)
    # With 150 or more features, wider lines would run together.
    width = 1.0 if q < 150 else 0.4
    ax.add_collection(LineCollection(list(forks), colors=NEUTRAL_COLOUR, linewidths=width))
    ax.set_xlim(-1.05 * lines.top, 0.0)
    ax.set_ylim(q - 0.5, -0.5)
    return lines.order


def _draw_cells(ax: Axes, cells: Float) -> None:
    """Draw standardised values as colours, with a colour bar below.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw in.
    cells : ndarray of shape (n_features, n_samples)
        Standardised values; NaN marks a missing value.
    """
    colours = colormaps["RdBu_r"].with_extremes(bad=_MISSING_CELL_COLOUR)
    image = ax.imshow(
        np.ma.masked_invalid(cells),
        aspect="auto",
        interpolation="nearest",
        cmap=colours,
        vmin=-_COLOUR_LIMIT,
        vmax=_COLOUR_LIMIT,
    )
    ax.spines[:].set_visible(False)
    # matplotlib measures the distance to the colour bar as a multiple of the height of the axes, so
    # the distance of 0.15 inches is divided by this height.
    pad = 0.15 / _cells_size(*cells.shape[::-1])[1]
    bar = ax.figure.colorbar(
        image, ax=ax, location="bottom", shrink=0.5, aspect=30, pad=pad, extend="both"
    )
    bar.set_label(
        "deviation from the feature's mean (standard deviations)", fontsize=figure_parts.SMALL_FONT
    )
    bar.ax.tick_params(labelsize=figure_parts.SMALL_FONT)


def _label_cells(ax: Axes, *, samples: list[Any], features: list[Any]) -> None:
    """Write as many names of samples and features along the heat map as fit."""
    # The axes get their final size only when the figure is drawn, so the planned size is used here.
    width, height = _cells_size(len(samples), len(features))
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
