"""Heat map of the selected features, with a tree of the samples and a tree of the features."""

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
# single outlier would make the colours of all other values pale. Nearly all values of a normally
# distributed feature are within three standard deviations of the mean.
_COLOUR_LIMIT = 3.0
# Colour of missing values: a grey that does not occur in the colour scale, which ranges from blue
# through white to red.
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

    Each column is a sample. Each row is a feature, standardised to mean zero and standard deviation
    one. The features are in the order of a second tree, which is built by average linkage with the
    distance 1 - correlation. Correlated features are therefore next to each other.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator or result with the attribute `linkage_matrix_`, as in :func:`dendrogram`.
    selected : array-like of shape (n_samples, n_features)
        Values of the selected features, such as `model.transform(X)`; NaN marks a missing value.
        The rows of a DataFrame are matched to the samples by name: its index must contain the index
        of the fitted data, or `names`.
    annotations : mapping, DataFrame or None, default=None
        Annotations of the samples, as in :func:`dendrogram`.
    names : iterable of length n_samples or None, default=None
        Names of the samples, as in :func:`dendrogram`.
    feature_names : iterable of length n_features or None, default=None
        Names of the selected features. If None, the names are the column names of `selected` if it
        is a DataFrame, and 0, 1, ... otherwise.
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
        If the model has no attribute `linkage_matrix_`, if the index of an argument does not match
        the samples, or if an argument is not valid in another way.
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
    """Align the tree of samples with the heat map, and hide its scale of heights and its frame."""
    ax.set_xlim(-0.5, n - 0.5)
    # The names of the annotation bars are on the right, since on the left they would overlap the
    # tree of features.
    ax.yaxis.tick_right()
    ax.spines[:].set_visible(False)
    ax.tick_params(which="major", right=False, labelright=False, bottom=False, labelbottom=False)


def _check_selected(selected: ArrayLike, n: int) -> Float:
    """Return the values of the selected features of n samples as a float64 matrix.

    Raise ValueError if `selected` is not a matrix of real numbers with n rows and at least one
    column.
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
    """Return the names of the q selected features.

    If `given` is None, the names are the column names of `selected` if it is a DataFrame, and
    0, 1, ... otherwise. Raise ValueError if the number of names is not q.
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
    """The figure of a heat map, and the axes of its three panels."""

    figure: Figure
    cells: Axes  # the heat map without the trees
    sample_tree: Axes  # above the cells
    feature_tree: Axes  # to the left of the cells


def _cells_size(n: int, q: int) -> tuple[float, float]:
    """Return the width and height, in inches, of a heat map of n samples and q features."""
    # The name of a sample or a feature needs about 0.15 inches. With these limits, a figure with
    # trees, names and a legend is usually not wider than 16 inches.
    return float(np.clip(0.16 * n, 3.5, 10.5)), float(np.clip(0.15 * q, 0.3, 8.5))


def _create_panels(
    samples: list[Any],
    features: list[Any],
    *,
    n_bars: int,
    sections: list[figure_parts.LegendSection],
) -> _HeatmapPanels:
    """Return a new figure with axes for the cells and both trees, and space for a legend.

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
    # The names of the samples are below the heat map, together with the axis label and the colour
    # bar, which need 0.9 inches. The names of the features are on the right, together with the
    # legend, which needs 2.2 inches.
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


def _draw_cells(ax: Axes, cells: Float) -> None:
    """Draw standardised values as colours, and a colour bar below the heat map.

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
    # matplotlib expects the distance between the axes and the colour bar as a fraction of the
    # height of the axes. The distance of 0.15 inches is therefore divided by this height.
    pad = 0.15 / _cells_size(*cells.shape[::-1])[1]
    bar = ax.figure.colorbar(
        image, ax=ax, location="bottom", shrink=0.5, aspect=30, pad=pad, extend="both"
    )
    bar.set_label(
        "deviation from the feature's mean (standard deviations)", fontsize=figure_parts.SMALL_FONT
    )
    bar.ax.tick_params(labelsize=figure_parts.SMALL_FONT)


def _label_cells(ax: Axes, *, samples: list[Any], features: list[Any]) -> None:
    """Write the names of samples and features along the heat map; leave out some if necessary."""
    # The final size of the axes is known only when the figure is drawn, so the planned size is used
    # here.
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
