"""Why these parameters: candidates, the chosen one among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mrshc.core.selection import Curve, SearchStory
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_model, check_title
from mrshc.plotting.dendrogram_layout import fitting_labels
from mrshc.plotting.search_explanation import search_story

_CHOSEN_MARKER: dict[str, Any] = {
    "marker": "*",
    "markersize": 17,
    "color": "#D55E00",
    "markeredgecolor": "#000000",
}
_STATE_MARKERS: dict[str, dict[str, Any]] = {
    "kept": {"marker": "o", "markersize": 7, "color": "#0072B2"},
    "removed": {"marker": "o", "markersize": 7, "color": "#0072B2", "markerfacecolor": "#FFFFFF"},
    "screened out": {"marker": "x", "markersize": 7, "color": "#737373", "markeredgewidth": 1.8},
}


def search_curves(model: Any, *, title: str | None = None) -> Figure:
    """Draw the candidates that a search compared, and mark the chosen one.

    Parameters
    ----------
    model : fitted estimator
        With `search_results_`, such as :class:`mrshc.MrSHC` or :class:`mrshc.SHC`.
    title : str or None
        Heading of the picture; what was chosen stands below it.

    Returns
    -------
    figure : matplotlib Figure
        For MrSHC the average silhouette over the number of features and over the rank, for SHC
        the permutation gap over the number of features. If there was nothing to choose from, the
        picture says so.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from mrshc.plotting import search_curves
    >>> table = {"n_clusters": [2, 3], "silhouette": [0.4, 0.6], "chosen": [False, True]}
    >>> ax, = search_curves(SimpleNamespace(search_results_=table)).axes
    >>> ax.get_title(loc="left")
    'Which number of clusters?'
    """
    title = check_title(title)
    story = search_story(check_model(model, "search_results_").search_results_)
    widths = [float(np.clip(0.45 * len(c.ticks), 3.2, 9.5)) for c in story.curves]
    wide = max(6.5, sum(widths) + 2.9)
    figure = figure_parts.new_figure(wide, 4.4 if story.curves else 1.8)
    heading = story.verdict if title is None else f"{title}\n{story.verdict}"
    figure_parts.set_figure_heading(figure, heading)
    if not story.curves:
        _write_single_candidate(figure)
        return figure
    panels = figure.subplots(
        1, len(widths), squeeze=False, sharey=True, gridspec_kw={"width_ratios": widths}
    )[0]
    for ax, curve, width in zip(panels, story.curves, widths, strict=True):
        _draw_curve(ax, curve, width=width)
    figure_parts.draw_side_legend(panels[-1], [_legend_section(story)])
    rule = figure_parts.wrap_text(story.rule, inches=wide, size=figure_parts.SMALL_FONT)
    figure.supxlabel(rule, x=0.01, ha="left", fontsize=figure_parts.SMALL_FONT, color="#404040")
    return figure


def _write_single_candidate(figure: Figure) -> None:
    ax = figure.subplots()
    ax.set_axis_off()
    words = "There was a single candidate: nothing to choose from."
    ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes)


def _draw_curve(ax: Axes, curve: Curve, *, width: float) -> None:
    m = len(curve.ticks)
    where = np.arange(m)
    states = np.array(curve.states)
    compared = np.flatnonzero(states != "screened out")
    ax.plot(where[compared], curve.values[compared], color="#B0B0B0", linewidth=1.2, zorder=1)
    if curve.errors is not None:
        ax.errorbar(where, curve.values, yerr=curve.errors, fmt="none", ecolor="#737373", capsize=3)
    for state, look in _STATE_MARKERS.items():
        at = np.flatnonzero((states == state) & (where != curve.chosen))
        if at.size:
            ax.plot(at, curve.values[at], linestyle="", label=state, zorder=2, **look)
    ax.plot(
        [curve.chosen],
        [curve.values[curve.chosen]],
        linestyle="",
        label="chosen",
        zorder=3,
        **_CHOSEN_MARKER,
    )
    _write_notes(ax, curve, is_tight=width / m <= 0.4)
    figure_parts.label_ticks(ax.xaxis, curve.ticks, fit=fitting_labels(m, inches=width))
    ax.xaxis.set_tick_params(rotation=0 if m <= 20 else 90)
    ax.set_xlim(-0.6, m - 0.4)
    ax.margins(y=0.18)
    ax.set_xlabel(curve.x_name, fontsize=9)
    ax.set_ylabel(curve.y_name, fontsize=9)
    ax.tick_params(axis="y", labelsize=figure_parts.SMALL_FONT, labelleft=True)
    ax.spines[["top", "right"]].set_visible(False)
    figure_parts.set_heading(ax, curve.heading)


def _write_notes(ax: Axes, curve: Curve, *, is_tight: bool) -> None:
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


def _legend_section(story: SearchStory) -> figure_parts.LegendSection:
    words = {
        "kept": "compared to the end" if "removed" in _unchosen_states(story) else "candidate",
        "removed": "removed as a dip",
        "screened out": f"set aside: {story.screened_out}",
    }
    entries = [("chosen", Line2D([], [], linestyle="", **(_CHOSEN_MARKER | {"markersize": 12})))]
    entries += [
        (words[state], Line2D([], [], linestyle="", **look))
        for state, look in _STATE_MARKERS.items()
        if state in _unchosen_states(story)
    ]
    return figure_parts.LegendSection(title="candidates", entries=tuple(entries))


def _unchosen_states(story: SearchStory) -> set[str]:
    """Return how candidates other than the chosen one fared."""
    return {
        state for curve in story.curves for i, state in enumerate(curve.states) if i != curve.chosen
    }
