"""The selected features of all samples in colour, between the trees of both."""

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
from mrshc.core.selection.explanation import counted
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_model, check_names, check_numbers, check_title
from mrshc.plotting.colours import NEUTRAL_COLOUR, annotation_bars, outlier_bars
from mrshc.plotting.dendrogram_layout import (
    dendrogram_lines,
    fitting_labels,
    order_by_leaves,
    shortened_names,
    estimate_text_width,
)
from mrshc.plotting.heatmap_data import feature_tree, standardised, usual_samples
from mrshc.plotting.tree_plots import draw_annotation_bars, draw_tree, tree_legend_sections
from mrshc.utils.sample_alignment import align_samples, sample_names

# Beyond so many standard deviations the colour stays the same, or one outlier would pale the rest.
_COLOUR_LIMIT = 3.0
_MISSING_CELL_COLOUR = "#8C8C8C"
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
    """Draw the selected features of all samples, samples in the order of their tree.

    Parameters
    ----------
    model : fitted estimator
        As in :func:`dendrogram`.
    selected : array-like of shape (n_samples, n_features)
        The selected features, such as `model.transform(X)`; NaN marks a missing value. The rows of
        a DataFrame are matched by its index to the samples of the fit, or to `names`, and refused
        if they do not match.
    annotations, names, title
        As in :func:`dendrogram`.
    feature_names : iterable or None
        Names of the selected features; by default the columns of a DataFrame, or numbers.

    Returns
    -------
    figure : matplotlib Figure
        Features stand in rows, those that go together (average linkage on 1 - correlation) next
        to each other.

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
    features = _feature_names(selected, feature_names, q=X.shape[1])
    samples = order_by_leaves("names", range(n) if names is None else names, order=lines.order)
    known = sample_names(model, selected, names=names)
    bars = (*outlier_bars(model, n), *annotation_bars(annotations, n, samples=known))
    labels = getattr(model, "labels_", None)
    sections = tree_legend_sections(bars, labels)
    if not np.isfinite(X).all():
        sections.append(figure_parts.patch_section("cells", [("missing value", _MISSING_CELL_COLOUR)]))
    panels = _create_panels(samples, features, n_bars=len(bars), sections=sections)
    outlying = getattr(model, "outlier_samples_", None)
    rows = _draw_feature_tree(panels.left, usual_samples(X, outlying))
    cells = standardised(X, outlying=outlying)
    _draw_cells(panels.heat, cells[np.ix_(lines.order, rows)].T)
    _label_cells(panels.heat, samples=samples, features=[features[i] for i in rows])
    draw_tree(panels.above, lines, linkage_matrix=model.linkage_matrix_, labels=labels)
    draw_annotation_bars(panels.above, bars, lines=lines)
    _hide_tree_axes(panels.above, n)
    figure_parts.set_heading(panels.above, title)
    if sections:
        figure_parts.draw_legend(panels.figure, sections, loc="outside right upper")
    return panels.figure


def _hide_tree_axes(ax: Axes, n: int) -> None:
    """Leave of a tree's axes only the names of the bars, and align it with the columns."""
    ax.set_xlim(-0.5, n - 0.5)
    # On the right names do not come between the cells and the tree of features.
    ax.yaxis.tick_right()
    ax.spines[:].set_visible(False)
    ax.tick_params(which="major", right=False, labelright=False, bottom=False, labelbottom=False)


def _check_selected(selected: ArrayLike, n: int) -> Float:
    X = check_numbers("selected", selected)
    if X.ndim != 2 or X.shape[0] != n or not X.shape[1]:
        raise ValueError(
            f"selected must hold the {n} samples of the tree in rows and at least one feature in "
            f"columns, got the shape {X.shape}. Give the selected features only, such as "
            "model.transform(X)."
        )
    return X


