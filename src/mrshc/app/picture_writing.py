"""Draw pictures and write them to files, in the formats and in the size that the user chose."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mrshc import plotting

# Beginning of the message with which matplotlib warns that a figure is too small for its text.
_TOO_SMALL = "constrained_layout not applied"


class SmallFigureWarning(UserWarning):
    """Issued if the size that the user chose leaves too little space for the text of pictures."""


def draw_and_write(draw: Callable[[], Any], paths: Iterable[Path]) -> bool:
    """Draw a picture, write it to files, and return whether it has enough space for its text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawn = draw()
        for path in paths:
            plotting.write_picture(drawn, path)
    too_small = [w for w in caught if str(w.message).startswith(_TOO_SMALL)]
    for warning in caught:
        if warning not in too_small:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return not too_small


def warn_of_small_figures(names: list[str], size: tuple[float, float] | None) -> None:
    """Issue a warning if there are pictures with too little space; `names` are their names."""
    if not names:
        return
    figures = "Figures" if size is None else f"Figures of {size[0]:g} by {size[1]:g} inches"
    message = f"{figures} are too small for the text of: {', '.join(names)}. Choose a larger size."
    warnings.warn(message, SmallFigureWarning, stacklevel=2)
