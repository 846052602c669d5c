"""Plot of the consensus of pairs of samples over random subsamples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from mrshc.core.stability import StabilityResult
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import (
    check_axes,
    check_limits,
    check_model,
    check_numbers,
    check_size,
    check_title,
)
from mrshc.plotting.dendrogram_layout import dendrogram_lines, fitting_labels, order_by_leaves
from mrshc.plotting.fitted_names import resolve_sample_names
from mrshc.plotting.palettes import check_colour_map
from mrshc.plotting.picture_files import own_style
from mrshc.plotting.tree_plots import colour_clusters
from mrshc.shell.sample_alignment import align_square, sample_names

# Side of the matrix, in inches. It was chosen by eye; it does not affect any result.
_SIDE_INCHES = 5.0
# Colour of pairs without a value: a grey that does not occur in the scale from white to blue.
_MISSING_CELL_COLOUR = "#8C8C8C"
# Thickness of the strip with the colours of the clusters, as a share of the side of the matrix.
_STRIP_SHARE = 0.025


@own_style()
def consensus_matrix(
    model: Any,
    stability: Any,
    *,
    names: Iterable[Any] | None = None,
    title: str | None = None,
    palette: Any = None,
    cmap: Any = "Blues",
    limits: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each pair of samples is in the same cluster if samples are left out.

    The samples are in the order of the leaves of the tree. Stable clusters appear as dark squares
    on a white background. The borders of the clusters are drawn as lines.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator or result with the attribute `linkage_matrix_`. The clusters are shown if
        it has the attribute `labels_`.
    stability : StabilityResult or array-like of shape (n_samples, n_samples)
        Result of :func:`mrshc.stability`, or its attribute `consensus`. Pairs with NaN are grey. A
        DataFrame is aligned by its index and columns.
    names : iterable of length n_samples or None, default=None
        Names of the samples. If None, the names are the index of the fitted DataFrame; without an
        index, no names are written. A Series is aligned by its index.
    title : str or None, default=None
        Title of the plot.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, as in :func:`cluster_colours`.
    cmap : str or Colormap, default="Blues"
        Colours of the shares.
    limits : (float, float) or None, default=None
        Shares at the ends of the colour scale. If None, they are 0 and 1.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the matrix has a side of
        five inches.
    ax : matplotlib Axes or None, default=None
        Axes to draw in. If None, a new figure is created.

    Returns
    -------
    ax : matplotlib Axes
        Axes with the matrix; the figure is `ax.figure`. Notebooks show axes of a new figure as a
        picture.

    Examples
    --------
    >>> from mrshc import HighVarianceHC, stability
    >>> from mrshc.plotting import consensus_matrix
    >>> X = [[0, 0], [0, 1], [1, 0], [9, 0], [9, 1], [8, 0]]
    >>> model = HighVarianceHC(2, n_clusters=2).fit(X)
    >>> ax = consensus_matrix(model, stability(model, X, n_resamples=10, random_state=0))
    >>> ax.images[0].get_array().shape
    (6, 6)
    """
    check_model(model, "linkage_matrix_")
    ax, title, size = check_axes(ax), check_title(title), check_size(size, ax=ax)
    limits, colour_map = check_limits(limits), check_colour_map("cmap", cmap)
    order = dendrogram_lines(model.linkage_matrix_).order
    names = resolve_sample_names(model, names)
    stability = align_square(stability, sample_names(model, names=names), what="stability")
    values = _check_consensus(stability, n=order.size)[np.ix_(order, order)]
    if names is not None:
        names = order_by_leaves("names", names, order=order)
    clusters = colour_clusters(model, palette)
    if ax is None:
        # The colour bar and the names of the samples need 1.8 inches, the title one inch.
        ax = figure_parts.new_figure(_SIDE_INCHES + 1.8, _SIDE_INCHES + 1.0, size=size).subplots()
    _draw_matrix(ax, values, colour_map=colour_map, limits=limits or (0.0, 1.0))
    if clusters is not None:
        labels = np.asarray(clusters.labels).astype(np.intp)[order]
        _draw_clusters(ax, labels, palette=clusters.colours)
    _label_samples(ax, names, n=order.size, has_missing=bool(np.isnan(values).any()))
    figure_parts.set_heading(ax, title)
    return ax


