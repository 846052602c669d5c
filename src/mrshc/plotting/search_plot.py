"""Plot of the candidates of a search, with the chosen candidate highlighted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_limits, check_model, check_size, check_title, refusal
from mrshc.plotting.dendrogram_layout import fitting_labels
from mrshc.plotting.palettes import check_palette
from mrshc.plotting.picture_files import own_style
from mrshc.plotting.search_explanation import Curve, SearchStory, search_story

# Marker of the chosen candidate: a star. It is larger than the other markers and has a different
# colour, so it can be found at a glance.
_CHOSEN_MARKER: dict[str, Any] = {
    "marker": "*",
    "markersize": 17,
    "color": "#D55E00",
    "markeredgecolor": "#000000",
}
# Markers of the other candidates. The marker depends on whether the candidate was kept, removed or
# screened out. The markers differ in shape or fill and not only in colour, for readers with colour
# vision deficiency.
_STATE_MARKERS: dict[str, dict[str, Any]] = {
    "kept": {"marker": "o", "markersize": 7, "color": "#0072B2"},
    "removed": {"marker": "o", "markersize": 7, "color": "#0072B2", "markerfacecolor": "#FFFFFF"},
    "screened out": {"marker": "x", "markersize": 7, "color": "#737373", "markeredgewidth": 1.8},
}


@own_style()
def search_curves(
    model: Any,
    *,
    title: str | None = None,
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw the candidates that a search compared, with the chosen candidate highlighted.

    A candidate is one combination of parameter values. For MrSHC, the curves show the score of the
    selection rule against the number of features and against the rank. For SHC, the curve shows the
    permutation gap against the number of features. For other methods, the curve shows the average
    silhouette width against the number of clusters.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator or result with the attribute `search_results_`, such as a fitted
        :class:`mrshc.MrSHC` or :class:`mrshc.SHC`.
    title : str or None, default=None
        Title of the plot. A line that states the choice is written below the title.
    palette : str, Colormap, list of two colours or None, default=None
        Colours of the chosen candidate and of the candidates that were compared with it.
    limits : (float, float) or None, default=None
        Ends of the vertical axis. If None, the axis contains all candidates.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the width depends on the
        number of candidates.

    Returns
    -------
    figure : matplotlib Figure
        Figure with one panel for each curve; notebooks show the figure as a picture. If there was
        only one candidate, the figure contains a sentence to this effect instead of panels.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from mrshc.plotting import search_curves
    >>> table = {"n_clusters": [2, 3], "silhouette": [0.4, 0.6], "chosen": [False, True]}
    >>> ax, = search_curves(SimpleNamespace(search_results_=table)).axes
    >>> ax.get_title(loc="left")
    'Which number of clusters?'
    """
    title, size, limits = check_title(title), check_size(size), check_limits(limits)
    markers = _make_markers(palette)
    story = search_story(check_model(model, "search_results_").search_results_)
    # A width of 0.45 inches for each candidate is enough for its tick label and for the note above
    # its marker. With more than 21 candidates, the limit of 9.5 inches leaves less space.
    widths = [float(np.clip(0.45 * len(c.ticks), 3.2, 9.5)) for c in story.curves]
    total_width = max(6.5, sum(widths) + 2.9)  # 2.9 inches for the legend and axis labels
    if size is not None and widths:
        # The curves share the width that the user gave.
        scale = max(0.5, size[0] - 2.9) / sum(widths)
        total_width, widths = size[0], [scale * width for width in widths]
    figure = figure_parts.new_figure(total_width, 4.4 if story.curves else 1.8, size=size)
    heading = story.verdict if title is None else f"{title}\n{story.verdict}"
    figure_parts.set_figure_heading(figure, heading)
    if not story.curves:
        _write_reason(figure, story.rule)
        return figure
    panels = figure.subplots(
        1, len(widths), squeeze=False, sharey=True, gridspec_kw={"width_ratios": widths}
    )[0]
    for ax, curve, width in zip(panels, story.curves, widths, strict=True):
        _draw_curve(ax, curve, width=width, markers=markers)
        if limits is not None:
            ax.set_ylim(limits)
    figure_parts.draw_side_legend(panels[-1], [_legend_section(story, markers)])
    rule = figure_parts.wrap_text(story.rule, inches=total_width, size=figure_parts.SMALL_FONT)
    figure.supxlabel(rule, x=0.01, ha="left", fontsize=figure_parts.SMALL_FONT, color="#404040")
    return figure


