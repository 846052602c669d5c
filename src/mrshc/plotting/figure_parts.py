"""Functions that the plots share: for figures, titles, tick labels, legends and picture files."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mrshc.errors import invalid_parameter_error
from mrshc.plotting.arguments import check_path
from mrshc.plotting.colours import LegendEntry
from mrshc.plotting.dendrogram_layout import (
    CHARACTER_WIDTH,
    POINTS_PER_INCH,
    LabelFit,
    shortened_names,
)
from mrshc.utils.atomic_files import atomic_write
from mrshc.utils.text_cleaning import clean_text
from mrshc.validation.parameters import check_number

# Font size of tick labels and legends, in points. The size is smaller than matplotlib's default of
# 10 points, since many names have to fit into a figure.
SMALL_FONT = 8.0
# Font size of titles, in points.
_TITLE_FONT = 10
# Largest width of a figure, in inches. At the default of 150 dots per inch, a picture of this width
# is 2400 pixels wide, which fits on a large screen.
MAX_FIGURE_WIDTH = 16.0
# Largest number of rows in one column of a legend. Longer legends have several columns. A legend of
# 26 rows is about 5 inches high, like a tree with the names of its samples.
_MAX_LEGEND_ROWS = 26
_LEGEND_ROW_INCHES = 0.17  # height of a line of text and of the space below it
# Largest number of dots per inch. The widest figure is then 38,400 pixels wide, which is below the
# limit of 65,536 pixels in matplotlib's Agg backend.
_MAX_DPI = 2400
# Smallest number of dots per inch. Text of size SMALL_FONT is then about one pixel high.
_MIN_DPI = 10
# Metadata of each file format. None excludes an entry: without the date and the program version,
# equal figures give identical files.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


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
    shown = tuple((text, Patch(facecolor=c or "none", edgecolor="none")) for text, c in entries)
    return LegendSection(title=title, entries=shown)


def line_section(title: str, entries: Iterable[LegendEntry]) -> LegendSection:
    """Return a legend section with a short line before the text of each entry."""
    shown = tuple((text, Line2D([], [], color=c or "none", linewidth=2)) for text, c in entries)
    return LegendSection(title=title, entries=shown)


def draw_legend(owner: Any, sections: Sequence[LegendSection], **placement: Any) -> Any:
    """Draw a legend that contains the sections one below the other, and return the legend.

    Parameters
    ----------
    owner : matplotlib Axes or Figure
        Object whose method `legend` is called.
    sections : sequence of LegendSection
        Sections from top to bottom.
    **placement
        Further arguments of matplotlib's `legend`, such as `loc`.
    """
    handles: list[Any] = []
    labels: list[str] = []
    title_rows: list[int] = []
    # A matplotlib legend can have only one title. The titles of sections and the blank rows between
    # sections are therefore added as legend entries with an invisible symbol.
    for section in sections:
        if handles:
            handles.append(Line2D([], [], linestyle=""))
            labels.append("")
        title_rows.append(len(handles))
        handles += [Line2D([], [], linestyle=""), *(handle for _, handle in section.entries)]
        labels += [section.title, *(text for text, _ in section.entries)]
    legend = owner.legend(
        handles,
        labels,
        frameon=False,
        fontsize=SMALL_FONT,
        ncols=-(-len(handles) // _MAX_LEGEND_ROWS),
        handlelength=1.4,
        alignment="left",
        **placement,
    )
    texts = legend.get_texts()
    disable_math_parsing(texts)
    for row in title_rows:
        texts[row].set_fontweight("bold")
    return legend


def estimate_legend_height(sections: Sequence[LegendSection]) -> float:
    """Return the approximate height of a legend in inches, including its margins."""
    # Each section has two additional rows: its title and a blank row. The margins take 0.5 inches.
    rows = sum(2 + sum(1 + text.count("\n") for text, _ in section.entries) for section in sections)
    return min(rows, _MAX_LEGEND_ROWS) * _LEGEND_ROW_INCHES + 0.5


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
    """Write names along an axis, and return the indices of the names that were written.

    Parameters
    ----------
    axis : matplotlib Axis
        Axis to label, such as `ax.xaxis`. The labels of a horizontal axis are rotated.
    names : sequence
        Names of all entries, including those that are left out.
    fit : LabelFit
        Font size and step from :func:`mrshc.plotting.fitting_labels`. Every `step`-th name is
        written.
    places : array-like of shape (len(names),) or None, default=None
        Positions of all entries on the axis. If None, the positions are 0, 1, ...
    length : int, default=18
        Largest number of characters in a label.
    """
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


def new_figure(width: float, height: float) -> Figure:
    """Return a new figure with a layout that leaves space for labels.

    Parameters
    ----------
    width, height : float
        Size in inches. A width above 16 inches is reduced to 16 inches.
    """
    # The figure is not created with pyplot, since pyplot keeps every figure in memory until the
    # figure is closed explicitly.
    return Figure(figsize=(min(width, MAX_FIGURE_WIDTH), height), layout="constrained")


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Return a context manager that suppresses warnings on characters missing from the fonts.

    Such a character is drawn as a box. The plot is still useful.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        yield


@contextmanager
def _preserve_axes_positions(figure: Any) -> Iterator[None]:
    """Return a context manager that restores the positions of all axes on exit.

    When a figure is saved, matplotlib computes its layout, starting from the current positions of
    the axes. The new positions may differ slightly from the old positions. Without the restoration,
    writing a figure twice would therefore give two different files.
    """
    saved = [
        (
            ax,
            ax.get_position(original=True).frozen(),
            ax.get_position().frozen(),
            ax.get_in_layout(),
        )
        for ax in figure.axes
    ]
    try:
        yield
    finally:
        for ax, original, active, in_layout in saved:
            ax.set_position(original, which="original")
            ax.set_position(active, which="active")
            # `set_position` excludes the axes from the layout, so this state is restored as well.
            ax.set_in_layout(in_layout)


def write_picture(figure: Any, path: str | Path, *, dpi: float = 150) -> None:
    """Write a figure to a PNG or SVG file.

    An existing file is replaced only when the new file is complete, so the existing file stays
    intact if writing is interrupted. Equal figures give identical files.

    Parameters
    ----------
    figure : matplotlib Figure
        Figure to write. The figure is not changed.
    path : str or Path
        File to write. The suffix determines the format: .png or .svg. Missing folders are created.
    dpi : float, default=150
        Resolution in dots per inch, from 10 to 2400.

    Raises
    ------
    ValueError
        If an argument is not valid, or the suffix is neither .png nor .svg.

    See Also
    --------
    mrshc.plotting.dendrogram : Draw a tree; the figure to write is `ax.figure`.
    mrshc.plotting.heatmap : Draw the selected features.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> from mrshc.plotting import write_picture
    >>> with TemporaryDirectory() as folder:
    ...     write_picture(Figure(), Path(folder) / "empty.svg")
    ...     (Path(folder) / "empty.svg").read_text(encoding="utf-8")[:5]
    '<?xml'
    """
    path = Path(check_path(path))
    dpi = check_number("dpi", dpi, low=_MIN_DPI, high=_MAX_DPI, advice="The default is 150.")
    if not hasattr(figure, "savefig"):
        raise invalid_parameter_error(
            "figure",
            figure,
            allowed="be a matplotlib Figure",
            advice="The figure of axes is ax.figure.",
        )
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _METADATA:
        raise ValueError(
            f"The file name of a picture must end in .png or .svg, got {path.name!r}. Change the "
            "suffix."
        )
    with (
        atomic_write(path) as partial,
        # Without a fixed salt, the ids of elements in an SVG file would be random.
        mpl.rc_context({"svg.hashsalt": "mrshc"}),
        ignore_missing_glyphs(),
        _preserve_axes_positions(figure),
    ):
        figure.savefig(partial, format=suffix, dpi=dpi, metadata=_METADATA[suffix])