def _check_consensus(stability: Any, *, n: int) -> NDArray[np.float64]:
    """Return the consensus of n samples; raise ValueError if it has another shape."""
    is_result = isinstance(stability, StabilityResult)
    values = check_numbers("stability", stability.consensus if is_result else stability)
    if values.shape != (n, n):
        raise ValueError(
            f"stability must hold the consensus of all pairs of the {n} samples of the tree, got "
            f"the shape {values.shape}. Pass the model whose stability was computed."
        )
    return values


def _draw_matrix(
    ax: Axes, values: NDArray[np.float64], *, colour_map: Colormap, limits: tuple[float, float]
) -> None:
    """Draw the matrix and its colour bar."""
    # Without interpolation, each pair has exactly the colour of its value.
    image = ax.imshow(
        np.ma.masked_invalid(values),
        cmap=colour_map.with_extremes(bad=_MISSING_CELL_COLOUR),
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
        origin="upper",
    )
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label("share of subsamples with both samples in one cluster", fontsize=8)
    bar.ax.tick_params(labelsize=figure_parts.SMALL_FONT)


def _draw_clusters(ax: Axes, labels: NDArray[np.intp], *, palette: tuple[str, ...]) -> None:
    """Draw the borders of the clusters, and strips with their colours and numbers.

    `labels` are in the order of the leaves, and `palette` contains the colours of the clusters.
    """
    n = labels.size
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    ends = np.append(starts[1:], n)
    strip = _STRIP_SHARE * n
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        first, size = start - 0.5, end - start
        border = Rectangle(
            (first, first), size, size, fill=False, edgecolor="#000000", linewidth=1.2, zorder=3
        )
        border.set_clip_on(False)  # the borders at the right and below are on the edge of the axes
        ax.add_patch(border)
        # Samples that belong to no cluster (label -1) have a border but no colour.
        if labels[start] >= 0:
            colour = palette[labels[start]]
            ax.add_patch(Rectangle((first, -0.5 - 1.6 * strip), size, strip, facecolor=colour))
            ax.add_patch(Rectangle((-0.5 - 1.6 * strip, first), strip, size, facecolor=colour))
            place = (first + size / 2, -0.5 - 2.0 * strip)
            _write_cluster_number(ax, labels[start] + 1, place=place, share=size / n)
    # The vertical axis points downwards. The numbers of the clusters are above the upper strip.
    ax.set_xlim(-0.5 - 1.8 * strip, n - 0.5)
    ax.set_ylim(n - 0.5, -0.5 - 3.6 * strip)


def _write_cluster_number(
    ax: Axes, number: int, *, place: tuple[float, float], share: float
) -> None:
    """Write the number of a cluster at `place` if its share of the width is large enough."""
    # The word needs about 15 % of the width of the matrix, a number of two digits about 4 %.
    text = f"cluster {number}" if share >= 0.15 else f"{number}" if share >= 0.04 else ""
    ax.annotate(text, place, ha="center", fontsize=figure_parts.SMALL_FONT)


def _label_samples(ax: Axes, names: Any, *, n: int, has_missing: bool) -> None:
    """Write the names of the samples, or only their number if `names` is None."""
    ax.spines[["top", "right", "bottom", "left"]].set_visible(False)
    if names is None:
        ax.set_xticks([])
        ax.set_yticks([])
        note = f"{n} samples in the order of the tree"
    else:
        # The names and the colour bar take about 15 % of the axes when the layout is computed.
        fit = fitting_labels(n, inches=0.85 * min(figure_parts.size_in_inches(ax)))
        figure_parts.label_ticks(ax.xaxis, names, fit=fit)
        figure_parts.label_ticks(ax.yaxis, names, fit=fit)
        note = f"{n} samples{figure_parts.describe_step(fit.step)}"
    if has_missing:
        note += "\ngrey: no subsample contains both samples"
    ax.set_xlabel(note, fontsize=figure_parts.SMALL_FONT)
