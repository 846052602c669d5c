"""Parts that all plots share: new figures, titles, tick labels, legends and picture files."""

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

# In points. Tick labels and legends are legible at this size when a figure of 16 inches is scaled
# to the width of a page.
SMALL_FONT = 8.0
_TITLE_FONT = 10
# In inches. At the default of 150 dots per inch the picture has 2400 pixels, which fits on a
# screen.
MAX_FIGURE_WIDTH = 16.0
# A longer legend continues in a second column. 26 rows are about 5 inches, the height of a tree
# with its names.
_MAX_LEGEND_ROWS = 26
_LEGEND_ROW_INCHES = 0.17  # a line of SMALL_FONT and matplotlib's spacing between legend entries
# The widest figure then has 38,400 pixels, below the 65,536 that matplotlib's Agg backend can draw.
_MAX_DPI = 2400
# Below this, the smallest text is less than one pixel high.
_MIN_DPI = 10
# Date and program version are left out of the file, so that equal figures give equal bytes.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendSection:
    """A group of legend entries under a common title.

    Attributes
    ----------
    title : str
        Title of the group, written in bold.
    entries : tuple of (str, matplotlib artist)
        Text of each entry and the symbol drawn before it.
    """

    title: str
    entries: tuple[tuple[str, Any], ...]


def patch_section(title: str, entries: Iterable[LegendEntry]) -> LegendSection:
    """Return a legend section with a filled square for each colour."""
    shown = tuple((text, Patch(facecolor=c or "none", edgecolor="none")) for text, c in entries)
    return LegendSection(title=title, entries=shown)


def line_section(title: str, entries: Iterable[LegendEntry]) -> LegendSection:
    """Return a legend section with a short line for each colour."""
    shown = tuple((text, Line2D([], [], color=c or "none", linewidth=2)) for text, c in entries)
    return LegendSection(title=title, entries=shown)


def draw_legend(owner: Any, sections: Sequence[LegendSection], **placement: Any) -> Any:
    """Draw one legend with all sections below each other, and return it.

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
    # matplotlib's legends have a single title. Titles of sections and the blank rows between
    # sections are therefore entries with an invisible symbol.
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
    # Two rows for the title of a section and the blank row after it; 0.5 inches for margins.
    rows = sum(len(section.entries) + 2 for section in sections)
    return min(rows, _MAX_LEGEND_ROWS) * _LEGEND_ROW_INCHES + 0.5


def draw_side_legend(ax: Axes, sections: Sequence[LegendSection]) -> None:
    """Draw a legend to the right of axes, where it covers no data."""
    if sections:
        placement = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        draw_legend(ax, sections, **placement)


def disable_math_parsing(texts: Iterable[Any]) -> None:
    """Show texts literally: dollar signs in names would otherwise be read as TeX formulas."""
    for text in texts:
        text.set_parse_math(False)


def set_heading(ax: Axes, title: str | None) -> None:
    """Write a left-aligned title above axes, unless it is None."""
    if title is not None:
        text = wrap_text(title, inches=size_in_inches(ax)[0], size=_TITLE_FONT)
        ax.set_title(text, loc="left", fontsize=_TITLE_FONT, parse_math=False)


def set_figure_heading(figure: Figure, title: str) -> None:
    """Write a left-aligned title above all panels of a figure."""
    text = wrap_text(title, inches=figure.get_figwidth(), size=_TITLE_FONT)
    figure.suptitle(text, x=0.01, ha="left", fontsize=_TITLE_FONT, parse_math=False)


def wrap_text(text: str, *, inches: float, size: float) -> str:
    """Return text with line breaks, so that each line fits into a width in inches."""
    # Not fewer than 20 characters: narrower columns would break most words.
    width = max(20, int(inches * POINTS_PER_INCH / (CHARACTER_WIDTH * size)))
    return "\n".join(textwrap.fill(clean_text(line), width) for line in text.splitlines())


def size_in_inches(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in inches.

    Both are approximate before the layout is computed: tick labels and legends outside the axes
    will take part of that space.
    """
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width / dpi), float(box.height / dpi)


def label_ticks(
    axis: Any, names: Sequence[Any], *, fit: LabelFit, places: Any = None, length: int = 18
) -> list[int]:
    """Write names along an axis, as many as fit, and return the indices of those written.

    Parameters
    ----------
    axis : matplotlib Axis
        Such as `ax.xaxis`; labels of a horizontal axis are rotated.
    names : sequence
        Names of all entries.
    fit : LabelFit
        Font size and step, from :func:`mrshc.plotting.fitting_labels`.
    places : array-like of shape (len(names),) or None, default=None
        Positions on the axis; 0, 1, ... by default.
    length : int, default=18
        Largest number of characters of a label.
    """
    shown = list(range(0, len(names), fit.step))
    positions = np.arange(len(names)) if places is None else np.asarray(places)
    # All names are shortened together: two that become equal get a number.
    short = shortened_names(names, length=length)
    axis.set_ticks(positions[shown], [short[i] for i in shown], fontsize=fit.size, parse_math=False)
    axis.set_tick_params(length=0, pad=2)
    if axis.axis_name == "x":
        axis.set_tick_params(rotation=90)
    return shown


def describe_step(step: int) -> str:
    """Return a note such as " (every 3rd labelled)", or "" if every entry is labelled."""
    if step == 1:
        return ""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step not in (11, 12, 13) else 0, "th")
    return f" (every {step}{ending} labelled)"


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of at most the maximum width whose layout leaves space for labels.

    Parameters
    ----------
    width, height : float
        Size in inches.
    """
    # Not made by pyplot, which would keep every figure alive until it is closed.
    return Figure(figsize=(min(width, MAX_FIGURE_WIDTH), height), layout="constrained")


@contextmanager
def _preserve_axes_positions(figure: Any) -> Iterator[None]:
    """Restore the positions of all axes on exit.

    Saving a figure runs the constrained layout, which starts from the current positions and ends
    at slightly different ones each time. Without this, writing a figure twice would give two
    different files.
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
            # set_position takes axes out of the layout.
            ax.set_in_layout(in_layout)


def write_picture(figure: Any, path: str | Path, *, dpi: float = 150) -> None:
    """Write a figure to a PNG or SVG file.

    The file is replaced as a whole: if writing is interrupted, an earlier file stays intact. Equal
    figures give files with equal bytes.

    Parameters
    ----------
    figure : matplotlib Figure
        Figure to write. It is not changed.
    path : str or Path
        File to write. Its suffix determines the format: .png or .svg. Missing folders are created.
    dpi : float, default=150
        Pixels per inch of a PNG, from 10 to 2400.

    Raises
    ------
    ValueError
        If an argument is not valid, or the suffix is neither .png nor .svg.

    See Also
    --------
    mrshc.plotting.dendrogram : Draw a tree; its figure is `ax.figure`.
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
        # Ids inside an SVG are random unless a salt is set.
        mpl.rc_context({"svg.hashsalt": "mrshc"}),
        warnings.catch_warnings(),
        _preserve_axes_positions(figure),
    ):
        # A character that no installed font contains is drawn as a box. The picture is still
        # useful, so the warning of matplotlib is suppressed.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        figure.savefig(partial, format=suffix, dpi=dpi, metadata=_METADATA[suffix])
