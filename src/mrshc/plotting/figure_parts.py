"""Functions that the plots share: for figures, titles, tick labels and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mrshc.plotting.colours import LegendEntry, is_light
from mrshc.plotting.dendrogram_layout import (
    CHARACTER_WIDTH,
    POINTS_PER_INCH,
    LabelFit,
    estimate_text_width,
    shortened_names,
)
from mrshc.plotting.notebook_display import DisplayedFigure
from mrshc.shell.text_cleaning import clean_text

# Font size of tick labels and legends, in points. The size is smaller than matplotlib's default of
# 10 points, since many names have to fit into a figure.
SMALL_FONT = 8.0
# Colour of the outline of light areas, which could not be seen on a white background without it.
OUTLINE_COLOUR = "#A6A6A6"
# Font size of titles, in points.
_TITLE_FONT = 10
# Largest default width of a figure, in inches. In a notebook, a picture of this width has 1536
# pixels, which fit on most screens.
MAX_FIGURE_WIDTH = 16.0
# Largest number of lines in a column of a legend. Longer legends have several columns. A column of
# 26 lines is about 5 inches high, like a tree with the names of its samples.
_MAX_LEGEND_ROWS = 26
_LEGEND_ROW_INCHES = 0.17  # height of a line of text and of the space below it


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendSection:
    """A group of legend entries under a common title.

    Attributes
    ----------
    title : str
        Title of the group, written in bold.
    entries : tuple of (str, matplotlib artist)
        Text of each entry, and the symbol that is drawn before the text.
    """

    title: str
    entries: tuple[tuple[str, Any], ...]


def patch_section(title: str, entries: Iterable[LegendEntry]) -> LegendSection:
    """Return a legend section with a filled square before the text of each entry."""
    return LegendSection(title=title, entries=tuple((text, _make_patch(c)) for text, c in entries))


def _make_patch(colour: str | None) -> Patch:
    """Return a square of a colour, with an outline if it is light; None gives no square."""
    if colour is None:
        return Patch(facecolor="none", edgecolor="none")
    outline = OUTLINE_COLOUR if is_light(colour) else "none"
    return Patch(facecolor=colour, edgecolor=outline, linewidth=0.5)


def line_section(title: str, entries: Iterable[LegendEntry]) -> LegendSection:
    """Return a legend section with a short line before the text of each entry."""
    shown = tuple((text, Line2D([], [], color=c or "none", linewidth=2)) for text, c in entries)
    return LegendSection(title=title, entries=shown)


def draw_legend(owner: Any, sections: Sequence[LegendSection], **placement: Any) -> Any:
    """Draw a legend with a title above the entries of each section, and return the legend."""
    columns = [_column_rows(column) for column in legend_columns(sections)]
    # matplotlib divides a legend into columns with the same number of rows, so shorter columns are
    # filled with blank rows.
    n_rows = max(map(len, columns))
    rows = [row for column in columns for row in (*column, *[_BLANK_ROW] * (n_rows - len(column)))]
    legend = owner.legend(
        [row.symbol for row in rows],
        [row.text for row in rows],
        frameon=False,
        fontsize=SMALL_FONT,
        ncols=len(columns),
        handlelength=1.4,
        alignment="left",
        **placement,
    )
    texts = legend.get_texts()
    disable_math_parsing(texts)
    for row, text in zip(rows, texts, strict=True):
        text.set_fontweight("bold" if row.is_title else "normal")
    return legend


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LegendRow:
    """One row of a legend; rows without a symbol have an invisible one, as matplotlib needs it."""

    text: str = ""
    symbol: Any = field(default_factory=lambda: Line2D([], [], linestyle=""))
    is_title: bool = False


_BLANK_ROW = _LegendRow()


def _column_rows(sections: Sequence[LegendSection]) -> list[_LegendRow]:
    """Return the rows of one column of a legend, with a blank row between two sections."""
    rows: list[_LegendRow] = []
    # A matplotlib legend can have only one title. The titles of sections are therefore rows.
    for section in sections:
        rows += [_BLANK_ROW] * bool(rows)
        rows.append(_LegendRow(text=section.title, is_title=True))
        rows += [_LegendRow(text=text, symbol=symbol) for text, symbol in section.entries]
    return rows


def legend_columns(sections: Sequence[LegendSection]) -> list[list[LegendSection]]:
    """Return the sections of each column of a legend, in the order of the sections.

    A column has at most 26 lines of text, unless a single section has more.
    """
    columns: list[list[LegendSection]] = []
    n_lines = 0
    for section in sections:
        n_more = _count_lines(section)
        if not columns or n_lines + n_more > _MAX_LEGEND_ROWS:
            columns.append([])
            n_lines = 0
        columns[-1].append(section)
        n_lines += n_more
    return columns


def _count_lines(section: LegendSection) -> int:
    """Return the number of lines of a section, with its title and a blank line below it."""
    return 2 + sum(1 + text.count("\n") for text, _ in section.entries)


def estimate_legend_size(sections: Sequence[LegendSection]) -> tuple[float, float]:
    """Return the approximate width and height of a legend in inches, including its margins."""
    columns = legend_columns(sections)
    if not columns:
        return 0.0, 0.0
    widths = [estimate_text_width(_texts_of(column), size=SMALL_FONT) for column in columns]
    # A symbol and the space around it take about 0.35 inches. A narrow legend gets 1.8 inches, such
    # that plots with and without annotations have about the same width.
    width = max(1.8, sum(widths) + 0.35 * len(columns))
    n_lines = max(sum(map(_count_lines, column)) for column in columns)
    return width, n_lines * _LEGEND_ROW_INCHES + 0.5


def _texts_of(sections: Sequence[LegendSection]) -> list[str]:
    """Return all lines of text of several sections."""
    entries = [text for section in sections for text, _ in section.entries]
    return [line for text in entries for line in text.split("\n")] + [s.title for s in sections]


def draw_side_legend(ax: Axes, sections: Sequence[LegendSection]) -> None:
    """Draw a legend to the right of the axes, where the legend does not cover the plot.

    Nothing is drawn if there are no sections.
    """
    if sections:
        placement = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        draw_legend(ax, sections, **placement)


def disable_math_parsing(texts: Iterable[Any]) -> None:
    """Make matplotlib show text literally, even if it contains dollar signs (TeX formulas)."""
    for text in texts:
        text.set_parse_math(False)


def set_heading(ax: Axes, title: str | None) -> None:
    """Write a left-aligned title above the axes; write nothing if the title is None."""
    if title is not None:
        text = wrap_text(title, inches=size_in_inches(ax)[0], size=_TITLE_FONT)
        ax.set_title(text, loc="left", fontsize=_TITLE_FONT, parse_math=False)


def set_figure_heading(figure: Figure, title: str) -> None:
    """Write a left-aligned title above all panels of a figure."""
    text = wrap_text(title, inches=figure.get_figwidth(), size=_TITLE_FONT)
    figure.suptitle(text, x=0.01, ha="left", fontsize=_TITLE_FONT, parse_math=False)


def heading_height(title: str | None, *, inches: float) -> float:
    """Return the height, in inches, of a title above all panels of a figure of a given width.

    It includes the space between the title and the panels, which there is without a title, too.
    """
    text = wrap_text(title or "", inches=inches, size=_TITLE_FONT)
    # Lines of text are 1.2 times as high as their font.
    return 0.3 + len(text.splitlines()) * 1.2 * _TITLE_FONT / POINTS_PER_INCH


def wrap_text(text: str, *, inches: float, size: float) -> str:
    """Return text with additional line breaks, such that each line fits into a width of `inches`.

    `size` is the font size in points.
    """
    # A line has space for at least 20 characters, since shorter lines would split most words.
    width = max(20, int(inches * POINTS_PER_INCH / (CHARACTER_WIDTH * size)))
    return "\n".join(textwrap.fill(clean_text(line), width) for line in text.splitlines())


def size_in_inches(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in inches.

    Both values are approximate until matplotlib has computed the layout of the figure, because tick
    labels and legends outside the axes take part of the space.
    """
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width / dpi), float(box.height / dpi)


