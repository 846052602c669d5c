"""What all pictures share: axes, names along an axis, legends, files."""

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

from mrshc.errors import refused
from mrshc.plotting.arguments import check_path
from mrshc.plotting.colours import Entry
from mrshc.plotting.dendrogram_layout import (
    CHARACTER_WIDTH,
    POINTS_PER_INCH,
    LabelFit,
    shortened_names,
)
from mrshc.utils.atomic_files import replacing
from mrshc.utils.text_cleaning import clean_text
from mrshc.validation.parameters import check_number

SMALL_TEXT = 8.0
WIDEST = 16.0
_TALLEST_LEGEND = 26
# The widest figure then has fewer than the 65,536 pixels that matplotlib can draw; and below ten,
# the smallest text has no pixel.
_MOST_DPI = 2400
# Neither the day nor the program's version belongs to the picture: equal figures, equal bytes.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Part of a legend."""

    title: str
    entries: tuple[tuple[str, Any], ...]  # words and what stands before them


def patches(title: str, entries: Iterable[Entry]) -> Section:
    """Return a section with a filled square for each colour."""
    shown = tuple((text, Patch(facecolor=c or "none", edgecolor="none")) for text, c in entries)
    return Section(title=title, entries=shown)


def strokes(title: str, entries: Iterable[Entry]) -> Section:
    """Return a section with a line for each colour."""
    shown = tuple((text, Line2D([], [], color=c or "none", linewidth=2)) for text, c in entries)
    return Section(title=title, entries=shown)


def sections_legend(owner: Any, sections: Sequence[Section], **place: Any) -> Any:
    """Draw the legend of axes or of a figure: one box, sections below each other."""
    handles: list[Any] = []
    labels: list[str] = []
    headings: list[int] = []
    for section in sections:
        if handles:
            handles.append(Line2D([], [], linestyle=""))
            labels.append("")
        headings.append(len(handles))
        handles += [Line2D([], [], linestyle=""), *(handle for _, handle in section.entries)]
        labels += [section.title, *(text for text, _ in section.entries)]
    legend = owner.legend(
        handles,
        labels,
        frameon=False,
        fontsize=SMALL_TEXT,
        ncols=-(-len(handles) // _TALLEST_LEGEND),
        handlelength=1.4,
        alignment="left",
        **place,
    )
    texts = legend.get_texts()
    literal(texts)
    for heading in headings:
        texts[heading].set_fontweight("bold")
    return legend


def legend_inches(sections: Sequence[Section]) -> float:
    """Estimate how high a legend is, with the air around it."""
    rows = sum(len(section.entries) + 2 for section in sections)
    return min(rows, _TALLEST_LEGEND) * 0.17 + 0.5


def beside(ax: Axes, sections: Sequence[Section]) -> None:
    """Draw a legend to the right of axes: inside, it would cover the picture."""
    if sections:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        sections_legend(ax, sections, **place)


def literal(texts: Iterable[Any]) -> None:
    """Show texts as they are: a name with dollar signs is not a formula."""
    for text in texts:
        text.set_parse_math(False)


def heading(ax: Axes, title: str | None) -> None:
    """Write a title above axes, if there is one."""
    if title is not None:
        text = wrapped(title, inches=inches_of(ax)[0], size=10)
        ax.set_title(text, loc="left", fontsize=10, parse_math=False)


def figure_heading(figure: Figure, title: str) -> None:
    """Write a title above a whole figure."""
    text = wrapped(title, inches=figure.get_figwidth(), size=10)
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, parse_math=False)


def wrapped(text: str, *, inches: float, size: float) -> str:
    """Break lines that are too long for the room they have."""
    width = max(20, int(inches * POINTS_PER_INCH / (CHARACTER_WIDTH * size)))
    return "\n".join(textwrap.fill(clean_text(line), width) for line in text.splitlines())


def inches_of(ax: Axes) -> tuple[float, float]:
    """Return about how wide and high axes are; names outside them take some of it."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width / dpi), float(box.height / dpi)


def name_ticks(
    axis: Any, names: Sequence[Any], *, fit: LabelFit, places: Any = None, length: int = 18
) -> list[int]:
    """Write names along an axis, as many as fit, and return which."""
    shown = list(range(0, len(names), fit.step))
    where = np.arange(len(names)) if places is None else np.asarray(places)
    short = shortened_names(names, length=length)
    axis.set_ticks(where[shown], [short[i] for i in shown], fontsize=fit.size, parse_math=False)
    axis.set_tick_params(length=0, pad=2)
    if axis.axis_name == "x":
        axis.set_tick_params(rotation=90)
    return shown


def every(step: int) -> str:
    """Say that not all names are shown."""
    if step == 1:
        return ""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step not in (11, 12, 13) else 0, "th")
    return f" (every {step}{ending} named)"


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that makes room for names and legends by itself."""
    return Figure(figsize=(min(width, WIDEST), height), layout="constrained")


@contextmanager
def _places_kept(figure: Any) -> Iterator[None]:
    """Put axes back afterwards: a layout starts from the last one, and never ends quite there."""
    before = [
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
        for ax, original, active, in_layout in before:
            ax.set_position(original, which="original")
            ax.set_position(active, which="active")
            ax.set_in_layout(in_layout)


def write_picture(figure: Any, path: str | Path, *, dpi: float = 150) -> None:
    """Write a picture; interrupted, the old one stays whole.

    Parameters
    ----------
    figure : matplotlib Figure
        What to write. The same figure gives the same bytes.
    path : str or Path
        Its suffix says the format: .png or .svg. Missing folders are made.
    dpi : float, default=150
        Pixels per inch of a PNG, from 10 to 2400.

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
    dpi = check_number("dpi", dpi, low=10, high=_MOST_DPI, advice="The default is 150.")
    if not hasattr(figure, "savefig"):
        raise refused(
            "figure", figure, allowed="be a matplotlib Figure", advice="Of axes, give ax.figure."
        )
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise ValueError(
            f"A picture's name must end in .png or .svg, got {path.name!r}. Add one of them."
        )
    with (
        replacing(path) as partial,
        mpl.rc_context({"svg.hashsalt": "mrshc"}),
        warnings.catch_warnings(),
        _places_kept(figure),
    ):
        # A box in place of a letter that no font here has is no reason to lose the picture.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        figure.savefig(partial, format=kind, dpi=dpi, metadata=_METADATA[kind])