def _write_reason(figure: Figure, reason: str) -> None:
    """Write into the figure why no candidates were compared; by default, there was only one."""
    ax = figure.subplots()
    ax.set_axis_off()
    message = reason or "There was a single candidate, so no comparison was made."
    ax.text(0.5, 0.5, message, ha="center", va="center", transform=ax.transAxes)


def _make_markers(palette: Any) -> dict[str, dict[str, Any]]:
    """Return the appearance of the markers: that of the chosen candidate, and one by state.

    Raise ParameterError if the palette is not valid.
    """
    markers = {"chosen": _CHOSEN_MARKER, **_STATE_MARKERS}
    if palette is None:
        return markers
    colours = check_palette("palette", palette, n=2)
    if len(colours) < 2:
        raise refusal(
            "palette",
            palette,
            allowed="hold two colours, of the chosen candidate and of the others",
            advice="Pass a list such as ['#D55E00', '#0072B2'].",
        )
    # Candidates that were screened out stay grey.
    recoloured = {"chosen": colours[0], "kept": colours[1], "removed": colours[1]}
    return markers | {name: markers[name] | {"color": c} for name, c in recoloured.items()}


def _draw_curve(
    ax: Axes, curve: Curve, *, width: float, markers: Mapping[str, dict[str, Any]]
) -> None:
    """Draw the candidates of a curve; `width` is the width of the axes in inches."""
    m = len(curve.ticks)
    positions = np.arange(m)
    states = np.array(curve.states)
    # The line connects only the candidates that the selection rule compared.
    compared = np.flatnonzero(states != "screened out")
    ax.plot(positions[compared], curve.values[compared], color="#B0B0B0", linewidth=1.2, zorder=1)
    if curve.errors is not None:
        ax.errorbar(
            positions, curve.values, yerr=curve.errors, fmt="none", ecolor="#737373", capsize=3
        )
    for state in _STATE_MARKERS:
        rows = np.flatnonzero((states == state) & (positions != curve.chosen))
        if rows.size:
            ax.plot(rows, curve.values[rows], linestyle="", label=state, zorder=2, **markers[state])
    ax.plot(
        [curve.chosen],
        [curve.values[curve.chosen]],
        linestyle="",
        label="chosen",
        zorder=3,
        **markers["chosen"],
    )
    # If a candidate has at most 0.4 inches, horizontal notes such as "rank 2" would overlap.
    _annotate_candidates(ax, curve, is_tight=width / m <= 0.4)
    figure_parts.label_ticks(ax.xaxis, curve.ticks, fit=fitting_labels(m, inches=width))
    ax.xaxis.set_tick_params(rotation=0 if m <= 20 else 90)
    ax.set_xlim(-0.6, m - 0.4)
    ax.margins(y=0.18)
    ax.set_xlabel(curve.x_name, fontsize=9)
    ax.set_ylabel(curve.y_name, fontsize=9)
    ax.tick_params(axis="y", labelsize=figure_parts.SMALL_FONT, labelleft=True)
    ax.spines[["top", "right"]].set_visible(False)
    figure_parts.set_heading(ax, curve.heading)


def _annotate_candidates(ax: Axes, curve: Curve, *, is_tight: bool) -> None:
    """Write the note of each candidate above its marker, rotated if there is little space."""
    for x, (y, note) in enumerate(zip(curve.values, curve.notes, strict=True)):
        ax.annotate(
            note,
            (x, y),
            xytext=(0, 11),
            textcoords="offset points",
            ha="center",
            fontsize=5.5 if is_tight else figure_parts.SMALL_FONT,
            rotation=90 if is_tight else 0,
        )


def _legend_section(
    story: SearchStory, markers: Mapping[str, dict[str, Any]]
) -> figure_parts.LegendSection:
    """Return a legend section that explains the markers in the plot of a search."""
    states = _unchosen_states(story)
    texts = {
        "kept": "compared in the last step" if "removed" in states else "candidate",
        "removed": "removed: local minimum",
        "screened out": f"excluded: {story.screened_out}",
    }
    # The star in the legend is smaller than the star in the plot, so it fits into a line of text.
    entries = [("chosen", Line2D([], [], linestyle="", **(markers["chosen"] | {"markersize": 12})))]
    entries += [
        (texts[state], Line2D([], [], linestyle="", **markers[state]))
        for state in _STATE_MARKERS
        if state in states
    ]
    return figure_parts.LegendSection(title="candidates", entries=tuple(entries))


def _unchosen_states(story: SearchStory) -> set[str]:
    """Return the states ("kept", "removed", "screened out") of the candidates not chosen.

    The chosen candidate is left out, since it has a marker of its own.
    """
    return {
        state for curve in story.curves for i, state in enumerate(curve.states) if i != curve.chosen
    }