def label_ticks(
    axis: Any, names: Sequence[Any], *, fit: LabelFit, places: Any = None, length: int = 18
) -> list[int]:
    """Write names along an axis, and return the indices of the names that were written."""
    shown = list(range(0, len(names), fit.step))
    positions = np.arange(len(names)) if places is None else np.asarray(places)
    # All names are shortened together, since numbers are added where names would become equal.
    short = shortened_names(names, length=length)
    axis.set_ticks(positions[shown], [short[i] for i in shown], fontsize=fit.size, parse_math=False)
    axis.set_tick_params(length=0, pad=2)
    if axis.axis_name == "x":
        axis.set_tick_params(rotation=90)
    return shown


def describe_step(step: int) -> str:
    """Return the note " (every 3rd labelled)" for step 3 and so on, or "" for step 1."""
    if step == 1:
        return ""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step not in (11, 12, 13) else 0, "th")
    return f" (every {step}{ending} labelled)"


def new_figure(
    width: float, height: float, *, size: tuple[float, float] | None = None
) -> DisplayedFigure:
    """Return a new figure with a layout that leaves space for labels."""
    # The figure is not created with pyplot, since pyplot keeps every figure in memory until the
    # figure is closed explicitly.
    figsize = (min(width, MAX_FIGURE_WIDTH), height) if size is None else size
    return DisplayedFigure(figsize=figsize, layout="constrained")
