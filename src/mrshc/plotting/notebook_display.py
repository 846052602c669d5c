"""Figures and axes that notebooks show as pictures.

The plots do not use pyplot, so a notebook would show a plot as text such as `<Axes: >`. The classes
of this module have the method `_repr_png_`, by which IPython obtains the picture of an object.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mrshc.plotting.picture_files import save_unchanged

# Browsers define a pixel as 1/96 inch, so at this resolution the size on the screen is the size of
# the figure in inches.
_SCREEN_DPI = 96
# Number of pixels of the picture for each pixel of the screen, in each direction. With two pixels,
# text is sharp on screens of high resolution.
_SHARPNESS = 2


class DisplayedAxes(Axes):
    """Axes that notebooks show as a picture of the whole figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the figure as PNG data, with its width and height on the screen."""
        return render_for_notebook(self.figure.canvas.figure)


class DisplayedFigure(Figure):
    """Figure that notebooks show as a picture, even if pyplot is not imported."""

    def add_subplot(self, *position: Any, **options: Any) -> Any:
        """Add axes to the figure as in matplotlib; notebooks show these axes, too."""
        # Polar axes and other projections have classes of their own.
        if not {"axes_class", "projection", "polar"} & set(options):
            options["axes_class"] = DisplayedAxes
        return super().add_subplot(*position, **options)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the figure as PNG data, with its width and height on the screen."""
        return render_for_notebook(self)


def render_for_notebook(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """Return a figure as PNG data, and a dictionary with its width and height on the screen."""
    content = BytesIO()
    save_unchanged(figure, content, file_format="png", dpi=_SHARPNESS * _SCREEN_DPI)
    width, height = (round(inches * _SCREEN_DPI) for inches in figure.get_size_inches())
    return content.getvalue(), {"width": width, "height": height}
