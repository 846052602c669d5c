"""Write figures to picture files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.axes import Axes

from mrshc.plotting.arguments import check_path
from mrshc.shell.atomic_files import atomic_write
from mrshc.shell.wording import invalid_parameter_error
from mrshc.validation import check_number

# Largest number of dots per inch. A figure of 16 inches, the largest default width, is then 38,400
# pixels wide, which is below the limit of 65,536 pixels in matplotlib's Agg backend.
_MAX_DPI = 2400
# Smallest number of dots per inch. Text of 8 points is then about one pixel high.
_MIN_DPI = 10
# Resolution that most journals require of pictures with colours.
PRINT_DPI = 300
# Metadata of each file format. None excludes an entry: without the date and the program version,
# equal figures give identical files. The keys are the formats that can be written.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
PICTURE_FORMATS = tuple(_METADATA)
# Settings of matplotlib for files. Without a fixed salt, ids of elements in an SVG file would be
# random. Fonts of type 42 keep the text of a PDF file editable, as journals require; matplotlib's
# default, type 3, does not.
_FILE_SETTINGS = {"svg.hashsalt": "mrshc", "pdf.fonttype": 42}


@contextmanager
def own_style() -> Iterator[None]:
    """Draw with matplotlib's default settings, whatever those of the user are."""
    with mpl.style.context("default"):
        yield


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


def save_unchanged(figure: Any, target: Any, *, file_format: str, dpi: float) -> None:
    """Save a figure to a file or a stream; the figure itself is not changed."""
    with (
        own_style(),
        mpl.rc_context(_FILE_SETTINGS),
        ignore_missing_glyphs(),
        _preserve_axes_positions(figure),
    ):
        figure.savefig(target, format=file_format, dpi=dpi, metadata=_METADATA[file_format])


def write_picture(figure: Any, path: str | Path, *, dpi: float = PRINT_DPI) -> None:
    """Write a figure to a PNG, SVG or PDF file.

    An existing file is replaced only when the new file is complete, so the existing file stays
    intact if writing is interrupted. Equal figures give identical files.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        Figure to write, or axes in this figure. The figure is not changed.
    path : str or Path
        File to write. The suffix determines the format: .png, .svg or .pdf. Missing folders are
        created.
    dpi : float, default=300
        Resolution in dots per inch, from 10 to 2400. In SVG and PDF files, only the cells of heat
        maps have a resolution.

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
    dpi = check_number("dpi", dpi, low=_MIN_DPI, high=_MAX_DPI, advice="The default is 300.")
    if isinstance(figure, Axes):
        figure = figure.figure.canvas.figure  # the whole figure, even if it has subfigures
    if not hasattr(figure, "savefig"):
        raise invalid_parameter_error(
            "figure",
            figure,
            allowed="be a matplotlib Figure or Axes",
            advice="Pass the return value of a plotting function.",
        )
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in PICTURE_FORMATS:
        raise ValueError(
            f"The file name of a picture must end in .png, .svg or .pdf, got {path.name!r}. Change "
            "the suffix."
        )
    with atomic_write(path) as partial:
        save_unchanged(figure, partial, file_format=suffix, dpi=dpi)