def _feature_names(selected: Any, given: Iterable[Any] | None, *, q: int) -> list[Any]:
    given = check_names("feature_names", given)
    names = list(getattr(selected, "columns", range(q)) if given is None else given)
    if len(names) != q:
        raise ValueError(
            f"feature_names must hold one name for each of the {q} selected features, got "
            f"{len(names)}. Give the names of the selected ones only."
        )
    return names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _HeatmapPanels:
    figure: Figure
    heat: Axes
    above: Axes  # for the tree of samples
    left: Axes  # for the tree of features


def _cells_size(n: int, q: int) -> tuple[float, float]:
    return float(np.clip(0.16 * n, 3.5, 10.5)), float(np.clip(0.15 * q, 0.3, 8.5))


def _create_panels(
    samples: list[Any], features: list[Any], *, n_bars: int, sections: list[figure_parts.LegendSection]
) -> _HeatmapPanels:
    wide, high = _cells_size(len(samples), len(features))
    below = estimate_text_width(shortened_names(samples), size=figure_parts.SMALL_FONT) + 0.9
    beside = estimate_text_width(shortened_names(features), size=figure_parts.SMALL_FONT) + 2.2
    top = _TREE_INCHES + _BAR_INCHES * n_bars
    total = max(top + high + below + 0.4, figure_parts.estimate_legend_height(sections))
    figure = figure_parts.new_figure(_FEATURE_TREE_INCHES + wide + beside + 0.3, total)
    figure.set_layout_engine("constrained", w_pad=0.03, h_pad=0.05, wspace=0.0, hspace=0.0)
    grid = figure.add_gridspec(
        2, 2, width_ratios=(_FEATURE_TREE_INCHES, wide), height_ratios=(top, high)
    )
    return _HeatmapPanels(
        figure=figure,
        heat=figure.add_subplot(grid[1, 1]),
        above=figure.add_subplot(grid[0, 1]),
        left=figure.add_subplot(grid[1, 0]),
    )


def _draw_feature_tree(ax: Axes, X: Float) -> Index:
    """Draw the tree of features, the root at the left, and return their order."""
    ax.set_axis_off()
    q = X.shape[1]
    if q == 1:
        return np.zeros(1, dtype=np.intp)
    lines = dendrogram_lines(feature_tree(X))
    forks = lines.forks[:, :, ::-1] * (-1.0, 1.0)
    ax.add_collection(
        LineCollection(list(forks), colors=NEUTRAL_COLOUR, linewidths=1.0 if q < 150 else 0.4)
    )
    ax.set_xlim(-1.05 * lines.top, 0.0)
    ax.set_ylim(q - 0.5, -0.5)
    return lines.order


def _draw_cells(ax: Axes, cells: Float) -> None:
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
    # The distance counts in heights of the cells, which may be a single row.
    pad = 0.15 / _cells_size(*cells.shape[::-1])[1]
    bar = ax.figure.colorbar(
        image, ax=ax, location="bottom", shrink=0.5, aspect=30, pad=pad, extend="both"
    )
    bar.set_label(
        "value, in standard deviations from the feature's mean", fontsize=figure_parts.SMALL_FONT
    )
    bar.ax.tick_params(labelsize=figure_parts.SMALL_FONT)


def _label_cells(ax: Axes, *, samples: list[Any], features: list[Any]) -> None:
    # Before the layout is made, the room for cells is known from the figure's parts only.
    wide, high = _cells_size(len(samples), len(features))
    across = fitting_labels(len(samples), inches=wide)
    down = fitting_labels(len(features), inches=high)
    figure_parts.label_ticks(ax.xaxis, samples, fit=across)
    ax.yaxis.tick_right()
    figure_parts.label_ticks(ax.yaxis, features, fit=down)
    ax.set_xlabel(
        f"{counted(len(samples), 'sample')}{figure_parts.describe_step(across.step)}, "
        f"{counted(len(features), 'selected feature')}{figure_parts.describe_step(down.step)}",
        fontsize=figure_parts.SMALL_FONT,
    )
