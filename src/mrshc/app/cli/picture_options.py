"""Options for the pictures in the output folder: their file formats and their size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from mrshc.app.cli.completion import complete_list, load_picture_formats
from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_values import parse_keys
from mrshc.errors import UserError

if TYPE_CHECKING:
    from mrshc.app.picture_settings import PictureSettings

_picture_option = option_factory("Pictures")


@dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """Options for the pictures in the output folder."""

    picture_format: Annotated[
        str | None,
        _picture_option(
            "--format",
            autocompletion=complete_list(load_picture_formats),
            help="File formats of the pictures, with commas between them: png (300 dots per inch), "
            "svg and pdf. By default, all pictures are png, and trees are also svg.",
        ),
    ] = None
    figure_size: Annotated[
        str | None,
        _picture_option(
            "--figure-size",
            metavar="WIDTHxHEIGHT",
            help="Width and height of the pictures in inches, such as 7x5. By default, and always "
            "for pictures with a panel for each cluster or component, the size depends on the "
            "content.",
        ),
    ] = None

    def to_settings(self) -> PictureSettings:
        """Return the settings of the pictures; raise UserError if one of them is not valid."""
        from mrshc.app.picture_settings import PictureSettings

        return PictureSettings(
            formats=_parse_formats(self.picture_format), size=_parse_size(self.figure_size)
        )


def _parse_formats(text: str | None) -> tuple[str, ...] | None:
    """Return the file formats of pictures in a text; None if the text is None.

    Raises UserError if one of them is not a format in which pictures can be written.
    """
    if text is None:
        return None
    from mrshc.plotting.picture_files import PICTURE_FORMATS

    formats = tuple(dict.fromkeys(parse_keys(text.lower()) or ()))
    for name in formats:
        if name not in PICTURE_FORMATS:
            raise UserError(
                f"--format must be one of {', '.join(PICTURE_FORMATS)}, or several with commas "
                f"between them, got {name!r}."
            )
    return formats


def _parse_size(text: str | None) -> tuple[float, float] | None:
    """Return the width and the height in a text such as "7x5"; None if the text is None.

    Raises UserError if the text is not of this form, or if a length is too small or too large.
    """
    if text is None:
        return None
    from mrshc.plotting.arguments import check_size

    try:
        width, height = (float(part) for part in text.lower().split("x"))
        return check_size((width, height))
    except ValueError:  # includes the error of `check_size`
        raise UserError(
            "--figure-size must be a width and a height in inches, each from 1 to 100, with an x "
            f"between them, such as 7x5, got {text!r}."
        ) from None
